"""`multikueue demo --ocm`: the stories as a user sees them, and what they show."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import orjson
import pytest
from rich.console import Console

from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.kinds import BATCH_JOB
from multikueued.demo.ocm.pictures import outcome, print_story
from multikueued.demo.ocm.stories import STORIES, Story, score_of
from multikueued.demo.ocm.story_player import Played, strays
from multikueued.demo.tally import JobRecord, WorkerStay
from tests.daemon.test_demo import refused

DEMO = [sys.executable, "-m", "multikueued", "demo", "--ocm"]
WORKERS = ("worker1", "worker2", "worker3")
ALL, LABELLED, BEST = STORIES


def run(*arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    """Run the demo to its end."""
    env = {**os.environ, "COLUMNS": str(columns)}
    return subprocess.run([*DEMO, *arguments], capture_output=True, text=True, timeout=240, check=False, env=env)


def job(name: str, *stays: WorkerStay) -> JobRecord:
    """A job that ran on these workers and finished."""
    last = stays[-1]
    placed = {f"job-{name}": last.worker}
    ran_on = {stay.worker for stay in stays}
    return JobRecord(
        BATCH_JOB,
        ObjectKey("default", name),
        10.0,
        1.0,
        placed=placed,
        ended=last.until,
        ran_on=ran_on,
        stays=list(stays),
    )


def best_story() -> tuple[Played, list[JobRecord]]:
    """The third story as it shall be."""
    listed = [WorkerStay("worker2", 10.2, 12.5), WorkerStay("worker3", 12.5)]
    jobs = [job("tune-long", WorkerStay("worker2", 10.5, 17.0)), job("tune-1", WorkerStay("worker2", 10.5, 12.0))]
    jobs += [job(f"tune-{number}", WorkerStay("worker3", 13.0, 15.0)) for number in (2, 3, 4)]
    return Played(BEST, 10.0, 17.5, 12.4, listed), jobs


@pytest.mark.gate
@pytest.mark.timeout(280)
def test_each_story_ends_as_it_is_told() -> None:
    """All clusters, the labelled ones, the best one; what runs stays when the scores change."""
    done = run("--json")
    assert done.returncode == 0, done.stderr
    told = orjson.loads(done.stdout.splitlines()[-1])
    assert (told["failed"], told["leftovers"], told["moved"], told["strays"]) == (0, 0, 0, [])
    found = {part["placement"]: part for part in told["stories"]}
    assert list(found) == ["all-clusters", "t4-clusters", "most-gpus"]
    clusters = {name: {item["cluster"] for item in part["items"]} for name, part in found.items()}
    assert clusters["all-clusters"] == set(WORKERS)
    assert clusters["t4-clusters"] == {"worker2", "worker3"}
    best = found["most-gpus"]
    assert [stay["cluster"] for stay in best["listed"]] == ["worker2", "worker3"]
    where = {item["name"]: item["cluster"] for item in best["items"]}
    assert (where["tune-long"], where["tune-1"]) == ("worker2", "worker2")
    assert {where[f"tune-{number}"] for number in (2, 3, 4)} == {"worker3"}
    (long,) = (item for item in best["items"] if item["name"] == "tune-long")
    assert long["finished_s"] > best["changed_s"], "it ran when the scores changed"
    assert "tune-long stayed on worker2" in " ".join(done.stderr.split())


@pytest.mark.parametrize("width", [50, 80])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_picture_fits_its_terminal(story: Story, width: int) -> None:
    if story is BEST:
        played, jobs = best_story()
    else:
        names = sorted(story.chosen)
        listed = [WorkerStay(name, 0.5) for name in names]
        played = Played(story, 0.0, 5.0, None, listed)
        jobs = [
            job(name, WorkerStay(names[number % len(names)], 1.0, 4.0)) for number, (name, _) in enumerate(story.jobs)
        ]
    text = io.StringIO()
    print_story(Console(file=text, width=width), played, jobs, WORKERS)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.endswith("· queued") for line in lines), "the legend is whole"
    assert all(any(line.startswith(name) for line in lines) for name, _ in story.jobs)


def test_the_picture_shows_the_config_above_the_jobs() -> None:
    """The letters of workers: the Placement turns from B to C, and the long job stays on B."""
    played, jobs = best_story()
    text = io.StringIO()
    print_story(Console(file=text, width=60), played, jobs, WORKERS)
    bars = {name: _letters(text.getvalue(), name) for name in ("Placement", "tune-long", "tune-2")}
    assert bars == {"Placement": "BC", "tune-long": "B", "tune-2": "C"}


def _letters(text: str, name: str) -> str:
    """The workers in a row of the picture, one after the other."""
    (row,) = (line for line in text.splitlines() if line.startswith(f"{name} "))
    return "".join(dict.fromkeys(letter for letter in row.removeprefix(name) if letter in "ABC"))


def test_what_came_of_it_is_said_in_a_sentence() -> None:
    _, jobs = best_story()
    assert outcome(BEST, jobs) == (
        "5 of 5 jobs finished: 2 on worker2, and after the change 3 on worker3. tune-long stayed on worker2, "
        "where it ran."
    )


def test_a_job_that_moves_or_runs_elsewhere_is_told() -> None:
    moved = job("tune-long", WorkerStay("worker2", 1.0, 2.0), WorkerStay("worker3", 2.0, 4.0))
    elsewhere = job("tune-2", WorkerStay("worker1", 1.0, 2.0))
    assert strays(BEST, [moved, elsewhere]) == [
        'Job "tune-long" was moved from worker2 to worker3',
        'Job "tune-2" ran on worker1, which its Placement had not chosen',
    ]
    assert strays(*(BEST, best_story()[1])) == []


@pytest.mark.parametrize(("free", "score"), [(0, -100), (2, -80), (3, -70), (10, 0), (20, 100), (40, 100)])
def test_free_gpus_become_a_score_as_ocm_counts_them(free: int, score: int) -> None:
    assert score_of(free) == score


def test_options_that_the_stories_decide_are_refused_in_one_line() -> None:
    assert "--ocm: the stories have their own jobs and clusters: leave --jobs out" in refused("--ocm", "--jobs", "3")
