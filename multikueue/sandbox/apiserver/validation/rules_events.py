"""Events of today's group: what a client must say, and what stays as it was said."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.rules import NAME_PART, invalid_value, is_qualified, required, unchanged

_BOUNDS: Final = {"reportingInstance": 128, "action": 128, "reason": 128, "note": 1024}
"""Bytes; but for the note a text must be there."""
_NEEDED: Final = ("eventTime", "reportingController", "reportingInstance", "action", "reason")
_UNSET: Final = {
    "count": "deprecatedCount",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
}
_KEPT: Final = ("regarding", "reason", "note", "deprecatedSource", "deprecatedCount", "reportingController")


def check_event(event: Json) -> list[Cause]:
    """What is wrong with a new event; in the old group only where it is."""
    is_old, namespace = event["apiVersion"] == "v1", event["metadata"]["namespace"]
    about = (event.get("involvedObject" if is_old else "regarding") or {}).get("namespace") or ""
    causes = []
    if (about or "default") != namespace and (is_old or not about):
        causes.append(invalid_value("involvedObject.namespace", "does not match event.namespace", f'"{about}"'))
    if is_old:
        return causes
    causes += [required(field) for field in _NEEDED if not event.get(field)]
    for field, most in _BOUNDS.items():
        if len(str(event.get(field) or "").encode()) > most:
            causes.append(invalid_value(field, f"can have at most {most} bytes", ""))
    if event.get("type") not in ("Normal", "Warning"):
        causes.append(invalid_value("type", f"has invalid value: {event.get('type')}", ""))
    if not is_qualified(event.get("reportingController") or "x"):
        causes.append(invalid_value("reportingController", NAME_PART, f'"{event["reportingController"]}"'))
    series = event.get("series") or {"count": 2, "lastObservedTime": event.get("eventTime")}
    if (series.get("count") or 0) < 2:
        causes.append(invalid_value("series.count", "should be at least 2", ""))
    if not series.get("lastObservedTime"):
        causes.append(required("series.lastObservedTime"))
    return causes + [invalid_value(old, "needs to be unset", "") for old, name in _UNSET.items() if event.get(name)]


def check_event_update(old: Json, new: Json) -> list[Cause]:
    """What is wrong with an event in place of another: only its series goes on."""
    if new["apiVersion"] == "v1":
        return []
    return list(unchanged(old, new, "", *_KEPT, "reportingInstance", "action", "related", "type", "eventTime"))
