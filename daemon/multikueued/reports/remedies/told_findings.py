"""What events tell that somebody has to look at, by their label: no words of ours are read.

Each is told for as long as the event is kept, an hour as a rule, and until a later write has changed what it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.labels import ToldFinding
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueued.reports.events import EventReport
from multikueued.reports.remedies.remedy import REMEDIES, Finding


@attrs.frozen
class _Told:
    ended_by: str
    """The part of the manager's job of which a later write ends it: a subresource; empty: the job itself."""
    is_over: Callable[[Json], bool]
    """Whether the Workload shows that it is over."""


def _is_offered(workload: Json) -> bool:
    """Whether it was copied to a worker, or needs no copy any more."""
    placed = workloads.cluster_name(workload) is not None or bool(workloads.nominated(workload))
    return placed or workloads.is_finished(workload)


TOLD: Final[Mapping[ToldFinding, _Told]] = MappingProxyType(
    {
        ToldFinding.STATUS_REFUSED: _Told("status", is_over=lambda _: False),
        ToldFinding.CONTESTED_FIELD: _Told("", is_over=workloads.is_finished),
        ToldFinding.COPY_WAITS: _Told("", is_over=_is_offered),
    }
)
"""What ends each; the rows of remedies have these ids, too."""


def told_findings(events: Iterable[EventReport], workload: Json, job: Json | None, name: str) -> Iterator[Finding]:
    """What the last event of each kind tells, unless the job was written after it.

    Args:
        events: about the Workload, in the order of time.
        workload: the manager's.
        job: the one behind it, with its managed fields; None: it could not be read.
        name: of the job, as TYPE/NAME.
    """
    last = {event.finding: event for event in events}
    key = ObjectKey.of(workload)
    for kind, row in TOLD.items():
        event = last.get(kind)
        if event is None or row.is_over(workload) or _was_written_after(event, job, row.ended_by):
            continue
        words = {"namespace": key.namespace, "job": name}
        yield REMEDIES[kind].about(f"Workload {key.name}", event.note, words)


def _was_written_after(event: EventReport, job: Json | None, part: str) -> bool:
    entries = (
        entry for entry in dig(job, "metadata", "managedFields") or () if (entry.get("subresource") or "") == part
    )
    times = (parse_timestamp(entry.get("time")) for entry in entries)
    return event.last is not None and any(at is not None and at > event.last for at in times)
