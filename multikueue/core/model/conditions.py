"""Conditions (`metav1.Condition`) and the times in them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from multikueue.core.model.labels import MAX_CONDITION_MESSAGE
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, shortened

UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of a pod's `PodScheduled` when no node has room for it, as its scheduler says it."""


def timestamp(moment: datetime) -> str:
    """The moment as Kubernetes writes it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: object) -> datetime | None:
    """Read an RFC 3339 time; None if it is absent or not one, or none in UTC: year 1 of a zone east of it."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def created_at(obj: Json) -> datetime | None:
    """When an object was created; None: it says no time."""
    return parse_timestamp(dig(obj, "metadata", "creationTimestamp"))


def deleted_at(obj: Json) -> datetime | None:
    """When somebody deleted it, of a pod when its grace period is over; None: nobody has."""
    return parse_timestamp(dig(obj, "metadata", "deletionTimestamp"))


def conditions(obj: Json) -> list[Json]:
    """The object's `status.conditions`."""
    return dig(obj, "status", "conditions") or []


def find(listed: Sequence[Json], kind: str) -> Json | None:
    """The condition of that type, whatever its status."""
    for condition in listed:  # twice as fast as `next` of a generator, and asked some ten times per decision
        if condition.get("type") == kind:
            return condition
    return None


def condition(obj: Json, kind: str) -> Json | None:
    """The object's condition of that type, whatever its status."""
    return find(conditions(obj), kind)


def message(obj: Json, kind: str) -> str:
    """The words of the condition of that type; empty if there is none."""
    return str((condition(obj, kind) or {}).get("message") or "")


def changed_at(obj: Json, kind: str) -> datetime | None:
    """When the object's condition of that type has got its status; None: it has none, or that cannot be read."""
    return parse_timestamp((condition(obj, kind) or {}).get("lastTransitionTime"))


def is_true(obj: Json, kind: str) -> bool:
    """Whether the object's condition of that type has status True."""
    entry = condition(obj, kind)
    return entry is not None and entry.get("status") == "True"


def new_condition(
    kind: str, status: bool, reason: str, message: str, *, now: datetime, generation: int | None = None
) -> Json:
    """A condition that has changed just now."""
    result: Json = {
        "type": kind,
        "status": "True" if status else "False",
        "reason": reason,
        "message": shortened(message, MAX_CONDITION_MESSAGE),
        "lastTransitionTime": timestamp(now),
    }
    if generation is not None:
        result["observedGeneration"] = generation
    return result


def updated(listed: Sequence[Json], new: Json) -> list[Json]:
    """The list with `new` in place of its type's entry; a status that stays keeps its transition time."""
    old = find(listed, new["type"])
    if old is not None and old.get("status") == new["status"] and old.get("lastTransitionTime"):
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return replaced(listed, new)


def replaced(listed: Sequence[Json], new: Json) -> list[Json]:
    """The list with `new`, its time included, in place of its type's entry."""
    old = find(listed, new["type"])
    return [*listed, new] if old is None else [new if entry is old else entry for entry in listed]


def says_the_same(old: Json | None, new: Json) -> bool:
    """Whether status, reason and message are equal: then writing the new one would change nothing."""
    return old is not None and all(old.get(field) == new.get(field) for field in ("status", "reason", "message"))


def json_message(obj: Json, kind: str) -> Json:
    """The JSON object that is the message of a condition; empty: there is none, or it cannot be read."""
    try:
        facts: Any = orjson.loads(message(obj, kind))
    except orjson.JSONDecodeError:
        return {}
    return facts if isinstance(facts, dict) else {}
