"""Which kinds are watched on a worker: those of which something is there, or may be.

A watch is a connection, and most workers have no job of most kinds. A kind of which nothing is there and nothing was
sent for `UNUSED_AFTER` is *unwatched*: its store is empty, as the worker was when it was read last. It is watched again
before something of it is sent, and once a look finds something that others have left. What controls a job that is
there is watched, too: only then it shows whose job that is (`children.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import anyio
import attrs

from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import controller_of
from multikueue.errors import ApiError
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.protocols import ApiClient
from multikueue.runtime.loop import loop_time

UNUSED_AFTER: Final = 1800.0
"""Seconds without anything of a kind on a worker after which its watch ends."""
LATE_LOOK: Final = 120.0
"""Seconds until the first look: what an earlier leader sent at its end is there by then."""
LOOK_INTERVAL: Final = 3600.0
"""Seconds between two looks after that."""
SERVED_INTERVAL: Final = 300.0
"""Seconds between two questions for the kinds that a worker serves."""
LANES: Final = 2
"""Kinds of one worker that are listed for the first time at once: each needs a connection."""
PATIENCE: Final = 5.0
"""Seconds for which others wait for the first list of a kind."""
UNSETTLED: Final = 60.0
"""Seconds until a kind is looked at again whose watch fails, or which may be needed."""

CONTROLLER: Final = "controller"
"""The index of jobs by the kind of what controls them."""


def controller_kinds(job: Json) -> list[str]:
    """The entries of that index."""
    gvk = _controller_kind(job)
    return [] if gvk is None else [str(gvk)]


def _controller_kind(job: Json) -> GVK | None:
    reference = controller_of(job)
    return None if reference is None else GVK.of(reference.get("apiVersion", ""), reference.get("kind", ""))


@attrs.define(eq=False)
class KindWatch:
    """Runs the informer of one kind on one worker while it is needed."""

    informer: Informer
    is_used: Callable[[GVK], bool]
    """Whether something of a kind is on the worker, or may be, as others know."""
    unused_after: float = UNUSED_AFTER
    _used_at: float = attrs.field(default=float("-inf"), init=False)
    _wanted: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _watching: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, init=False)

    def __attrs_post_init__(self) -> None:
        self.informer.subscribe_status(self._settled)

    async def run(self) -> None:
        """Watch while there is a need, until cancelled."""
        while True:
            with anyio.CancelScope() as self._watching:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._look_for_use)
                    await self.informer.run()
            await self._wait_unwatched()

    def want(self) -> None:
        """Something of the kind is about to be sent, or may be there: watch it from now on."""
        self._used_at = loop_time()
        self._wanted.set()

    @property
    def is_unwatched(self) -> bool:
        """Whether nothing of the kind was there when it was read last, and nothing has been sent since."""
        return self.informer.status.synced and not self.informer.current

    def _settled(self, _status: InformerStatus) -> None:
        self._end_unused()  # behind a list no watch is opened then

    async def _look_for_use(self) -> None:
        while True:
            left = self._end_unused()
            await anyio.sleep(left)

    def _end_unused(self) -> float:
        """End the watch if it is not needed; return the seconds until that may be so."""
        informer, now = self.informer, loop_time()
        if len(informer) or informer.unreadable or self.is_used(informer.resource.gvk):
            self._used_at = now
        left = self._used_at + self.unused_after - now
        if not informer.current or informer.status.failures:
            return max(left, UNSETTLED)
        if left <= 0:
            self._wanted = anyio.Event()
            self._watching.cancel()
        return max(left, 0.0)

    async def _wait_unwatched(self) -> None:
        """Wait until the kind is wanted, or something of it is there."""
        delay = LATE_LOOK
        while True:
            with anyio.move_on_after(delay):
                await self._wanted.wait()
                return None
            if await self._finds_something():
                return self.want()
            delay = LOOK_INTERVAL

    async def _finds_something(self) -> bool:
        informer = self.informer
        try:
            listed = await informer.client.list(informer.resource, label_selector=informer.label_selector, limit=1)
        except ApiError:
            return True  # the informer finds out what it is, and tells
        return bool(listed.items or listed.unreadable)


@attrs.define(eq=False)
class KindWatches:
    """Those of all kinds on one worker."""

    client: ApiClient
    by_kind: Mapping[GVK, KindWatch]

    @classmethod
    def build(
        cls, client: ApiClient, informers: Iterable[Informer], is_used: Callable[[GVK], bool], unused_after: float
    ) -> KindWatches:
        """One for each informer, which have the index `CONTROLLER`; see `KindWatch`."""
        jobs = tuple(informers)

        def is_needed(gvk: GVK) -> bool:
            shown = (store for informer in jobs for store in (informer, informer.unreadable.outlines))
            return is_used(gvk) or any(store.keys_by(CONTROLLER, str(gvk)) for store in shown)

        watches = cls(
            client, {informer.resource.gvk: KindWatch(informer, is_needed, unused_after) for informer in jobs}
        )
        for informer in jobs:
            informer.subscribe(watches._shown)
        return watches

    def _shown(self, _key: ObjectKey, _old: Json | None, new: Json | None) -> None:
        if new is not None and (gvk := _controller_kind(new)) is not None:
            self.want(gvk)

    def want(self, gvk: GVK | None) -> None:
        """See `KindWatch.want`; a kind that is not followed is none of ours."""
        if gvk is not None and (watch := self.by_kind.get(gvk)) is not None:
            watch.want()

    async def run(self, follow: Callable[[KindWatch], Coroutine[Any, Any, None]]) -> None:
        """Run them until cancelled, a few more at a time.

        Args:
            follow: runs one.
        """
        waiting = iter(self.by_kind.values())
        async with anyio.create_task_group() as tasks:

            async def start() -> None:
                for watch in waiting:
                    tasks.start_soon(follow, watch)
                    with anyio.move_on_after(PATIENCE):
                        await watch.informer.wait_settled()

            for _ in range(LANES):
                tasks.start_soon(start)
            await self._look_for_kinds()

    async def _look_for_kinds(self) -> None:
        """Have kinds watched that are not served any more: their informers tell so. Without an answer, wait."""
        while True:
            await anyio.sleep(SERVED_INTERVAL)
            unwatched = [watch for watch in self.by_kind.values() if watch.is_unwatched]
            if not unwatched:
                continue
            with suppress(ApiError):
                served = await self.client.served()
                for watch in unwatched:
                    gvk = watch.informer.resource.gvk
                    if served is not None and gvk.group and gvk not in served:
                        watch.want()
