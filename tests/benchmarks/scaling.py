"""`scale`: the controller is restarted over many running workloads. How long until it is up to date, at what cost?"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import anyio

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json
from tests.benchmarks import controller, moments, objects
from tests.benchmarks.components import BACKGROUND, CONTROLLER, READS, Requests
from tests.benchmarks.controller import Controller
from tests.benchmarks.fleet import Fleet, fleet
from tests.benchmarks.measuring import Measured, Options, spending, until_active
from tests.benchmarks.scenarios import Scenario
from tests.controlplane.errors import NotReady

_LOOK: Final = 0.25
"""Seconds between two looks at what was asked."""
_PROBE: Final = "probe"


async def measure_restart(scenario: Scenario, options: Options, *, quiet: float = 5.0, idle: float = 75.0) -> Measured:
    """Run the controller over what runs already, stop it, and measure the next one.

    Args:
        scenario: how many run.
        options: of the run.
        quiet: seconds without a watch opened, a write or a decision; then the controller counts as up to date.
        idle: seconds for which its CPU is measured then. What comes once a minute is in them: `gcInterval`.

    Raises:
        ControlPlaneError: something around the measurement does not work.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-controller-") as folder:
        async with fleet(options.kind, scenario, options.manager_kueue) as around:
            config = around.manager.kubeconfig(CONTROLLER)
            async with _running(options, config, Path(folder) / "first") as first:
                await until_active(around, first)
                await _quiet(around, first, options.timeout, quiet)
            around.observer.moments.seen.clear()
            measured = Measured(scenario, options, around.observer.moments)
            before, began = await around.requests(), time.perf_counter()
            async with _running(options, config, Path(folder) / "second") as second:
                async with spending(around, second, measured):
                    await _restart(around, second, measured, began, quiet)
                used = second.usage().cpu
                await anyio.sleep(idle)
                measured.controller_cpu = second.usage().cpu
            asked = {name: counts - before[name] for name, counts in (await around.requests()).items()}
            measured.requests = asked
            measured.extra["scale"]["idle_cpu_percent"] = round(100 * (measured.controller_cpu - used) / idle, 2)
            measured.extra["scale"]["memory_mb"] = round(measured.peak_memory / 1e6, 1)
            measured.extra["scale"]["lists"] = lists(asked)
            return measured


def _running(options: Options, config: Json, folder: Path) -> AbstractAsyncContextManager[Controller]:
    """The controller with a folder of its own: where it serves its metrics is read from its log."""
    folder.mkdir()
    return controller.running(options.command, config, folder)


async def _restart(around: Fleet, second: Controller, measured: Measured, began: float, quiet: float) -> None:
    """A new job is submitted once the new controller has read the manager; at the restart if it does not tell."""
    seen, seconds = around.observer.moments, measured.options.timeout
    read = submitted = began
    try:
        if second.tells:
            read = await has_read(second, seconds)
        await around.user.create(JOB, objects.job(0, _PROBE))
        submitted = time.perf_counter()
        await around.observer.until(
            lambda: seen.count(moments.READY) > 0, seconds=seconds, otherwise="no new job is Ready"
        )
        synced = await _quiet(around, second, seconds, quiet) - began
    except NotReady as error:
        measured.complaint, synced = str(error), float("inf")
    ready = seen.all(moments.READY)
    measured.extra["scale"] = {
        "running": measured.scenario.preloaded,
        "restart_to_synced_s": round(synced, 2),
        "restart_to_manager_read_s": round(read - began, 2) if second.tells else None,
        "restart_to_first_ready_s": round(ready[0] - began, 2) if ready else None,
        "submitted_to_first_ready_s": round(ready[0] - submitted, 2) if ready else None,
    }


async def has_read(tested: Controller, seconds: float) -> float:
    """Wait until the manager's caches are complete; returns when that was seen."""
    with anyio.move_on_after(seconds):
        while not await tested.has_read_the_manager():
            tested.check()
            await anyio.sleep(_LOOK)
        return time.perf_counter()
    raise NotReady(f"the controller has not read the manager after {seconds:g} s")


async def _quiet(around: Fleet, tested: Controller, seconds: float, quiet: float) -> float:
    """Wait until the controller opens no watch, writes nothing and decides nothing any more; returns when it last did.

    Lists come before watches. Those that follow look whether a worker still answers. Only our daemon tells what it
    decides.
    """
    last = time.perf_counter()
    seen: tuple[int, int | None] = (-1, None)
    with anyio.move_on_after(seconds):
        while time.perf_counter() - last < quiet:
            tested.check()
            done = (_asked(await around.requests()), await tested.decisions())
            if done != seen or not done[0]:
                last, seen = time.perf_counter(), done
            await anyio.sleep(_LOOK)
        return last
    raise NotReady(f"the controller still opens watches or writes after {seconds:g} s")


def _asked(requests: dict[str, Requests]) -> int:
    return sum(
        count
        for counts in requests.values()
        for (component, verb, resource), count in counts.items()
        if component == CONTROLLER and verb not in READS and resource not in BACKGROUND
    )


def lists(requests: dict[str, Requests]) -> Json:
    """Pages of lists by cluster and kind."""
    result: Json = {}
    for cluster, counts in requests.items():
        pages: Counter[str] = Counter()
        for (component, verb, resource), count in counts.items():
            if component == CONTROLLER and verb == "list":
                pages[resource] += count
        result[cluster] = dict(pages)
    return result
