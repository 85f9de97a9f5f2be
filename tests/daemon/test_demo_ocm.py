"""`multikueue demo --ocm`: the stories as a user sees them, and what they show."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import anyio
import orjson
import pytest
import yaml
from rich.console import Console

from multikueue.core.model.kinds import LOCAL_QUEUE
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.crds import load_crds
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.ocm.kinds import MANAGED_CLUSTER
from multikueue.testing.waiting import background
from multikueued.demo.ocm.inventory import QUEUES, QueuesOnSpokes
from multikueued.demo.ocm.pictures import outcome, print_story
from multikueued.demo.ocm.stories import STORIES, Story, score_of
from multikueued.demo.ocm.story_player import Played, strays
from multikueued.demo.run import LOST_AFTER
from multikueued.demo.tally import JobRecord, WorkerStay
from tests.daemon.test_demo import refused
from tests.sandbox.ocm.hubs import hubs

DEMO = [sys.executable, "-m", "multikueued", "demo", "--ocm"]
WORKERS = ("worker1", "worker2", "worker3")
ALL, LABELLED, BEST, DETACHED = STORIES


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
    listed = [WorkerStay("worker2", 10.2, 12.5), WorkerStay("worker3", 12.5, 15.5), WorkerStay("worker2", 15.5)]
    jobs = [job("tune-long", WorkerStay("worker2", 10.5, 17.0)), job("tune-1", WorkerStay("worker2", 10.5, 12.0))]
    jobs += [job(f"tune-{number}", WorkerStay("worker3", 13.0, 15.0)) for number in (2, 3, 4)]
    jobs += [job(f"tune-{number}", WorkerStay("worker2", 15.6, 17.2)) for number in (5, 6)]
    return Played(BEST, 10.0, 17.5, [12.4, 15.4], listed=listed), jobs


def detached_story(left: float = 17.0) -> tuple[Played, list[JobRecord]]:
    """The fourth as it shall be, if its job leaves the cluster at 17."""
    listed = [WorkerStay("worker1", 10.2, 12.5), WorkerStay("worker3", 12.5)]
    jobs = [job("build-long", WorkerStay("worker1", 10.5, left), WorkerStay("worker3", left, 25.0))]
    jobs += [job(f"build-{number}", WorkerStay("worker3", 13.0, 15.0)) for number in (1, 2)]
    jobs[0].placed = {"job-build-long": "worker3"}
    return Played(DETACHED, 10.0, 25.0, [12.4], listed=listed, gone=16.5, said="Its cluster is being detached"), jobs


PLAYED = {BEST.name: best_story, DETACHED.name: detached_story}


@pytest.mark.gate
@pytest.mark.timeout(280)
def test_each_story_ends_as_it_is_told() -> None:
    """All clusters, the labelled ones, the best one; what runs stays when the scores change, and where its cluster is
    detached, until that is gone."""
    done = run("--json")
    assert done.returncode == 0, done.stderr
    result = orjson.loads(done.stdout.splitlines()[-1])
    assert (result["failed"], result["leftovers"], result["moved"], result["strays"]) == (0, 0, 1, [])
    stories = {part["placement"]: part for part in result["stories"]}
    assert list(stories) == ["all-clusters", "t4-clusters", "most-gpus", "detached"]
    clusters = {name: {item["cluster"] for item in part["items"]} for name, part in stories.items()}
    assert clusters["all-clusters"] == set(WORKERS)
    assert clusters["t4-clusters"] == {"worker2", "worker3"}
    best = stories["most-gpus"]
    assert [stay["cluster"] for stay in best["listed"]] == ["worker2", "worker3", "worker2"]
    where = {item["name"]: item["cluster"] for item in best["items"]}
    assert (where["tune-long"], where["tune-1"]) == ("worker2", "worker2")
    assert {where[f"tune-{number}"] for number in (2, 3, 4)} == {"worker3"}
    assert {where[f"tune-{number}"] for number in (5, 6)} == {"worker2"}, "its queues are still there"
    (long,) = (item for item in best["items"] if item["name"] == "tune-long")
    assert long["finished_s"] > best["changed_s"][0], "it ran when the scores changed"
    left = stories["detached"]
    assert {item["name"]: item["cluster"] for item in left["items"]} == dict.fromkeys(DETACHED.names, "worker3")
    assert left["gone_s"] - left["changed_s"][0] > LOST_AFTER.total_seconds(), "its job stayed for longer than that"
    assert "they run on, and move workerLostTimeout after it is gone" in left["said"]
    told_by_pictures = " ".join(done.stderr.split())
    assert "tune-long stayed on worker2" in told_by_pictures
    assert "build-long stayed on worker1 until its ManagedCluster was gone" in told_by_pictures


@pytest.mark.parametrize("width", [50, 80])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_picture_fits_its_terminal(story: Story, width: int) -> None:
    if story.name in PLAYED:
        played, jobs = PLAYED[story.name]()
    else:
        names = sorted(story.chosen)
        listed = [WorkerStay(name, 0.5) for name in names]
        played = Played(story, 0.0, 5.0, listed=listed)
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
    """The letters of workers: the Placement turns from B to C and back, and the long job stays on B."""
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
        "7 of 7 jobs finished: 2 on worker2, and after that change 3 on worker3, and after that change 2 on worker2. "
        "tune-long stayed on worker2, where it ran."
    )
    _, jobs = detached_story()
    assert outcome(DETACHED, jobs) == (
        "3 of 3 jobs finished: 1 on worker1, and after that change 2 on worker3. build-long stayed on worker1 until "
        "its ManagedCluster was gone, and ran on worker3 then."
    )


def test_a_job_that_moves_or_runs_elsewhere_is_told() -> None:
    moved = job("tune-long", WorkerStay("worker2", 1.0, 2.0), WorkerStay("worker3", 2.0, 4.0))
    elsewhere = job("tune-2", WorkerStay("worker1", 1.0, 2.0))
    played, jobs = best_story()
    assert strays(played, [moved, elsewhere]) == [
        'Job "tune-long" was moved from worker2 to worker3',
        'Job "tune-2" ran on worker1, which its Placement had not chosen',
    ]
    assert strays(played, jobs) == []


@pytest.mark.parametrize(("left", "is_wrong"), [(17.0, False), (14.5, True)])
def test_the_job_of_a_detached_cluster_moves_once_that_is_gone_and_not_before(left: float, is_wrong: bool) -> None:
    message = 'Job "build-long" did not stay on worker1 until its ManagedCluster was gone, and move then'
    assert strays(*detached_story(left)) == [message] * is_wrong
    played, jobs = detached_story()
    jobs[0].stays = jobs[0].stays[:1]
    assert strays(played, jobs) == [message], "it has never moved"


def test_the_queues_placement_is_that_of_the_example() -> None:
    example = Path(__file__).parents[2] / "docs/examples/queues-on-spokes.yaml"
    (shown,) = (document for document in yaml.safe_load_all(example.read_text()) if document["kind"] == "Placement")
    assert (QUEUES["metadata"], QUEUES["spec"]) == (shown["metadata"], shown["spec"])


@pytest.mark.looptime
async def test_a_cluster_that_the_queues_placement_does_not_select_loses_its_queues() -> None:
    """As a ManifestWorkReplicaSet takes them: the story would show nothing otherwise."""
    async with hubs("c1", "c2") as hub, background() as tasks:
        for server in hub.servers.values():
            for definition in load_crds():
                server.registry.create_object(definition)
        tasks.start_soon(QueuesOnSpokes(hub.client, {name: spoke.client for name, spoke in hub.spokes.items()}).run)
        await hub.place(QUEUES["metadata"]["name"], **QUEUES["spec"])

        async def brought() -> list[int]:
            return [len((await spoke.client.list(LOCAL_QUEUE)).items) for spoke in hub.spokes.values()]

        await anyio.sleep(5)
        assert await brought() == [len(STORIES), len(STORIES)]
        await hub.client.delete(MANAGED_CLUSTER, ObjectKey("", "c1"))
        await anyio.sleep(5)
        assert await brought() == [0, len(STORIES)]


@pytest.mark.parametrize(("free", "score"), [(0, -100), (2, -80), (3, -70), (10, 0), (20, 100), (40, 100)])
def test_free_gpus_become_a_score_as_ocm_counts_them(free: int, score: int) -> None:
    assert score_of(free) == score


def test_options_that_the_stories_decide_are_refused_in_one_line() -> None:
    assert "--ocm: the stories have their own jobs and clusters: leave --jobs out" in refused("--ocm", "--jobs", "3")
