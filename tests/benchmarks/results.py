"""From what was measured to numbers: the JSON line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from multikueue.core.model.names import Json
from tests.benchmarks import moments
from tests.benchmarks.components import BACKGROUND, CONTROLLER, READS, WATCHES
from tests.benchmarks.machine import machine
from tests.benchmarks.measuring import Measured
from tests.benchmarks.moments import LATENCIES, quantiles

_MANAGER: Final = "manager"


def result_of(measured: Measured) -> Json:
    """All numbers of a run."""
    scenario, seen = measured.scenario, measured.moments
    jobs = max(1, seen.count(moments.CREATED))
    own = controller_requests(measured)
    workers = {cluster: asked for cluster, asked in own.items() if cluster != _MANAGER}
    on_workers, at_home = _total(workers), _total({_MANAGER: own[_MANAGER]})
    return {
        "scenario": scenario.name,
        "control_plane": measured.options.kind,
        "jobs": scenario.jobs,
        "workers": scenario.workers,
        "kinds": scenario.kinds,
        "rtt_ms": scenario.rtt,
        "offered_per_s": scenario.rate or None,
        "ready": seen.count(moments.READY),
        "finished": seen.count(moments.FINISHED),
        "rate_per_s": round(seen.rate(moments.READY), 2),
        "finished_per_s": round(seen.rate(moments.FINISHED), 2),
        "worker_requests_per_workload": round((on_workers["reads"] + on_workers["writes"]) / jobs, 2),
        "worker_reads_per_workload": round(on_workers["reads"] / jobs, 2),
        "manager_requests_per_workload": round((at_home["reads"] + at_home["writes"]) / jobs, 2),
        "manager_reads_per_workload": round(at_home["reads"] / jobs, 2),
        "decisions_per_workload": None if measured.decisions is None else round(measured.decisions / jobs, 2),
        "watches_opened": on_workers["watches"] + at_home["watches"],
        "controller_cpu_ms_per_workload": round(measured.controller_cpu * 1000 / jobs, 2),
        "controller_kernel_ms_per_workload": round(measured.controller_system * 1000 / jobs, 2),
        "controller_peak_memory_mb": round(measured.peak_memory / 1e6, 1),
        "latency_ms": {name: quantiles(_latencies(measured, name)) for name in LATENCIES},
        "seconds": round(measured.seconds, 2),
        "cpu_seconds": {"controller": round(measured.controller_cpu, 2), **_rounded(measured.cpu)},
        "requests": {
            cluster: {f"{verb} {resource}": count for (verb, resource), count in sorted(asked.items())}
            for cluster, asked in own.items()
        },
        "requests_of_others": _of_others(measured),
        **measured.extra,
        "complaint": measured.complaint or None,
        "dispatcher": measured.options.dispatcher or None,
        "command": measured.options.command,
        "machine": machine(),
    }


def _latencies(measured: Measured, name: str) -> Iterator[float]:
    """In seconds; those until the end are without the time that the job ran."""
    run = measured.scenario.run_seconds if name == "created_finished" else 0.0
    return (seconds - run for _, seconds in measured.moments.latencies(name))


def controller_requests(measured: Measured) -> dict[str, Counter[tuple[str, str]]]:
    """What the controller under test has asked of each cluster, by verb and resource, but for leases."""
    by_cluster = {}
    for cluster, requests in measured.requests.items():
        by_cluster[cluster] = Counter(
            {
                (verb, resource): count
                for (component, verb, resource), count in requests.items()
                if component == CONTROLLER and resource not in BACKGROUND
            }
        )
    return by_cluster


def _total(requests: dict[str, Counter[tuple[str, str]]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for asked in requests.values():
        for (verb, _), count in asked.items():
            kind = "reads" if verb in READS else "watches" if verb in WATCHES else "writes"
            total[kind] += count
    return total


def _of_others(measured: Measured) -> Json:
    total: Counter[str] = Counter()
    for cluster, requests in measured.requests.items():
        side = _MANAGER if cluster == _MANAGER else "workers"
        for (component, verb, _), count in requests.items():
            if component != CONTROLLER and verb not in READS | WATCHES:
                total[f"{component} on {side}"] += count
    return dict(total)


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in values.items()}
