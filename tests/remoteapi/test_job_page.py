"""A page of jobs: which, in which order, how many, and nothing beside."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from multikueue.core.model.names import Json
from multikueued.remoteapi.job_page import LONGEST_REASON, ROWS, JobChoice, job_page


def job(name: str, state: str = "Running", namespace: str = "a", at: int = 0, **status: Any) -> Json:
    metadata = {"name": f"job.{name}", "namespace": namespace, "creationTimestamp": f"2026-11-25T10:{at:02}:00Z"}
    return {"metadata": metadata, "status": {"job": f"job/{name}", "state": state, **status}}


JOBS = [
    job("old", "Finished", at=1, cluster="w2", queue="lq", clusterQueue="cq", since="2026-11-25T11:00:00Z"),
    job("lost", "Lost", at=2, cluster="w1", queue="lq", clusterQueue="cq"),
    job("asked", "Offered", at=3, offeredTo=["w1", "w3"], queue="lq2", clusterQueue="cq2"),
    job("new", "Running", "b", at=4, cluster="w1", queue="lq", clusterQueue="cq", since="2026-11-25T10:30:00Z"),
]


def names(places: dict[tuple[str, str], Json] | None = None, **query: str) -> list[str]:
    shown = job_page(JOBS, JobChoice.read(query), places or {})
    return [row["job"].removeprefix("job/") for row in shown["jobs"]]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, ["lost", "new", "asked", "old"]),
        ({"sort": "job"}, ["asked", "lost", "new", "old"]),
        ({"sort": "-job"}, ["old", "new", "lost", "asked"]),
        ({"sort": "namespace"}, ["asked", "lost", "old", "new"]),
        ({"sort": "worker"}, ["asked", "new", "lost", "old"]),
        ({"sort": "-since"}, ["old", "new", "asked", "lost"]),
        ({"sort": "no-such"}, ["new", "asked", "lost", "old"]),
        ({"state": "Finished,Offered"}, ["asked", "old"]),
        ({"worker": "w1"}, ["lost", "new", "asked"]),
        ({"worker": "w3"}, ["asked"]),
        ({"queue": "cq"}, ["lost", "new", "old"]),
        ({"queue": "lq2"}, ["asked"]),
        ({"words": "LQ w1"}, ["lost", "new"]),
        ({"words": "job/n b"}, ["new"]),
        ({"words": "nobody"}, []),
        ({"page": "7"}, ["lost", "new", "asked", "old"]),
        ({"page": "-1"}, ["lost", "new", "asked", "old"]),
        ({"page": "9" * 99}, ["lost", "new", "asked", "old"]),
    ],
)
def test_jobs_are_chosen_and_sorted(query: dict[str, str], shown: list[str]) -> None:
    """What needs somebody stands first, then the newest; what is not known of a request changes nothing."""
    assert names({}, **query) == shown


def test_in_a_queue_the_next_one_stands_first() -> None:
    places: dict[tuple[str, str], Json] = {("b", "job.new"): {"place": 2}, ("a", "job.old"): {"place": 1}}
    assert names(places, queue="cq") == ["old", "new", "lost"]
    assert names(places, queue="cq", sort="job") == ["lost", "new", "old"]


def test_a_page_has_its_rows_and_says_how_many_there_are() -> None:
    """Its size does not grow with the fleet, nor with what somebody has written as a reason."""
    many = [job(f"{number:05}", reason="x" * 5_000, cluster="w", clusterQueue="q") for number in range(3 * ROWS + 1)]
    first = job_page(many, JobChoice.read({"sort": "job"}), {})
    last = job_page(many, JobChoice.read({"sort": "job", "page": "3"}), {})
    assert (first["count"], first["inAll"], first["pages"], len(first["jobs"])) == (3 * ROWS + 1, 3 * ROWS + 1, 4, ROWS)
    assert [row["job"] for row in last["jobs"]] == [f"job/{3 * ROWS:05}"]
    assert len(first["jobs"][0]["reason"]) == LONGEST_REASON + 1
    assert len(orjson.dumps(first)) < 100_000
