"""`python -m tests.benchmarks.together COMMAND...`: run commands side by side, as one controller under test.

Each is a shell's, and all have the environment and the session of this process, so what they use is counted together.
When the first ends, the others get SIGTERM. The exit code is its own, or 1 if it has ended well: no controller ends.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Final

LOOK_EVERY: Final = 0.2
PATIENCE: Final = 15.0
"""Seconds for the others to end by themselves."""


class Signalled:
    """Whether SIGTERM has come. A handler that raised would lose the command that is being started at that moment."""

    def __init__(self) -> None:
        self.seen = False
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.seen = True


def together(commands: Sequence[str], told_to_end: Signalled) -> int:
    """Run shell commands until the first of them ends or a signal tells this one to; return the exit code."""
    running = [subprocess.Popen(["/bin/sh", "-c", f"exec {command}"]) for command in commands]
    try:
        while not told_to_end.seen:
            ended = [process.returncode for process in running if process.poll() is not None]
            if ended:
                return abs(ended[0]) or 1
            time.sleep(LOOK_EVERY)
        return 0
    finally:
        for process in running:
            process.terminate()
        deadline = time.monotonic() + PATIENCE
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


if __name__ == "__main__":
    sys.exit(together(sys.argv[1:], Signalled()))
