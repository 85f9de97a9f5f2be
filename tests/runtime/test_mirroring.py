"""A controller over two clusters that has nothing to do with Kueue: it mirrors the ConfigMaps of one in the other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.machinery.connection import Health
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.errors import NotFound
from multikueue.kube import ClusterConfig, Informer, KubeClient, parse_worker_kubeconfig
from multikueue.protocols import ApiClient
from multikueue.runtime.cluster_pool import ClusterPool, health_of
from multikueue.runtime.controller import Controller
from multikueue.runtime.loop import utc_now
from multikueue.sandbox import ApiServer
from multikueue.sandbox.apiserver import DirectClient

CONFIG_MAP = Resource(GVK("", "v1", "ConfigMap"), "configmaps")


@attrs.define(eq=False)
class ConfigMaps:
    """What is kept of one cluster."""

    client: ApiClient
    informer: Informer

    @property
    def health(self) -> Health:
        return health_of(self.informer.status)

    async def run(self) -> None:
        await self.informer.run()


@attrs.define(eq=False)
class Mirror:
    """Makes the ConfigMaps of the cluster `target` those of the cluster `source`."""

    pool: ClusterPool[ConfigMaps]

    async def reconcile(self, key: ObjectKey) -> Action:
        source, target = self.pool.connected("source"), self.pool.connected("target")
        if source is None or target is None:
            return Action.after(1.0)
        wanted, shown = source.informer.get(key), target.informer.get(key)
        if wanted is None and shown is not None:
            await target.client.delete(CONFIG_MAP, key)
        elif wanted is not None and shown is None:
            metadata = {"name": key.name, "namespace": key.namespace}
            await target.client.create(CONFIG_MAP, {**wanted, "metadata": metadata})
        elif wanted is not None and shown is not None and wanted["data"] != shown["data"]:
            await target.client.merge_patch(CONFIG_MAP, key, {"data": wanted["data"]})
        return Action.done()


async def mirror(kubeconfigs: dict[str, bytes]) -> None:
    """Mirror until cancelled."""

    def build(
        _name: ClusterName, client: ApiClient, _earlier: ConfigMaps | None, report: Callable[[], None]
    ) -> ConfigMaps:
        def enqueue(key: ObjectKey, _old: Json | None, _new: Json | None) -> None:
            controller.enqueue(key)

        return ConfigMaps(client, Informer(client, CONFIG_MAP, on_change=enqueue, on_status=lambda _: report()))

    def connect(name: ClusterName, config: ClusterConfig) -> KubeClient:
        return KubeClient(config, name=name)

    pool = ClusterPool(connect, build, utc_now)
    controller = Controller("mirror", Mirror(pool))
    for name, kubeconfig in kubeconfigs.items():
        pool.assign(ClusterName(name), parse_worker_kubeconfig(kubeconfig))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.run)
        tasks.start_soon(controller.run)


# The program ends here. Below is what a test needs.


def config_map(value: str) -> Json:
    metadata = {"name": "settings", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


KEY = ObjectKey("default", "settings")


@asynccontextmanager
async def mirrored() -> AsyncIterator[tuple[ApiClient, ApiClient, ApiServer]]:
    """Two API servers that speak HTTPS, the program between them, and administrators."""
    async with ApiServer("source") as source, ApiServer("target") as target, anyio.create_task_group() as tasks:
        kubeconfigs = {server.name: json.dumps(server.kubeconfig()).encode() for server in (source, target)}
        tasks.start_soon(mirror, kubeconfigs)
        yield DirectClient(source), DirectClient(target), target
        tasks.cancel_scope.cancel()


async def shows(client: ApiClient, value: str | None) -> None:
    """Wait until a cluster has the ConfigMap with this value, or none."""
    with anyio.fail_after(10):
        while True:
            try:
                shown = (await client.get(CONFIG_MAP, KEY))["data"]["value"]
            except NotFound:
                shown = None
            if shown == value:
                return
            await anyio.sleep(0.01)


async def test_what_happens_in_one_cluster_happens_in_the_other() -> None:
    async with mirrored() as (source, target, _):
        await source.create(CONFIG_MAP, config_map("first"))
        await shows(target, "first")
        await source.merge_patch(CONFIG_MAP, KEY, {"data": {"value": "second"}})
        await shows(target, "second")
        await source.delete(CONFIG_MAP, KEY)
        await shows(target, None)


async def test_it_goes_on_after_connections_were_cut() -> None:
    async with mirrored() as (source, target, server):
        await source.create(CONFIG_MAP, config_map("first"))
        await shows(target, "first")
        server.drop_connections()
        await source.merge_patch(CONFIG_MAP, KEY, {"data": {"value": "second"}})
        await shows(target, "second")
