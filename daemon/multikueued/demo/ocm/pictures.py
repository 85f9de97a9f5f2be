"""The picture of a story: the inventory, what the Placement made of it, and where each job ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from multikueue import ObjectKey
from multikueued.demo.gantt import gantt
from multikueued.demo.ocm.stories import LABEL, STORIES, Story, score_of
from multikueued.demo.ocm.story_player import Played
from multikueued.demo.output import item
from multikueued.demo.tally import JobRecord, Tally, WorkerStay


def print_story(console: Console, played: Played, jobs: Sequence[JobRecord], workers: Sequence[str]) -> None:
    """Print the picture of a story."""
    story = played.story
    console.print()
    console.print(Text(f"{STORIES.index(story) + 1} · {story.title}", style="bold"))
    console.print(Text(story.summary))
    console.print(inventory(story, workers))
    for line in bars(played, jobs, workers, console.width, colours=console.color_system is not None):
        console.print(line, no_wrap=True, crop=True)
    if played.said:
        console.print(Text(f"The daemon said: {played.said}"))
    console.print(Text(outcome(story, jobs)))


def inventory(story: Story, workers: Sequence[str]) -> Table:
    """A line for each cluster: what the Placement looks at, and whether it was chosen."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("cluster", no_wrap=True)
    if story.labels:
        table.add_column(LABEL, no_wrap=True)
    if story.gpus:
        table.add_column("free GPUs", justify="right", no_wrap=True)
        table.add_column("score", justify="right", no_wrap=True)
    table.add_column("chosen", no_wrap=True)
    for worker in workers:
        row = [worker]
        if story.labels:
            row.append(story.labels.get(worker, {}).get(LABEL, "-"))
        if story.gpus:
            row += _gpus(story, worker)
        table.add_row(*row, _chosen(story, worker))
    return table


def _gpus(story: Story, worker: str) -> list[str]:
    counts = [story.gpus[worker], *(change.gpus[worker] for change in story.changes if change.gpus)]
    return [" → ".join(map(str, dict.fromkeys(numbers))) for numbers in (counts, list(map(score_of, counts)))]


def _chosen(story: Story, worker: str) -> str:
    times = [worker in chosen for chosen in (story.chosen, *(change.chosen for change in story.changes))]
    if len(set(times)) == 1:
        return "yes" if times[0] else "no"
    return ", ".join(word for word, chosen in zip(_WORDS[len(times)], times, strict=True) if chosen)


_WORDS: Final[Mapping[int, Sequence[str]]] = {2: ("first", "later"), 3: ("first", "between", "last")}
"""By how many times there are between changes: what each is called."""


def bars(
    played: Played, jobs: Sequence[JobRecord], workers: Sequence[str], width: int, *, colours: bool = True
) -> list[Text]:
    """A bar for each job, and above them one for the config where it lists one cluster at a time."""
    tally = Tally()
    if played.story.changes and jobs:
        listed = [_shifted(stay, played.since) for stay in played.listed]
        end = max((job.ended or 0.0 for job in jobs), default=0.0) - played.since
        for stay in listed:
            stay.until = end if stay.until is None else min(stay.until, end)
        row = JobRecord(jobs[0].kind, ObjectKey("", "Placement"), 0.0, 0.0, ended=end, stays=listed)
        tally.stories[jobs[0].kind.resource, row.key.name] = row
    for job in jobs:
        tally.stories[job.kind.resource, job.key.name] = attrs.evolve(
            job,
            queued=job.queued - played.since,
            ended=None if job.ended is None else job.ended - played.since,
            stays=[_shifted(stay, played.since) for stay in job.stays],
        )
    return gantt(tally, workers, width, colours=colours)


def _shifted(stay: WorkerStay, by: float) -> WorkerStay:
    return WorkerStay(stay.worker, max(0.0, stay.since - by), None if stay.until is None else max(0.0, stay.until - by))


def outcome(story: Story, jobs: Sequence[JobRecord]) -> str:
    """What came of it, in a sentence or two."""
    rounds = (story.jobs, *(change.jobs for change in story.changes))
    spread = [_spread(job for job in jobs if job.key.name in dict(names)) for names in rounds]
    said = (
        f"{sum(job.went_well for job in jobs)} of {len(jobs)} jobs finished: {', and after that change '.join(spread)}."
    )
    long = [job for job in jobs if job.key.name.endswith("-long")]
    return " ".join([said, *map(_moved_once_gone if story.detached else _stayed, long)])


def _spread(jobs: Iterable[JobRecord]) -> str:
    counts = Counter(map(_first, jobs))
    return ", ".join(f"{count} on {name}" for name, count in sorted(counts.items()))


def _first(job: JobRecord) -> str:
    return job.stays[0].worker if job.stays else "no cluster"


def _stayed(job: JobRecord) -> str:
    return f"{job.key.name} stayed on {_first(job)}, where it ran."


def _moved_once_gone(job: JobRecord) -> str:
    return f"{job.key.name} stayed on {_first(job)} until its ManagedCluster was gone, and ran on {job.cluster} then."


def story_item(played: Played, jobs: Sequence[JobRecord]) -> dict[str, Any]:
    """One story in the object that `--json` prints."""
    return {
        "placement": played.story.name,
        "title": played.story.title,
        "listed": [_stay(stay) for stay in played.listed],
        "changed_s": [round(at, 3) for at in played.changed],
        "gone_s": None if played.gone is None else round(played.gone, 3),
        "said": played.said,
        "items": [item(job) for job in jobs],
    }


def _stay(stay: WorkerStay) -> Mapping[str, Any]:
    until = None if stay.until is None else round(stay.until, 3)
    return {"cluster": stay.worker, "since_s": round(stay.since, 3), "until_s": until}
