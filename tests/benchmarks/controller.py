"""The controller under test: a command in a shell, that is told how to reach the manager and nothing else."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import attrs
import yaml
from anyio.abc import Process

from multikueue.core.model.names import Json
from multikueued.demo.jobs import frameworks_of
from tests.benchmarks import kinds, scraping, usage
from tests.benchmarks.usage import Usage
from tests.controlplane.credentials import write_kubeconfig
from tests.controlplane.errors import ProcessEnded

_SETTINGS: Final = Path(__file__).with_name("settings.yaml")
_PROFILED: Final = Path(__file__).with_name("profiled.py")
_TETHER: Final = Path(__file__).parents[1] / "controlplane" / "tether.py"
_STOP_SECONDS: Final = 20.0


def default_command(profile: Path | None = None, dispatcher: str = "", kinds: int = 1, *, mirrors: bool = False) -> str:
    """Our own daemon.

    Args:
        profile: where cProfile's findings are wanted.
        dispatcher: in place of the one that it uses by itself.
        kinds: how many it dispatches; see `kinds.first`.
        mirrors: whether it shows the pods of runs on the manager.
    """
    daemon = ["-m", "multikueued"] if profile is None else [str(_PROFILED), str(profile.absolute())]
    if not dispatcher and kinds == 1 and not mirrors:
        # exec: the shell ends with the benchmark, whatever ends that, and what it had started would go on.
        return f"exec {shlex.join([sys.executable, *daemon, 'run', '--config', str(_SETTINGS)])}"
    settings = _SETTINGS.read_text() + yaml.safe_dump(_chosen(dispatcher, kinds, mirrors), sort_keys=False)
    run = shlex.join([sys.executable, *daemon, "run", "--config"])
    return f'printf %s {shlex.quote(settings)} > "$KUBECONFIG.settings" && exec {run} "$KUBECONFIG.settings"'


def _chosen(dispatcher: str, count: int, mirrors: bool) -> Json:
    settings: Json = {"dispatcher": {"name": dispatcher}} if dispatcher else {}
    if mirrors:
        settings["mirrorPods"] = {"logs": True, "address": "127.0.0.1"}
    if count > 1:
        names, declared = frameworks_of(kinds.first(count))
        settings |= {
            "integrations": {"frameworks": names},
            "externalFrameworks": [{"name": declaration.name} for declaration in declared],
        }
    return settings


@attrs.define(eq=False)
class Controller:
    """A running command."""

    log: Path
    tells: bool
    """Whether it is our daemon, which tells what it has read."""
    _process: Process

    def usage(self) -> Usage:
        """What its whole session has used."""
        return usage.of_processes(usage.session_of(self._process.pid))

    def connections(self, ports: Collection[int]) -> int:
        """How many connections its session has open to these ports."""
        return usage.connections(usage.session_of(self._process.pid), ports)

    async def decisions(self) -> int | None:
        """How many decisions it has made, if it is our daemon."""
        return await anyio.to_thread.run_sync(scraping.decisions, self.log)

    async def has_read_the_manager(self) -> bool:
        """Whether the manager's caches are complete; for our daemon only, others do not say."""
        return await anyio.to_thread.run_sync(scraping.has_read_the_manager, self.log)

    def check(self) -> None:
        """Raise `ProcessEnded` if it has ended by itself."""
        if self._process.returncode is not None:
            raise ProcessEnded("the controller under test", self._process.returncode, tail(self.log))


@asynccontextmanager
async def running(command: str, kubeconfig: Json, folder: Path, **more: str) -> AsyncIterator[Controller]:
    """Run the command until the block ends; then its process group is told to end, and killed if it does not.

    Args:
        command: for a shell.
        kubeconfig: of the manager.
        folder: where its log and kubeconfig are kept.
        more: variables of its environment.
    """
    config, log = write_kubeconfig(folder / "manager.kubeconfig", kubeconfig), folder / "controller.log"
    tethered = [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), "/bin/sh", "-c", command]
    with log.open("ab") as output:
        process = await anyio.open_process(
            tethered,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "KUBECONFIG": str(config), **more},
        )
    try:
        yield Controller(log, "multikueued" in command, process)
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


async def _stop(process: Process) -> None:
    for number, seconds in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, _STOP_SECONDS)):
        if process.returncode is not None:
            break
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        with anyio.move_on_after(seconds):
            await process.wait()
    await process.aclose()


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
