"""`upstream`: Kueue's own MultiKueue benchmark in shape, and its four numbers.

One manager, three workers, 1,000 jobs one after the other as fast as the manager takes them; no job runs. Each is
timed from just before the request that creates it until its Workload is seen with quota, and admitted. Kueue's creates
the Workloads, too; here its controller does.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import click

from multikueue.core.model.names import Json
from tests.benchmarks import controller, moments
from tests.benchmarks.components import CONTROLLER
from tests.benchmarks.fleet import Fleet, fleet
from tests.benchmarks.measuring import Measured, Options, spending, submit, until_active
from tests.benchmarks.moments import quantiles
from tests.benchmarks.scenarios import Scenario
from tests.controlplane.errors import NotReady


class NotUpstream(click.ClickException):
    """A run that says nothing beside Kueue's own benchmark."""

    exit_code = 2


def require_kueues(options: Options, command: str | None) -> None:
    """Refuse to measure without a real Kueue on all sides.

    Args:
        options: of the run.
        command: the controller under test that was asked for, which brings the manager's Kueue; None: our daemon alone.

    Raises:
        NotUpstream: something is simulated.
    """
    if options.kind == "real" and options.manager_kueue == "none" and options.worker_kueue and command:
        return
    raise NotUpstream(
        "nothing is measured: beside Kueue's own benchmark only a real Kueue on all sides counts: --control-plane "
        "real, --manager-kueue none with a --controller that brings it, and --worker-kueue"
    )


async def measure_upstream(scenario: Scenario, options: Options) -> Measured:
    """Run it once; the four numbers are there if all were admitted.

    Raises:
        ControlPlaneError: something around the measurement does not work.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-controller-") as folder:
        async with (
            fleet(options.kind, scenario, options.manager_kueue, options.worker_kueue) as around,
            controller.running(options.command, around.manager.kubeconfig(CONTROLLER), Path(folder)) as tested,
        ):
            await until_active(around, tested)
            seen = around.observer.moments
            measured = Measured(scenario, options, seen)

            def admitted() -> bool:
                tested.check()
                return seen.count(moments.ADMITTED_HERE) >= scenario.jobs

            async with spending(around, tested, measured):
                await submit(around, scenario)
                try:
                    await around.observer.until(admitted, seconds=options.timeout, otherwise="not all are admitted")
                except NotReady as error:
                    measured.complaint = f"{error}; {seen.count(moments.ADMITTED_HERE)} of {scenario.jobs} are"
            if not measured.complaint:
                measured.extra["upstream"] = _numbers(around)
            return measured


def _numbers(around: Fleet) -> Json:
    seen = around.observer.moments
    placed = Counter(around.observer.placed.values())

    def p95(what: str) -> float:
        return float(quantiles(seconds for _, seconds in seen.between(moments.SUBMITTED, what))["p95"])

    return {
        "admitted_per_s": round(seen.rate(moments.ADMITTED_HERE, since=moments.SUBMITTED), 2),
        "admitted_p95_ms": p95(moments.ADMITTED_HERE),
        "quota_p95_ms": p95(moments.QUOTA),
        "spread": {worker.name: placed[worker.name] for worker in around.workers},
    }
