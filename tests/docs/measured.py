"""The tables of the performance pages: every number comes from a result file in `docs/results`.

`python -m tests.docs.measured` writes them. A folder there has a file per run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from tests.benchmarks.compare import Compared, compared, read
from tests.benchmarks.scenarios import SCENARIOS
from tests.docs.aims import AIMS, MIRRORS, Aim
from tests.docs.marked import replaced

DOCS: Final = Path(__file__).parents[2] / "docs"
RESULTS: Final = DOCS / "results"
PERFORMANCE: Final = DOCS / "performance.md"
DISPATCH: Final = DOCS / "dispatch.md"
SCALE_OUT: Final = DOCS / "design" / "scale-out.md"
API: Final = DOCS / "api.md"
PAGE: Final = DOCS / "design" / "page.md"
MIRROR_PODS: Final = DOCS / "mirror-pods.md"
WRITER: Final = "tests/docs/measured.py"
ASKED: Final = "tests/docs/measured.py, of questions"

BURST: Final[Mapping[str, str]] = {
    "controller_cpu_ms_per_workload": "CPU of our daemon, ms per workload",
    "decisions_per_workload": "decisions (a reconcile, a snapshot, a plan) per workload",
    "worker_requests_per_workload": "requests to workers per workload",
    "manager_requests_per_workload": "requests to the manager per workload",
    "controller_peak_memory_mb": "memory at most, MB",
}
RESYNC: Final[Mapping[str, str]] = {
    "scale.idle_cpu_percent": "CPU when nothing happens, % of a core",
    "scale.memory_mb": "memory at most, MB",
}
BESIDE: Final = "beside-kueue"
"""Runs with a real Kueue on the manager: with its own controller (`peer`), and with ours in its place (`both`)."""
BESIDE_RUNS: Final[Mapping[str, str]] = {
    "burst": "burst of 300",
    "steady": "5 jobs a second",
    "hung": "the same, one worker hangs",
    "wan": "the same, workers 100 ms away",
}
UPSTREAM: Final[Mapping[str, str]] = {
    "built-in": "its own controller",
    "all-at-once": "Kueue + ours",
    "scored": "Kueue + ours, `multikueue.dev/scored`",
}
"""Runs of `upstream`, with a real Kueue on all sides; the first with the limits of its clients for workers lifted."""
DECIDING: Final[Mapping[str, str]] = {
    "cpu_us.offered.snapshot": "a snapshot of a Workload that is offered, µs of CPU",
    "cpu_us.offered.plan": "a plan for it, µs",
    "cpu_us.running.snapshot": "a snapshot of a Workload that runs, µs",
    "cpu_us.running.plan": "a plan for it, µs",
}


def tables() -> str:
    """What has been measured, as Markdown."""
    small, deciding = "`burst --count 100 --control-plane sandbox`", "`python -m tests.benchmarks.deciding`"
    pythons = (
        "`burst --control-plane sandbox`, our daemon on Python 3.11 and then on 3.13, the harness on 3.11 both times"
    )
    since = "`burst --control-plane sandbox`, the daemon of commit e08336e and then today's, today's harness both times"
    parts = [
        _upstream(),
        _beside(),
        _aims(AIMS),
        _comparison(since, "since-e08336e/before", "since-e08336e/after", BURST),
        _comparison("`burst --control-plane sandbox`", "exchange/before", "exchange/after", BURST),
        _comparison("`scale --control-plane sandbox --count 5000`", "resync/before", "resync/after", RESYNC),
        _comparison(pythons, "burst-300-sandbox", "burst-300-python-3.13", BURST),
        _comparison(small, "burst-sandbox/before", "burst-sandbox/after", BURST),
        _comparison(deciding, "deciding/before", "deciding/after", DECIDING),
        "### Two tenants",
        *map(_tenants, sorted((RESULTS / "tenants").glob("*.json"))),
    ]
    return "\n\n".join(parts)


def _beside() -> str:
    """Kueue's own controller, and a Kueue with ours in its place."""
    burst = _both("burst")
    rows = [
        _pair("burst of 300: finished per second", burst, lambda run: run["finished_per_s"]),
        _pair("CPU of everything in it, ms per workload", burst, _cpu_of_everything),
        _pair("requests to workers in it, per workload", burst, lambda run: run["worker_requests_per_workload"]),
    ]
    for name, label in BESIDE_RUNS.items():
        for rank in ("p50", "p99"):
            rows.append(_pair(f"{label}: created → Ready, {rank}, s", _both(name), partial(_created_ready, rank)))
    heading = "| | built-in | Kueue + ours | built-in / ours |\n|---|---|---|---|"
    return "\n".join([f"Beside a real Kueue (`docs/results/{BESIDE}`):", "", heading, *rows, "", _machine([burst[1]])])


def _upstream() -> str:
    """The numbers of Kueue's own benchmark, of each controller."""
    runs = [read(RESULTS / "upstream" / name)[0] for name in UPSTREAM]
    rows: Mapping[str, Callable[[Json], object]] = {
        "admitted per second": lambda run: run["upstream"]["admitted_per_s"],
        "until admission, p95, s": lambda run: round(run["upstream"]["admitted_p95_ms"] / 1000, 1),
        "until quota is reserved, p95, s": lambda run: round(run["upstream"]["quota_p95_ms"] / 1000, 1),
        "jobs of each worker": lambda run: ", ".join(map(str, run["upstream"]["spread"].values())),
        "requests to workers per job": lambda run: run["worker_requests_per_workload"],
        "CPU of everything, ms per job": lambda run: round(_cpu_of_everything(run)),
    }
    lines = [f"| {label} | {' | '.join(str(number(run)) for run in runs)} |" for label, number in rows.items()]
    heading = f"| | {' | '.join(UPSTREAM.values())} |\n|---|---|---|---|"
    intro = f"Kueue's own benchmark in shape, {runs[0]['jobs']:,} jobs, a Kueue 0.17 on all sides, one run each"
    return "\n".join([f"{intro} (`docs/results/upstream`):", "", heading, *lines, "", _machine(runs)])


TENANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "created → Ready of the victim, p50, ms": ("created_ready_ms", "p50"),
    "p99, ms": ("created_ready_ms", "p99"),
    "of that from its quota on, p99, ms": ("quota_ready_ms", "p99"),
    "a small read of any server by somebody else meanwhile, p99, ms": ("small_read_ms", "p99"),
    "CPU of the daemon meanwhile, s": ("controller_cpu_s",),
    "CPU of all else, s": ("other_cpu_s",),
    "memory of the daemon at most, MB": ("peak_memory_mb",),
    "workers that can be read": ("workers_readable",),
    "copies of the attacker's on workers": ("copies_of_attacker",),
    "all of them gone after its last deletion, s": ("gone_s",),
}


FLEETS: Final[Mapping[str, str]] = {
    "alone": "alone",
    "beside": "beside the other",
    "restarted": "the same, all of it there at a restart",
    "unchecked": "beside as many jobs that the daemon has nothing to do with, copied by somebody else",
}


def _tenants(file: Path) -> str:
    """What one tenant's large jobs cost the other, and the daemon."""
    run = orjson.loads(file.read_bytes())
    tenants = run["tenants"]
    fleets = {name: title for name, title in FLEETS.items() if name in tenants}
    rows = [
        f"| {label} | {' | '.join(str(dig(tenants[fleet], *path) or 0) for fleet in fleets)} |"
        for label, path in TENANTS.items()
        if any(dig(tenants[fleet], *path) is not None for fleet in fleets)
    ]
    intro = (
        f"`tenants --control-plane {run['control_plane']}`, one run ([result](results/tenants/{file.name})): one "
        f"tenant submits {run['offered_per_s']:g} jobs a second, the other {tenants['attackers']} jobs of "
        f"{tenants['bytes_each'] / 1e6:g} MB within a minute, for which workers have no quota. "
        f"{run['workers']} workers."
    )
    times = {
        "the p99 at most twice as long": ("p99_ratio", "p99_ratio_restarted", 2.0),
        "memory at most 1.5 times": ("memory_ratio", "memory_ratio_restarted", 1.5),
    }
    aims = [
        f"{aim} ({' and '.join(f'{tenants[name]:g}, {_reached(tenants[name], most)}' for name in names)})"
        for aim, (*names, most) in times.items()
    ]
    aimed = f"Aimed at: {'; '.join(aims)}; all gone within a minute."
    heading = f"| | {' | '.join(fleets.values())} |\n|{'---|' * (len(fleets) + 1)}"
    return "\n".join([intro, "", heading, *rows, "", aimed, "", _machine([run])])


def _reached(value: float, most: float) -> str:
    return "reached" if value <= most else "**not reached**"


def _both(name: str) -> tuple[Json, Json]:
    peer, ours = (orjson.loads((RESULTS / BESIDE / f"{who}_{name}.json").read_bytes()) for who in ("peer", "both"))
    return peer, ours


def _pair(label: str, runs: tuple[Json, Json], number: Callable[[Json], float]) -> str:
    """One number of both, and no ratio where one of them showed it for a part of the jobs only."""
    peer, ours = (number(run) for run in runs)
    seen = [run["ready"] if "Ready" in label else run["finished"] for run in runs]
    shown = [
        f"{value:.3g}" + (f" ({count} of {run['jobs']} jobs)" if count < run["jobs"] else "")
        for value, count, run in zip((peer, ours), seen, runs, strict=True)
    ]
    whole = all(count >= run["jobs"] for count, run in zip(seen, runs, strict=True))
    return f"| {label} | {shown[0]} | {shown[1]} | {f'{peer / ours:.2g}' if whole else 'not all jobs'} |"


def _cpu_of_everything(run: Json) -> float:
    return 1000 * float(sum(run["cpu_seconds"].values())) / int(run["jobs"])


def _created_ready(rank: str, run: Json) -> float:
    return float(run["latency_ms"]["created_ready"][rank]) / 1000


def mirrors() -> str:
    """What mirrors cost."""
    return _aims(MIRRORS)


def _aims(aims: Sequence[Aim]) -> str:
    """The aims beside the medians of what has been measured, and where and when that was."""
    folders = dict.fromkeys(name for aim in aims for name in (aim.runs, *(aim.times or ())[:1]))
    there = [(str(name), read(RESULTS / str(name))) for name in folders if (RESULTS / str(name)).is_dir()]
    rows = [aim.row(RESULTS) for aim in aims]
    runs = [f"- `{name}`: `{_command(runs[0])}`, {_times(len(runs))}; {_machine(runs)}" for name, runs in there]
    return "\n".join(["| | aim | measured | reached |", "|---|---|---|---|", *rows, "", *runs])


def _command(run: Json) -> str:
    """The arguments of `nox -s bench --` that make such a run."""
    scenario = SCENARIOS[run["scenario"]]
    given = {
        "--control-plane": (run["control_plane"], "real"),
        "--dispatcher": (run.get("dispatcher"), None),
        "--workers": (run["workers"], scenario.workers),
        "--kinds": (run.get("kinds", 1), scenario.kinds),
        "--rate": (run["offered_per_s"], scenario.rate or None),
        "--count": (run["scale"]["running"], scenario.preloaded)
        if scenario.preloaded
        else (run["jobs"], scenario.jobs),
    }
    options = (
        f"{option} {value:g}" if isinstance(value, float) else f"{option} {value}"
        for option, (value, usual) in given.items()
        if value != usual
    )
    return " ".join([scenario.name, *options])


def _times(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


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


def watchers() -> str:
    """What it costs to watch jobs through our API."""
    result = orjson.loads((RESULTS / "watchers.json").read_bytes())
    return (
        f"{result['watchers']} watchers of {result['jobs']:,} jobs in {result['namespaces']} namespaces "
        f"([result](results/watchers.json), without TLS and access reviews): a change is "
        f"{result['events_per_change_and_watcher']:g} event for each who watches its namespace, and costs "
        f"{result['cpu_ms_per_change']:g} ms of CPU for the {result['watchers'] // result['namespaces']} of them "
        f"together; {result['memory_mib_without_watchers']} MiB without watchers, "
        f"{result['peak_memory_mib']} MiB at most with them."
    )


VIEW: Final[Mapping[str, str]] = {
    "first_picture_ms": "first picture, ms",
    "all_of_it_ms": "all of it, ms",
    "kb_at_first": "kB at first",
    "kb_per_refresh": "kB of a refresh",
    "server_cpu_percent_of_a_core": "CPU of the server, % of a core",
}


def dashboard() -> str:
    """What the dashboard of a large fleet costs."""
    result = orjson.loads((RESULTS / "page.json").read_bytes())
    rows = [
        f"| {view} | {' | '.join(f'{costs[name]:,}' if costs[name] else '-' for name in VIEW)} |"
        for view, costs in result["views"].items()
    ]
    intro = (
        f"{result['jobs']:,} jobs on {result['workers']} workers, in Chromium ([result](../results/page.json), "
        "`python -m tests.benchmarks.page`); each view is opened when no answer is kept, and stays open for "
        f"{result['seconds']:g} s. Nothing changes meanwhile."
    )
    head = [f"| view | {' | '.join(VIEW.values())} |", f"|---{'|---' * len(VIEW)}|"]
    return "\n".join([intro, "", *head, *rows, "", f"{_machine([result])}."])


def asked() -> str:
    """What it takes to answer a person's questions."""
    result = orjson.loads((RESULTS / "questions.json").read_bytes())
    rows = [
        f"| {question} | {answer['answer'].replace('|', '/')} | {answer['clicks']} | {answer['letters'] or '-'} | "
        f"{answer['seconds']:g} |"
        for question, answer in result["questions"].items()
    ]
    head = ["| question | what is found | clicks | letters | s |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows, "", f"{_machine([result])}."])


def held() -> str:
    """What Workloads cost that are held, as Markdown."""
    result = orjson.loads((RESULTS / "held.json").read_bytes())
    cpu = result["cpu_percent"]
    return (
        f"With {result['held']:,} jobs held, and {result['workers']} workers whose queues change once a second, "
        f"the daemon takes **{cpu['manager']:g} % of a core** (`python -m tests.benchmarks.held`: "
        f"{result['changes']:,} changes, none of which makes room: {result['decisions']} decisions). "
        f"The API servers of that process take {cpu['servers']:g} % beside it.\n\n"
        f"{_machine([result])}."
    )


def _rows(result: Json) -> Iterator[Json]:
    yield from result["figures"]


def _comparison(command: str, before: str, after: str, names: Mapping[str, str]) -> str:
    """Two folders of runs beside each other."""
    first, other = read(RESULTS / before), read(RESULTS / after)
    numbers = {number.name: number for number in compared(first, other)}
    rows = [_row(label, numbers[name]) for name, label in names.items()]
    runs = f"{command}, {len(first)} and {len(other)} runs in turn (`docs/results/{before}`, `docs/results/{after}`)"
    head = f"{runs}:\n\n| | before | after | ratio |\n|---|---|---|---|"
    return "\n".join([head, *rows, "", f"Before: {_machine(first)}.", f"After: {_machine(other)}."])


def _row(label: str, compared: Compared) -> str:
    ratio = "" if compared.ratio is None else f"{compared.ratio:.2f}"
    return (
        f"| {label} | {compared.before} | {compared.after} | {ratio}{'' if compared.apart else ', the runs overlap'} |"
    )


def _machine(runs: list[Json]) -> str:
    """Where, when and at which commit these runs were made."""
    machines = [run["machine"] for run in runs]
    first = machines[0]
    loads = [machine["load"] for machine in machines]
    speeds = [machine["reference_cpu_ms"] for machine in machines]
    return (
        f"commit {', '.join(sorted({machine['commit'] for machine in machines}))}, {first['date']} UTC, "
        f"{first['system']}, {first['processor']}, {first['cores']} cores, Python {first['python']}, "
        f"load {min(loads)} to {max(loads)}, `reference_cpu_ms` {min(speeds)} to {max(speeds)}"
    )


if __name__ == "__main__":
    pages = (
        (PERFORMANCE, tables()),
        (SCALE_OUT, scale_out()),
        (API, watchers()),
        (DISPATCH, held()),
        (PAGE, dashboard()),
        (MIRROR_PODS, mirrors()),
    )
    for page, text in pages:
        page.write_text(replaced(page.read_text(), WRITER, text))
    PAGE.write_text(replaced(PAGE.read_text(), ASKED, asked()))
