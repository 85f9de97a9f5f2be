"""What decisions ask to be done, one request each, and what they count. Writes are preconditioned on what was seen."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

import attrs

from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import resource_version, uid


@attrs.frozen
class Create:
    """Make an object that is not there."""

    resource: Resource
    object: Json


@attrs.frozen
class Patch:
    """Change an object by a JSON merge patch."""

    resource: Resource
    object: Json
    """As it was seen: if it has changed since, nothing is written."""
    change: Json
    """The patch without its precondition."""
    status: bool = False
    """Whether it is of the status."""
    adopts: bool = False
    """Whether this takes over what somebody else has made."""

    @property
    def request(self) -> Json:
        """The patch with its precondition."""
        known = {"uid": uid(self.object), "resourceVersion": resource_version(self.object)}
        return {**self.change, "metadata": {**(self.change.get("metadata") or {}), **known}}


@attrs.frozen
class Delete:
    """Delete an object."""

    resource: Resource
    object: Json
    """As of `Patch`."""


@attrs.frozen
class Apply:
    """Apply a part of an object's status; those of one decision are independent of each other."""

    resource: Resource
    object: Json
    """Carries the resourceVersion it was made from."""
    field_manager: str


@attrs.frozen
class Announce:
    """An event on an object, for people."""

    regarding: Json
    type: str
    """`Normal` or `Warning`."""
    reason: str
    note: str


Write: TypeAlias = Create | Patch | Delete | Apply
Effect: TypeAlias = Write | Announce


@attrs.frozen
class ConfigStatistics:
    """How many clusters there are in each role, for the metrics."""

    selected: int = 0
    """That the inventory selects."""
    listed: int = 0
    """That the config lists."""
    draining: int = 0
    """That are leaving it: they get nothing new, and stay until their jobs have ended."""
    since: datetime | None = None
    """Since when the decision is as it is, as far as this process has seen; None: there is none."""
