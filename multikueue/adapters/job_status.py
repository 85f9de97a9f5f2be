"""What the status of a manager's Job says of its copy.

An API server is strict about it because of `managedBy` (Kubernetes' `ValidateJobStatusUpdate`): whoever writes it, an
end that is there or announced stays, a start and counters do not go back, nothing runs once the Job has ended. So what
is written is made of both: what the copy says, and what stands on the manager's Job already, whoever has put it there.

A suspended Job may not show a start: Kueue could no longer edit its template, and the API server refuses a
`startTime` without a Suspended condition (Kubernetes 1.36). It gets one together with its end only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from multikueue.adapters.rules import finished_by
from multikueue.adapters.words import SUSPENDED, Words
from multikueue.core.model.conditions import (
    conditions,
    find,
    replaced,
    says_the_same,
    timestamp,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

_ANNOUNCED_BY: Final = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""Each end, and what a Job has as soon as it can only end so: neither stands beside anything of the other end."""
_PODS: Final = ("active", "ready", "terminating")

WORDS: Final = Words(
    waiting=((SUSPENDED, "True", "JobSuspended", "Job suspended"),),
    resumed=("JobResumed", "Job resumed"),
    written="lastProbeTime",
)

job_outcome = finished_by("Complete", "Failed")


settled_end = finished_by(_ANNOUNCED_BY["Complete"], _ANNOUNCED_BY["Failed"])
"""How a Job can only end, as its conditions say already; None while that is open."""


def job_status(local: Json, remote: Json, now: datetime) -> Json | None:
    """The status that the manager's Job should have; None to leave it: what has ended stays as it is."""
    return None if job_outcome(local) is not None else _status(local, dig(remote, "status") or {}, now)


def status_at_settled_end(local: Json, now: datetime) -> Json | None:
    """The status of a Job of which nothing runs any more, with the end that its conditions announce."""
    listed = conditions(local)
    end = _end_of(listed, announced=True)
    if end is None or job_outcome(local) is not None:
        return None
    over = _end(end, _true(listed, _ANNOUNCED_BY[end]) or {}, {}, now)
    return _status(local, {**(dig(local, "status") or {}), "conditions": replaced(listed, over)}, now)


def _status(local: Json, wanted: Json, now: datetime) -> Json:
    """What a copy says, as far as the manager's Job may say it that has not ended yet."""
    known, said = dig(local, "status") or {}, wanted.get("conditions") or []
    listed = _lasting(conditions(local), said, now)
    ended = _end_of(listed) is not None
    status = {field: value for field, value in wanted.items() if field not in ("startTime", "completionTime")}
    if listed or said:
        status["conditions"] = listed
    for counter in ("succeeded", "failed"):
        if (known.get(counter) or 0) > (wanted.get(counter) or 0):
            status[counter] = known[counter]
    if ended:
        status.pop("uncountedTerminatedPods", None)
    counted = {field: 0 for field in _PODS if status.get(field)} if ended else _held(status)
    return status | counted | _times(local, wanted, listed, now)


def _held(status: Json) -> Json:
    """The counters of pods: Kueue reads from `active` whether a Job holds its quota, and a pod that ends is there.

    An end is not held up by it: the server refuses one beside pods.
    """
    active = max(status.get("active") or 0, status.get("terminating") or 0)
    counted = {"active": active} if active else {}
    return counted | ({"ready": active} if (status.get("ready") or 0) > active else {})


def _times(local: Json, wanted: Json, listed: Sequence[Json], now: datetime) -> Json:
    """When it has started, and when it is complete.

    A copy that was stopped and started again, or a new one after another attempt, begins anew; a Job may not. Until it
    is suspended its start stays the first one. It does not end before that start: the copy's end may say so where a
    clock was set back, or another worker's is behind.
    """
    first, copied = dig(local, "status", "startTime"), wanted.get("startTime")
    suspended, end = bool(dig(local, "spec", "suspend")), _end_of(listed)
    started = copied or first if suspended else first or copied
    if end is None:
        return {"startTime": started} if started and not suspended else {}
    shown = (find(listed, end) or {}).get("lastTransitionTime")
    ended = wanted.get("completionTime") or shown or timestamp(now)
    started = started or ended
    return {"startTime": started} | ({"completionTime": max(started, ended)} if end == "Complete" else {})


def _lasting(known: Sequence[Json], wanted: Sequence[Json], now: datetime) -> list[Json]:
    """The conditions of the copy, but for what speaks against the end that is settled on the manager's Job."""
    ends = _end_of(wanted) is not None
    end = _end_of(known, announced=True) or _end_of(wanted, announced=not ends)
    if end is None:
        return list(wanted)
    others = {kind for pair in _ANNOUNCED_BY.items() if pair[0] != end for kind in pair}
    listed = [condition for condition in wanted if condition.get("type") not in others]
    announcement = _ANNOUNCED_BY[end]
    settled, copied, over = _true(known, announcement), _true(listed, announcement), _true(listed, end)
    if ends and (over is None or (settled is not None and not says_the_same(copied, settled))):
        over = _end(end, settled or {}, over or {}, now)
        listed = replaced(listed, over)
    if settled is not None:
        listed = replaced(listed, settled)
    elif copied is None and over is not None:
        listed = replaced(listed, {**over, "type": announcement})  # older workers announce nothing
    return listed


def _end_of(listed: Sequence[Json], *, announced: bool = False) -> str | None:
    """The end that conditions show, or at least announce."""
    pairs = _ANNOUNCED_BY.items()
    shown = (end for end, sign in pairs if _true(listed, end) or (announced and _true(listed, sign)))
    return next(shown, None)


def _true(listed: Sequence[Json], kind: str) -> Json | None:
    condition = find(listed, kind)
    return condition if condition is not None and condition.get("status") == "True" else None


def _end(end: str, announced: Json, times: Json, now: datetime) -> Json:
    """The condition of an end, in the words that announced it."""
    words: Json = {field: announced[field] for field in ("reason", "message") if field in announced}
    at = announced.get("lastTransitionTime") or timestamp(now)  # the same each time: what is refused is known again
    return {"lastProbeTime": at, "lastTransitionTime": at, **times, "type": end, "status": "True", **words}
