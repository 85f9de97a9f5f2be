"""What the demo shows: on small screens, without a terminal, and as a picture at the end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import SettingsError
from multikueue.sandbox.kinds import BATCH_JOB
from multikueued.demo.gantt import MOST_ROWS, gantt
from multikueued.demo.jobs import drawn_job, kinds_named
from multikueued.demo.output import print_table, progress_line, ran, render, summary
from multikueued.demo.run import check_broken
from multikueued.demo.tally import Tally


def workload(job: str, cluster: str | None = None) -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job}
    metadata = {"namespace": "default", "name": f"job-{job}-1", "ownerReferences": [owner]}
    return {"metadata": metadata, "status": {"clusterName": cluster} if cluster else {}}


def ended(job: str) -> Json:
    status = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
    return {"metadata": {"namespace": "default", "name": job}, "spec": {"completions": 1}, "status": status}


def tally_of(jobs: int, workers: int = 2) -> Tally:
    """Jobs that each run for 4 s on one worker after the other."""
    tally = Tally()
    for number in range(jobs):
        name = f"a-job-with-a-name-{number:02}"
        tally.submitted(drawn_job(BATCH_JOB, name, 1), 0.0)
        tally.saw_workload(workload(name), 0.0)
        tally.saw_workload(workload(name, f"worker{number % workers + 1}"), 2.0)
    return tally


def shown(tally: Tally, *, workers: int = 2, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    quota = {f"worker{number}": 4.0 for number in range(1, workers + 1)}
    console.print(render(tally, quota, 5.0, width=width, height=height))
    text = console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(50, 15), (80, 24), (200, 60), (40, 10)])
@pytest.mark.parametrize("workers", [2, 20])
def test_the_view_fits_the_screen_and_says_what_it_leaves_out(width: int, height: int, workers: int) -> None:
    lines = shown(tally_of(60, workers), workers=workers, width=width, height=height)
    assert len(lines) <= height - 1, "the line of the cursor"
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "0 of 60 jobs ended" in text
    listed = sum(f"worker{number} " in text for number in range(1, workers + 1))
    assert listed == workers or f"and {workers - listed} more workers" in text


def test_the_race_is_seen() -> None:
    """Offered to two, admitted by one, withdrawn from the other."""
    tally = Tally()
    tally.submitted(drawn_job(BATCH_JOB, "mine", 1), 0.0)
    tally.saw_workload(workload("mine"), 0.0)
    key = ObjectKey("default", "job-mine-1")
    for worker in ("worker1", "worker2"):
        tally.saw_copy(worker, "workload", key, workload("mine"))
    assert "offered mine" in "\n".join(shown(tally, width=80, height=24))
    tally.saw_workload(workload("mine", "worker2"), 1.0)
    assert "mine goes to worker2, withdrawn from worker1" in "\n".join(shown(tally, width=80, height=24))


def test_a_worker_that_is_lost_is_shown_with_its_time_and_its_jobs_move() -> None:
    tally = tally_of(1)
    name = "a-job-with-a-name-00"
    tally.saw_worker("worker1", False, 3.0)
    assert "out of reach for 2 s" in "\n".join(shown(tally, width=80, height=24))
    assert progress_line(tally, ["worker1", "worker2"], 5.0).endswith("worker1 is out of reach with 1, worker2 runs 0")
    tally.saw_workload(workload(name), 6.0)
    tally.saw_workload(workload(name, "worker2"), 7.0)
    tally.saw_worker("worker1", True, 8.0)
    tally.saw_job(BATCH_JOB, ended(name), name, 10.0)
    picture = [line.plain for line in gantt(tally, ["worker1", "worker2"], 42, colours=False)]
    assert picture[0] == "a-job-with-a-n  ·····" + "AAAAAAAAAAAA"[:11] + "··" + "BBBBBBBB"
    assert picture[1].split() == ["worker1", "x" * 14]
    (item,) = summary(tally, ["worker1", "worker2"], 10.0)["items"]
    assert [(placement["cluster"], placement["since_s"], placement["until_s"]) for placement in item["placements"]] == [
        ("worker1", 2.0, 6.0),
        ("worker2", 7.0, 10.0),
    ]
    assert ran(tally.stories[BATCH_JOB.resource, name]) == 4.0 + 3.0  # the wait between the two is no run
    assert (item["cluster"], item["outcome"], summary(tally, [], 10.0)["moved"]) == ("worker2", "finished", 1)


def test_a_deployment_with_pods_on_two_workers_has_not_moved_and_is_counted_once() -> None:
    tally = Tally()
    (deployment,) = kinds_named(["deployment"])
    tally.submitted(drawn_job(deployment, "web", 1), 0.0)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    for number in (1, 2):
        metadata = {"namespace": "default", "name": f"pod-web-{number}", "ownerReferences": [owner]}
        tally.saw_workload({"metadata": metadata, "status": {"clusterName": f"worker{number}"}}, 1.0 + number)
    story = tally.stories[deployment.resource, "web"]
    story._end(5.0)
    summed = summary(tally, ["worker1", "worker2"], 5.0)
    assert (summed["per_cluster"], summed["on_several"], summed["moved"]) == ({"worker1": 0, "worker2": 0}, 1, 0)
    assert ran(story) == 3.0


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_the_picture_is_as_wide_as_the_screen_and_as_long_as_can_be_read(width: int) -> None:
    tally = tally_of(MOST_ROWS + 7)
    for story in list(tally.stories.values()):
        tally.saw_job(BATCH_JOB, ended(story.key.name), story.key.name, 9.0)
    lines = [line.plain for line in gantt(tally, ["worker1", "worker2"], width)]
    assert all(len(line) <= width for line in lines[:MOST_ROWS])
    assert "… and 7 more jobs" in lines
    assert gantt(Tally(), ["worker1"], width) == []


def test_the_table_fits_fifty_columns() -> None:
    console = Console(file=io.StringIO(), width=50)
    print_table(console, tally_of(3))
    text = console.file
    assert isinstance(text, io.StringIO)
    assert max(map(len, text.getvalue().splitlines())) <= 50
    assert "worker1" in text.getvalue()
    assert "…" not in text.getvalue()


def test_a_worker_that_cannot_be_taken_away_is_refused() -> None:
    with pytest.raises(SettingsError, match="there is no worker3: the workers are worker1, worker2"):
        check_broken("worker3", 2)
    with pytest.raises(SettingsError, match="raise --workers"):
        check_broken("worker1", 1)
    check_broken("worker2", 2)
