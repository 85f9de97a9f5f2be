"""An API server in memory, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TypeVar

import anyio
import attrs

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.protocols import read
from multikueue.sandbox.apiserver import DirectClient, Faults, Registry
from multikueue.sandbox.crds import load_crds
from multikueue.sandbox.jobs import JobRunner, RunnerOptions
from multikueue.sandbox.kinds import KINDS, SandboxKind, completed, define
from multikueue.sandbox.kueue import SmallKueue
from multikueue.testing.waiting import PATIENCE, LoopClock, background

T = TypeVar("T")
_RUNNER = RunnerOptions()


@attrs.define(eq=False)
class InMemoryCluster:
    """One cluster without HTTP: builtin kinds, Kueue's, and those it is given::

        cluster = InMemoryCluster()
        (stored,) = await cluster.put(job())
        cluster.faults.add(Refuse(503), on=Match(verbs=("patch",)), times=1)
        async with running(my_controller(cluster.client()).run):
            await cluster.when(JOB, lambda found: "mine" in found["metadata"].get("labels", {}))

    It starts no task and opens no socket. Garbage is collected as it comes up, on the loop's next turn.
    """

    name: str = "cluster"
    kinds: tuple[SandboxKind, ...] = attrs.field(default=KINDS, converter=completed, kw_only=True)
    """The job kinds it knows. Those that are not builtin get a CustomResourceDefinition made from their row."""
    crds: Iterable[Json] = attrs.field(default=(), kw_only=True)
    """CustomResourceDefinitions of more kinds, or in place of those made from rows."""
    clock: Callable[[], datetime] = attrs.field(factory=LoopClock, kw_only=True)
    """The wall clock that timestamps are read from."""
    garbage_collection: bool = attrs.field(default=True, kw_only=True)
    """Whether owner references and deleted namespaces have an effect; else a deletion in the foreground never ends."""
    faults: Faults = attrs.field(factory=Faults, init=False)
    """What goes wrong on the way of each client."""
    registry: Registry = attrs.field(init=False)
    """The server behind it."""
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    @registry.default
    def _registry(self) -> Registry:
        made = Registry(self.name, clock=self.clock, garbage_collection=self.garbage_collection)
        define(made, self.kinds, (*load_crds(), *self.crds))
        made.cluster.listeners.append(lambda _row, _old, _new: self._note())
        made.collector.on_work = lambda: asyncio.get_running_loop().call_soon(made.collect)
        return made

    def _note(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def client(self, user: str = "admin", *, deadline: float = 30.0) -> DirectClient:
        """A client that is known to the server as `user`; a call takes `deadline` seconds at most. It implements
        `ApiClient`, and may be used with `async with`, as what connects to a worker is."""
        return DirectClient(self.registry, user=user, deadline=deadline, faults=self.faults)

    async def put(self, *objects: Json) -> list[Json]:
        """Store objects, their statuses too, past all faults; returns them as stored.

        An object may come from a builder or another cluster: the server gives it a UID of its own. Put a job before
        its Workload, so that the Workload's owner exists.

        Raises:
            ApiError: the server refuses it.
        """
        client = DirectClient(self.registry)
        return [await self._put(client, obj) for obj in objects]

    async def _put(self, client: DirectClient, obj: Json) -> Json:
        resource = self.resource_of(obj)
        bare = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "resourceVersion")}
        made = await client.create(resource, {**obj, "metadata": bare})
        if not obj.get("status") or made.get("status") == obj["status"]:
            return made
        return await client.replace(resource, {**made, "status": obj["status"]}, subresource="status")

    def resource_of(self, obj: Json) -> Resource:
        """The resource that serves an object.

        Raises:
            LookupError: its kind is not served.
        """
        gvk = GVK.of(obj["apiVersion"], obj["kind"])
        for row in self.registry.cluster.types.values():
            if (row.group, row.version, row.kind) == (gvk.group, gvk.version, gvk.kind):
                return Resource(gvk, row.plural, row.namespaced)
        raise LookupError(f"{self.name} does not serve {gvk}")

    async def get(self, resource: Resource, name: str, namespace: str = "default") -> Json | None:
        """An object, past all faults; None if it is not there."""
        key = ObjectKey(namespace if resource.namespaced else "", name)
        return await read(DirectClient(self.registry), resource, key)

    async def when(self, resource: Resource, holds: Callable[[Json], bool], within: float = PATIENCE) -> Json:
        """Wait until an object of a kind is so, and return it.

        Raises:
            AssertionError: after `within` seconds of the loop's clock still none is.
        """

        async def first() -> Json | None:
            objects = (await DirectClient(self.registry).list(resource)).items
            return next((obj for obj in objects if holds(obj)), None)

        return await self._wait(first, within, f"no object of {resource} is so")

    async def gone(
        self, resource: Resource, name: str, namespace: str = "default", *, within: float = PATIENCE
    ) -> None:
        """Wait until an object is not there.

        Raises:
            AssertionError: after `within` seconds of the loop's clock it still is.
        """

        async def missing() -> bool | None:
            return await self.get(resource, name, namespace) is None or None

        await self._wait(missing, within, f"{resource} {name} is still there")

    async def _wait(self, look: Callable[[], Awaitable[T | None]], within: float, failure: str) -> T:
        """What `look` finds; it looks again after each change."""
        with anyio.move_on_after(within):
            while True:
                changed = self._changed
                result = await look()
                if result is not None:
                    return result
                await changed.wait()
        raise AssertionError(f"after {within} s {failure}")

    @asynccontextmanager
    async def kueue(
        self, *, runner: RunnerOptions | None = _RUNNER, seed: int = 0, pods_ready_timeout: timedelta | None = None
    ) -> AsyncIterator[None]:
        """Run a small Kueue and a job runner until the block ends.

        Args:
            runner: how long jobs run and how they end; None: they do not run.
            seed: of what the runner draws.
            pods_ready_timeout: after which Kueue evicts what has no ready pods; None: never.
        """
        client, limit = self.client("kueue"), pods_ready_timeout
        kueue = SmallKueue(client, clock=self.clock, kinds=self.kinds, pods_ready_timeout=limit)
        async with background() as tasks:
            await tasks.start(kueue.run)
            if runner is not None:
                controllers = DirectClient(self.registry, user="kube-controller-manager", faults=self.faults)
                jobs = JobRunner(controllers, seed=seed, clock=self.clock, options=runner, kinds=self.kinds)
                await tasks.start(jobs.run)
            yield
