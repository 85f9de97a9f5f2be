"""What a decision of the small Kueue asks for: one write and what to tell the user, or nothing for now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.protocols import Subresource


@attrs.frozen
class Create:
    """POST."""

    resource: Resource
    object: Json


@attrs.frozen
class Replace:
    """PUT of an object as it was read and then changed; its resourceVersion is the precondition."""

    resource: Resource
    object: Json
    subresource: Subresource = ""


@attrs.frozen
class ApplyStatus:
    """Forced server-side apply of a status; the body carries the resourceVersion it was made from."""

    resource: Resource
    object: Json
    field_manager: str


@attrs.frozen
class Delete:
    """DELETE of exactly this object."""

    resource: Resource
    key: ObjectKey
    uid: str


Request: TypeAlias = Create | Replace | ApplyStatus | Delete


@attrs.frozen
class Note:
    """An event: something a user may want to know about an object."""

    controller: str
    """Who reports it."""
    regarding: Json
    reason: str
    note: str
    type: str = "Normal"


@attrs.frozen
class Step:
    """One write; then what to tell if it succeeded. Decide again afterwards."""

    request: Request
    notes: tuple[Note, ...] = ()
    first: Step | None = None
    """A step that goes before it: this one is not done unless that has succeeded."""


@attrs.frozen
class Rest:
    """Nothing to write."""

    after: float | None = None
    """Seconds after which time alone may change that."""
    notes: tuple[Note, ...] = ()


Decision: TypeAlias = Step | Rest

NOTHING = Rest()


def first_of(decisions: Iterable[Decision | None]) -> Decision:
    """What the first rule says that has something to say."""
    return next((decision for decision in decisions if decision is not None), NOTHING)
