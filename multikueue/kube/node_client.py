"""What a kubelet asks of an API server beside what everybody does."""

from __future__ import annotations

from typing import Protocol

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.protocols import ApiClient, Propagation


class NodeClient(ApiClient, Protocol):
    """An `ApiClient` that can say how long a pod has left: a kubelet deletes one that has stopped with 0 seconds."""

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace: int | None = None,
    ) -> Json | None:
        """See `Writer`."""
