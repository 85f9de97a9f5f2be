"""Keeps a Node for each worker, as its kubelet does: made once, its Lease renewed, its status written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import LEASE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, name_of, uid
from multikueue.errors import AlreadyExists, ApiError, NotFound
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.loop import loop_time
from multikueued.mirror_names import VIRTUAL_KUBELET, WORKER, node_name
from multikueued.mirrors.node import NODE, Endpoint, is_ours, lease_body, lease_key, node_body, node_status, renewal

RENEWED: Final = 10.0
"""Seconds between two renewals of a Lease."""
WRITTEN: Final = 300.0
"""Seconds between two writes of a status that has not changed."""
SELECTOR: Final = f"{WORKER},{','.join('='.join(label) for label in VIRTUAL_KUBELET.items())}"
"""Of our Nodes."""

log = get_logger(__name__)


@attrs.define(eq=False)
class NodeKeeper:
    """The Nodes of all workers."""

    client: ApiClient
    workers: Callable[[], dict[str, datetime | None]]
    """Of all workers that the manager knows, since when they are out of reach; None: they are not."""
    is_shown: Callable[[str], bool]
    """Whether a worker has mirrors: its Node goes last."""
    endpoint: Endpoint
    version: str
    """See `node_status`."""
    clock: Callable[[], datetime]
    end_others: Callable[[str], Awaitable[None]]
    """Has pods of others on the Node of a worker end."""
    _uids: dict[str, str] = attrs.field(factory=dict, init=False)
    """By worker, the UID of its Node."""
    _written: dict[str, tuple[float, datetime | None]] = attrs.field(factory=dict, init=False)
    """By worker, when the status was written last, and what it said of the loss."""
    _told: dict[str, str] = attrs.field(factory=dict, init=False)

    async def run(self) -> None:
        """Keep them until cancelled."""
        while True:
            began = loop_time()
            await self.look()
            await anyio.sleep(max(0.0, began + RENEWED - loop_time()))

    async def look(self) -> None:
        """Look after all of them once. What fails is tried again with the next look."""
        workers = self.workers()
        try:
            await self._compare(workers)
        except ApiError as error:
            self._tell("", str(error))
        for worker, lost_since in workers.items():
            try:
                await self._keep(worker, lost_since)
                self._told.pop(worker, None)
            except ApiError as error:
                self._tell(worker, str(error))

    async def _keep(self, worker: str, lost_since: datetime | None) -> None:
        if worker not in self._uids:
            await self._make(worker)
        if worker not in self._uids:
            return
        at, said = self._written.get(worker, (float("-inf"), None))
        if said != lost_since or loop_time() - at >= WRITTEN:
            await self._write(worker, lost_since)
        if worker in self._uids:
            await self._renew(worker)

    async def _make(self, worker: str) -> None:
        try:
            node = await self.client.create(NODE, node_body(worker))
        except AlreadyExists:
            node = await self.client.get(NODE, ObjectKey("", node_name(worker)))
        if is_ours(node, worker):
            self._uids[worker] = uid(node)
        else:
            self._tell(worker, f"{name_of(node)} is somebody else's Node")

    async def _write(self, worker: str, lost_since: datetime | None) -> None:
        status = node_status(self.endpoint, self.version, self.clock(), lost_since)
        patch: Json = {"metadata": {"uid": self._uids[worker]}, "status": status}
        try:
            await self.client.merge_patch(NODE, ObjectKey("", node_name(worker)), patch, subresource="status")
        except NotFound:  # somebody has deleted it: it is made again with the next look
            self._forget(worker)
            return
        self._written[worker] = loop_time(), lost_since
        await self.end_others(worker)

    async def _renew(self, worker: str) -> None:
        key, now = lease_key(worker), self.clock()
        try:
            await self.client.merge_patch(LEASE, key, renewal(now))
        except NotFound:
            await self.client.create(LEASE, lease_body(worker, self._uids[worker], now))

    async def _compare(self, workers: dict[str, datetime | None]) -> None:
        """Notice Nodes that somebody has deleted; remove those of workers that are not known any more, once nothing is
        shown of them."""
        listed = (await self.client.list(NODE, label_selector=SELECTOR)).items
        nodes = {annotations_of(node).get(WORKER) or "": node for node in listed}
        for worker in [name for name in self._uids if name not in nodes or uid(nodes[name]) != self._uids[name]]:
            self._forget(worker)
        for worker in [name for name in nodes if name not in workers and not self.is_shown(name)]:
            if is_ours(nodes[worker], worker) and name_of(nodes[worker]) == node_name(worker):
                await self.client.delete(NODE, ObjectKey.of(nodes[worker]), uid=uid(nodes[worker]))

    def _forget(self, worker: str) -> None:
        self._uids.pop(worker, None)
        self._written.pop(worker, None)

    def _tell(self, worker: str, why: str) -> None:
        if self._told.get(worker) != why:
            self._told[worker] = why
            log.warning("the Node of a worker is not as it should be", worker=worker, why=why)
