"""Components never outlive the test run, and say why they ended. For Linux: it looks into /proc."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from tests.controlplane.errors import NotReady, ProcessEnded
from tests.controlplane.polling import poll_until
from tests.controlplane.processes import ChildProcess

_TEST_RUN = """
import sys, anyio
from pathlib import Path
from tests.controlplane.processes import ChildProcess

async def main():
    process = ChildProcess("sleeper", Path(sys.argv[1]))
    await process.start(["/bin/sh", "-c", "echo $$; exec sleep 600"])
    await anyio.sleep_forever()

anyio.run(main)
"""


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _state(pid: int) -> str:
    """Return the kernel's letter for the process's state; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


async def _pid_in(log: Path) -> int:
    async def written() -> bool:
        return _text(log).endswith("\n")

    await poll_until(written, seconds=10, otherwise="the process wrote nothing")
    return int(_text(log).split()[-1])


async def _gone(pid: int) -> None:
    async def gone() -> bool:
        return _state(pid) in ("Z", "")

    await poll_until(gone, seconds=10, otherwise=f"process {pid} is still there")


async def test_a_killed_component_takes_its_own_children_along(tmp_path: Path) -> None:
    process = ChildProcess("parent", tmp_path / "log")
    await process.start(["/bin/sh", "-c", "sleep 600 & echo $!; wait"])
    child = await _pid_in(tmp_path / "log")
    await process.kill()
    await _gone(child)
    assert not process.running
    await process.kill()  # a second time does no harm


async def test_components_end_even_when_the_test_run_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", _TEST_RUN, str(log)]
    async with await anyio.open_process(command, cwd=Path(__file__).parents[2]) as run:
        pid = await _pid_in(log)
        run.kill()
    await _gone(pid)


async def test_a_component_that_exits_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    process = ChildProcess("etcd of a", tmp_path / "log")
    await process.start(["/bin/sh", "-c", "echo bind: address already in use; exit 3"])

    async def never() -> bool:
        return False

    with pytest.raises(ProcessEnded, match=r"etcd of a exited with code 3; .*\n.*already in use") as caught:
        await process.wait_until(never, seconds=10)
    assert caught.value.port_taken
    await process.kill()


async def test_a_component_that_never_gets_ready_is_reported_too(tmp_path: Path) -> None:
    process = ChildProcess("etcd of a", tmp_path / "log")
    await process.start(["/bin/sh", "-c", "echo still trying; exec sleep 600"])
    await _log_has(process, "still trying")

    async def never() -> bool:
        return False

    with pytest.raises(NotReady, match=r"etcd of a was not ready after 0.1 s; .*\nstill trying"):
        await process.wait_until(never, seconds=0.1)
    await process.kill()


async def test_a_paused_component_goes_on_when_resumed(tmp_path: Path) -> None:
    process = ChildProcess("sleeper", tmp_path / "log")
    await process.start(["/bin/sh", "-c", "echo $$; exec sleep 600"])
    pid = await _pid_in(tmp_path / "log")

    async def goes_on() -> bool:
        return _state(pid) != "T"

    await process.pause()
    assert _state(pid) == "T"
    process.resume()
    await poll_until(goes_on, seconds=5, otherwise="it did not go on")
    await process.kill()


async def test_a_stopped_component_can_still_be_killed(tmp_path: Path) -> None:
    process = ChildProcess("sleeper", tmp_path / "log")
    await process.start(["/bin/sh", "-c", "echo $$; exec sleep 600"])
    pid = await _pid_in(tmp_path / "log")
    os.kill(pid, signal.SIGSTOP)
    await process.kill()
    await _gone(pid)


async def _log_has(process: ChildProcess, text: str) -> None:
    async def there() -> bool:
        return text in process.log_tail()

    await poll_until(there, seconds=10, otherwise=f"the log never said {text!r}")
