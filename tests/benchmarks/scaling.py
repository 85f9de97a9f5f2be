"""`scale`: the controller is restarted over many running workloads. How long until it is up to date, at what cost?"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import anyio

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json
from tests.benchmarks import controller, moments, objects
from tests.benchmarks.components import BACKGROUND, CONTROLLER, Requests
from tests.benchmarks.controller import Controller
from tests.benchmarks.fleet import Fleet, fleet
from tests.benchmarks.measuring import Measured, Options, spending, until_active
from tests.benchmarks.scenarios import Scenario
from tests.controlplane.errors import NotReady

_LOOK: Final = 0.25
"""Seconds between two looks at what was asked."""
_QUIET: Final = 5.0
"""Seconds without a request after which the controller counts as up to date."""
_IDLE: Final = 20.0
"""Seconds for which its CPU is measured then."""
_PROBE: Final = "probe"


async def measure_restart(scenario: Scenario, options: Options) -> Measured:
    """Run the controller over what runs already, stop it, and measure the next one.

    Raises:
        ControlPlaneError: something around the measurement does not work.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-controller-") as folder:
        async with fleet(options.kind, scenario, options.manager_kueue) as around:
            config = around.manager.kubeconfig(CONTROLLER)
            async with controller.running(options.command, config, Path(folder)) as first:
                await until_active(around, first)
                await _quiet(around, first, options.timeout)
            around.observer.moments.seen.clear()
            measured = Measured(scenario, options, around.observer.moments)
            before, began = await around.requests(), time.perf_counter()
            async with controller.running(options.command, config, Path(folder)) as second:
                async with spending(around, second, measured):
                    await _restart(around, second, measured, began)
                idle = second.usage().cpu
                await anyio.sleep(_IDLE)
                idle = (second.usage().cpu - idle) / _IDLE
                measured.controller_cpu = second.usage().cpu
            asked = {name: found - before[name] for name, found in (await around.requests()).items()}
            measured.requests = asked
            measured.extra["scale"]["idle_cpu_percent"] = round(100 * idle, 2)
            measured.extra["scale"]["memory_mb"] = round(measured.peak_memory / 1e6, 1)
            measured.extra["scale"]["lists"] = _lists(asked)
            return measured


async def _restart(around: Fleet, second: Controller, measured: Measured, began: float) -> None:
    """A new job is submitted at the restart: when it is Ready, the new controller works."""
    await around.user.create(JOB, objects.job(0, _PROBE))
    seen, seconds = around.observer.moments, measured.options.timeout
    try:
        await around.observer.until(
            lambda: seen.count(moments.READY) > 0, seconds=seconds, otherwise="no new job is Ready"
        )
        synced = await _quiet(around, second, seconds) - began
    except NotReady as error:
        measured.complaint, synced = str(error), float("inf")
    ready = seen.all(moments.READY)
    measured.extra["scale"] = {
        "running": measured.scenario.preloaded,
        "restart_to_synced_s": round(synced, 2),
        "restart_to_first_ready_s": round(ready[0] - began, 2) if ready else None,
    }


async def _quiet(around: Fleet, tested: Controller, seconds: float) -> float:
    """Wait until the controller asks for nothing any more; returns when it last did."""
    last, seen = time.perf_counter(), -1
    with anyio.move_on_after(seconds):
        while time.perf_counter() - last < _QUIET:
            tested.check()
            asked = _asked(await around.requests())
            if asked != seen or not asked:
                last, seen = time.perf_counter(), asked
            await anyio.sleep(_LOOK)
        return last
    raise NotReady(f"the controller still asks for something after {seconds:g} s")


def _asked(requests: dict[str, Requests]) -> int:
    return sum(
        count
        for found in requests.values()
        for (component, _, resource), count in found.items()
        if component == CONTROLLER and resource not in BACKGROUND
    )


def _lists(requests: dict[str, Requests]) -> Json:
    """Pages of lists by cluster and kind."""
    result: Json = {}
    for cluster, found in requests.items():
        pages: Counter[str] = Counter()
        for (component, verb, resource), count in found.items():
            if component == CONTROLLER and verb == "list":
                pages[resource] += count
        result[cluster] = dict(pages)
    return result
