"""Pods of others on our nodes: bound by hand, or before the policy kept them away. No kubelet runs them: they end here.

Else one would hang in Terminating once it is deleted, and `kubectl drain` with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

import orjson

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, uid
from multikueue.errors import Conflict, NotFound
from multikueue.kube import KubeClient
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueued.mirror_names import MIRROR, node_name
from multikueued.mirrors.mirror import has_ended

AT_ONCE: Final = 100
"""Pods of a node that are in memory at a time."""
NOT_DELEGATED: Final = {
    "phase": "Failed",
    "reason": "NotDelegated",
    "message": "This node shows pods of a worker cluster, and runs none",
}

log = get_logger(__name__)


async def end_foreign(client: ApiClient, worker: str, origin: str) -> None:
    """Have all pods of others on a worker's Node end.

    Raises:
        ApiError: the manager does not answer, or refuses.
    """
    if not isinstance(client, KubeClient):
        return  # no other client selects by fields
    node, ended = node_name(worker), 0
    async for pod in _others_on(client, node, origin):
        with suppress(NotFound, Conflict):
            if is_terminating(pod):
                await client.delete(POD, ObjectKey.of(pod), uid=uid(pod), grace=0)
            elif not has_ended(pod):
                patch = {"metadata": {"uid": uid(pod)}, "status": NOT_DELEGATED}
                await client.merge_patch(POD, ObjectKey.of(pod), patch, subresource="status")
            else:
                continue
            ended += 1
    if ended:
        log.warning("pods of others on a Node of ours have ended", node=node, pods=ended, reason="NotDelegated")


async def _others_on(client: KubeClient, node: str, origin: str) -> AsyncIterator[Json]:
    selected = {"limit": AT_ONCE, "fieldSelector": f"spec.nodeName={node}", "labelSelector": f"{MIRROR}!={origin}"}
    rest: str | None = None
    while rest is None or rest:
        query = urlencode(selected | ({"continue": rest} if rest else {}))
        async with client.stream(POD, f"/api/v1/pods?{query}") as chunks:
            page = orjson.loads(b"".join([chunk async for chunk in chunks]))
        for pod in page.get("items") or []:
            yield pod
        rest = dig(page, "metadata", "continue") or ""
