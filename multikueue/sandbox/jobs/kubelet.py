"""What the scheduler and a kubelet do with a pod: it gets a node, and once it is deleted it ends and goes."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, uid
from multikueue.errors import Conflict, NotFound
from multikueue.protocols import ApiClient
from multikueue.sandbox.kinds.pods import POD_RESOURCE

BINDING: Final = Resource(GVK("", "v1", "Binding"), "bindings")
"""What gives a pod a node."""


def is_bound(pod: Json) -> bool:
    """Whether it has a node."""
    return bool(dig(pod, "spec", "nodeName"))


async def bind(client: ApiClient, pod: Json, node: str) -> None:
    """Give a pod a node, as the scheduler does. A server gives grace to pods that have one, and deletes others at once.

    Raises:
        ApiError: it did not answer, or refused for another reason than what became of the pod meanwhile.
    """
    key = ObjectKey.of(pod)
    metadata = {"namespace": key.namespace, "name": key.name}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    with suppress(Conflict, NotFound):  # somebody else has bound it, or it is being deleted
        await client.create(BINDING, {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})


async def remove(client: ApiClient, pod: Json) -> None:
    """Tell the server that a pod has stopped: all that keeps it now is its finalizers.

    Raises:
        ApiError: it did not answer, or refused.
    """
    with suppress(NotFound):
        await client.delete(POD_RESOURCE, ObjectKey.of(pod), uid=uid(pod), grace=0)
