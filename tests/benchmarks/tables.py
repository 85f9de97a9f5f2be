"""The result as a table for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from multikueue.core.model.names import Json

_LATENCY_NAMES = {
    "created_finished": "created → finished, less the run",
    "created_ready": "created → Ready",
    "admitted_ready": "admitted on worker → Ready",
    "finished_finished": "Workload finished there → here",
    "complete_complete": "Job complete there → here",
}


def show(result: Json, console: Console) -> None:
    """Print what was measured."""
    heading = f"{result['scenario']}: {result['jobs']} jobs, {result['workers']} workers, {result['control_plane']}"
    table = Table(title=heading, title_justify="left")
    table.add_column("")
    for name in ("p50", "p95", "p99", "max"):
        table.add_column(name, justify="right")
    for name, label in _LATENCY_NAMES.items():
        numbers = result["latency_ms"].get(name, {})
        table.add_row(f"{label}, ms", *(str(numbers.get(rank, "")) for rank in ("p50", "p95", "p99", "max")))
    console.print(table)
    console.print(_numbers(result))
    console.print(_requests(result))
    if result["complaint"]:
        console.print(f"[bold red]{result['complaint']}")


def _numbers(result: Json) -> Table:
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    rows = {
        "finished per second": _rate(result, "finished", "finished_per_s"),
        "Ready per second": _rate(result, "ready", "rate_per_s"),
        "requests to workers per workload": result["worker_requests_per_workload"],
        "of these reads": result["worker_reads_per_workload"],
        "requests to the manager per workload": result["manager_requests_per_workload"],
        "decisions (snapshots, plans) per workload": result["decisions_per_workload"],
        "watches opened": result["watches_opened"],
        "controller: CPU ms per workload": result["controller_cpu_ms_per_workload"],
        "controller: peak memory, MB": result["controller_peak_memory_mb"],
        "seconds in all": result["seconds"],
        **{f"CPU seconds: {name}": seconds for name, seconds in result["cpu_seconds"].items()},
        **result.get("scale", {}),
        **result.get("idle", {}),
        **result.get("upstream", {}),
        **{
            f"mirrors: {name}": value
            for name, value in result.get("mirrors", {}).items()
            if not isinstance(value, dict)
        },
    }
    for name, value in rows.items():
        table.add_row(name, str(value))
    return table


def _rate(result: Json, seen: str, rate: str) -> str:
    """A rate; of how many jobs, if not of all."""
    missing = result[seen] < result["jobs"]
    return f"{result[rate]}, of {result[seen]} of {result['jobs']} jobs only" if missing else str(result[rate])


def _requests(result: Json) -> Table:
    """The controller's requests: the manager's, and the workers' in one column."""
    table = Table(title="requests of the controller", title_justify="left")
    for name in ("verb and resource", "manager", "workers"):
        table.add_column(name, justify="left" if name.startswith("verb") else "right")
    clusters = dict(result["requests"])
    home = clusters.pop("manager")
    names = sorted({*home, *(name for asked in clusters.values() for name in asked)})
    for name in names:
        on_workers = sum(asked.get(name, 0) for asked in clusters.values())
        table.add_row(name, str(home.get(name, "")), str(on_workers or ""))
    return table
