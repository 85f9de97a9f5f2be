"""What a worker's Kueue lacks: read once it is connected, and learned from what its API server leaves out of copies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import anyio
import attrs

from multikueue.adapters.paths import FieldPath
from multikueue.core.model.kinds import DEPLOYMENT, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.worker_kueue import FIELDS, Version, WorkerKueue, dropped_fields, version_of
from multikueue.errors import ApiError
from multikueue.protocols import Describer, Reader

INTERVAL: Final = 300.0
"""Seconds until a Kueue that lacks something, or could not be asked for now, is looked at again."""
CONTROLLER: Final = ObjectKey("kueue-system", "kueue-controller-manager")
"""Kueue's Deployment, as its manifests and its chart name it."""
_PATHS: Final = {field: FieldPath.parse(field, entries=True) for field in FIELDS}


class Server(Reader, Describer, Protocol):
    """A worker's API server, as far as it is asked."""


@attrs.define(eq=False)
class KueueCheck:
    """The Kueue of one worker."""

    client: Server
    on_change: Callable[[], None]
    """Called when `known` has changed."""
    known: WorkerKueue = attrs.field(factory=WorkerKueue, init=False)

    async def run(self, connected: Callable[[], Awaitable[None]]) -> None:
        """Look, and again while it lacks something or did not answer, until cancelled.

        Args:
            connected: waits until the worker answers.
        """
        await connected()
        answered = False
        while True:
            if self.known.lacks or not answered:
                answered = await self.look()
            await anyio.sleep(INTERVAL)

    async def look(self) -> bool:
        """Ask the worker; return whether it answered. Until it does, what is known stays."""
        try:
            self._note(await kueue_on(self.client))
        except ApiError as error:
            return not error.retryable
        return True

    def stored(self, sent: Json, stored: Json) -> None:
        """Learn from what the worker has stored of a Workload."""
        if dropped := dropped_fields(sent, stored):
            self._note(self.known.without(dropped))

    def inherit(self, earlier: KueueCheck) -> None:
        """Take over what is known by an earlier connection to the same server, until this one has looked."""
        if not self.known.read:
            self.known = earlier.known

    def _note(self, known: WorkerKueue) -> None:
        if known != self.known:
            self.known = known
            self.on_change()


async def kueue_on(server: Server) -> WorkerKueue:
    """What a worker tells of its Kueue.

    Raises:
        ApiError: the worker does not answer, or does not publish its schemas.
    """
    schema = await server.schema(WORKLOAD.gvk)
    missing = (field for field, path in _PATHS.items() if schema is not None and path.is_unknown_in(schema))
    return WorkerKueue(await _version(server), frozenset(missing), read=schema is not None)


async def _version(server: Reader) -> Version | None:
    """The version of the controller, as its image tells; None: it may not be read, or tells none."""
    try:
        deployment = await server.get(DEPLOYMENT, CONTROLLER)
    except ApiError as error:
        if error.retryable:
            raise
        return None
    containers = dig(deployment, "spec", "template", "spec", "containers")
    listed = containers if isinstance(containers, list) else []
    images = [str(dig(container, "image") or "") for container in listed if dig(container, "name") == "manager"]
    return version_of(images[0]) if images else None
