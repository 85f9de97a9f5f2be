"""What is measured: the load, the fleet, and what goes wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

CHANGE_INTERVAL: Final = 0.1
"""Seconds between the changes of a job's status."""
REST: Final = 7.0
"""Seconds: our daemon looks at its workers five after the first one is connected."""

Trouble = Literal["", "hung", "flap"]


@attrs.frozen
class Scenario:
    """One measurement. Overrides of the command line make another one of it."""

    name: str
    about: str
    count: int = 300
    """Jobs in a burst."""
    rate: float = 0.0
    """Jobs per second; 0: all at once."""
    duration: float = 60.0
    """Seconds for which jobs are submitted at that rate."""
    workers: int = 3
    rtt: float = 0.0
    """Milliseconds between the controller and the workers, there and back."""
    trouble: Trouble = ""
    """What the last worker does: `hung` accepts connections and never answers, `flap` drops them every 5 s."""
    changes: int = 0
    """How often a job's status changes between its start and its end."""
    preloaded: int = 0
    """Workloads that run on the workers already; the controller is restarted then, instead of getting jobs."""

    idle: bool = False
    """No jobs: what connections to many workers cost; then the controller is restarted, with one job."""
    upstream: bool = False
    """As Kueue's own benchmark: no job runs, and what is measured ends with the admission; see `upstream`."""
    submitters: int = 32
    """How many jobs are submitted at once at most."""
    rest: float = 0.0
    """Seconds without a write of the controller before the first job: workers far away are connected to one after the
    other, and our daemon looks at each of them then."""
    kinds: int = 1
    """Kinds of jobs that all clusters serve and our daemon dispatches; only batch Jobs are submitted."""

    attackers: int = 0
    """Large jobs of another tenant, beside those that are measured; see `tenants`."""

    pods: int = 0
    """Pods that workers make of each job; 0: they make none."""
    interval: float = CHANGE_INTERVAL
    """Seconds between the changes of a job's status, and of its pods'."""
    mirrored: int = 0
    """Pods that are shown at once in the second part of `mirrors`."""
    endless: bool = False
    """Jobs do not end before the measurement does."""

    @property
    def ends(self) -> bool:
        """Whether jobs end."""
        return not self.preloaded and not self.upstream and not self.endless

    @property
    def run_seconds(self) -> float:
        """How long a job runs at least."""
        return self.changes * self.interval

    @property
    def jobs(self) -> int:
        """How many jobs are submitted in all."""
        return max(1, round(self.rate * self.duration)) if self.rate else self.count

    def changed(
        self,
        *,
        count: int | None = None,
        rate: float | None = None,
        duration: float | None = None,
        workers: int | None = None,
        rtt: float | None = None,
        kinds: int | None = None,
        attackers: int | None = None,
        mirrored: int | None = None,
    ) -> Scenario:
        """The scenario with other numbers; `count` jobs at a rate end sooner."""
        result = attrs.evolve(
            self,
            workers=self.workers if workers is None else workers,
            rtt=self.rtt if rtt is None else rtt,
            rate=self.rate if rate is None else rate,
            duration=self.duration if duration is None else duration,
            kinds=self.kinds if kinds is None else kinds,
            attackers=self.attackers if attackers is None else attackers,
            mirrored=self.mirrored if mirrored is None else mirrored,
        )
        if count is None:
            return result
        if self.preloaded:
            return attrs.evolve(result, preloaded=count)
        return attrs.evolve(result, count=count, duration=count / result.rate if result.rate else result.duration)


_ALL: Final = (
    Scenario("burst", "300 jobs at once"),
    Scenario("steady", "10 jobs a second for a minute", rate=10.0),
    Scenario("wan", "workers 100 ms away, 10 jobs a second", rate=10.0, duration=30.0, rtt=100.0, rest=REST),
    Scenario("hung", "one worker of three accepts connections and never answers", trouble="hung"),
    Scenario("flap", "one worker of three drops its connections every 5 s", rate=10.0, trouble="flap"),
    Scenario("scale", "restart the controller over 10,000 running workloads", preloaded=10_000),
    Scenario(
        "wide", "20 workers, 100 ms away, 10 jobs a second", rate=10.0, duration=30.0, workers=20, rtt=100.0, rest=REST
    ),
    Scenario(
        "idle",
        "100 workers 200 ms away, 20 kinds, no jobs: connections, memory; then a start",
        1,
        workers=100,
        rtt=200.0,
        kinds=20,
        idle=True,
    ),
    Scenario("upstream", "Kueue's own benchmark in shape: 1,000 jobs, none runs", 1000, submitters=1, upstream=True),
    Scenario(
        "tenants",
        "2 jobs a second alone, then beside 113 jobs of 1.2 MB that another tenant submits meanwhile",
        rate=2.0,
        duration=60.0,
        workers=2,
        attackers=113,
    ),
    Scenario(
        "mirrors",
        "a burst of jobs with a pod each, mirrors off and then on; 2,000 pods at once; 20 followers of logs",
        changes=2,
        pods=1,
        interval=12.0,
        mirrored=2_000,
    ),
    Scenario("churn", "jobs whose status changes 20 times", rate=5.0, duration=30.0, changes=20),
)
SCENARIOS: Final[Mapping[str, Scenario]] = {scenario.name: scenario for scenario in _ALL}
"""All scenarios by name."""
