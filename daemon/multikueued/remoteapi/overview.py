"""The fleet, or a namespace, at one look: how full, who waits how long, what needs somebody. Pure.

It is made of the jobs as the API shows them, so its cost is that of walking over them once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from multikueue.core.model.conditions import parse_timestamp, timestamp
from multikueue.core.model.names import Json
from multikueued.reading.structured import plain
from multikueued.remoteapi.history import ALL, Counts
from multikueued.reports.jobs import ENDED_STATES, RUNNING_STATES, JobState
from multikueued.reports.remedies.remedy import Finding

HOUR: Final = timedelta(hours=1)
TROUBLED: Final = 10
"""Jobs that need somebody of which is told."""
QUEUES: Final = 100
"""Queues of which waiting times are told: those with most jobs."""
_RUNNING: Final = frozenset(map(str, RUNNING_STATES))
_WAITING: Final = frozenset({str(JobState.QUEUED), str(JobState.OFFERED), str(JobState.RETRYING)})
_TROUBLE: Final = (JobState.REJECTED, JobState.LOST, JobState.INACTIVE, JobState.FAILED)
"""States in which a job needs somebody, the most pressing first. Of those that failed the last hour's."""


def counted(jobs: Iterable[Json], now: datetime) -> dict[str, Counts]:
    """How many jobs run, wait, are held, and have failed in the last hour, by namespace; `ALL` is their sum."""
    recent = timestamp(now - HOUR)
    lines: dict[str, list[int]] = {}
    for job in jobs:
        state, line = job["status"]["state"], lines.setdefault(job["metadata"]["namespace"], [0, 0, 0, 0])
        if state in _RUNNING:
            line[0] += 1
        elif state in _WAITING:
            line[1] += 1
        elif state == JobState.WAITING:
            line[2] += 1
        elif state == JobState.FAILED:
            line[3] += job["status"].get("since", "") >= recent
    counts: dict[str, Counts] = {name: (line[0], line[1], line[2], line[3]) for name, line in lines.items()}
    running, waiting, held, failed = (sum(line[at] for line in lines.values()) for at in range(4))
    return counts | {ALL: (running, waiting, held, failed)}


def overview(
    jobs: Collection[Json], now: datetime, findings: Iterable[Finding], *, use: Sequence[Json], history: Json
) -> Json:
    """What the API shows.

    Args:
        jobs: as the API has them, of the fleet or of one namespace.
        now: the wall clock.
        findings: what is wrong beside the jobs themselves.
        use: of the fleet; see `use_of_fleet`.
        history: of the same jobs.
    """
    recent = timestamp(now - HOUR)
    running, waiting, held, failed = counted(jobs, now)[ALL]
    ended = (job["status"] for job in jobs if job["status"]["state"] in ENDED_STATES)
    return {
        "readAt": timestamp(now),
        "jobs": {
            "running": running,
            "waiting": waiting,
            "held": held,
            "failedLastHour": failed,
            "endedLastHour": sum(status.get("since", "") >= recent for status in ended),
        },
        "history": history,
        "use": list(use),
        "waits": waits(jobs, now),
        "findings": plain(sorted(dict.fromkeys(findings), key=lambda finding: not finding.blocking)),
        **_troubled(jobs, recent),
    }


def _troubled(jobs: Iterable[Json], recent: str) -> Json:
    """The jobs that need somebody, the most pressing first, the newest of each sort first."""
    troubled = [
        job
        for job in jobs
        if job["status"]["state"] in _TROUBLE
        and (job["status"]["state"] != JobState.FAILED or job["status"].get("since", "") >= recent)
    ]
    troubled.sort(key=lambda job: job["status"].get("since", ""), reverse=True)
    troubled.sort(key=lambda job: _TROUBLE.index(job["status"]["state"]))
    fields = ("job", "state", "cluster", "since", "reason")
    shown = [
        {
            "namespace": job["metadata"]["namespace"],
            "name": job["metadata"]["name"],
            **{field: job["status"][field] for field in fields if field in job["status"]},
        }
        for job in troubled[:TROUBLED]
    ]
    return {"troubled": shown, "troubledInAll": len(troubled)}


def waits(jobs: Iterable[Json], now: datetime) -> list[Json]:
    """How long jobs have waited, by ClusterQueue, those with most jobs first: seconds from the creation of those that
    got their first worker in the last hour, and how many wait, since when."""
    recent = timestamp(now - HOUR)
    waited: dict[str, list[float]] = {}
    begun: dict[str, list[str]] = {}
    for job in jobs:
        status, created = job["status"], job["metadata"].get("creationTimestamp", "")
        queue = status.get("clusterQueue", "")
        placements = status.get("placements") or ()
        first = placements[0].get("since", "") if placements else ""
        if first and first >= recent and created:
            waited.setdefault(queue, []).append(_seconds(created, first))
        if status["state"] in _WAITING or status["state"] == JobState.WAITING:
            begun.setdefault(queue, []).append(created)
    names = sorted({*waited, *begun}, key=lambda name: (-len(waited.get(name, ())) - len(begun.get(name, ())), name))
    return [_wait(name, sorted(waited.get(name, ())), begun.get(name, ())) for name in names[:QUEUES]]


def _wait(queue: str, waited: Sequence[float], begun: Sequence[str]) -> Json:
    line: Json = {"queue": queue, "started": len(waited), "waiting": len(begun)}
    if waited:
        line |= {f"p{percent}": waited[math.ceil(len(waited) * percent / 100) - 1] for percent in (50, 90)}
    return line | ({"oldest": min(begun)} if begun else {})


def _seconds(begin: str, end: str) -> float:
    first, last = parse_timestamp(begin), parse_timestamp(end)
    return max(0.0, (last - first).total_seconds()) if first is not None and last is not None else 0.0


BARS: Final = 250
"""Jobs of one picture of time."""


def timeline(jobs: Iterable[Json], begin: datetime, end: datetime, worker: str = "", queue: str = "") -> Json:
    """The jobs that were there in a span of time, with the workers that they have had: those that moved first, then
    those that are somewhere, then the newest.

    Args:
        jobs: as the API has them.
        begin: of the span.
        end: of the span.
        worker: only the jobs that it has, or has had; empty: all.
        queue: only those of this ClusterQueue or LocalQueue; empty: all.
    """
    first, last = timestamp(begin), timestamp(end)
    chosen = [
        job
        for job in jobs
        if job["metadata"].get("creationTimestamp", "") <= last
        and _until(job) >= first
        and queue in ("", job["status"].get("queue"), job["status"].get("clusterQueue"))
        and (not worker or worker in (placement.get("cluster") for placement in job["status"].get("placements") or ()))
    ]
    chosen.sort(key=lambda job: job["metadata"].get("creationTimestamp", ""), reverse=True)
    chosen.sort(key=lambda job: -min(2, len(job["status"].get("placements") or ())))
    return {
        "begin": first,
        "end": last,
        "inAll": len(chosen),
        "jobs": [_bar(job) for job in islice(chosen, BARS)],
    }


def _until(job: Json) -> str:
    ended = job["status"]["state"] in ENDED_STATES
    return str(job["status"].get("since", "")) if ended else "9"


def _bar(job: Json) -> Json:
    status, metadata = job["status"], job["metadata"]
    line = {
        field: status[field] for field in ("job", "state", "since", "queue", "cluster", "offeredTo") if field in status
    }
    line |= {"namespace": metadata["namespace"], "name": metadata["name"], "created": metadata.get("creationTimestamp")}
    places = [
        {field: value for field, value in placement.items() if value} for placement in status.get("placements") or ()
    ]
    return line | ({"placements": places} if places else {})
