"""What a decision about a config asks to be done, in this order. The first that fails ends it."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.placement.figures import Figures
from multikueue.core.placement.snapshot import Memory


@attrs.frozen
class Create:
    """Create an object."""

    resource: Resource
    object: Json


@attrs.frozen
class Patch:
    """Merge patch; the patch carries the resourceVersion it was made from."""

    resource: Resource
    key: ObjectKey
    patch: Json
    status: bool = False
    """Whether it is of the status."""


@attrs.frozen
class Delete:
    """Delete exactly this object as it was read."""

    resource: Resource
    key: ObjectKey
    uid: str
    version: str


@attrs.frozen
class ApplyEntry:
    """Apply our check's entry of a Workload's status; the object carries the resourceVersion it was made from."""

    object: Json


@attrs.frozen
class Announce:
    """An event on an object, for people."""

    regarding: Json
    type: str
    """`Normal` or `Warning`."""
    reason: str
    note: str


Effect: TypeAlias = Create | Patch | Delete | ApplyEntry | Announce


@attrs.frozen
class Plan:
    """The outcome of one decision."""

    effects: tuple[Effect, ...] = ()
    look_again: float | None = None
    """Seconds after which time alone may change the decision; None: only a change can."""
    memory: Memory = attrs.field(factory=Memory)
    figures: Figures | None = None
    """None: nothing is filled."""
    skipped: bool = False
    """Whether a better order is put off from now on, because it is too little better, or too early."""
