"""A cache of one kind on one server, kept by a list and a watch that resumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import anyio
import anyio.abc
import attrs
import structlog

from multikueue.core.backoff import REFUSED_BACKOFF, WATCH_BACKOFF, Backoff
from multikueue.core.names import Json, ObjectKey, Resource
from multikueue.core.objects import resource_version
from multikueue.core.watch import Ended, Failed, Following, HistoryLost, Listed, Progressed, WatchState
from multikueue.errors import ApiError, Expired, Forbidden, NotFound
from multikueue.protocols import Reader, Watcher, WatchEvent

Transform = Callable[[Json], Json | None]
"""What is kept of an object; None: nothing."""
Index = Callable[[Json], Iterable[str]]
"""The values under which an object is found."""

log = structlog.get_logger(__name__)


class ReaderWatcher(Reader, Watcher, Protocol):
    """What a cache needs of a client."""


def drop_managed_fields(obj: Json) -> Json:
    """The object without `managedFields`: half of its size, and nothing decides by them."""
    obj["metadata"].pop("managedFields", None)
    return obj


@attrs.frozen
class CacheState:
    """How well a cache follows its server."""

    synced: bool = False
    """Whether it has been complete once."""
    failures: int = 0
    """Failures in a row; 0 while it follows."""
    last_error: str = ""
    """Why the last attempt failed."""
    retry_in: float | None = None
    """Seconds until the next attempt, counted from when this state was told."""
    lists: int = 0
    """How often everything had to be read."""


@attrs.define(eq=False)
class ObjectCache:
    """All objects of a kind, as they are on the server a moment ago.

    * Changes are told in the order they happened, each once, in the watch's own task: handlers must not wait.
    * It resumes from where it was; it lists again only when the server has forgotten (410).
    * It never gives up: failures are told through `state` and `on_state` and retried with back-off.
    """

    client: ReaderWatcher
    resource: Resource
    namespace: str = attrs.field(default="", kw_only=True)
    label_selector: str = attrs.field(default="", kw_only=True)
    transform: Transform = attrs.field(default=drop_managed_fields, kw_only=True)
    indexes: Mapping[str, Index] = attrs.field(factory=dict, kw_only=True)
    on_change: Callable[[ObjectKey, Json | None, Json | None], None] = attrs.field(
        default=lambda _key, _old, _new: None, kw_only=True
    )
    on_state: Callable[[CacheState], None] = attrs.field(default=lambda _state: None, kw_only=True)
    backoff: Backoff = attrs.field(default=WATCH_BACKOFF, kw_only=True)
    refused_backoff: Backoff = attrs.field(default=REFUSED_BACKOFF, kw_only=True)
    idle: float = attrs.field(default=90.0, kw_only=True)
    """Seconds without a byte after which a watch counts as dead; API servers send a bookmark every minute."""
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    state: CacheState = attrs.field(factory=CacheState, init=False)
    _watch: WatchState = attrs.field(factory=WatchState, init=False)
    _objects: dict[ObjectKey, Json] = attrs.field(factory=dict, init=False)
    _indexed: dict[str, dict[str, set[ObjectKey]]] = attrs.field(factory=dict, init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the server until cancelled."""
        task_status.started()
        while True:
            opened = anyio.current_time()
            try:
                if isinstance(self._watch.position, Following):
                    await self._follow(self._watch.position.resource_version)
                    self._ended(anyio.current_time() - opened)
                else:
                    await self._list()
                    continue
            except Expired:
                self._watch = self._watch.step(HistoryLost(), self.backoff)
                if self._watch.failures == 0:
                    self._watch = attrs.evolve(self._watch, failures=1)
                    continue  # list at once, but not in a tight loop if the list is too old as well
                await self._back_off("the server has forgotten the resourceVersion", None)
            except ApiError as error:
                following = isinstance(self._watch.position, Following)
                lasted = anyio.current_time() - opened if following else 0.0
                self._watch = self._watch.step(Failed(lasted), self.backoff)
                await self._back_off(str(error), error)
            else:
                if self._watch.failures:
                    await self._back_off("the watch ended at once", None)

    async def wait_synced(self) -> None:
        """Wait until the cache has been complete once."""
        while not self.state.synced:
            await self._changed.wait()

    async def wait_settled(self) -> None:
        """Wait until it has been complete once, or has failed once."""
        while not self.state.synced and not self.state.failures:
            await self._changed.wait()

    @property
    def resource_version(self) -> str:
        """Everything up to here is in the cache; empty before the first list."""
        position = self._watch.position
        return position.resource_version if isinstance(position, Following) else ""

    def get(self, key: ObjectKey) -> Json | None:
        """The object; shared, so read it and do not change it."""
        return self._objects.get(key)

    def by(self, index: str, value: str) -> list[Json]:
        """The objects an index has under a value, in the order of their keys."""
        keys = self._indexed.get(index, {}).get(value, ())
        return [self._objects[key] for key in sorted(keys)]

    def keys(self) -> Iterator[ObjectKey]:
        """The keys now; safe against changes while iterating."""
        return iter(list(self._objects))

    def values(self) -> Iterator[Json]:
        """The objects now; safe against changes while iterating."""
        return iter(list(self._objects.values()))

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._objects

    def __len__(self) -> int:
        return len(self._objects)

    async def _list(self) -> None:
        listed = await self.client.list(self.resource, namespace=self.namespace, label_selector=self.label_selector)
        self._watch = self._watch.step(Listed(listed.resource_version), self.backoff)
        found: set[ObjectKey] = set()
        for obj in listed.items:
            key = ObjectKey.of(obj)
            found.add(key)
            known = self._objects.get(key)
            if known is None or resource_version(known) != resource_version(obj):
                self._put(key, self.transform(obj))
        for key in [key for key in self._objects if key not in found]:
            self._put(key, None)
        self._tell(CacheState(synced=True, lists=self.state.lists + 1))

    async def _follow(self, since: str) -> None:
        failure: ApiError | None = None
        async with anyio.create_task_group() as tasks:
            if self._watch.failures:
                tasks.start_soon(self._recover)
            try:
                await self.client.watch(
                    self.resource,
                    self._event,
                    resource_version=since,
                    namespace=self.namespace,
                    label_selector=self.label_selector,
                    idle=self.idle,
                )
            except ApiError as error:  # carried out by hand: a task group would wrap it
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _recover(self) -> None:
        """A stream that lasts is a success, whether or not it has anything to say."""
        await anyio.sleep(self.backoff.steady_after)
        self._watch = self._watch.healthy()
        self._tell(attrs.evolve(self.state, failures=0, last_error="", retry_in=None))

    def _event(self, event: WatchEvent) -> None:
        obj = event.object
        if event.type != "BOOKMARK":
            self._put(ObjectKey.of(obj), None if event.type == "DELETED" else self.transform(obj))
        self._watch = self._watch.step(Progressed(resource_version(obj)), self.backoff)

    def _ended(self, lasted: float) -> None:
        self._watch = self._watch.step(Ended(lasted), self.backoff)

    async def _back_off(self, reason: str, error: ApiError | None) -> None:
        refused = isinstance(error, NotFound | Forbidden)
        delay = (self.refused_backoff if refused else self.backoff).delay(self._watch.failures, self.fraction())
        if error is not None and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        tell = log.info if self._watch.failures == 1 else log.debug
        tell("cache", resource=str(self.resource), error=reason, seconds=round(delay, 1))
        self._tell(attrs.evolve(self.state, failures=self._watch.failures, last_error=reason, retry_in=delay))
        await anyio.sleep(delay)

    def _put(self, key: ObjectKey, new: Json | None) -> None:
        old = self._objects.get(key)
        if old is None and new is None:
            return
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        for name, index in self.indexes.items():
            self._reindex(self._indexed.setdefault(name, {}), key, index, old, new)
        self.on_change(key, old, new)

    @staticmethod
    def _reindex(
        entries: dict[str, set[ObjectKey]], key: ObjectKey, index: Index, old: Json | None, new: Json | None
    ) -> None:
        for value in index(old) if old is not None else ():
            entries[value].discard(key)
            if not entries[value]:
                del entries[value]
        for value in index(new) if new is not None else ():
            entries.setdefault(value, set()).add(key)

    def _tell(self, state: CacheState) -> None:
        self.state = state
        self._changed.set()
        self._changed = anyio.Event()
        self.on_state(state)
