"""What this process remembers of Workloads between reconciles. After a restart the plan is safe without it."""

from __future__ import annotations

from collections.abc import MutableMapping
from datetime import timedelta
from operator import attrgetter, itemgetter
from typing import Any, Final

import attrs

from multikueue.core.machinery.shares import LatestOfEach
from multikueue.core.model.destination import Destination
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.placements import Placement, placement_of
from multikueue.core.model.worker_states import Created, Creation, NothingSent, Unanswered, Untracked
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.runtime.loop import loop_time
from multikueue.runtime.plan_pace import PlanPace

_OWNERS: Final = 4
"""Of what a job needs on one worker: the Workload copy and the job copy, and those of the attempt before."""
_GONE: Final = 10_000
"""Workloads that are gone and of which it is remembered that they were here: the last ones, each namespace's alike."""


def _latest() -> LatestOfEach[ObjectKey, Any]:
    return LatestOfEach(_GONE, attrgetter("namespace"))


@attrs.define(eq=False)
class _Creations:
    """What was sent to one worker for one Workload: one job, or the pods of a group."""

    created: str | None = None
    """The attempt for which the worker answered that a job was created."""
    unanswered: dict[ObjectKey, float] = attrs.field(factory=dict)
    """The jobs whose creation has no answer, and since when that counts."""


@attrs.define(eq=False)
class _Remembered:
    touched_at: float
    changed_here_at: float = attrs.field(default=attrs.Factory(lambda known: known.touched_at, takes_self=True))
    last_worker: ClusterName | None = None
    inherited: ClusterName | None = None
    """The worker that had it, or may have, when this process looked first."""
    placement: Placement | None = None
    placed: tuple[str, str] = ("", "")
    """The worker that is recorded, or was recorded last, and for which attempt."""
    destination: Destination | None = None
    """Where it led when that was seen first; None: nothing of the Workload is left there."""
    behind_since: float | None = None
    """When something changed on a worker that no decision has looked at."""
    attempt: str | None = None
    """The one that had quota last."""
    reserved_at: float | None = None
    """When it was seen to get that; None: it had it when this process looked first."""
    unrecorded_attempt: str | None = None
    """The attempt that was seen before a worker was recorded for it."""
    sent: dict[ClusterName, _Creations] = attrs.field(factory=dict)
    pods_left_at: dict[ClusterName, float] = attrs.field(factory=dict)
    """When a job copy was gone from a worker whose pods may not have been."""
    supplied: dict[ClusterName, tuple[str, ...]] = attrs.field(factory=dict)
    pods: dict[tuple[ClusterName, str], tuple[Json, ...]] = attrs.field(factory=dict)
    """By worker, and the attempt that waits for their end: the last look alone."""


_NOTHING: Final = _Remembered(0.0)
"""Of a Workload that nobody remembers. It is read only."""


@attrs.define(eq=False)
class WorkloadMemory:
    """By Workload of the manager: when it changed, which worker had it, and which creations were sent."""

    pace: PlanPace = attrs.field(factory=PlanPace, init=False)
    _known: dict[ObjectKey, _Remembered] = attrs.field(factory=dict, init=False)
    _gone: MutableMapping[ObjectKey, _Remembered] = attrs.field(factory=_latest, init=False)
    """Those that are gone. Kueue may make one again for the same job, under the same name, while that runs."""
    _missed: MutableMapping[ObjectKey, float] = attrs.field(factory=_latest, init=False)
    """Those that were gone when this process saw something of them first, and when that changed last."""

    _connected_at: dict[ClusterName, float] = attrs.field(factory=dict, init=False)
    """When each worker was connected first."""

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: ObjectKey) -> bool:
        """Whether this process has looked at the Workload."""
        return key in self._known

    def touched(self, key: ObjectKey, *, here: bool = False) -> None:
        """Something of this Workload changed, on a worker or `here`. One that is gone is not remembered again."""
        if (known := self._known.get(key) or self._gone.get(key)) is not None:
            known.touched_at = loop_time()
            if here:
                known.changed_here_at = known.touched_at
        elif key in self._missed:
            self._missed[key] = loop_time()

    def forget(self, key: ObjectKey) -> None:
        """The Workload is gone."""
        if (known := self._known.pop(key, None)) is not None:
            self._gone[key] = attrs.evolve(known, placement=None, behind_since=None, touched_at=loop_time())
        self.pace.forget(key)

    def missed(self, key: ObjectKey) -> None:
        """Something may be left of a Workload that the manager does not have."""
        if key not in self._gone:
            self._missed.setdefault(key, loop_time())

    def was_here(self, key: ObjectKey) -> bool:
        """Whether this process has looked at a Workload that is gone: copies that nothing proves are its."""
        return key in self._gone

    def left(self, key: ObjectKey) -> None:
        """Nothing shows on any worker of a Workload that is gone: it is not remembered any more, unless a job of it may
        have been created."""
        if (known := self._gone.get(key)) is not None and not any(sent.unanswered for sent in known.sent.values()):
            del self._gone[key]

    def quiet_for(self, key: ObjectKey) -> timedelta:
        """How long nothing of this Workload has changed; zero for one that was not observed."""
        known, now = self._known.get(key) or self._gone.get(key), loop_time()
        return timedelta(seconds=now - (known.touched_at if known is not None else self._missed.get(key, now)))

    def unchanged_here_for(self, key: ObjectKey) -> timedelta:
        """How long nothing of this Workload has changed on the manager; zero for one that was not observed."""
        known = self._known.get(key)
        return timedelta(seconds=loop_time() - known.changed_here_at) if known is not None else timedelta(0)

    def held_for(self, key: ObjectKey) -> timedelta | None:
        """How long the attempt has had its quota that was seen to get it; None: it was not."""
        began = self._known.get(key, _NOTHING).reserved_at
        return timedelta(seconds=loop_time() - began) if began is not None else None

    def observe(self, key: ObjectKey, workload: Json) -> None:
        """Note the worker recorded for the Workload, or that none is recorded for this attempt.

        What a Workload says of its last worker holds for the one that Kueue makes in its place.
        """
        is_new, known, facts = key not in self._known, self._of(key), WORKLOADS.of(workload)
        if is_new:
            known.inherited = facts.cluster_name or facts.noted_worker
        if facts.has_quota and not facts.is_evicted and known.attempt != facts.attempt:
            known.attempt, known.reserved_at = facts.attempt, None if is_new else loop_time()
        if facts.cluster_name is not None:
            known.last_worker, known.placement = facts.cluster_name, placement_of(workload)
            return
        known.last_worker = known.last_worker or facts.noted_worker
        if facts.has_quota and not facts.is_evicted:
            known.unrecorded_attempt = facts.attempt

    def placed(self, key: ObjectKey, workload: Json, now: Destination) -> None:
        """Note where the worker which was recorded last leads, if it was recorded since that was noted."""
        known, facts = self._of(key), WORKLOADS.of(workload)
        if facts.cluster_name is not None and known.placed != (placed := (facts.cluster_name, facts.attempt)):
            known.placed, known.destination = placed, now

    def leads_there(self, key: ObjectKey, now: Destination, *, shown: bool) -> bool:
        """Whether the worker which was recorded last leads where it did then, as far as that matters.

        Args:
            key: the Workload.
            now: where this worker leads.
            shown: whether something of the Workload shows there.
        """
        then = self._known.get(key, _NOTHING).destination
        return then is None or then.is_same(now, shown=shown)

    def led_to(self, key: ObjectKey, now: Destination | None) -> None:
        """The same worker leads there still, maybe by another address; None: nothing of the Workload is left there, and
        what it leads to from now on does not matter."""
        known = self._of(key)
        if now is None or (was := known.destination) is None:
            known.destination = None
        else:
            known.destination = Destination(now.uid or was.uid, now.server)

    def last_worker(self, key: ObjectKey) -> ClusterName | None:
        """The worker that was recorded last."""
        return self._here_or_gone(key).last_worker

    def placement(self, key: ObjectKey) -> Placement | None:
        """The last placement: that of the worker that was recorded last."""
        return self._known.get(key, _NOTHING).placement

    def changed_there(self, key: ObjectKey) -> None:
        """Something of this Workload changed on a worker."""
        self.touched(key)
        if (known := self._known.get(key)) is not None and known.behind_since is None:
            known.behind_since = loop_time()

    def looked_at(self, key: ObjectKey) -> float | None:
        """A decision looks at the Workload; return since when something had changed on a worker, if it had."""
        known = self._known.get(key)
        if known is None:
            return None
        since, known.behind_since = known.behind_since, None
        return since

    def still_behind(self, key: ObjectKey, since: float) -> None:
        """The decision has put off what follows from that change."""
        if (known := self._known.get(key)) is not None:
            known.behind_since = since

    def sending(self, cluster: ClusterName, key: ObjectKey, job: ObjectKey) -> bool:
        """A creation of this job is about to be sent. Until there is an answer, the job may exist.

        Returns:
            Whether an earlier creation of it has no answer either: `not_created` is told.
        """
        sent = self._of(key).sent.setdefault(cluster, _Creations())
        still_unanswered = job in sent.unanswered
        sent.unanswered[job] = loop_time()
        return still_unanswered

    def created(self, cluster: ClusterName, key: ObjectKey, job: ObjectKey, of_attempt: str) -> None:
        """The worker answered that the job was created."""
        sent = self._sent(cluster, key)
        sent.unanswered.pop(job, None)
        sent.created = of_attempt

    def not_created(self, cluster: ClusterName, key: ObjectKey, job: ObjectKey, *, still_unanswered: bool) -> None:
        """The creation was refused, or never sent. An earlier one stays unanswered: its job may have the name."""
        if not still_unanswered:
            self._sent(cluster, key).unanswered.pop(job, None)

    def unanswered(self, cluster: ClusterName, key: ObjectKey, job: ObjectKey) -> None:
        """The creation has no answer: only what the worker shows from now on counts."""
        self._sent(cluster, key).unanswered[job] = loop_time()

    def all_shown(self, cluster: ClusterName, key: ObjectKey) -> None:
        """The jobs of unanswered creations would show on the worker by now: nothing is unanswered any more."""
        self._sent(cluster, key).unanswered.clear()

    def supplied(self, cluster: ClusterName, key: ObjectKey) -> tuple[str, ...]:
        """The UIDs of copies on a worker that own what the job needs there, as far as this process has seen to it."""
        return self._known.get(key, _NOTHING).supplied.get(cluster, ())

    def supply(self, cluster: ClusterName, key: ObjectKey, uid: str) -> None:
        """What the job needs is on a worker, and the copy of this UID owns it."""
        if (known := self._known.get(key)) is not None:
            known.supplied[cluster] = (*self.supplied(cluster, key), uid)[-_OWNERS:]

    def pods(self, cluster: ClusterName, key: ObjectKey, attempt: str) -> tuple[Json, ...] | None:
        """The pods on a worker that this attempt waits for; None: nobody has looked for them."""
        return self._known.get(key, _NOTHING).pods.get((cluster, attempt))

    def saw_pods(self, cluster: ClusterName, key: ObjectKey, attempt: str, pods: tuple[Json, ...]) -> None:
        """These pods are on a worker, and this attempt waits for their end."""
        if (known := self._known.get(key)) is not None:
            known.pods = {(cluster, attempt): pods}

    def pods_left(self, cluster: ClusterName, key: ObjectKey) -> None:
        """A job copy is gone from a worker, and pods of it may still end."""
        if (known := self._known.get(key) or self._gone.get(key)) is not None:
            known.pods_left_at[cluster] = loop_time()

    def pods_left_ago(self, cluster: ClusterName, key: ObjectKey) -> timedelta | None:
        """How long ago that was, on a worker that shows no job copy; None: it was not.

        What an earlier process has made there may have gone just before this one was connected.
        """
        known = self._here_or_gone(key)
        first = self._connected_at.get(cluster) if cluster == known.inherited else None
        at = known.pods_left_at.get(cluster, first)
        return None if at is None else timedelta(seconds=loop_time() - at)

    def reconnected(self, cluster: ClusterName) -> None:
        """The worker is connected, or again: what it shows first may be older than a creation without an answer."""
        self._connected_at.setdefault(cluster, loop_time())
        for known in (*self._known.values(), *self._gone.values()):
            if (sent := known.sent.get(cluster)) is not None:
                sent.unanswered.update(dict.fromkeys(sent.unanswered, loop_time()))

    def creation(self, cluster: ClusterName, key: ObjectKey, of_attempt: str, *, all_shown: bool = False) -> Creation:
        """What is known of creating this attempt's jobs on a worker; of several, the worst.

        Args:
            cluster: the worker.
            key: the Workload.
            of_attempt: its attempt.
            all_shown: whether what was created would show there by now.
        """
        known = self._here_or_gone(key)
        sent = known.sent.get(cluster)
        if sent is not None and sent.unanswered and not all_shown:
            job, since = max(sent.unanswered.items(), key=itemgetter(1))
            return Unanswered(timedelta(seconds=loop_time() - since), job.namespace)
        if sent is not None and sent.created == of_attempt:
            return Created()
        return NothingSent() if known.unrecorded_attempt == of_attempt else Untracked()

    def _sent(self, cluster: ClusterName, key: ObjectKey) -> _Creations:
        """What was sent there. For a Workload that nobody remembers: nothing, and nobody keeps what is noted."""
        return self._here_or_gone(key).sent.get(cluster, _Creations())

    def _here_or_gone(self, key: ObjectKey) -> _Remembered:
        return self._known.get(key) or self._gone.get(key, _NOTHING)

    def _of(self, key: ObjectKey) -> _Remembered:
        known = self._known.get(key)
        if known is None:
            self._missed.pop(key, None)
            known = self._gone.pop(key) if key in self._gone else _Remembered(0.0)
            known.touched_at, self._known[key] = loop_time(), known
        return known
