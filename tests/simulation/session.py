"""A link used with one credential by one process: an `ApiClient`."""

from __future__ import annotations

import collections
from collections.abc import Awaitable, Callable, Set
from types import TracebackType
from typing import Self, TypeVar

import anyio
import anyio.lowlevel
import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import ApiError, DeadlineExceeded, Expired, Unauthorized, Unreachable, Unreadable
from multikueue.kube.http.activity import Activity
from multikueue.protocols import Known, ObjectList, Propagation, Subresource, WatchEvent, read
from tests.simulation.hostility import Hostility, odd
from tests.simulation.weather import Life, Link

T = TypeVar("T")


@attrs.define(eq=False)
class _Pipe:
    """Events on their way, each with the time at which it is due; none overtakes another."""

    link: Link
    failure: ApiError | None = None
    """What ended it."""
    _events: collections.deque[tuple[float, WatchEvent]] = attrs.field(factory=collections.deque)
    _more: anyio.Event = attrs.field(factory=anyio.Event)

    def put(self, event: WatchEvent) -> None:
        """Send an event."""
        weather = self.link.weather
        if weather.hostility is Hostility.ODD and event.type in ("ADDED", "MODIFIED"):
            event = attrs.evolve(event, object=odd(event.object, self.link.dice))
        delay = weather.lag + self.link.dice.expovariate(1 / weather.latency)
        self._events.append((anyio.current_time() + delay, event))
        self._more.set()

    async def deliver(self, on_event: Callable[[WatchEvent], None]) -> None:
        """Hand events over when they are due, for ever."""
        while True:
            await self._more.wait()
            while self._events:
                await anyio.sleep_until(self._events[0][0])
                await self.link.until_heard()
                if self.link.weather.hostility is Hostility.NO_EVENTS:
                    raise Unreadable(f"{self.link.name}: a line of the stream is not an event")
                on_event(self._events.popleft()[1])
            self._more = anyio.Event()


@attrs.define(eq=False)
class Session:
    """Implements `ApiClient`; entering it is connecting."""

    link: Link
    token: str
    life: Life = attrs.field(factory=Life)
    _activity: Activity = attrs.field(factory=Activity, init=False)

    @property
    def last_activity(self) -> float:
        """See `ApiClient`."""
        return self._activity.last

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader`."""
        return await self._call("get", resource, lambda: self.link.client.get(resource, key))

    async def schema(self, gvk: GVK) -> Json | None:
        """See `Describer`. It is asked for once in a connection, as what Kueue's version is."""
        return await self._call("schema", WORKLOAD, lambda: self.link.client.schema(gvk))

    async def exists(self, resource: Resource, key: ObjectKey) -> bool:
        """See `ApiClient`."""
        return await read(self, resource, key) is not None

    async def served(self) -> Set[GVK] | None:
        """See `Describer`."""
        return await self._call("discover", WORKLOAD, self.link.client.served)

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        """See `Reader`. The list of a single object is a probe: it depends on the silence, not on the work."""
        listed = await self._call(
            "probe" if limit else "list",
            resource,
            lambda: self.link.client.list(resource, namespace=namespace, label_selector=label_selector, limit=limit),
        )
        match self.link.weather.hostility:
            case Hostility.ODD:
                return ObjectList([odd(obj, self.link.dice) for obj in listed.items], listed.resource_version)
            case Hostility.ENDLESS | Hostility.BOMB if not limit:
                raise Unreadable(f"{self.link.name}: list {resource}: more than may be read")
        return listed

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer`."""
        self.link.on_create(resource, obj)
        body = mutated(obj) if self.link.weather.mutates_copies and resource == WORKLOAD else obj
        return await self._call("create", resource, lambda: self.link.client.create(resource, body), writes=True)

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """See `Writer`."""
        return await self._call(
            "update",
            resource,
            lambda: self.link.client.replace(resource, obj, subresource=subresource),
            writes=True,
        )

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """See `Writer`."""
        return await self._call(
            "patch",
            resource,
            lambda: self.link.client.merge_patch(resource, key, patch, subresource=subresource),
            writes=True,
        )

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        """See `Writer`."""
        return await self._call(
            "apply",
            resource,
            lambda: self.link.client.apply(
                resource, obj, field_manager=field_manager, force=force, subresource=subresource
            ),
            writes=True,
        )

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
        return await self._call(
            "delete",
            resource,
            lambda: self.link.client.delete(
                resource, key, uid=uid, resource_version=resource_version, propagation=propagation, grace=grace
            ),
            writes=True,
        )

    async def watch(
        self,
        resource: Resource,
        on_event: Callable[[WatchEvent], None],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        idle: float = 90.0,
        on_open: Callable[[], object] | None = None,
        known: Known | None = None,
    ) -> None:
        """See `Watcher`. Events arrive late, in order; that a stream is dead is noticed by its silence."""
        link, what = self.link, f"watch {resource}"
        await self._call("watch", resource, anyio.lowlevel.checkpoint)
        if link.dice.random() < link.weather.expired_watches:
            self._activity.answered()
            raise Expired(f"{link.name}: drawn 410", status=410)
        if on_open is not None:
            on_open()
        failure: ApiError = Unreachable(f"{link.name}: {what}: stream ended")
        pipe = _Pipe(link)

        with link.wire(what, float("inf")):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._deliver, pipe, on_event, tasks.cancel_scope)
                tasks.start_soon(self._end_when_mute, idle, tasks.cancel_scope)
                try:
                    await link.client.watch(
                        resource,
                        pipe.put,
                        resource_version=resource_version,
                        namespace=namespace,
                        label_selector=label_selector,
                        idle=float("inf"),  # whether anything is heard is the link's doing
                    )
                except ApiError as error:
                    failure = error
                tasks.cancel_scope.cancel()
            failure = pipe.failure or failure
            if link.muted_since is not None:
                failure = DeadlineExceeded(f"{link.name}: {what}: nothing heard for {idle:g} s")
        self._activity.failed(failure)
        raise failure

    async def _deliver(self, pipe: _Pipe, on_event: Callable[[WatchEvent], None], scope: anyio.CancelScope) -> None:
        def shown(event: WatchEvent) -> None:
            self._activity.sent(event)
            on_event(event)

        try:
            await pipe.deliver(shown)
        except Unreadable as error:  # kept: a task group would wrap it
            pipe.failure = error
            scope.cancel()

    async def _end_when_mute(self, idle: float, scope: anyio.CancelScope) -> None:
        await self.link.until_mute(idle)
        scope.cancel()

    async def _call(self, verb: str, resource: Resource, act: Callable[[], Awaitable[T]], *, writes: bool = False) -> T:
        what = f"{verb} {resource}"

        async def authorized() -> T:
            if not self.link.accepts(self.token):
                raise Unauthorized(f"{self.link.name}: {what}: Unauthorized", status=401)
            self.link.look_for(resource)
            return await act()

        try:
            answer = await self.link.carry(what, authorized, self.life, writes=writes)
        except ApiError as error:
            self._activity.failed(error)
            raise
        if verb != "watch":  # a server accepts it from memory
            self._activity.answered()
        return answer


def mutated(workload: Json) -> Json:
    """What a cluster's webhook may do to a Workload: annotate it, and fill in what was left out."""
    metadata = workload["metadata"]
    noted = {**metadata.get("annotations", {}), "example.com/seen-by": "webhook"}
    spec = {"active": True, "maximumExecutionTimeSeconds": 86_400, **workload["spec"]}
    return {**workload, "metadata": {**metadata, "annotations": noted}, "spec": spec}
