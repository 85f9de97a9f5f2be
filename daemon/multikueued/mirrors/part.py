"""What the leader does about mirrors, as a part of its manager: nothing of the dispatching waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any, Final

import anyio
import attrs
import orjson

from multikueue.core.machinery.queue import ChargedQueue
from multikueue.core.model.kinds import POD
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import controller_of, dig, is_terminating, labels_of, name_of, uid
from multikueue.core.model.workloads import attempt, cluster_name, owner
from multikueue.kube import ClientOptions, KubeClient
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.http.response_limits import LISTS_UNLIMITED
from multikueue.kube.informers.informer import Informer
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient, RequestHook
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.controller import Controller, KeyQueue
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.loop import loop_time, unending
from multikueue.runtime.parts import Part, PartHost
from multikueued.mirror_names import MIRROR, NODE_PREFIX
from multikueued.mirrors.foreign import end_foreign
from multikueued.mirrors.mirror import kept_of, pod_key, shows
from multikueued.mirrors.node import Endpoint, address_of, server_of
from multikueued.mirrors.nodes import NodeKeeper
from multikueued.mirrors.owners import Owners
from multikueued.mirrors.reconciler import MirrorReconciler, entries
from multikueued.mirrors.removing import take_away
from multikueued.mirrors.tally import Held, Places
from multikueued.mirrors.worker_pods import TICK, WorkerPods
from multikueued.remote.shared_key import KeyUse, shared_key
from multikueued.reports.worker_facts import ShownPods
from multikueued.settings.config import Settings

CONCURRENCY: Final = 4
"""Mirrors that are looked after at a time: beside the way of jobs they are a trickle."""
CONNECTIONS: Final = 8
"""Of the client: a watch, and what events need beside."""
RESYNC: Final = 60.0
"""Seconds between two looks at all of them: reads memory only."""
NOWHERE: Final = (
    "mirrorPods.address is not set, so nobody could read their logs: set the IP address by which the manager's API "
    "server reaches multikueue api-server"
)
KEY: Final = KeyUse("by which mirrors are proven", "nobody can read logs through mirrors")

log = get_logger(__name__)

Refused = Callable[[str], None]
"""Told of the reason, a word for machines, of each pod that is not shown."""


Guard = Callable[[ApiClient], Awaitable[str | None]]


async def unguarded(_client: ApiClient) -> str | None:
    """Whoever runs on a server without policies needs none."""
    return None


@attrs.frozen(eq=False)
class MirrorOptions:
    """What mirrors are made with."""

    settings: Settings
    connect: Callable[[], AbstractAsyncContextManager[ApiClient]]
    """Makes a client of the manager that only mirrors use."""
    mark_key: bytes = attrs.field(repr=False)
    """By which copies are marked."""
    version_of: Callable[[ApiClient], Awaitable[str]]
    """Reads the version of the manager's API server."""
    guard: Guard = attrs.field(default=unguarded)
    """Says why no mirror may be made, as the policy is missing that bounds who makes them; None: one may."""
    refused: Refused = lambda _: None
    shown: Callable[[Callable[[], Mapping[str, ShownPods]]], None] = lambda _: None
    """Is given what counts the mirrors that there are."""

    def part(self, host: PartHost) -> Part:
        """See `Manager.parts`."""
        if not self.settings.mirror_pods.logs:
            return Part(services=(partial(unending, "mirrors", Removal(host, self).run),))
        return Part(services=(partial(unending, "mirrors", Mirrors(host, self).run),))


@attrs.define(eq=False)
class Removal:
    """Takes away what was made while mirrors were on: without their Secret they never were, and nothing is asked."""

    host: PartHost
    options: MirrorOptions

    async def run(self) -> None:
        """Look once, then wait to be cancelled."""
        settings = self.options.settings
        if ObjectKey(settings.namespace, settings.mirrors_secret) in self.host.manager.secrets:
            async with self.options.connect() as client:
                await take_away(client, settings.origin)
        await anyio.sleep_forever()


@attrs.define(eq=False)
class Mirrors:
    """Shows the pods of runs, and the workers as their nodes."""

    host: PartHost
    options: MirrorOptions
    _controller: Controller[ObjectKey] | None = attrs.field(default=None, init=False)
    _reconciler: MirrorReconciler | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        manager = self.host.manager
        manager.workloads.informer.subscribe(self._workload_changed)
        for cache in manager.jobs.values():
            cache.informer.subscribe(self._job_changed)

    async def run(self) -> None:
        """Show them until cancelled."""
        try:
            await self._run()
        finally:
            self._controller = self._reconciler = None
            self.options.shown(dict)

    async def _run(self) -> None:
        settings, manager = self.options.settings, self.host.manager
        mirrors = settings.mirror_pods
        await manager.wait_settled()
        async with self.options.connect() as client, anyio.create_task_group() as tasks:
            version = await self.options.version_of(client)
            address = address_of(mirrors, server_of(manager.client), version)
            if not address:  # a Node without one would have every client wait
                log.warning("pods of runs are not shown", why=NOWHERE)
                await anyio.sleep_forever()
            secret = ObjectKey(settings.namespace, settings.mirrors_secret)
            key = await shared_key(client, secret, settings.origin, KEY)
            await self._until_guarded(client)
            cache = MutationCache(self._informer(client), entries)
            pods = WorkerPods(self.host, self._pod_changed, settings.worker_limits.answer_limits())
            events = EventRecorder(client, "multikueue-mirrors", self.host.process.instance, self.host.process.clock)
            reconciler = self._reconciler = MirrorReconciler(
                client,
                manager,
                cache,
                pods.sight,
                Owners(manager, Marks(self.options.mark_key)),
                Places(mirrors.max_pods, mirrors.max_pods_per_job),
                Held(),
                key,
                settings.origin,
                partial(self._refused, events),
                lambda: not self.host.plans.idle,
            )
            queue = KeyQueue(ChargedQueue(flow_of=_namespace))
            self._controller = self.host.process.controller("multikueue_mirror", reconciler, queue, CONCURRENCY)
            self.options.shown(reconciler.counted)
            endpoint = Endpoint(address, mirrors.port)
            nodes = NodeKeeper(
                client,
                partial(self._workers, pods),
                partial(_is_shown, cache),
                endpoint,
                version,
                self.host.process.clock,
                partial(end_foreign, client, origin=settings.origin),
            )
            tasks.start_soon(events.run)
            tasks.start_soon(cache.informer.run)
            await cache.informer.wait_synced()
            await nodes.look()  # mirrors are bound to them
            tasks.start_soon(nodes.run)
            tasks.start_soon(pods.run)
            tasks.start_soon(self._controller.run)
            tasks.start_soon(self._resync, cache, pods)

    async def _until_guarded(self, client: ApiClient) -> None:
        logged = ""
        while (why := await self.options.guard(client)) is not None:
            if why != logged:
                log.warning("pods of runs are not shown", why=why)
            logged = why
            await anyio.sleep(RESYNC)

    def _informer(self, client: ApiClient) -> Informer:
        return Informer(
            client,
            POD,
            label_selector=f"{MIRROR}={self.options.settings.origin}",
            belongs=partial(_is_a_mirror, self.options.settings.origin),
            transform=kept_of,
            keeps_unreadable=True,
            indexes={"workload": entries},
            on_change=self._mirror_changed,
            fraction=self.host.process.fraction,
        )

    async def _resync(self, cache: MutationCache, pods: WorkerPods) -> None:
        due, lost = float("-inf"), self._workers(pods)
        while True:
            if loop_time() >= due or self._workers(pods) != lost:
                due, lost = loop_time() + RESYNC, self._workers(pods)
                shown = map(ObjectKey.parsed, cache.informer.entries("workload"))
                for key in dict.fromkeys((*pods.keys(), *shown)):
                    self._enqueue(key)
            await anyio.sleep(TICK)

    def _workers(self, pods: WorkerPods) -> dict[str, datetime | None]:
        return {
            name_of(cluster): pods.sight(name_of(cluster)).lost_since for cluster in self.host.manager.clusters.values()
        }

    def _enqueue(self, key: ObjectKey) -> None:
        if self._controller is not None:
            self._controller.enqueue(key)

    def _pod_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is None and old is not None and self._reconciler is not None:
            self._reconciler.pod_gone(key, old)
        self._enqueue(key)

    def _mirror_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if self._reconciler is None:
            return
        if old is not None and (new is None or dig(new, "metadata", "uid") != dig(old, "metadata", "uid")):
            self._reconciler.was_removed(old)
        if new is not None:
            self._reconciler.places.add(key, (controller_of(new) or {}).get("uid", ""))
            if self._reconciler.is_known(new) and (old is None or uid(old) == uid(new)):
                return
        for mirror in filter(None, (old, new)):
            worker, there, _ = shows(mirror)
            self._enqueue(pod_key(worker, there))

    def _workload_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        workload = (new or old) if self._reconciler is not None else None
        owned_by = owner(workload) if workload is not None else None
        pods = self._pods_of(ObjectKey(key.namespace, owned_by.name)) if owned_by is not None else ()
        if pods and _run_of(old) != _run_of(new):
            self._look_at(pods)

    def _job_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if old is None or new is None or uid(old) != uid(new) or is_terminating(old) != is_terminating(new):
            self._look_at(self._pods_of(key))

    def _pods_of(self, job: ObjectKey) -> Collection[ObjectKey]:
        return self._reconciler.pods_of(job) if self._reconciler is not None else ()

    def _look_at(self, pods: Collection[ObjectKey]) -> None:
        for pod in pods:
            self._enqueue(pod)

    def _refused(self, events: EventRecorder, job: Json, reason: str, why: str) -> None:
        self.options.refused(reason)
        note = f"A pod of the run is not shown on the manager ({reason}): {why}"
        events.emit(job, "Warning", "PodNotShown", "Mirror", note)


def _run_of(workload: Json | None) -> tuple[Any, ...]:
    """What of a Workload decides whose its pods are, and whether they count."""
    return (uid(workload), cluster_name(workload), attempt(workload)) if workload is not None else ()


def _is_a_mirror(origin: str, pod: Json) -> bool:
    """Bound to one of our nodes: nothing else is touched, whatever labels it has."""
    on = dig(pod, "spec", "nodeName") or ""
    return labels_of(pod).get(MIRROR) == origin and on.startswith(NODE_PREFIX)


def _is_shown(mirrors: MutationCache, worker: str) -> bool:
    return any(shows(mirror)[0] == worker for mirror in mirrors.informer.values())


def own_client(client: ApiClient, hook: RequestHook) -> AbstractAsyncContextManager[ApiClient]:
    """A client of the same server with connections of its own: nobody's writes wait behind those of mirrors."""
    if not isinstance(client, KubeClient):
        return nullcontext(client)
    options = ClientOptions(connections=CONNECTIONS, limits=LISTS_UNLIMITED)
    connect = partial(KubeClient, client.config, name="mirrors", options=options, hook=hook)
    return connect(plugins=Authenticators(), large_json=client.large_json)


async def server_version(client: ApiClient) -> str:
    """The version of an API server."""
    if not isinstance(client, KubeClient):
        return ""
    async with client.stream(POD, "/version") as chunks:
        body = b"".join([chunk async for chunk in chunks])
    return str(orjson.loads(body).get("gitVersion") or "")


def _namespace(pod: ObjectKey) -> str:
    """Whose pod it is: all namespaces of a worker take turns."""
    return ObjectKey.parsed(pod.name).namespace
