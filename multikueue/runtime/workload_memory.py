"""What this process remembers of Workloads between reconciles. After a restart the plan is safe without it."""

from __future__ import annotations

from datetime import timedelta

import attrs

from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.workloads import attempt, cluster_name, has_quota, is_evicted
from multikueue.core.workload.snapshot import Created, Creation, NothingSent, Unanswered, Untracked
from multikueue.runtime.loop import loop_time


@attrs.frozen
class _Sent:
    """A creation that was sent to a worker."""

    attempt: str
    at: float
    answered: bool


@attrs.define(eq=False)
class _Remembered:
    touched_at: float
    last_worker: ClusterName | None = None
    unrecorded_attempt: str | None = None
    """The attempt that was seen before a worker was recorded for it."""
    sent: dict[ClusterName, _Sent] = attrs.field(factory=dict)


@attrs.define(eq=False)
class WorkloadMemory:
    """By Workload of the manager: when it changed, which worker had it, and which creations were sent."""

    _known: dict[ObjectKey, _Remembered] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._known)

    def touched(self, key: ObjectKey) -> None:
        """Something of this Workload changed, here or on a worker."""
        self._of(key).touched_at = loop_time()

    def forget(self, key: ObjectKey) -> None:
        """The Workload is gone."""
        self._known.pop(key, None)

    def quiet_for(self, key: ObjectKey) -> timedelta:
        """How long nothing of this Workload has changed."""
        return timedelta(seconds=loop_time() - self._of(key).touched_at)

    def observe(self, key: ObjectKey, workload: Json) -> None:
        """Note the worker recorded for the Workload, or that none is recorded for this attempt."""
        known, recorded = self._of(key), cluster_name(workload)
        if recorded is not None:
            known.last_worker = ClusterName(recorded)
        elif has_quota(workload) and not is_evicted(workload):
            known.unrecorded_attempt = attempt(workload)

    def last_worker(self, key: ObjectKey) -> ClusterName | None:
        """The worker that was recorded last."""
        return self._of(key).last_worker

    def sending(self, cluster: ClusterName, key: ObjectKey, of_attempt: str) -> None:
        """A creation is about to be sent. Until there is an answer, the job may exist."""
        self._of(key).sent[cluster] = _Sent(of_attempt, loop_time(), answered=False)

    def created(self, cluster: ClusterName, key: ObjectKey) -> None:
        """The worker answered that the job was created."""
        sent = self._of(key).sent
        sent[cluster] = attrs.evolve(sent[cluster], at=loop_time(), answered=True)

    def not_created(self, cluster: ClusterName, key: ObjectKey) -> None:
        """The creation was refused, or never left."""
        self._of(key).sent.pop(cluster, None)

    def unanswered(self, cluster: ClusterName, key: ObjectKey) -> None:
        """The creation has no answer: only what the worker shows from now on counts."""
        sent = self._of(key).sent
        sent[cluster] = attrs.evolve(sent[cluster], at=loop_time())

    def reconnected(self, cluster: ClusterName) -> None:
        """The worker is connected again: what it shows first may be older than a creation without an answer."""
        for known in self._known.values():
            sent = known.sent.get(cluster)
            if sent is not None and not sent.answered:
                known.sent[cluster] = attrs.evolve(sent, at=loop_time())

    def creation(self, cluster: ClusterName, key: ObjectKey, of_attempt: str) -> Creation:
        """What is known of creating this attempt's job on a worker."""
        known = self._of(key)
        sent = known.sent.get(cluster)
        if sent is not None and not sent.answered:
            return Unanswered(timedelta(seconds=loop_time() - sent.at))
        if sent is not None and sent.attempt == of_attempt:
            return Created()
        return NothingSent() if known.unrecorded_attempt == of_attempt else Untracked()

    def _of(self, key: ObjectKey) -> _Remembered:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Remembered(loop_time())
        return known
