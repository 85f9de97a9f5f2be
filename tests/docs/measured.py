"""The tables of the performance pages: every number comes from a result file in `docs/results`.

`python -m tests.docs.measured` writes them. A folder there is a comparison: `before` and `after`, a file per run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import orjson

from multikueue.core.model.names import Json
from tests.benchmarks.compare import Compared, compared, read
from tests.docs.marked import replaced

DOCS: Final = Path(__file__).parents[2] / "docs"
RESULTS: Final = DOCS / "results"
PERFORMANCE: Final = DOCS / "performance.md"
SCALE_OUT: Final = DOCS / "design" / "scale-out.md"
WRITER: Final = "tests/docs/measured.py"

BURST: Final[Mapping[str, str]] = {
    "controller_cpu_ms_per_workload": "CPU of our daemon, ms per workload",
    "decisions_per_workload": "decisions (a reconcile, a snapshot, a plan) per workload",
    "worker_requests_per_workload": "requests to workers per workload",
    "manager_requests_per_workload": "requests to the manager per workload",
    "controller_peak_memory_mb": "memory at most, MB",
}
DECIDING: Final[Mapping[str, str]] = {
    "cpu_us.offered.snapshot": "a snapshot of a Workload that is offered, µs of CPU",
    "cpu_us.offered.plan": "a plan for it, µs",
    "cpu_us.running.snapshot": "a snapshot of a Workload that runs, µs",
    "cpu_us.running.plan": "a plan for it, µs",
}


def tables() -> str:
    """What has been measured, as Markdown."""
    parts = [
        _comparison("burst-sandbox", "`burst --count 100 --control-plane sandbox`", BURST),
        _comparison("deciding", "`python -m tests.benchmarks.deciding`", DECIDING),
    ]
    return "\n\n".join(parts)


def scale_out() -> str:
    """What replicas can do, as Markdown."""
    result = orjson.loads((RESULTS / "scale-out.json").read_bytes())
    head = (
        f"With {result['cpu_ms_per_workload']:g} ms of CPU per workload ([result](../results/scale-out.json)):\n\n"
        "| active replicas | workloads/s, every replica gets all events | workloads/s, copies carry their shard |\n"
        "|---|---|---|\n"
    )
    rows = (
        f"| {row['replicas']} | {row['unlabelled']['per_s']} | {row['labelled']['per_s']} |" for row in _rows(result)
    )
    return head + "\n".join(rows)


def _rows(result: Json) -> Iterator[Json]:
    yield from result["figures"]


def _comparison(folder: str, command: str, names: Mapping[str, str]) -> str:
    before, after = read(RESULTS / folder / "before"), read(RESULTS / folder / "after")
    found = {one.name: one for one in compared(before, after)}
    rows = [_row(told, found[name]) for name, told in names.items()]
    runs = f"{command}, {len(before)} and {len(after)} runs in turn (`docs/results/{folder}`)"
    head = f"{runs}:\n\n| | before | after | ratio |\n|---|---|---|---|"
    return "\n".join([head, *rows, "", f"Before: {_machine(before)}.", f"After: {_machine(after)}."])


def _row(told: str, one: Compared) -> str:
    ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
    return f"| {told} | {one.before} | {one.after} | {ratio}{'' if one.apart else ', the runs overlap'} |"


def _machine(runs: list[Json]) -> str:
    """Where, when and at which commit these runs were made."""
    machines = [run["machine"] for run in runs]
    first = machines[0]
    loads = [one["load"] for one in machines]
    speeds = [one["reference_cpu_ms"] for one in machines]
    return (
        f"commit {', '.join(sorted({one['commit'] for one in machines}))}, {first['date']} UTC, {first['system']}, "
        f"{first['processor']}, {first['cores']} cores, Python {first['python']}, load {min(loads)} to {max(loads)}, "
        f"`reference_cpu_ms` {min(speeds)} to {max(speeds)}"
    )


if __name__ == "__main__":
    for page, text in ((PERFORMANCE, tables()), (SCALE_OUT, scale_out())):
        page.write_text(replaced(page.read_text(), WRITER, text))
