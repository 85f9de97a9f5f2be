"""How much of each namespace is on one worker: what we make there never fills what may be read of it.

Whoever may create jobs in a namespace decides how large its copies are and how many. A list of them that is too long
or too large would make the worker unreadable, for all namespaces. So each has a share of both bounds: by what its
Workloads have on the manager before they are offered, and again before the job is made there, which may have grown
meanwhile, and by what the worker shows afterwards. Who would exceed it is not offered there for now: such Workloads
take turns as soon as something has gone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.machinery.fair_keys import FairKeys
from multikueue.core.machinery.shares import Need, Shares, UsedUp
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.refusal_facts import RefusalFacts
from multikueue.core.model.worker_states import ShareUsedUp
from multikueue.errors import Cause
from multikueue.kube.http.response_limits import LISTS_UNLIMITED, AnswerLimits
from multikueue.runtime.loop import loop_time

LOOK_AGAIN: Final = timedelta(minutes=5)
"""After which time a Workload that waits is looked at again if nothing has gone."""
WOKEN: Final = 4
"""How many that wait are looked at when something has gone: a large copy makes room for several small ones."""
OURS: Final = 3, 4
"""Which part of the bytes of a list our own copies may have: they grow there by their status."""


def _nobody(_: ObjectKey) -> Need | None:
    return None


@attrs.define(eq=False)
class CopyShares:
    """The namespaces' shares of one worker, by Workload of the manager."""

    limits: AnswerLimits = LISTS_UNLIMITED
    need_of: Callable[[ObjectKey], Need | None] = _nobody
    """What a Workload would need that is to be offered, or that the worker has; None: neither."""
    is_gone: Callable[[ObjectKey], bool] = lambda _: False
    """Whether the manager is known to have no Workload of that name."""
    wake: Callable[[ObjectKey, float], object] = lambda _key, _after: None
    """Has a Workload planned again after some seconds."""
    _bytes: Shares[ObjectKey] = attrs.field(init=False)
    _objects: Shares[ObjectKey] = attrs.field(init=False)
    expected: dict[ObjectKey, Need] = attrs.field(factory=dict, init=False)
    """What is being made."""
    _waiting: FairKeys[ObjectKey] = attrs.field(factory=FairKeys, init=False)
    _until: dict[ObjectKey, float] = attrs.field(factory=dict, init=False)
    """Of those that wait: when they are looked at again."""

    def __attrs_post_init__(self) -> None:
        part, of = OURS
        self._bytes, self._objects = Shares(self.limits.list_bytes * part // of), Shares(self.limits.list_objects)

    def __repr__(self) -> str:
        return f"<CopyShares {self._bytes!r} bytes, {self._objects!r} objects, {len(self._waiting)} wait>"

    def held_back(self, key: ObjectKey) -> ShareUsedUp | None:
        """Why no more of a Workload is made there, than there is or was seen; None: it may be, or is not to be."""
        if key in self.expected or (need := self.need_of(key)) is None:
            return None
        if not (bound := self._bound(key, need)):
            return None
        why = f'namespace "{key.namespace}" has its share of what may be on one worker ({bound})'
        left = timedelta(seconds=max(1.0, self._looks_at(key) - loop_time()))
        return ShareUsedUp(why, left, RefusalFacts(Cause.SHARE_USED_UP))

    def wait(self, key: ObjectKey, *, held_back: bool) -> None:
        """Have a Workload wait for its turn, or no longer."""
        if held_back:
            self._waiting.add(key, key.namespace)
            self._until[key] = self._looks_at(key)
        else:
            self._forget(key)

    def _looks_at(self, key: ObjectKey) -> float:
        """When one that waits is looked at again."""
        now = loop_time()
        until = self._until.get(key, now)
        return until if until > now else now + LOOK_AGAIN.total_seconds()

    def used_up(self) -> UsedUp | None:
        """Who has most there, of the bound that is nearer, while somebody waits for a share."""
        if not self._waiting:
            return None
        bytes_are_nearer = self._bytes.total * self._objects.limit >= self._objects.total * self._bytes.limit
        first = (self._bytes if bytes_are_nearer else self._objects).largest()
        return UsedUp(
            "" if first is None else str(first), self._bytes.of(first), self._objects.of(first), len(self._waiting)
        )

    def inherit(self, earlier: CopyShares) -> None:
        """Go on for an earlier connection to the same worker: what it has begun to make may not show yet."""
        for key, need in earlier.expected.items():
            self.expected[key] = need
            self.shown(key, need)

    def expect(self, key: ObjectKey) -> None:
        """More of it is being made there."""
        if (need := self.need_of(key)) is not None:
            self.expected[key] = need
            self.shown(key, need)

    def shown(self, key: ObjectKey, need: Need, there: str | None = None) -> None:
        """So much of it is there.

        What says that it is of another namespace, and of a Workload that nobody here knows, counts for the one that it
        is in: anybody there could use up another's share.

        Args:
            key: the Workload.
            need: how much.
            there: the namespace there in which it was seen; None: it is being made.
        """
        self._forget(key)
        flow = self._bytes.flow_of(key)
        if flow is None:
            flow = there if there is not None and self.is_gone(key) else key.namespace
        self._bytes.keep(key, flow, need.bytes)
        self._objects.keep(key, flow, need.objects)

    def made(self, key: ObjectKey) -> None:
        """It is not being made any more."""
        self.expected.pop(key, None)

    def gone(self, key: ObjectKey) -> None:
        """Nothing of it is there any more; others may follow."""
        if key not in self._bytes:
            return
        self._bytes.drop(key)
        self._objects.drop(key)
        for _ in range(WOKEN):
            waiting = self._waiting.take(self._may_follow)
            if waiting is None:
                return
            self._until.pop(waiting, None)
            self.wake(waiting, 0.0)

    def _may_follow(self, namespace: object) -> bool:
        return self._bytes.has_room(namespace, 1) and self._objects.has_room(namespace, 1)

    def _bound(self, key: ObjectKey, need: Need) -> str:
        if not self._has_room(self._bytes, key, need.bytes):
            return "workerLimits.listSize"
        return "" if self._has_room(self._objects, key, need.objects) else "workerLimits.listObjects"

    def _has_room(self, shares: Shares[ObjectKey], key: ObjectKey, amount: int) -> bool:
        more = amount - shares.kept(key)
        return more <= 0 or shares.has_room(key.namespace, more)

    def _forget(self, key: ObjectKey) -> None:
        self._waiting.discard(key)
        self._until.pop(key, None)
