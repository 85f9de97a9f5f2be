"""What a run shows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from tests.dispatch.load import GANG, Load
from tests.dispatch.manager import Manager
from tests.dispatch.workloads import Workload

HOUR: Final = 3600.0
Measures = Mapping[str, float]


def quantile(values: Sequence[float], share: float) -> float:
    """Of sorted values; NaN of none."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else math.nan


def mean(values: Iterable[float]) -> float:
    """NaN of none."""
    listed = list(values)
    return fmean(listed) if listed else math.nan


def over_seeds(runs: Sequence[Measures]) -> Measures:
    """Means; of intervals: over all that were told."""
    counts = [run.get("interval_told", 0.0) for run in runs]
    means = {key: mean(run[key] for run in runs) for key in runs[0]}
    weighed = {
        key: sum(run[key] * count for run, count in zip(runs, counts, strict=True) if count) / sum(counts)
        for key in ("interval_right", "interval_width")
        if sum(counts)
    }
    return {**means, **weighed}


def waits(workloads: Sequence[Workload], prefix: str) -> dict[str, float]:
    """Seconds from submission to the start that counted."""
    seconds = sorted(w.started - w.job.submit for w in workloads if w.started is not None)
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
    return {f"{prefix}mean": mean(seconds)} | {f"{prefix}{name}": quantile(seconds, q) for name, q in shares.items()}


def largest_tenth(workloads: Sequence[Workload]) -> list[Workload]:
    """By size."""
    return sorted(workloads, key=lambda w: -w.job.size)[: max(1, len(workloads) // 10)]


def jain(values: Sequence[float]) -> float:
    """1: all the same; 1/n: one has all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else math.nan


def fairness(workloads: Sequence[Workload], score: Callable[[Workload], float]) -> float:
    """Jain's index of the tenants' means; tenants with less than 20 jobs are left out."""
    tenants: dict[str, list[float]] = defaultdict(list)
    for workload in workloads:
        tenants[workload.job.tenant].append(score(workload))
    return jain([fmean(scores) for scores in tenants.values() if len(scores) >= 20])


def promises(workloads: Sequence[Workload]) -> dict[str, float]:
    """How many intervals of the start were told, how many of them were right, and how wide they were."""
    intervals = [(w.promised, w.started - w.reserved) for w in workloads if w.promised and w.started and w.reserved]
    return {
        "interval_told": len(intervals),
        "interval_right": mean(interval.earliest <= wait <= interval.latest for interval, wait in intervals),
        "interval_width": mean(interval.latest - interval.earliest for interval, _ in intervals),
    }


def _slowdown(workload: Workload) -> float:
    """Response over run time: 1 if it never waited. What runs for less than a minute counts as a minute."""
    if workload.ended is None or workload.started is None:
        return math.nan
    return max(1.0, (workload.ended - workload.job.submit) / max(60.0, workload.ended - workload.started))


def measure(manager: Manager, load: Load) -> Measures:
    """All of it, of a run that has ended."""
    done = [w for w in manager.workloads if w.ended is not None and not w.given_up]
    own = [run for site in manager.sites.values() for run in site.own]
    own_waits = sorted(run.started - run.job.submit for run in own if run.started is not None)
    makespan = max((w.ended for w in done if w.ended is not None), default=0.0)
    hung = sorted(seconds for site in manager.sites.values() for seconds in site.hung)
    with_data = [w for w in done if w.job.region]
    staged = [w for w in with_data if w.winner and manager.sites[w.winner].worker.region != w.job.region]
    jobs = max(1, len(manager.workloads))
    return {
        **waits(done, "wait_"),
        **waits(largest_tenth(done), "largest_"),
        **waits([w for w in done if w.job.kind == GANG], "gang_"),
        "response_mean": mean(w.ended - w.job.submit for w in done if w.ended is not None),
        "utilization": _utilization(manager, done, makespan),
        "requests": sum(w.requests for w in manager.workloads) / jobs,
        "writes": sum(w.writes for w in manager.workloads) / jobs,
        "looks": sum(w.looks for w in manager.workloads) / jobs,
        "lost_admissions": manager.lost_admissions / jobs,
        "evictions": sum(w.evictions for w in manager.workloads),
        "preemptions": sum(w.preemptions for w in manager.workloads),
        "staged": len(staged) / len(with_data) if with_data else math.nan,
        "cost": sum(_cost(manager, w) for w in done),
        "own_mean": mean(own_waits),
        "own_p99": quantile(own_waits, 0.99),
        "hung_h": sum(hung) / HOUR,
        "hung_p99": quantile(hung, 0.99),
        "makespan_h": makespan / HOUR,
        "jain": fairness(done, _slowdown),
        **promises(done),
        "unfinished": len(load.jobs) - len(done),
        "impossible": load.impossible,
    }


def _cost(manager: Manager, workload: Workload) -> float:
    if workload.ended is None or workload.started is None or workload.winner is None:
        return 0.0
    rate = manager.sites[workload.winner].worker.cost
    return workload.job.size * (workload.ended - workload.started) / HOUR * rate


def _utilization(manager: Manager, done: Sequence[Workload], makespan: float) -> float:
    """The share of all GPUs that jobs used, workers' own users' too."""
    capacity = sum(site.worker.gpus for site in manager.sites.values()) * makespan
    used = sum(
        run.job.size * min(run.job.runtime / site.worker.flavors[0].speed, max(0.0, makespan - run.started))
        for site in manager.sites.values()
        for run in site.own
        if run.started is not None
    )
    used += sum(w.job.size * (w.ended - w.started) for w in done if w.ended is not None and w.started is not None)
    return used / capacity if capacity else math.nan
