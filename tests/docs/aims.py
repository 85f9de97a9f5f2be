"""What was aimed at, beside what the result files show: rows of the page of performance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from multikueue.core.model.names import Json
from tests.benchmarks.compare import Spread, read

Number = Callable[[Json], float]


@attrs.frozen
class Aim:
    """One number of a run, and the most or the least that it should be."""

    what: str
    runs: str
    """A folder of `docs/results` with a file per run."""
    number: Number
    limit: float
    at_least: bool = False
    unit: str = ""
    times: tuple[str, Number] | None = None
    """The limit is this many times another number: of these runs."""

    def row(self, results: Path) -> str:
        """A line of a table in Markdown; it says so where there are no runs."""
        sign = "≥" if self.at_least else "≤"
        unit = f" {self.unit}" if self.unit else ""
        aim, limit = f"{sign} {self.limit:g}{unit}", self.limit
        measured = _spread(results / self.runs, self.number)
        if self.times is not None:
            folder, number = self.times
            other = _spread(results / folder, number)
            aim = f"{sign} {self.limit:g} times `{folder}`"
            if other is None:
                measured = None
            else:
                limit *= other.middle
                aim += f" ({other}{unit})"
        if measured is None:
            return f"| {self.what} | {aim} | not measured | |"
        reached = measured.middle >= limit if self.at_least else measured.middle <= limit
        return f"| {self.what} | {aim} | {measured}{unit}, `{self.runs}` | {'yes' if reached else '**no**'} |"


def _spread(folder: Path, number: Number) -> Spread | None:
    return Spread(tuple(number(run) for run in read(folder))) if folder.is_dir() else None


def at(*path: str) -> Number:
    """The number at such a path of a result."""

    def number_at(run: Json) -> float:
        value: object = run
        for step in path:
            assert isinstance(value, dict)
            value = value[step]
        assert isinstance(value, int | float)
        return float(value)

    return number_at


def _cpu_of(*parts: str) -> Number:
    """Milliseconds of CPU per workload of the parts whose names end so."""

    def cpu_of_parts(run: Json) -> float:
        seconds = sum(spent for name, spent in run["cpu_seconds"].items() if name.endswith(parts))
        return float(1000 * seconds / run["jobs"])

    return cpu_of_parts


def _writes_to_manager(run: Json) -> float:
    return float(run["manager_requests_per_workload"] - run["manager_reads_per_workload"])


_MIRRORS: Final = "mirrors"


def _shown(*path: str) -> Number:
    return at(_MIRRORS, *path)


def _ready(rank: str) -> Aim:
    """What mirrors may add to the way of a job."""
    on, off = (_shown("burst", state, "created_ready_ms", rank) for state in ("on", "off"))
    return Aim(
        f"created → Ready of a burst, {rank}, to that without", _MIRRORS, on, 1.05, unit="ms", times=("mirrors", off)
    )


MIRRORS: Final = (
    _ready("p50"),
    _ready("p99"),
    Aim("pods of it that are not mirrored", _MIRRORS, _shown("not_mirrored"), 0),
    Aim(
        "requests to the manager per pod, from its beginning to its end",
        _MIRRORS,
        _shown("burst", "on", "requests_per_pod"),
        6,
    ),
    Aim("2,000 pods at once: until all are mirrored", _MIRRORS, _shown("many", "on", "all_mirrored_s"), 60, unit="s"),
    Aim("memory of the daemon per 1,000 mirrors", _MIRRORS, _shown("memory_mb_per_1000"), 15, unit="MB"),
    Aim(
        "20 followers of logs: CPU of who answers them",
        _MIRRORS,
        _shown("followers", "cpu_percent"),
        5,
        unit="% of a core",
    ),
)
"""What mirrors may cost."""

_CPU: Final = at("controller_cpu_ms_per_workload")
_DECISIONS: Final = at("decisions_per_workload")
_SCALE: Final = "scale-50000"
_SYNCED: Final = at("scale", "restart_to_synced_s")
_SCORED: Final = "burst-300-sandbox-scored"
_REAL_SCORED: Final = "burst-100/scored"
_TO_WORKERS: Final = at("worker_requests_per_workload")
_EVERYTHING: Final = _cpu_of("")
_READY_P99: Final = at("latency_ms", "created_ready", "p99")


def _idle(runs: str, what: str, connections: int) -> tuple[Aim, ...]:
    """What 100 workers cost that serve 20 kinds."""
    return (
        Aim(f"{what}: connections per worker", runs, at("idle", "connections_per_worker"), connections),
        Aim("memory then", runs, at("idle", "memory_mb"), 350, unit="MB"),
        Aim("CPU then", runs, at("idle", "cpu_percent"), 1, unit="% of a core"),
        Aim("the next start, until a job is Ready", runs, at("idle", "start_to_first_ready_s"), 10, unit="s"),
    )


AIMS: Final = (
    Aim("CPU of our daemon per workload, burst on the sandbox", "burst-300-sandbox", _CPU, 4, unit="ms"),
    Aim("the same on real servers", "burst-300", _CPU, 6, unit="ms"),
    Aim("decisions per workload, burst on the sandbox", "burst-300-sandbox", _DECISIONS, 10),
    Aim("the same on real servers", "burst-300", _DECISIONS, 10),
    Aim("Ready per second, burst on the sandbox", "burst-300-sandbox", at("rate_per_s"), 60, at_least=True),
    Aim("CPU of its servers per workload", "burst-300-sandbox", _cpu_of("apiserver"), 12, unit="ms"),
    Aim("CPU of everything per workload, burst on real servers", "burst-300", _EVERYTHING, 130, unit="ms"),
    Aim("writes to the manager per workload, burst on the sandbox", "burst-300-sandbox", _writes_to_manager, 5.1),
    Aim("the same on real servers", "burst-300", _writes_to_manager, 5.1),
    Aim(
        "steady 5/s, 1,500 jobs, real servers: admitted on worker → Ready, p95",
        "steady-5",
        at("latency_ms", "admitted_ready", "p95"),
        90,
        unit="ms",
    ),
    Aim(
        "20 workers 100 ms away, 1/s: created → Ready, p99",
        "wide-1",
        _READY_P99,
        1.3,
        unit="ms",
        times=("wan-1", _READY_P99),
    ),
    Aim("CPU of our daemon per workload there", "wide-1", _CPU, 15, unit="ms"),
    Aim(
        "the same with `multikueue.dev/scored`, on the sandbox: created → Ready, p99",
        "wide-1-scored",
        _READY_P99,
        1.3,
        unit="ms",
        times=("wan-1-sandbox", _READY_P99),
    ),
    Aim("CPU of our daemon per workload there", "wide-1-scored", _CPU, 15, unit="ms"),
    Aim("restart over 50,000 running workloads: until it is up to date", _SCALE, _SYNCED, 40, unit="s"),
    Aim(
        "a job submitted there once the manager's caches are complete: until it is Ready",
        _SCALE,
        at("scale", "submitted_to_first_ready_s"),
        2,
        unit="s",
    ),
    Aim("memory then", _SCALE, at("scale", "memory_mb"), 800, unit="MB"),
    Aim("CPU when nothing happens", _SCALE, at("scale", "idle_cpu_percent"), 1, unit="% of a core"),
    *_idle("idle-100/all-at-once", "100 workers 200 ms away, 20 kinds, no jobs", 3),
    *_idle("idle-100/scored", "the same with `scored`", 4),
    Aim("`scored`: writes to the manager per workload, burst on the sandbox", _SCORED, _writes_to_manager, 5.1),
    Aim("requests to workers per workload in it", _SCORED, _TO_WORKERS, 4.3),
    Aim("the same on real servers", "burst-300-scored", _TO_WORKERS, 4.3),
    Aim(
        "`scored`: CPU of everything per workload, burst of 100 on real servers, in turn with AllAtOnce",
        _REAL_SCORED,
        _EVERYTHING,
        0.8,
        unit="ms",
        times=("burst-100/all-at-once", _EVERYTHING),
    ),
)
"""The table of the issue that asked for these numbers, row by row."""
