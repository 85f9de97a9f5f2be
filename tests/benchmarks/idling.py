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

REST: Final = 170.0
"""Seconds until connections are counted: by then the kinds have been looked at once more (`kind_watch.LATE_LOOK`)."""
IDLE: Final = 180.0
"""Seconds for which CPU is measured. What comes every five minutes is in them: the kinds that a worker serves."""
LOOKS: Final = 12
"""How often connections are counted meanwhile."""


async def measure_idle(scenario: Scenario, options: Options, *, rest: float = REST, idle: float = IDLE) -> Measured:
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
                used, open_ones = tested.usage(), []
                for _ in range(LOOKS):
                    open_ones.append(tested.connections(around.ports))
                    await anyio.sleep(idle / LOOKS)
                now = tested.usage()
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
                "cpu_percent": round(100 * (now.cpu - used.cpu) / idle, 2),
                "start_to_first_ready_s": round(ready[0] - began, 2) if ready else None,
                "listed_on_worker1": asked["worker1"],
            }
            return measured
