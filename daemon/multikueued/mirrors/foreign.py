"""Pods of others on our nodes: bound by hand, or before the policy kept them away. No kubelet runs them: they end here.

Else one would hang in Terminating once it is deleted, and `kubectl drain` with it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

import orjson

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, uid
from multikueue.errors import Conflict, NotFound
from multikueue.kube import KubeClient
from multikueue.protocols import ApiClient
from multikueued.mirror_names import MIRROR, node_name
from multikueued.mirrors.mirror import has_ended

AT_ONCE: Final = 100
"""Pods of a node that are looked at in one turn."""
NOT_DELEGATED: Final = {
    "phase": "Failed",
    "reason": "NotDelegated",
    "message": "This node shows pods of a worker cluster, and runs none",
}


async def end_foreign(client: ApiClient, worker: str, origin: str) -> None:
    """Have the pods of others on a worker's Node end.

    Raises:
        ApiError: the manager does not answer, or refuses.
    """
    if not isinstance(client, KubeClient):
        return  # no other client selects by fields
    for pod in await _others_on(client, node_name(worker), origin):
        with suppress(NotFound, Conflict):
            if is_terminating(pod):
                await client.delete(POD, ObjectKey.of(pod), uid=uid(pod), grace=0)
            elif not has_ended(pod):
                patch = {"metadata": {"uid": uid(pod)}, "status": NOT_DELEGATED}
                await client.merge_patch(POD, ObjectKey.of(pod), patch, subresource="status")


async def _others_on(client: KubeClient, node: str, origin: str) -> list[Json]:
    query = urlencode(
        {"limit": AT_ONCE, "fieldSelector": f"spec.nodeName={node}", "labelSelector": f"{MIRROR}!={origin}"}
    )
    async with client.stream(POD, f"/api/v1/pods?{query}") as chunks:
        body = b"".join([chunk async for chunk in chunks])
    return list(orjson.loads(body).get("items") or [])
