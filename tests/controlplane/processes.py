"""Child processes that are always ended, with their output in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import anyio
import attrs
from anyio.abc import Process

from tests.controlplane.errors import NotReady, ProcessEnded
from tests.controlplane.polling import poll_until

_TETHER = Path(__file__).with_name("tether.py")
_STOP_SECONDS = 10.0  # a killed process is gone in milliseconds; this bounds cleanup on an overloaded machine


@attrs.define(eq=False)
class ChildProcess:
    """One component: started, killed and started again under the same name, logging to one file.

    It has a process group of its own, so that Ctrl-C in a terminal reaches only the test run, and dies with the test
    run even if that is killed (`tether.py`).
    """

    name: str
    log: Path
    _process: Process | None = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Its process id; None while it does not run."""
        return self._process.pid if self._process is not None and self.running else None

    async def start(self, command: Sequence[str]) -> None:
        """Start it; its output is appended to the log."""
        await self.kill()
        tether = [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid())]
        with self._open_log() as output:
            self._process = await anyio.open_process(
                [*tether, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    async def kill(self) -> None:
        """End its whole process group at once (SIGKILL) and wait for it. Does nothing if it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        with anyio.CancelScope(shield=True), anyio.fail_after(_STOP_SECONDS):
            if process.returncode is None:
                _signal_group(process.pid, signal.SIGKILL)
            await process.aclose()

    async def pause(self) -> None:
        """Freeze it (SIGSTOP), and return once each thread has stopped: its sockets stay open, and it does nothing.

        The signal alone proves nothing: a thread that is running goes on until it is interrupted, and may answer.
        """
        self._signal(signal.SIGSTOP)
        if self.pid is not None:
            await anyio.to_thread.run_sync(os.waitid, os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    async def wait_until(self, ready: Callable[[], Awaitable[bool]], *, seconds: float) -> None:
        """Ask `ready` again and again until it says yes.

        Raises:
            ProcessEnded: it exited by itself meanwhile.
            NotReady: `seconds` have passed.
        """

        async def ready_or_ended() -> bool:
            self.check()
            return await ready()

        try:
            await poll_until(
                ready_or_ended, seconds=seconds, otherwise=f"{self.name} was not ready after {seconds:g} s"
            )
        except NotReady as error:
            raise NotReady(f"{error}; the end of its log:\n{self.log_tail()}") from None

    def check(self) -> None:
        """Raise `ProcessEnded` if it exited by itself."""
        if self._process is not None and self._process.returncode is not None:
            raise ProcessEnded(self.name, self._process.returncode, self.log_tail())

    def log_tail(self, lines: int = 15) -> str:
        """Return the last lines of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            _signal_group(self._process.pid, number)

    def _open_log(self) -> BinaryIO:
        return self.log.open("ab")


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return  # it ended between the look and the signal
