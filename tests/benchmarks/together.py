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


def together(commands: Sequence[str]) -> int:
    """Run shell commands until the first of them ends; return the exit code."""
    running = [subprocess.Popen(["/bin/sh", "-c", f"exec {command}"]) for command in commands]
    try:
        while True:
            ended = [process.returncode for process in running if process.poll() is not None]
            if ended:
                return abs(ended[0]) or 1
            time.sleep(LOOK_EVERY)
    finally:
        for process in running:
            process.terminate()
        deadline = time.monotonic() + PATIENCE
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


def _told_to_end(number: int, frame: FrameType | None) -> None:
    del number, frame
    sys.exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _told_to_end)
    sys.exit(together(sys.argv[1:]))
