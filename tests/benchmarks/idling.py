"""`idle`: what connections to many workers cost while nothing runs, and how soon after a start a job is Ready."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

import anyio

from multikueue.core.model.kinds import JOB
from tests.benchmarks import controller, moments, objects
from tests.benchmarks.components import CONTROLLER
from tests.benchmarks.fleet import fleet
from tests.benchmarks.measuring import Measured, Options, spending, until_active
from tests.benchmarks.scaling import lists
from tests.benchmarks.scenarios import Scenario
from tests.controlplane.errors import NotReady

PERIOD: Final = 300.0
"""Seconds within which all that comes while nothing runs has come once: a watch is renewed, kinds are asked for."""
REST: Final = 240.0
"""Seconds until anything counts: by then each kind has been looked at once more (`kind_watch.LATE_LOOK`)."""
BUSY: Final = 120.0
"""Seconds into which falls, of every worker, what comes once in a `PERIOD` after it was connected."""
QUIET: Final = 30.0
"""Seconds without any of that."""
LOOKS: Final = 12
"""How often connections are counted meanwhile."""


async def measure_idle(
    scenario: Scenario, options: Options, *, rest: float = REST, busy: float = BUSY, quiet: float = QUIET
) -> Measured:
    """Run the controller without jobs, stop it, and see when the next one has a job Ready.

    Raises:
        ControlPlaneError: something around the measurement does not work.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-controller-") as folder:
        async with fleet(options.kind, scenario, options.manager_kueue) as around:
            config = around.manager.kubeconfig(CONTROLLER)
            measured = Measured(scenario, options, around.observer.moments)
            first, second = Path(folder) / "first", Path(folder) / "second"
            first.mkdir()
            second.mkdir()
            async with controller.running(options.command, config, first) as tested, spending(around, tested, measured):
                await until_active(around, tested)
                await anyio.sleep(rest)
                begun, open_ones = tested.usage().cpu, []
                for _ in range(LOOKS):
                    open_ones.append(tested.connections(around.ports))
                    await anyio.sleep(busy / LOOKS)
                in_busy = tested.usage().cpu - begun
                await anyio.sleep(quiet)
                now = tested.usage()
                at_rest = (now.cpu - begun - in_busy) / quiet
                asked = lists(await around.requests())
            await around.user.create(JOB, objects.job(0))
            began, seen = time.perf_counter(), around.observer.moments
            async with controller.running(options.command, config, second):
                try:
                    await around.observer.until(
                        lambda: seen.count(moments.READY) > 0, seconds=options.timeout, otherwise="the job is not Ready"
                    )
                except NotReady as error:
                    measured.complaint = str(error)
                ready = seen.all(moments.READY)
            measured.extra["idle"] = {
                "connections_per_worker": round(median(open_ones) / scenario.workers, 2),
                "connections_per_worker_at_most": round(max(open_ones) / scenario.workers, 2),
                "memory_mb": round(now.memory / 1e6, 1),
                "cpu_percent": round(100 * (in_busy + at_rest * (PERIOD - busy)) / PERIOD, 2),
                "cpu_percent_between": round(100 * at_rest, 2),
                "start_to_first_ready_s": round(ready[0] - began, 2) if ready else None,
                "listed_on_worker1": asked["worker1"],
            }
            return measured
