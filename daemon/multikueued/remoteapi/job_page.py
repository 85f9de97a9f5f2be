"""A page of jobs as the browser shows it: chosen, sorted and cut here, so that a large fleet is not sent. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Self

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import counted
from multikueued.reports.jobs import JobState

ROWS: Final = 200
"""Jobs of a page."""
LONGEST_REASON: Final = 300
"""Characters of a reason: the row shows one line of it, and the job's own view all."""
_PRESSING: Final = (JobState.LOST, JobState.REJECTED, JobState.INACTIVE)
"""These stand first where nothing else is chosen."""
_SHOWN: Final = ("job", "state", "cluster", "clusterQueue", "since")
QueuePlaces = Mapping[tuple[str, str], Json]
"""By namespace and name: the places of the jobs that wait in the queue that is looked at."""


@attrs.frozen
class JobChoice:
    """Which jobs are shown, and in which order."""

    states: tuple[str, ...] = ()
    """Empty: all."""
    worker: str = ""
    """The jobs that it has, and those without a worker that it is asked for."""
    queue: str = ""
    """A ClusterQueue or LocalQueue."""
    words: tuple[str, ...] = ()
    """Each is in the namespace, the name, the worker or the queue."""
    sort: str = ""
    """A column; `-` before it: the other way round. Empty: what needs somebody, then the newest; or by place."""
    page: int = 0

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """From a request; what is not known of it changes nothing."""
        return cls(
            tuple(filter(None, query.get("state", "").split(","))),
            query.get("worker", ""),
            query.get("queue", ""),
            tuple(query.get("words", "").lower().split()),
            query.get("sort", ""),
            counted(query.get("page", "")) or 0,
        )

    def takes(self, job: Json) -> bool:
        """Whether a job is shown."""
        status = job["status"]
        cluster = status.get("cluster", "")
        return (
            (not self.states or status["state"] in self.states)
            and (not self.worker or cluster == self.worker or (not cluster and self.worker in _offered(status)))
            and (not self.queue or self.queue in (status.get("queue"), status.get("clusterQueue")))
            and (not self.words or _has(job, self.words))
        )


def job_page(jobs: Collection[Json], choice: JobChoice, places: QueuePlaces) -> Json:
    """The jobs of one page, with how many there are.

    Args:
        jobs: as the API has them, of all namespaces that the viewer may read.
        choice: what is shown.
        places: of the queue that is chosen; empty: none is.
    """
    chosen = [job for job in jobs if choice.takes(job)]
    chosen.sort(key=lambda job: job["metadata"].get("creationTimestamp", ""), reverse=True)
    column = choice.sort.removeprefix("-")
    if (by := _columns(places).get(column or ("place" if places else ""))) is not None:
        chosen.sort(key=by, reverse=choice.sort.startswith("-"))
    elif not column:
        chosen.sort(key=lambda job: job["status"]["state"] not in _PRESSING)
    pages = max(1, math.ceil(len(chosen) / ROWS))
    page = min(choice.page, pages - 1)
    return {
        "inAll": len(jobs),
        "count": len(chosen),
        "page": page,
        "pages": pages,
        "states": sorted({job["status"]["state"] for job in jobs}),
        "places": bool(places),
        "jobs": [_row(job, places) for job in chosen[page * ROWS : (page + 1) * ROWS]],
    }


def _columns(places: QueuePlaces) -> Mapping[str, Callable[[Json], Any]]:
    def text(field: str) -> Callable[[Json], str]:
        return lambda job: job["status"].get(field) or ""

    return {
        "namespace": lambda job: job["metadata"]["namespace"],
        "job": _name,
        "state": text("state"),
        "worker": text("cluster"),
        "queue": text("clusterQueue"),
        "since": text("since"),
        "place": lambda job: places.get(_key(job), {}).get("place", math.inf),
    }


def _row(job: Json, places: QueuePlaces) -> Json:
    status = job["status"]
    row = {"namespace": job["metadata"]["namespace"], "name": job["metadata"]["name"]}
    row |= {field: status[field] for field in _SHOWN if status.get(field)}
    if reason := status.get("reason"):
        row["reason"] = reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"
    if (place := places.get(_key(job))) is not None:
        row["place"] = place["place"]
    return row


def _key(job: Json) -> tuple[str, str]:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _name(job: Json) -> str:
    return str(job["status"].get("job") or job["metadata"]["name"])


def _offered(status: Json) -> Collection[str]:
    return status.get("offeredTo") or ()


def _has(job: Json, words: Collection[str]) -> bool:
    status = job["status"]
    text = " ".join((job["metadata"]["namespace"], _name(job), status.get("cluster", ""), status.get("queue", "")))
    return all(map(text.lower().__contains__, words))
