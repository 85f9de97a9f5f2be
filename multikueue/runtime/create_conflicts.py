"""Why copies cannot be created on a worker: refusals, and foreign objects of the same name.

Foreign objects are not in the caches, which hold only objects with our label: a refused creation reveals them. But a
creation is also refused after a lost reply, when the object is our own and its event is on the way. So a taken name
counts only once the watch has had time to show the object. A refusal that may pass, as by a ResourceQuota or a webhook
without an answer, counts after a minute. Then there is a back-off before the next creation, longer each time. A refusal
that is met again after that is the same one still: it has lasted. One that may pass is not the one before that could
not.

What is created and does not last is no refusal, but comes to the same: a webhook there changes what is sent, or
somebody removes or evicts it, and it would be made again as fast as the servers answer. An offer that another worker
has won does not count.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from operator import itemgetter
from typing import Final

import attrs

from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.names import ObjectKey, Resource
from multikueue.core.model.refusal_facts import RefusalFacts
from multikueue.core.model.worker_states import Refusal
from multikueue.errors import (
    AlreadyExists,
    ApiError,
    Cause,
    Conflict,
    DependencyUnavailable,
    Forbidden,
    Invalid,
    ServerFault,
)
from multikueue.runtime.loop import loop_time

CERTAIN_AFTER: Final = 5.0
"""Seconds until a taken name or a missing permission counts: a watch may lag behind the answer to a write, and an API
server that has just started says 403 until it has read its roles."""
PASSING_FOR: Final = 60.0
"""Seconds for which a refusal that may pass is tried again on the same worker."""
ASK_AGAIN_AFTER: Final = 60.0
"""Seconds after a refusal from which it is asked again when another Workload's object of that namespace was taken."""
REFUSAL_BACKOFF: Final = Backoff(base=300.0, cap=3600.0)
"""For a worker that refuses an object: an administrator has to change something there first."""
SOON_BACKOFF: Final = Backoff(base=30.0, cap=300.0)
"""For a worker that lacks what a job needs, where an earlier job of its name is still ending, or that fails, as while
its Kueue is restarted and no webhook answers: that passes at any moment, and nothing tells us."""
LASTS: Final = 60.0
"""Seconds after which a Workload copy has lasted."""
SOON: Final = 15.0
"""Seconds after a wait within which one is made again that has not lasted."""
REMADE: Final = 5
"""Copies in a row that did not last, until there is a wait before the next one."""
REMADE_BACKOFF: Final = Backoff(base=1.0, cap=300.0)
_REMEMBERED_FOR: Final = 3600.0
"""Seconds after its back-off for which a refusal is remembered, so that the next one waits longer."""


@attrs.define(eq=False)
class _Met:
    why: str
    since: float
    """When it was met first: one that is met again after its back-off has lasted since then."""
    patience: float
    backoff: Backoff = REFUSAL_BACKOFF
    at: float = 0.0
    """When it was met last."""
    facts: RefusalFacts = attrs.field(factory=RefusalFacts)
    logged: str = ""
    """What of it the log has."""
    times: int = 0
    """Its back-offs so far."""
    until: float = 0.0
    """The end of the last one, on the loop's clock."""

    def settle(self, now: float) -> None:
        """Begin a back-off once the refusal has lasted for `patience` seconds."""
        if self._is_due(now):
            self.until = self.ends(now)
            self.times += 1

    def ends(self, now: float) -> float:
        """When its back-off ends, which begins now if that is due."""
        return now + self.backoff.delay(self.times + 1) if self._is_due(now) else self.until

    def _is_due(self, now: float) -> bool:
        return self.until <= self.at and now - self.since >= self.patience


@attrs.frozen
class _Made:
    attempt: str
    times: int
    """Copies in a row, each made before the last one had lasted."""
    at: float
    """When the last one was made, on the loop's clock."""
    until: float
    """When the next one may be made."""


@attrs.define(eq=False)
class CreateConflicts:
    """The refusals of one worker, by Workload."""

    _met: dict[tuple[Resource, ObjectKey], dict[ObjectKey, _Met]] = attrs.field(factory=dict, init=False)
    _kinds: set[Resource] = attrs.field(factory=set, init=False)
    """Of which any have been refused."""
    _namespaces: dict[tuple[Resource, str], dict[ObjectKey, None]] = attrs.field(factory=dict, init=False)
    """By kind and namespace, the Workloads that have been refused, those first that have waited longest."""

    _made: dict[ObjectKey, _Made] = attrs.field(factory=dict, init=False)
    """The Workloads of which copies were made of late."""

    def __len__(self) -> int:
        """How many pairs of a Workload and a kind have refusals."""
        return len(self._met)

    def met(self, resource: Resource, workload: ObjectKey, key: ObjectKey, error: ApiError, why: str) -> float:
        """Note that a creation for this Workload was refused; return for how many seconds that has been so.

        Args:
            resource: of the object that was to be created.
            workload: whose object it is.
            key: its name.
            error: what the worker answered.
            why: the same for people.
        """
        now, known = loop_time(), self._met.pop((resource, workload), {})
        self._forget_abandoned(now)
        self._met[resource, workload] = known  # it comes last
        self._kinds.add(resource)
        met = known.setdefault(key, _Met(why, now, patience(error), _backoff(error)))
        if patience(error) > met.patience:
            met.since = now  # one that may pass is not the one before, which could not
        met.why, met.patience, met.at, met.facts = why, patience(error), now, facts_of(error)
        met.settle(now)
        self._leave_queue(resource, workload)
        if not isinstance(error, AlreadyExists):  # whether a name is taken does not depend on others
            self._namespaces.setdefault((resource, workload.namespace), {})[workload] = None
        return now - met.since

    def is_news(self, resource: Resource, workload: ObjectKey, key: ObjectKey) -> bool:
        """Whether the log does not have this refusal, with this reason; once it was asked, it has."""
        met = self._met.get((resource, workload), {}).get(key)
        if met is None or met.logged == met.why:
            return False
        met.logged = met.why
        return True

    def created(self, resource: Resource, workload: ObjectKey) -> ObjectKey | None:
        """A creation for this Workload succeeded.

        Returns:
            The Workload of the same namespace whose refusal of the same kind ends by that: what was in the way may be
            gone. It is one, the one that has waited longest; if it is taken, too, the next one follows. None: no other
            was refused, or only a moment ago.
        """
        self._met.pop((resource, workload), None)
        self._leave_queue(resource, workload)
        now, refused = loop_time(), self._namespaces.get((resource, workload.namespace), {})
        oldest = next(iter(refused), None)
        if oldest is None:
            return None
        known = self._met.get((resource, oldest), {})
        if any(now - met.at < ASK_AGAIN_AFTER for met in known.values()):
            return None
        self._leave_queue(resource, oldest)
        for met in known.values():
            met.until = min(met.until, now)
        return oldest if known else None

    def made(self, workload: ObjectKey, attempt: str, *, was_here: bool) -> None:
        """A copy of a Workload was made, for one of its attempts.

        Args:
            workload: whose.
            attempt: this one.
            was_here: whether this worker had the Workload last.
        """
        now, known = loop_time(), self._made.pop(workload, None)
        times = 1
        if known is not None and now < max(known.at + LASTS, known.until + SOON):
            times = known.times + (was_here or known.attempt == attempt)
        self._made[workload] = _Made(attempt, times, now, now + REMADE_BACKOFF.delay(times - REMADE))
        while (first := next(iter(self._made))) != workload and self._made[first].until + LASTS < now:
            del self._made[first]

    def remade(self, workload: ObjectKey) -> Refusal | None:
        """Why and for how long no copy of a Workload is made, of which nothing is there now; None: one may be made."""
        made = self._made.get(workload)
        left = made.until - loop_time() if made is not None else 0.0
        if made is None or left <= 0:
            return None
        why = f"{made.times} copies there did not last: something there changes, evicts or removes them"
        return Refusal(why, timedelta(seconds=max(1.0, left)), RefusalFacts(Cause.COPIES_GO))

    def forget(self, workload: ObjectKey) -> None:
        """Have everything of a Workload tried again: its user asks for that."""
        self._made.pop(workload, None)
        self.gone(workload)

    def gone(self, workload: ObjectKey) -> None:
        """Forget what was refused of a Workload that is gone: who makes and deletes many leaves none behind."""
        for resource in self._kinds:
            if self._met.pop((resource, workload), None) is not None:
                self._leave_queue(resource, workload)

    def _leave_queue(self, resource: Resource, workload: ObjectKey) -> None:
        place = resource, workload.namespace
        if (refused := self._namespaces.get(place)) is not None:
            refused.pop(workload, None)
            if not refused:
                del self._namespaces[place]

    def refusal(self, resource: Resource, workload: ObjectKey, *, own: Collection[ObjectKey]) -> Refusal | None:
        """Why and for how long the Workload is not given to this worker; None if nothing is in the way.

        Args:
            resource: of the objects that must be created.
            workload: whose objects they are.
            own: our own objects of that kind that can be seen: if one of them was in the way, it was ours.
        """
        now, known = loop_time(), self._met.get((resource, workload), {})
        lasting = [(met.ends(now), met) for key, met in known.items() if key not in own and met.ends(now) > now]
        if not lasting:
            return None
        until, met = max(lasting, key=itemgetter(0))
        # A moment too early would be a moment too often.
        return Refusal(met.why, timedelta(seconds=max(1.0, until - now)), met.facts)

    def settle(self, resource: Resource, workload: ObjectKey, *, own: Collection[ObjectKey]) -> None:
        """Begin the back-offs that are due, and forget what our own objects were in the way of; see `refusal`."""
        known, now = self._met.get((resource, workload), {}), loop_time()
        for key in [key for key in known if key in own]:
            del known[key]
        for met in known.values():
            met.settle(now)

    def _forget_abandoned(self, now: float) -> None:
        """Forget the refusals of Workloads that are not created any more, the oldest first."""
        while self._met:
            oldest, known = next(iter(self._met.items()))
            if any(now - max(met.at, met.until) < _REMEMBERED_FOR for met in known.values()):
                return
            del self._met[oldest]
            self._leave_queue(*oldest)


def facts_of(error: ApiError) -> RefusalFacts:
    """Why something is refused, for programs."""
    return RefusalFacts(error.cause or "", error.about if isinstance(error, DependencyUnavailable) else {})


def _backoff(error: ApiError) -> Backoff:
    return SOON_BACKOFF if isinstance(error, DependencyUnavailable | Conflict | ServerFault) else REFUSAL_BACKOFF


def patience(error: ApiError) -> float:
    """Seconds for which a creation is tried again in place, by what the worker answered."""
    match error:
        case AlreadyExists():
            return CERTAIN_AFTER
        case Forbidden() if "cannot create resource" in str(error):  # RBAC's words
            return CERTAIN_AFTER
        case Forbidden() if "exceeded quota" in str(error):  # a ResourceQuota's: quota may be freed any moment
            return PASSING_FOR
        case Invalid() | Forbidden() | DependencyUnavailable(passing=False):
            return 0.0
    return PASSING_FOR
