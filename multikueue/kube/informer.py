"""A cache of one kind on one server, kept by a list and a watch that resumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Final, Protocol

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.backoff import REFUSED_BACKOFF, WATCH_BACKOFF, Backoff
from multikueue.core.machinery.watch import (
    Confirmed,
    Failed,
    Following,
    Listed,
    NeedsList,
    Outcome,
    Progressed,
    Resuming,
    Steadied,
    WatchState,
    ending,
)
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import resource_version, uid, version_number
from multikueue.errors import (
    ApiError,
    DeadlineExceeded,
    Forbidden,
    NotFound,
)
from multikueue.kube.indexer import Index, Indexer
from multikueue.kube.informer_status import InformerStatus
from multikueue.logs import get_logger
from multikueue.protocols import Reader, Watcher, WatchEvent

CERTAIN_REFUSAL: Final = 3
"""Answers of 5xx and the like in a row that make a refusal: one may be chance. 403 and 404 need no second one."""

LIFETIME_JITTER: Final = 0.2
"""Watches are opened anew up to this part of their lifetime earlier, so that not all are at the same time."""

ANSWER_DEADLINE: Final = 10.0
"""Seconds for a server whose watch fell silent to say that it is there. A dead one is noticed so long after that."""

NOTHING: Final = "multikueue,!multikueue"
"""A label selector that no object matches: a list by it says only where the server's history is."""

Transform = Callable[[Json], Json | None]
"""What is kept of an object; None: nothing."""

log = get_logger(__name__)


class ReaderWatcher(Reader, Watcher, Protocol):
    """What a cache needs of a client."""


def drop_managed_fields(obj: Json) -> Json:
    """The object without `managedFields`: half of its size, and nothing decides by them."""
    obj["metadata"].pop("managedFields", None)
    return obj


@attrs.define(eq=False)
class Informer:
    """All objects of a kind, as they are on the server a moment ago.

    * Changes are told in the order they happened, each once, in the watch's own task: handlers must not wait. What
      they raise is a bug, not a failure of the server: it ends `run`.
    * It resumes from where it was; it lists again only when the server has forgotten (410), or is behind what is known.
    * It never gives up: failures are told through `status` and `on_status` and retried with back-off.
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
    on_status: Callable[[InformerStatus], None] = attrs.field(default=lambda _status: None, kw_only=True)
    backoff: Backoff = attrs.field(default=WATCH_BACKOFF, kw_only=True)
    refused_backoff: Backoff = attrs.field(default=REFUSED_BACKOFF, kw_only=True)
    idle: float = attrs.field(default=90.0, kw_only=True)
    """Seconds without a byte after which a watch may be dead; API servers send a bookmark every minute, nearly always.
    The server is asked then, and the watch is opened anew."""
    lifetime: float = attrs.field(default=float("inf"), kw_only=True)
    """Seconds after which a watch is opened anew. API servers look at credentials only when a request begins."""
    predecessor: Informer | None = attrs.field(default=None, kw_only=True)
    """A cache of the same server as far as its address tells; what it knows must be in this one's first list."""
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    """Where jitter comes from: numbers in [0, 1)."""
    status: InformerStatus = attrs.field(factory=InformerStatus, init=False)
    resource_version: str = attrs.field(default="", init=False)
    """Everything up to here is in the cache, or was; empty before the first list."""
    _watch: WatchState = attrs.field(factory=WatchState, init=False)
    _refusals: int = attrs.field(default=0, init=False)
    """How often in a row the server said no."""
    _store: Indexer = attrs.field(init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._store = Indexer(self.indexes)
        if self.predecessor is not None and not self.predecessor.resource_version:
            self.predecessor = self.predecessor.predecessor  # it has never known anything, and may be one of many

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the server until cancelled."""
        task_status.started()
        while True:
            outcome, error = await self._attempt()
            before = self._watch.failures
            self._step(outcome)
            if isinstance(outcome, Listed):
                self._tell(attrs.evolve(self.status, synced=True, retry_in=None, lists=self.status.lists + 1))
            if self._watch.failures > before:
                await self._back_off(error)

    def inherit(self, earlier: Informer) -> None:
        """Count how long it fails from when an earlier cache of the same server began to."""
        began, earlier_began = self.status.failing_since, earlier.status.failing_since
        if began is not None and earlier_began is not None:
            self.status = attrs.evolve(self.status, failing_since=min(began, earlier_began))

    async def wait_synced(self) -> None:
        """Wait until the cache has been complete once."""
        while not self.status.synced:
            await self._changed.wait()

    async def wait_settled(self) -> None:
        """Wait until it has been complete once, or has failed once."""
        while not self.status.synced and not self.status.failures:
            await self._changed.wait()

    def get(self, key: ObjectKey) -> Json | None:
        """The object; shared, so read it and do not change it."""
        return self._store.get(key)

    def by(self, index: str, value: str) -> list[Json]:
        """The objects an index has under a value, in the order of their keys."""
        return self._store.by(index, value)

    def keys_by(self, index: str, value: str) -> Set[ObjectKey]:
        """The keys of the objects an index has under a value; not a copy."""
        return self._store.keys_by(index, value)

    def values_of(self, index: str, key: ObjectKey) -> Set[str]:
        """The values under which an index has an object; not a copy."""
        return self._store.values_of(index, key)

    def keys(self) -> Iterator[ObjectKey]:
        """The keys now; safe against changes while iterating."""
        return self._store.keys()

    def values(self) -> Iterator[Json]:
        """The objects now; safe against changes while iterating."""
        return self._store.values()

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._store

    def __len__(self) -> int:
        return len(self._store)

    async def _attempt(self) -> tuple[Outcome, ApiError | None]:
        """One request, to its end: what that means, and the error that ended it."""
        match self._watch.position:
            case NeedsList():
                return await self._list()
            case Resuming(silent=silent):
                first = silent and not self._watch.failures
                return await self._confirm(ANSWER_DEADLINE if first else float("inf"))
            case Following(since):
                failure = await self._follow(since)
                return ending(failure, steady=self._watch.steady), failure

    async def _confirm(self, deadline: float) -> tuple[Outcome, ApiError | None]:
        try:
            with anyio.move_on_after(deadline):  # the client has one of its own
                listed = await self.client.list(self.resource, namespace=self.namespace, label_selector=NOTHING)
                return Confirmed(listed.resource_version), None
        except ApiError as error:
            return Failed(), error
        silent = f"{self.resource}: the watch has fallen silent, and the server does not answer within"
        return Failed(), DeadlineExceeded(f"{silent} {deadline:g} s")

    async def _list(self) -> tuple[Outcome, ApiError | None]:
        earlier = self.predecessor.resource_version if self.predecessor is not None else ""
        known_before = max(version_number(self.resource_version), version_number(earlier))
        try:
            listed = await self.client.list(self.resource, namespace=self.namespace, label_selector=self.label_selector)
        except ApiError as error:
            return Failed(), error
        # NO AWAIT from here to the step in `run`: nobody may see half a list.
        self.predecessor = None
        if version_number(listed.resource_version) < known_before:  # lists are consistent, so it cannot just lag
            log.warning("the server is not the one it was", resource=str(self.resource))
            self.status = attrs.evolve(self.status, histories=self.status.histories + 1)
        found: set[ObjectKey] = set()
        for obj in listed.items:
            key = ObjectKey.of(obj)
            found.add(key)
            known = self._store.get(key)
            if known is None or (resource_version(known), uid(known)) != (resource_version(obj), uid(obj)):
                self._put(key, self.transform(obj))
        for gone in sorted(set(self._store.keys()) - found):
            self._put(gone, None)
        return Listed(listed.resource_version), None

    async def _follow(self, since: str) -> ApiError | None:
        failure: ApiError | None = None
        async with anyio.create_task_group() as tasks:

            def opened() -> None:
                tasks.start_soon(self._grow_steady)

            try:
                with anyio.move_on_after(self.lifetime * (1 - LIFETIME_JITTER * self.fraction())):
                    await self.client.watch(
                        self.resource,
                        self._event,
                        resource_version=since,
                        namespace=self.namespace,
                        label_selector=self.label_selector,
                        idle=self.idle,
                        on_open=opened,
                    )
            except ApiError as error:  # carried out by hand: a task group would wrap it
                failure = error
            tasks.cancel_scope.cancel()
        return failure

    async def _grow_steady(self) -> None:
        await anyio.sleep(self.backoff.steady_after)
        recovered = self.status.failures > 0
        self._step(Steadied())
        if recovered:
            log.info("following again", resource=str(self.resource))
            well = InformerStatus(synced=self.status.synced, lists=self.status.lists, histories=self.status.histories)
            self._tell(well)

    def _event(self, event: WatchEvent) -> None:
        obj = event.object
        if event.type != "BOOKMARK":
            self._put(ObjectKey.of(obj), None if event.type == "DELETED" else self.transform(obj))
        self._step(Progressed(resource_version(obj)))

    def _step(self, outcome: Outcome) -> None:
        self._watch = self._watch.step(outcome)
        if isinstance(self._watch.position, Following):
            self.resource_version = self._watch.position.resource_version

    async def _back_off(self, error: ApiError | None) -> None:
        # Refusals count by themselves: an API server that was away for long says no for a moment when it is back.
        self._refusals = self._refusals + 1 if isinstance(error, NotFound | Forbidden) else 0
        if self._refusals:
            delay = self.refused_backoff.delay(self._refusals, self.fraction())
        else:
            delay = self.backoff.delay(self._watch.failures, self.fraction())
        if error is not None and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        reason = str(error) if error is not None else f"{self.resource}: the watch ended at once"
        tell = log.info if self._watch.failures == 1 else log.debug
        tell("cannot follow", resource=str(self.resource), error=reason, seconds=round(delay, 1))
        failures = self._watch.failures
        answered = error is not None and error.status != 0
        refused = answered and (self._refusals > 0 or failures >= CERTAIN_REFUSAL)
        state = self.status if self.status.failures else attrs.evolve(self.status, failing_since=anyio.current_time())
        self._tell(attrs.evolve(state, failures=failures, last_error=reason, retry_in=delay, refused=refused))
        await anyio.sleep(delay)

    def _put(self, key: ObjectKey, new: Json | None) -> None:
        old = self._store.put(key, new)
        if old is not None or new is not None:
            self.on_change(key, old, new)

    def _tell(self, status: InformerStatus) -> None:
        self.status = status
        self._changed.set()
        self._changed = anyio.Event()
        self.on_status(status)
