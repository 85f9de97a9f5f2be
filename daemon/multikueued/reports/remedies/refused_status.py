"""Statuses of jobs that the manager's API server refuses: what somebody has to look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueued.reports.events import EventReport
from multikueued.reports.remedies.remedy import Finding, filled

STATUS_REFUSED: Final = "status-refused"
_REMEDY: Final = (
    "compare these words with its status: kubectl -n {namespace} get {job} -o yaml --show-managed-fields; somebody "
    "else wrote there what rules it out, or the kind's definition here is older than the workers'. Mend that; the "
    "status is written again within a few minutes, or once the job changes"
)


def refused_status(events: Iterable[EventReport], workload: Json, job: Json | None, name: str) -> Iterator[Finding]:
    """The last time that a status was refused, unless one was taken after it.

    Args:
        events: about the Workload, in the order of time.
        workload: the manager's.
        job: the one behind it, with its managed fields; None: it could not be read.
        name: of the job, as TYPE/NAME.
    """
    last = next((one for one in reversed(tuple(events)) if one.status_refused), None)
    if last is None or _was_taken_after(last, job):
        return
    key = ObjectKey.of(workload)
    why = "the manager's API server refuses what the worker says of the job, so the job does not show it"
    words = {"namespace": key.namespace, "job": name}
    yield Finding(STATUS_REFUSED, f"Workload {key.name}", why, last.note, filled(_REMEDY, words))


def _was_taken_after(last: EventReport, job: Json | None) -> bool:
    fields = dig(job, "metadata", "managedFields") or ()
    times = (parse_timestamp(one.get("time")) for one in fields if one.get("subresource") == "status")
    return last.last is not None and any(at is not None and at > last.last for at in times)
