"""What both simulators do: follow clusters, and do each thing once, as soon as its time has come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from datetime import UTC, datetime

import anyio
import anyio.abc
import attrs
import orjson

from multikueue.core.model.conditions import new_condition
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import ApiError, NotFound
from multikueue.kube import ClientOptions, Informer, KubeClient, parse_worker_kubeconfig
from multikueue.kube.http.response_limits import LISTS_UNLIMITED

_AGAIN, _AT_MOST = 0.05, 2.0
"""Seconds until a write that failed is tried again: at first, and after doubling with each failure."""


def client(name: str, kubeconfig: Json, connections: int = 64) -> KubeClient:
    """A client of one cluster, to enter with `async with`."""
    options = ClientOptions(connections=connections, limits=LISTS_UNLIMITED)
    return KubeClient(parse_worker_kubeconfig(orjson.dumps(kubeconfig)), name=name, options=options)


def now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


def admitted(workload: Json, queue: str, *, checks: bool = False) -> Json:
    """The status of a Workload that has got quota; without checks it is admitted at the same time."""
    pod_sets = [
        {"name": pod_set["name"], "count": pod_set.get("count", 1)} for pod_set in dig(workload, "spec", "podSets")
    ]
    kinds = ["QuotaReserved"] if checks else ["QuotaReserved", "Admitted"]
    return {
        "admission": {"clusterQueue": queue, "podSetAssignments": pod_sets},
        "conditions": [condition(workload, kind, kind, f"{kind} by the simulator") for kind in kinds],
    }


def condition(workload: Json, kind: str, reason: str, message: str) -> Json:
    """A condition that has become true just now."""
    generation = dig(workload, "metadata", "generation")
    return new_condition(kind, status=True, reason=reason, message=message, now=now(), generation=generation)


@attrs.define(eq=False)
class Acts:
    """Starts each act once. An act that fails is tried again; an act whose object is gone is over."""

    tasks: anyio.abc.TaskGroup
    _done: set[Hashable] = attrs.field(factory=set, init=False)

    def once(self, name: Hashable, act: Callable[[], Awaitable[None]]) -> None:
        """Start an act, unless it was started before."""
        if name not in self._done:
            self._done.add(name)
            self.tasks.start_soon(self._perform, act)

    async def _perform(self, act: Callable[[], Awaitable[None]]) -> None:
        wait = _AGAIN
        while True:
            try:
                await act()
            except NotFound:
                return
            except ApiError:
                await anyio.sleep(wait)
                wait = min(2 * wait, _AT_MOST)
            else:
                return


async def follow(
    tasks: anyio.abc.TaskGroup,
    connection: KubeClient,
    resource: Resource,
    seen: Callable[[ObjectKey, Json], None],
    gone: Callable[[ObjectKey, Json], None] = lambda _key, _last: None,
) -> Informer:
    """Keep a cache and tell each new version of an object, and its last one; returns once all there is was told."""

    def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None:
            seen(key, new)
        elif old is not None:
            gone(key, old)

    cache = Informer(connection, resource, on_change=changed)
    tasks.start_soon(cache.run)
    await cache.wait_synced()
    return cache
