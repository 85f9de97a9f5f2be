"""`demo --policy`: the same jobs with one dispatcher and then with the other, and what each took."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import attrs
import click
import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from multikueue import ObjectKey
from multikueue.core.dispatchers.dispatcher import ALL_AT_ONCE, SCORED
from multikueue.core.dispatchers.scored.profile import Profile, Weights
from multikueue.core.dispatchers.scored.score import COST
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.sandbox.jobs import DURATION_ANNOTATION
from multikueue.sandbox.kinds import SandboxKind
from multikueued.demo.jobs import ROOM, Submission, drawn_jobs, with_kinds
from multikueued.demo.live_view import watch
from multikueued.demo.output import print_problems, problems
from multikueued.demo.run import Demo
from multikueued.settings.config import DispatcherSettings, Settings

PROFILE: Final = Profile(weights=Weights(cost=60))
"""Of the scored one: it looks at the price first."""
POLICIES: Final = {
    "AllAtOnce": DispatcherSettings(name=ALL_AT_ONCE),
    "scored": DispatcherSettings(name=SCORED, profiles={"default": PROFILE}),
}
"""The dispatchers that are shown, by what they are called."""
CPUS: Final = "8"
PRICES: Final = ("2", "1", "4", "1")
"""What a worker costs, compared with the others; those after them begin anew."""
PACE: Final = 0.4
"""Seconds between two jobs: a third of four workers is in use, so there is a choice."""
WORKERS: Final = 4
JOBS: Final = 20
_READING: Final = frozenset({"get", "list", "watch"})


@attrs.frozen
class PolicyRun:
    """What one dispatcher took, all of it counted or timed in the run."""

    policy: str
    jobs: int
    finished: int
    requests: int
    """Writes to workers' API servers."""
    offers: int
    """Copies of Workloads that were made."""
    lost: int
    """Copies that got quota on a worker which the job did not run on."""
    wait_mean: float
    """Seconds from a job's submission to its worker."""
    wait_longest: float
    cost: float
    """CPU seconds on workers, each times the worker's price."""
    placements: Mapping[str, int]

    @classmethod
    def of(cls, policy: str, running: Demo) -> PolicyRun:
        """What a demo that has ended has shown."""
        tally, workers = running.tally, running.sandbox.workers
        counts = [count for worker in workers.values() for count in worker.server.requests.items()]
        ours = [(verb, what, count) for (user, verb, what), count in counts if user == "multikueue"]
        waits = [story.admitted - story.queued for story in tally.stories.values() if story.admitted is not None]
        prices = {worker: float(_price(number)) for number, worker in enumerate(workers)}
        stays = [
            (story.cpus, stay) for story in tally.stories.values() for stay in story.stays if stay.until is not None
        ]
        return cls(
            policy,
            jobs=len(tally.stories),
            finished=sum(story.went_well for story in tally.stories.values()),
            requests=sum(count for verb, _, count in ours if verb not in _READING),
            offers=sum(count for verb, what, count in ours if (verb, what) == ("create", str(WORKLOAD))),
            lost=sum(worker not in tally.workloads[name].ran_on for name, worker in tally.reserved),
            wait_mean=fmean(waits) if waits else 0.0,
            wait_longest=max(waits, default=0.0),
            cost=sum(cpus * ((stay.until or 0.0) - stay.since) * prices[stay.worker] for cpus, stay in stays),
            placements={name: sum(name in story.ran_on for story in tally.stories.values()) for name in workers},
        )


async def compare(daemon: Settings, kinds: Sequence[SandboxKind], console: Console, options: Mapping[str, Any]) -> int:
    """Run the jobs with each dispatcher, and print what both took.

    Args:
        daemon: its settings.
        kinds: of the jobs.
        console: where it goes.
        options: those of the command line.

    Returns:
        The exit code: 0 if every job finished with both.
    """
    runs, failed = list[PolicyRun](), list[str]()
    for policy, dispatcher in POLICIES.items():
        console.print(f"{policy}:", style="bold")
        settings = attrs.evolve(daemon, dispatcher=dispatcher)
        running = await _run(settings, kinds, console, options)
        runs.append(PolicyRun.of(policy, running))
        failed += problems(running.tally)
    console.print(table(runs))
    print_problems(console, failed)
    if options["as_json"]:
        click.echo(orjson.dumps({"policies": [attrs.asdict(run) for run in runs]}).decode())
    return 1 if failed else 0


def table(runs: Sequence[PolicyRun]) -> Table:
    """What each took, side by side."""
    rows = {
        "jobs finished": [f"{run.finished} of {run.jobs}" for run in runs],
        "writes to workers": [f"{run.requests}, {run.requests / max(1, run.jobs):.1f} a job" for run in runs],
        "copies offered": [f"{run.offers}" for run in runs],
        "admitted in vain": [f"{run.lost}" for run in runs],
        "wait, mean": [f"{run.wait_mean:.2f} s" for run in runs],
        "wait, longest": [f"{run.wait_longest:.2f} s" for run in runs],
        "cost (CPU s x price)": [f"{run.cost:.0f}" for run in runs],
    }
    for number, name in enumerate(runs[0].placements):
        rows[f"ran on {name} (price {_price(number)})"] = [f"{run.placements[name]}" for run in runs]
    made = Table(box=box.SIMPLE, pad_edge=False)
    made.add_column("")
    for run in runs:
        made.add_column(run.policy, justify="right")
    for title, cells in rows.items():
        made.add_row(title, *cells)
    return made


async def _run(settings: Settings, kinds: Sequence[SandboxKind], console: Console, options: Mapping[str, Any]) -> Demo:
    running = Demo.prepare(kinds, options["workers"], seed=options["seed"], room={**ROOM, "cpu": CPUS})
    async with running.sandbox:
        await _set_prices(running)
        async with running.dispatched(with_kinds(settings, running.sandbox.kinds)):
            await running.reached()
            jobs = timed(drawn_jobs(kinds, options["jobs"] or JOBS, random.Random(options["seed"])), options["seed"])
            await watch(running, jobs, options["timeout"], console, pace=PACE)
    return running


def timed(jobs: Sequence[Submission], seed: int) -> list[Submission]:
    """The same jobs, each with the time it runs: the same with every dispatcher."""
    dice = random.Random(seed)
    for job in jobs:
        length = f"{dice.randint(2000, 4000)}ms"
        for obj in job.objects:
            obj["metadata"].setdefault("annotations", {})[DURATION_ANNOTATION] = length
    return list(jobs)


async def _set_prices(running: Demo) -> None:
    client = running.sandbox.manager.client("admin")
    for number, name in enumerate(running.sandbox.workers):
        patch = {"metadata": {"annotations": {COST: _price(number)}}}
        await client.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), patch)


def _price(number: int) -> str:
    return PRICES[number % len(PRICES)]
