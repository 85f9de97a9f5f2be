"""
A client in memory: `multikueue.protocols.ApiClient` straight on a registry, without HTTP.

It answers and fails like a client over HTTP does, faults included, and waits only by the loop's clock, so a whole
fleet of clusters can run on virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import Self, TypeVar

import anyio
import anyio.lowlevel

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import DeadlineExceeded, NotFound, Unreachable
from multikueue.kube.http.activity import Activity
from multikueue.protocols import Known, ObjectList, Propagation, Received, Subresource, WatchEvent
from multikueue.sandbox.apiserver.direct_connection import CallbackSink, Connection, to_error
from multikueue.sandbox.apiserver.encoding import clone, decode
from multikueue.sandbox.apiserver.faults import Call, ConnectionLostError, Faults
from multikueue.sandbox.apiserver.identity.access import Access
from multikueue.sandbox.apiserver.identity.rbac import Attributes
from multikueue.sandbox.apiserver.identity.users import user_named
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.serving.server import ApiServer
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.storage.cluster import WriteOptions
from multikueue.sandbox.apiserver.storage.selectors import Selector
from multikueue.sandbox.apiserver.storage.streaming import WatchStream
from multikueue.sandbox.apiserver.storage.watching import WatchOptions
from multikueue.sandbox.apiserver.verbs.deleting import DeleteOptions
from multikueue.sandbox.apiserver.verbs.listing import ListOptions
from multikueue.sandbox.apiserver.verbs.patching import APPLY_PATCH, MERGE_PATCH
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.apiserver.verbs.updating import Target

T = TypeVar("T")

OPENAPI = "openapi"
"""What faults call the reading of a schema."""
APIS = "apigroups"
"""What faults call the reading of which kinds are served."""


class DirectClient:
    """Speaks to a cluster in this process as one user.

    Args:
        target: a server (it need not be started), or a bare registry.
        user: who asks; a server with tokens refuses a user who has none.
        deadline: seconds a call may take; only faults make a call take any.
        faults: what goes wrong on the way to a bare registry; a server has its own.
    """

    def __init__(
        self,
        target: ApiServer | Registry,
        *,
        user: str = "admin",
        deadline: float = 30.0,  # as a client over HTTP would wait
        faults: Faults | None = None,
    ) -> None:
        server = target if isinstance(target, ApiServer) else None
        self.registry = server.registry if server else target if isinstance(target, Registry) else Registry()
        self.faults = server.faults if server else faults or Faults()
        self.access = server.access if server else Access(self.registry, None)
        self._user = user
        self._deadline = deadline
        self._activity = Activity()

    def __repr__(self) -> str:
        return f"<DirectClient of {self.registry.name} as {self._user}>"

    async def __aenter__(self) -> Self:
        """It opens nothing: so it stands where a `KubeClient` does."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """It closes nothing."""

    @property
    def last_activity(self) -> float:
        """When the server was heard last; see `ApiClient`."""
        return self._activity.last

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """Return the object; see `Reader`."""
        return await self._call(
            "get", resource, key, lambda row: clone(self.registry.get(row, key.namespace or None, key.name))
        )

    async def exists(self, resource: Resource, key: ObjectKey) -> bool:
        """Whether there is an object; see `KubeClient.exists`."""
        try:
            await self.get(resource, key)
        except NotFound:
            return False
        return True

    async def schema(self, gvk: GVK) -> Json | None:
        """The schema of a kind; see `Describer`."""
        rows = await self._types(f"get openapi of {gvk}", OPENAPI)
        definition = next((row.custom for row in rows if GVK(row.group, row.version, row.kind) == gvk), None)
        return clone(definition.schema) if definition is not None else None

    async def served(self) -> Set[GVK] | None:
        """The kinds of all groups but the core; see `Describer`."""
        rows = await self._types("get apigroups", APIS)
        return frozenset(GVK(row.group, row.version, row.kind) for row in rows if row.group)

    async def _types(self, what: str, faulty: str) -> list[ResourceType]:
        """What is served, in a call that faults know by a name."""
        with self._connected(what, self._deadline):
            self._authenticate()
            hit = self.faults.match(Call(self._user, "get", faulty))
            await anyio.lowlevel.checkpoint()
            await self.faults.apply(hit, "request")
            self._activity.answered()
            return list(self.registry.cluster.types.values())
        raise AssertionError("unreachable: the connection raises when it does not return")

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        limit: int = 0,
        each: Received | None = None,
    ) -> ObjectList:
        """Return all matching objects; see `Reader`."""

        def act(row: ResourceType) -> ObjectList:
            options = ListOptions(Selector.parse(row, label_selector), limit=limit)
            page = self.registry.list(row, namespace or None, options)
            items = [row.viewed(decode(entry.raw)) for entry in page.entries]
            if each is not None:
                items = [each(item, len(entry.raw)) for item, entry in zip(items, page.entries, strict=True)]
            return ObjectList(items, str(page.revision))

        return await self._call("list", resource, ObjectKey(namespace, ""), act)

    async def create(self, resource: Resource, obj: Json) -> Json:
        """POST; see `Writer`."""
        key = ObjectKey.of(obj)

        def act(row: ResourceType) -> Json:
            return clone(self.registry.create(row, key.namespace or None, clone(obj), self._options()))

        return await self._call("create", resource, key, act)

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """PUT; see `Writer`."""
        key = ObjectKey.of(obj)

        def act(row: ResourceType) -> Json:
            return clone(self.registry.update(_target(row, key, subresource), clone(obj), self._options()))

        return await self._call("update", resource, key, act, subresource)

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """JSON merge patch; see `Writer`."""

        def act(row: ResourceType) -> Json:
            target = _target(row, key, subresource)
            return clone(self.registry.patch(target, MERGE_PATCH, clone(patch), self._options())[0])

        return await self._call("patch", resource, key, act, subresource)

    async def apply(
        self,
        resource: Resource,
        obj: Json,
        *,
        field_manager: str,
        force: bool = True,
        subresource: Subresource = "",
    ) -> Json:
        """Server-side apply; see `Writer`."""
        key, options = ObjectKey.of(obj), WriteOptions(field_manager, force=force)

        def act(row: ResourceType) -> Json:
            target = _target(row, key, subresource)
            return clone(self.registry.patch(target, APPLY_PATCH, clone(obj), options)[0])

        return await self._call("patch", resource, key, act, subresource)

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
        """DELETE with preconditions; see `Writer`. A kubelet does so with a grace period of 0 seconds."""
        options = DeleteOptions(propagation or "", uid or "", resource_version or "", grace)

        def act(row: ResourceType) -> Json | None:
            left, is_gone = self.registry.delete(_target(row, key), options)
            return None if is_gone else clone(left)

        return await self._call("delete", resource, key, act)

    async def watch(
        self,
        resource: Resource,
        on_event: Callable[[WatchEvent], None],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        idle: float = 90.0,
        on_open: Callable[[], None] | None = None,
        known: Known | None = None,
    ) -> None:
        """Follow changes until the server ends the stream; see `Watcher`."""

        def shown(event: WatchEvent) -> None:
            self._activity.sent(event)
            on_event(event)

        with self._connected(f"watch {resource}", idle) as connection:
            row, call = self._arrive("watch", resource, ObjectKey(namespace, ""))
            hit = self.faults.match(call)
            await self.faults.apply(hit, "request")
            selector = Selector.parse(row, label_selector)
            options = WatchOptions(selector, resource_version, bookmarks=True)
            cursor = self.registry.watch(row, namespace or None, options)
            if on_open is not None:
                on_open()
            stream = WatchStream(
                cursor,
                CallbackSink(row, shown, connection),
                self.faults,
                hit,
                timeout=self.registry.watch_timeout(),
                bookmark_interval=self.registry.bookmark_interval,
            )
            await stream.run()

    def _options(self) -> WriteOptions:
        return WriteOptions(manager=self._user)

    async def _call(
        self,
        verb: str,
        resource: Resource,
        key: ObjectKey,
        act: Callable[[ResourceType], T],
        subresource: str = "",
    ) -> T:
        with self._connected(f"{verb} {resource} {key}", self._deadline):
            row, call = self._arrive(verb, resource, key, subresource)
            hit = self.faults.match(call)
            await anyio.lowlevel.checkpoint()  # others get their turn, as they do while a request is on its way
            await self.faults.apply(hit, "request")
            result = act(row)
            await self.faults.apply(hit, "reply")
            self._activity.answered()
            return result
        raise AssertionError("unreachable: the connection raises when it does not return")

    def _arrive(
        self, verb: str, resource: Resource, key: ObjectKey, subresource: str = ""
    ) -> tuple[ResourceType, Call]:
        self._authenticate()
        row = self.registry.type_of(resource)
        call = Call(self._user, verb, row.qualified, key.namespace, key.name, subresource)
        self.access.count(call)
        if self.access.enforces_roles:
            asked = Attributes(verb, row.group, row.plural, subresource, key.namespace, key.name)
            self.access.authorize(user_named(self._user), asked)
        return row, call

    def _authenticate(self) -> None:
        tokens = self.access.tokens
        if tokens is not None and self._user not in tokens.values():
            raise StatusError(401, "Unauthorized", "Unauthorized")

    @contextmanager
    def _connected(self, what: str, silence: float) -> Iterator[Connection]:
        """A connection for one call; maps everything that can happen to it to the library's errors."""
        connection = Connection(silence)
        self.faults.connections.opened(connection.drop)
        try:
            with connection.scope:
                connection.answered()
                yield connection
        except StatusError as status:
            error = to_error(status)
            self._activity.failed(error)
            raise error from status
        except ConnectionLostError as lost:
            raise Unreachable(f"{what}: connection reset") from lost
        finally:
            self.faults.connections.closed(connection.drop)
        if connection.cut:
            raise Unreachable(f"{what}: connection reset")
        if connection.scope.cancelled_caught:
            raise DeadlineExceeded(f"{what}: nothing heard for {silence:g} s")


def _target(row: ResourceType, key: ObjectKey, subresource: str = "") -> Target:
    return Target(row, key.namespace or None, key.name, subresource)
