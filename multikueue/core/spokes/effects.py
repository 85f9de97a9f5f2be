"""What a decision about a spoke may ask for: one request each. All are preconditioned on what was seen."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

import attrs

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import resource_version, uid


@attrs.frozen
class Create:
    """Make an object that is not there."""

    resource: Resource
    object: Json


@attrs.frozen
class Mend:
    """Change an object that is ours, or that is taken over."""

    resource: Resource
    seen: Json
    """The object as it was seen: if it has changed since, nothing is written."""
    patch: Json
    """A JSON merge patch."""
    adopts: bool = False
    """Whether this takes over what somebody else has made."""

    @property
    def request(self) -> Json:
        """The patch with its precondition."""
        known = {"uid": uid(self.seen), "resourceVersion": resource_version(self.seen)}
        return {**self.patch, "metadata": {**(self.patch.get("metadata") or {}), **known}}


@attrs.frozen
class Remove:
    """Delete an object that is ours."""

    resource: Resource
    seen: Json
    """As of `Mend`."""


Effect: TypeAlias = Create | Mend | Remove


@attrs.frozen
class Conflicting:
    """An object of somebody else under a name that is ours to use."""

    resource: Resource
    object: Json

    def __str__(self) -> str:
        return f"{self.resource.gvk.kind} {ObjectKey.of(self.object)}"


@attrs.frozen
class SpokePlan:
    """What to do about one spoke now."""

    effects: tuple[Effect, ...] = ()
    """In this order; after one that fails the others wait for the next decision."""
    problem: str = ""
    """Why it is not a worker yet, or is not kept up; empty: nothing is wrong."""
    conflict: Conflicting | None = None
    """Why nothing at all is written."""
    draining: bool = False
    """Whether it is kept only until it is not in use any more."""
    again: datetime | None = None
    """When to look again without a change."""
