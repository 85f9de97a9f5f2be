"""Whether a worker's CustomResourceDefinition of a declared kind has the fields that copies need.

It may be older than the manager's. An API server drops fields that its definition does not have. A copy that cannot be
held back there would run before the worker's Kueue lets it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import anyio
import attrs

from multikueue.adapters import JobKind
from multikueue.core.model.kinds import CUSTOM_RESOURCE_DEFINITION
from multikueue.core.model.names import GVK, ObjectKey
from multikueue.errors import ApiError, NotFound
from multikueue.protocols import Reader

INTERVAL: Final = 300.0
"""Seconds until a definition that lacks a field, or could not be read for now, is read again."""
_NEEDED: Final = ("suspendPath", "forwardedPaths")
"""The fields that copies need. `managedByPath` is read on the manager alone."""


@attrs.define(eq=False)
class CRDCheck:
    """One declared kind on one worker."""

    client: Reader
    kind: JobKind
    on_change: Callable[[], None]
    """Called when `flaw` has changed."""
    flaw: str = attrs.field(default="", init=False)
    """What its definition lacks, as far as it could be read; empty if nothing does."""
    _certain: bool = attrs.field(default=False, init=False)
    _absent: bool = attrs.field(default=False, init=False)
    """Whether there was no definition: the kind is not installed yet, or has none."""

    async def look(self) -> None:
        """Read the definition, if that is possible."""
        gvk, before = self.kind.resource.gvk, self.flaw
        declaration = self.kind.declaration
        assert declaration is not None, "only declared kinds are inspected"
        key = ObjectKey("", f"{self.kind.resource.plural}.{gvk.group}")
        try:
            definition = await self.client.get(CUSTOM_RESOURCE_DEFINITION, key)
        except ApiError as error:
            self._absent = isinstance(error, NotFound)
            # A definition that lacked a field may be in an update.
            self._certain = not error.retryable and not self.flaw
            return
        unknown = declaration.unknown_paths(definition, gvk.version)
        missing = [(field, path) for field, path in unknown if field.startswith(_NEEDED)]
        self._certain = not missing
        fields = ", ".join(f"{path} ({self.kind.source}.{field})" for field, path in missing)
        self.flaw = f"its CustomResourceDefinition has no field {fields} in version {gvk.version}" if missing else ""
        if self.flaw != before:
            self.on_change()

    async def run(self, served: Callable[[], Awaitable[None]]) -> None:
        """Read the definition again until it is certain that no field is missing.

        Args:
            served: waits until the worker serves the kind. A definition that was not there is read then.
        """
        if self._absent:
            await served()
            await self.look()
        while not self._certain:
            await anyio.sleep(INTERVAL)
            await self.look()


def crd_checks(client: Reader, kinds: Iterable[JobKind], on_change: Callable[[], None]) -> dict[GVK, CRDCheck]:
    """The checks for one worker: of the kinds for which its definition must have certain fields.

    Args:
        client: the worker's API server.
        kinds: all kinds; those whose jobs another controller creates on workers are left out.
        on_change: called when the flaw of one has changed.
    """
    followed = (kind for kind in kinds if not kind.workload_only)
    return {kind.resource.gvk: CRDCheck(client, kind, on_change) for kind in followed if _writes_declared(kind)}


def _writes_declared(kind: JobKind) -> bool:
    declared = kind.declaration
    return declared is not None and bool(declared.suspend_path or declared.forwarded_paths)
