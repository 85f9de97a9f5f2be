"""Events about a job and its Workload, in the order of time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

import attrs
import orjson

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import REFUSED
from multikueue.core.model.labels import ASKED_AGAIN_ANNOTATION, FINDING_LABEL, REFUSAL_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, labels_of
from multikueue.core.model.refusal_facts import RefusalFacts

EVER: Final = datetime.min.replace(tzinfo=UTC)


@attrs.frozen
class EventReport:
    """One event, or a series of the same."""

    object: str
    """KIND/NAME of what it is about."""
    type: str
    """`Normal` or `Warning`."""
    reason: str
    note: str
    first: datetime | None
    last: datetime | None
    count: int
    source: str
    """Who says it."""
    refused_by: str = ""
    """The worker that refuses something, where the event says that."""
    asked_again: datetime | None = None
    """When that worker is asked again by itself, where the event says that."""
    cause: str = ""
    """Why it refuses that, as `NameTaken`; empty: its words alone tell."""
    about: Mapping[str, str] = MappingProxyType({})
    """What the cause is about, as `kind` and `name` of what the job needs there."""
    finding: str = ""
    """Which finding of `explain` and `doctor` it tells of, as `contested-field`; empty: none."""


def event_reports(events: Iterable[Json], about: Iterable[Json]) -> tuple[EventReport, ...]:
    """The events about these objects, the one first said first.

    Args:
        events: `events.k8s.io/v1`, those of older programs included.
        about: the job and its Workload. An object of the same name that was deleted has another UID.
    """
    wanted = {
        (str(target.get("kind")), str(dig(target, "metadata", "name")), str(dig(target, "metadata", "uid")))
        for target in about
    }
    reports = [event_report(event) for event in events if _is_about(event, wanted)]
    return tuple(sorted(reports, key=lambda report: (report.first or EVER, report.last or EVER)))


_RENAMED: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}


def as_new_event(event: Json) -> Json:
    """An event of the core group as `events.k8s.io` has it."""
    return event | {new: event[old] for new, old in _RENAMED.items() if event.get(old) is not None}


def _is_about(event: Json, wanted: Collection[tuple[str, str, str]]) -> bool:
    regarding = event.get("regarding") or {}
    kind, name, uid = (str(regarding.get(field) or "") for field in ("kind", "name", "uid"))
    return any(
        (kind, name) == (wanted_kind, wanted_name) and uid in ("", wanted_uid)
        for wanted_kind, wanted_name, wanted_uid in wanted
    )


def event_report(event: Json) -> EventReport:
    """One of `events.k8s.io/v1`, as it is printed."""
    regarding, series = event.get("regarding") or {}, event.get("series") or {}
    refused = event.get("action") == REFUSED
    created, why = dig(event, "metadata", "creationTimestamp"), _why(event) if refused else RefusalFacts()
    first = _first_of(event.get("eventTime"), event.get("deprecatedFirstTimestamp"), created)
    last = _first_of(series.get("lastObservedTime"), event.get("deprecatedLastTimestamp"))
    return EventReport(
        object=f"{str(regarding.get('kind') or '').lower()}/{regarding.get('name')}",
        type=str(event.get("type") or "Normal"),
        reason=str(event.get("reason") or ""),
        note=str(event.get("note") or ""),
        first=first,
        last=last or first,
        count=int(series.get("count") or event.get("deprecatedCount") or 1),
        source=str(event.get("reportingController") or dig(event, "deprecatedSource", "component") or ""),
        refused_by=str(dig(event, "related", "name") or "") if refused else "",
        asked_again=_first_of(annotations_of(event).get(ASKED_AGAIN_ANNOTATION)) if refused else None,
        cause=why.cause,
        about=why.about,
        finding=labels_of(event).get(FINDING_LABEL, ""),
    )


def _why(event: Json) -> RefusalFacts:
    try:
        return RefusalFacts.read(orjson.loads(annotations_of(event).get(REFUSAL_ANNOTATION, "")))
    except orjson.JSONDecodeError:
        return RefusalFacts()


def _first_of(*times: str | None) -> datetime | None:
    return next((moment for time in times if (moment := parse_timestamp(time)) is not None), None)
