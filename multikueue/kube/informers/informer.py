"""Informers: a local store of one resource of one server, kept up to date by a list and a watch."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

import anyio
import anyio.abc
import anyio.lowlevel
import attrs

from multikueue.core.machinery.backoff import REFUSED_BACKOFF, WATCH_BACKOFF, Backoff
from multikueue.core.machinery.watch import Listed, Outcome
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import resource_version, uid, version_number, version_of
from multikueue.core.model.shape import Check, object_flaw
from multikueue.core.model.slimmed import known_spec, size_noted
from multikueue.core.model.writers import drop_managed_fields
from multikueue.errors import ApiError, Unreachable
from multikueue.kube.http.response_limits import LISTS_UNLIMITED, AnswerLimits, StoreTally
from multikueue.kube.informers.handlers import Handlers
from multikueue.kube.informers.indexer import Index, Indexer
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.kube.informers.list_pages import InitialList, size_of
from multikueue.kube.informers.reflector import ListerWatcher, Reflector
from multikueue.kube.informers.shared_parts import BREATH, SharedParts
from multikueue.kube.informers.unreadable_objects import ObjectShapes, UnreadableObjects
from multikueue.logs import get_logger
from multikueue.protocols import ObjectList, UnreadableObject, WatchEvent

LOOK_AGAIN: Final = 300.0
"""Seconds after which a kind is listed again of which an object could not be read. One that is mended there brings an
event; what something on the way has spoilt does not."""
LIFETIME_JITTER: Final = 0.2
"""A watch is renewed up to this part of its lifetime earlier, so that not all are renewed at the same time."""

Transform = Callable[[Json], Json | None]
"""What is stored of an object; None: nothing."""

Handler = Callable[[ObjectKey, Json | None, Json | None], None]
"""Gets a change: the object's key, and the object before and after. None: there is none."""
StatusHandler = Callable[[InformerStatus], None]

log = get_logger(__name__)


def _changes(first: Handler | None) -> Handlers[ObjectKey, Json | None, Json | None]:
    return Handlers.beginning_with(first)


def _statuses(first: StatusHandler | None) -> Handlers[InformerStatus]:
    return Handlers.beginning_with(first)


@attrs.define(eq=False)
class Informer(Indexer):
    """All objects of one resource, as they were on the server a moment ago: an indexer that `run` alone writes.

    * Each handler gets each change once, in the server's order, from the task of `run`. Handlers must not wait. What
      they raise is a bug, not a failure of the server: it ends `run`. `run` closes the list of handlers.
    * A watch resumes from the last resourceVersion. A relist happens after a 410, after silence, and when the
      resourceVersion goes backwards (see `core.machinery.watch`).
    * An object that cannot be decoded, or whose shape is wrong, is in `unreadable`. With `keeps_unreadable` all others
      go on; the store keeps its last version that could be read, if there is one, and who reads the store asks
      `unreadable` first. Otherwise such an object is a failure: the kind cannot be read.
    * What it keeps is bounded by `limits`. More on the server counts as a failure: it answers with too much.
    * It never gives up: it reports failures through `status`, and retries with back-off.
    """

    client: ListerWatcher
    resource: Resource
    namespace: str = attrs.field(default="", kw_only=True)
    label_selector: str = attrs.field(default="", kw_only=True)
    belongs: Callable[[Json], bool] = attrs.field(default=lambda _obj: True, kw_only=True)
    """Whether the selector selects an object: a server, or a proxy before it, that ignores selectors sends others'."""
    transform: Transform = attrs.field(default=drop_managed_fields, kw_only=True)
    slim: Callable[[Json, int, Json | None], Json] | None = attrs.field(default=None, kw_only=True)
    """What is kept of that where the object was sent in so many bytes; None: all. The last argument is the version that
    is kept, if its spec may be taken: see `knows_specs`."""
    knows_specs: bool = attrs.field(default=False, kw_only=True)
    """Whether an event whose UID and generation are those of the version that is kept has its spec, as `transform` and
    `slim` have left it: a large one is not decoded again, and `transform` gets that. Of lists all is decoded. It is for
    kinds whose generation changes with the spec, as Workloads and Jobs; that of a Pod does not when it gets a node."""
    flaw: Check = attrs.field(default=object_flaw, kw_only=True)
    """What is wrong with an object's shape."""
    keeps_unreadable: bool = attrs.field(default=False, kw_only=True)
    """Whether one object that cannot be read leaves the others as they are: for kinds that tenants create."""
    indexes: Mapping[str, Index] = attrs.field(factory=dict, kw_only=True)
    _on_change: Handlers[ObjectKey, Json | None, Json | None] = attrs.field(
        default=None, converter=_changes, alias="on_change", kw_only=True
    )
    """Given is the first handler; others `subscribe`."""
    _on_status: Handlers[InformerStatus] = attrs.field(
        default=None, converter=_statuses, alias="on_status", kw_only=True
    )
    backoff: Backoff = attrs.field(default=WATCH_BACKOFF, kw_only=True)
    refused_backoff: Backoff = attrs.field(default=REFUSED_BACKOFF, kw_only=True)
    idle: float = attrs.field(default=90.0, kw_only=True)
    """Seconds without a byte after which a watch may be dead: API servers send a bookmark about every minute. The
    informer then probes the server and relists."""
    limits: AnswerLimits = attrs.field(default=LISTS_UNLIMITED, kw_only=True)
    """See `StoreTally`: whoever may create objects on the server decides how many there are."""
    lifetime: float = attrs.field(default=float("inf"), kw_only=True)
    """Seconds after which a watch is renewed. API servers check credentials only when a request begins."""
    predecessor: Informer | None = attrs.field(default=None, kw_only=True)
    """An informer of a server with the same address. The first list must have reached its resourceVersion; of what that
    one knew, and the list has not, handlers are told that it is gone."""
    initial: InitialList = attrs.field(factory=InitialList, kw_only=True)
    """The first list, if somebody has read it; no request is sent for it then."""
    heard_at: Callable[[], float] = attrs.field(default=anyio.current_time, kw_only=True)
    """When the server answered anything last, on the loop's clock."""
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    """The source of jitter: numbers in [0, 1)."""
    sleep: Callable[[float], Awaitable[None]] = attrs.field(default=anyio.sleep, kw_only=True)
    """Waits out a back-off of so many seconds. It may return before that: somebody knows that the server answers."""
    patience: Callable[[InformerStatus], float] = attrs.field(default=lambda _: math.inf, kw_only=True)
    """Seconds for which somebody still waits for a server that fails: it is asked just before they are over. Gets the
    status before the failure."""
    longest_wait: Callable[[], float] = attrs.field(default=lambda: math.inf, kw_only=True)
    """Seconds between two attempts at most, unless the server wants more."""
    status: InformerStatus = attrs.field(factory=InformerStatus, init=False)
    current: bool = attrs.field(default=False, init=False)
    """Whether `run` is under way and has read a list. It may end and begin again: until then the store is of that
    time."""
    unshown: Callable[[], Iterable[Json]] = attrs.field(default=tuple, init=False)
    """What was written and is newer than what has been read: a list that lacks it shows that it is gone."""
    unreadable: UnreadableObjects = attrs.field(init=False)
    """The objects that are there and cannot be read. Handlers get their changes as those of others, with what is known
    of their metadata as the object."""
    _tally: StoreTally = attrs.field(init=False)
    _listed: dict[ObjectKey, int] = attrs.field(factory=dict, init=False)
    """By object of the list that is being read, its bytes; and in `_ready`, those that are as they will be stored."""
    _ready: set[ObjectKey] = attrs.field(factory=set, init=False)
    _shapes: ObjectShapes = attrs.field(init=False)
    _list_at: float = attrs.field(default=float("inf"), init=False)
    """When all is listed again, on the loop's clock, if objects cannot be read. No watch that breaks puts it off."""
    _parts: SharedParts = attrs.field(factory=SharedParts, init=False)
    _reflector: Reflector = attrs.field(init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _request: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, init=False)
    """Around the request under way."""
    _abandoned_with: ApiError = attrs.field(factory=lambda: Unreachable("no answer"), init=False)
    """Why a request was cancelled."""

    def __attrs_post_init__(self) -> None:
        self._tally = StoreTally(self.limits, str(self.resource))
        self._shapes = ObjectShapes(self.resource, self.flaw, self.belongs, self.keeps_unreadable)
        self.unreadable = UnreadableObjects(str(self.resource), self.indexes)
        if self.predecessor is not None and not self.predecessor.resource_version:
            self.predecessor = self.predecessor.predecessor  # it never listed, and may be one of many
        self._reflector = Reflector(
            self.client,
            self.resource,
            namespace=self.namespace,
            label_selector=self.label_selector,
            idle=self.idle,
            initial=self.initial,
            lifetime=lambda: self._watched_for() * (1 - LIFETIME_JITTER * self.fraction()),
            lists_next=lambda: len(self.unreadable) > 0,
            reset_after=self.backoff.reset_after,
            each=self._received,
            known=self._known if self.knows_specs else None,
            on_list=self._replace,
            on_event=self._apply,
            on_established=self._recover,
        )

    def __repr__(self) -> str:
        synced = "synced" if self.status.synced else "not synced"
        failing = f", {self.status.failures} failures" if self.status.failures else ""
        return f"<Informer {self.resource}: {len(self)} objects, {synced}, {self._reflector.state.phase}{failing}>"

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """List and watch until cancelled."""
        self._on_change.close()
        self._on_status.close()
        task_status.started()
        try:
            while True:
                await anyio.lowlevel.checkpoint_if_cancelled()  # a handler may have ended this: no watch is opened then
                outcome, error = await self._step()
                if isinstance(outcome, Listed):
                    self.current = True
                    self._tell(self.status.listed())
                if error is not None:
                    await self._back_off(error)
        finally:
            self.current = False
            self._reflector.begin_anew()

    def subscribe(self, handler: Handler) -> None:
        """Have a handler called with each change, behind those before it; before `run`."""
        self._on_change.add(handler)

    def subscribe_status(self, handler: StatusHandler) -> None:
        """Have a handler called when the status changes, behind those before it; before `run`."""
        self._on_status.add(handler)

    def abandon(self, error: ApiError) -> None:
        """End the request under way as a failure: somebody knows that the server does not answer."""
        self._abandoned_with = error
        self._request.cancel()

    async def _step(self) -> tuple[Outcome, ApiError | None]:
        known = self.predecessor.resource_version if self.predecessor is not None else ""
        self._begin_list()
        with anyio.CancelScope() as self._request:
            return await self._reflector.step(known)
        return self._reflector.abandon(self._abandoned_with)

    def _begin_list(self) -> None:
        self._listed, self._ready = {}, set()

    @property
    def resource_version(self) -> str:
        """The store has seen everything up to here; empty before the first list."""
        return self._reflector.resource_version

    def inherit(self, earlier: Informer) -> None:
        """Count the time of failures from when an earlier informer of the same server began to fail."""
        self.status = self.status.inherited(earlier.status)

    async def wait_synced(self) -> None:
        """Wait until the first list is in the store."""
        while not self.status.synced:
            await self._changed.wait()

    async def wait_settled(self) -> None:
        """Wait until the first list is in the store, or the first request has failed."""
        while not self.status.synced and not self.status.failures:
            await self._changed.wait()

    async def wait_recovered(self) -> None:
        """Wait until a watch that fails, now or later, is open again."""
        for fails in (True, False):
            while bool(self.status.failures) is not fails:
                await self._changed.wait()

    def size_of(self, key: ObjectKey) -> int:
        """In how many bytes the server sent an object last; 0: there is none, or that is not known."""
        return self._tally.size_of(key)

    def kept(self, obj: Json, size: int, *, listed: bool = False) -> Json | None:
        """What is stored of an object.

        Args:
            obj: as it was sent; may be changed.
            size: its bytes then.
            listed: whether a list has it: after a restore from a backup another spec may have its UID and generation.
        """
        stored = self.transform(obj)
        if stored is None or self.slim is None:
            return stored
        return self.slim(stored, size, self.get(ObjectKey.of(obj)) if self.knows_specs and not listed else None)

    def _known(self, obj: Json) -> Json:
        return known_spec(obj, self.get(ObjectKey.of(obj)))

    def _kept_late(self, key: ObjectKey, obj: Json) -> Json | None:
        """The same of one that nobody has prepared while it was read."""
        size = self._listed.get(key) or size_noted(obj) or size_of(obj)
        self._listed[key] = size
        return self.kept(obj, size, listed=True)

    def _received(self, obj: Json, size: int) -> Json:
        """Prepare an object of a list that is being read: so no more is in memory of those before it than is stored."""
        key = ObjectKey.of(obj)
        self._listed[key] = size
        if self.flaw(obj) or (kept := self.kept(obj, size, listed=True)) is None:
            return obj  # it has its turn with the whole list
        self._ready.add(key)
        return kept

    async def _replace(self, listed: ObjectList, backwards: bool) -> None:
        self._tally.check(len(listed.items) + len(listed.unreadable), sum(self._listed.values()))
        sound, unknown = self._shapes.sorted_out(listed)
        uids, changed = await self._prepared(sound)
        uids |= {ObjectKey.of(unreadable.object): uid(unreadable.object) for unreadable in unknown}
        gone_unseen = [] if backwards else await self._gone_unseen(uids, listed.resource_version)
        # NO AWAIT from here on: nobody may see half a list.
        self.predecessor, self._list_at = None, float("inf")
        self._tally.listed(self._listed)
        self._begin_list()
        if backwards:
            log.warning("resourceVersion went backwards: relisting", resource=str(self.resource))
            self.status = self.status.went_backwards()  # before the handlers run: they may read it
        for gone in gone_unseen:
            self._on_change(ObjectKey.of(gone), gone, None)
        for key, put in changed:
            self._put(key, put)
        for unreadable in unknown:
            self._note_unreadable(unreadable)
        for key in sorted({*self.keys(), *self.unreadable.outlines.keys()} - uids.keys()):
            self._put(key, None)

    async def _gone_unseen(self, uids: Mapping[ObjectKey, str], version: str) -> list[Json]:
        """What the predecessor had, or was written, and a list of this version has not: no event tells.

        Args:
            uids: what is listed; that of an object which cannot be read may be unknown, and is empty.
            version: what is newer than that may be there.
        """
        earlier = self.predecessor
        inherited = () if earlier is None else (*earlier.values(), *earlier.unshown())
        known = {uid(obj): obj for obj in (*inherited, *self.unshown())}
        gone: list[Json] = []
        for number, (object_uid, obj) in enumerate(known.items()):
            key = ObjectKey.of(obj)
            is_there = uids.get(key) in ("", object_uid) or uid(self.get(key) or {}) == object_uid
            if not is_there and version_of(obj) <= version_number(version):
                gone.append(obj)
            if number % BREATH == 0:
                await anyio.lowlevel.checkpoint()
        return gone

    async def _prepared(
        self, sound: Sequence[Json]
    ) -> tuple[dict[ObjectKey, str], list[tuple[ObjectKey, Json | None]]]:
        """The UIDs of what is listed, and what is to be stored. Others may run: a worker decides how much that is."""
        uids: dict[ObjectKey, str] = {}
        changed: list[tuple[ObjectKey, Json | None]] = []
        for obj in filter(self.belongs, sound):
            key = ObjectKey.of(obj)
            uids[key] = uid(obj)
            known = None if key in self.unreadable else self.get(key)
            if known is None or (resource_version(known), uid(known)) != (resource_version(obj), uid(obj)):
                changed.append((key, self._shared(key, obj if key in self._ready else self._kept_late(key, obj))))
                if len(changed) % BREATH == 0:
                    await anyio.lowlevel.checkpoint()
        return uids, changed

    def _apply(self, event: WatchEvent) -> None:
        key = ObjectKey.of(event.object)
        why = "" if event.type == "DELETED" else event.unreadable or self.flaw(event.object)
        unknown = self._shapes.unknown(UnreadableObject(event.object, why)) if why else None
        deleted = event.type == "DELETED" or (unknown is None if why else not self.belongs(event.object))
        if not deleted and key not in self and key not in self.unreadable:
            self._tally.check(len(self) + len(self.unreadable) + 1)
        self._tally.count(key, 0 if deleted else event.size)
        if unknown is not None:
            self._note_unreadable(unknown)
        else:
            self._put(key, None if deleted else self._shared(key, self.kept(event.object, event.size)))

    def _note_unreadable(self, unreadable: UnreadableObject) -> None:
        key = ObjectKey.of(unreadable.object)
        before = self.unreadable.outlines.get(key) or self.get(key)
        self._list_at = min(self._list_at if self.unreadable else float("inf"), anyio.current_time() + LOOK_AGAIN)
        self._reflector.end_watch_within(LOOK_AGAIN)
        if self.unreadable.note(unreadable):
            self._on_change(key, before, unreadable.object)

    def _watched_for(self) -> float:
        return min(self.lifetime, max(self._list_at - anyio.current_time(), 0.0)) if self.unreadable else self.lifetime

    def _shared(self, key: ObjectKey, new: Json | None) -> Json | None:
        if new is not None:
            self._parts.share(new, self.get(key))
        return new

    def _put(self, key: ObjectKey, new: Json | None) -> None:
        old, was_unreadable = self.put(key, new), self.unreadable.forget(key)
        old = old if was_unreadable is None else was_unreadable
        if old is not None or new is not None:
            self._on_change(key, old, new)

    def _recover(self) -> None:
        if self.status.failures:
            log.info("watch re-established", resource=str(self.resource))
            self._tell(self.status.established())

    async def _back_off(self, error: ApiError) -> None:
        failures, now, jitter = self._reflector.state.failures, anyio.current_time(), self.fraction()
        silent, longest = max(0.0, now - self.heard_at()), self.longest_wait()
        status = self.status.failed(
            error,
            failures,
            now,
            backoff=self.backoff.within(longest),
            refused=self.refused_backoff.within(longest),
            fraction=jitter,
            silent_for=silent,
            patience=self.patience(self.status),
        )
        retry_in = status.retry_in or 0.0
        report = log.info if failures == 1 else log.debug
        report("list/watch failed", resource=str(self.resource), error=str(error), retry_in=round(retry_in, 1))
        self._tell(status)
        await self.sleep(retry_in)

    def _tell(self, status: InformerStatus) -> None:
        self.status = status
        self._changed.set()
        self._changed = anyio.Event()
        self._on_status(status)
