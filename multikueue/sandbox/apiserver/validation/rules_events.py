"""Events of today's group: what a client must say, and what stays as it was said."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.rules import invalid_value, required, unchanged

_BOUNDS: Final = {"reportingInstance": 128, "action": 128, "reason": 128, "note": 1024}
"""Bytes; but for the note a text must be there."""
_NEEDED: Final = ("eventTime", "reportingController", "reportingInstance", "action", "reason")
_KEPT: Final = ("regarding", "reason", "note", "deprecatedSource", "deprecatedCount", "reportingController")


def check_event(event: Json) -> list[Cause]:
    """What is wrong with a new event; in the old group all is taken."""
    if event["apiVersion"] == "v1":
        return []
    causes = [required(field) for field in _NEEDED if not event.get(field)]
    for field, most in _BOUNDS.items():
        if len(str(event.get(field) or "").encode()) > most:
            causes.append(invalid_value(field, f"can have at most {most} bytes", ""))
    if event.get("type") not in ("Normal", "Warning"):
        causes.append(invalid_value("type", f"has invalid value: {event.get('type')}", ""))
    return causes


def check_event_update(old: Json, new: Json) -> list[Cause]:
    """What is wrong with an event in place of another: only its series goes on."""
    if new["apiVersion"] == "v1":
        return []
    return list(unchanged(old, new, "", *_KEPT, "reportingInstance", "action", "related", "type", "eventTime"))
