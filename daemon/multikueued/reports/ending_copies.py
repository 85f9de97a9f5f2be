"""Job copies of ours on a worker that may have pods: what keeps each of them there, in words, and the way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.giving_up import is_given_up
from multikueue.core.model.labels import GIVE_UP_ANNOTATION, GIVE_UP_BEFORE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.outside_text import plain
from multikueued.reports.remedies.remedy import filled

_GIVE_UP: Final = GIVE_UP_ANNOTATION + "={worker}/{uid}"
MOST_NAMED: Final = 3
"""Pods of one job copy that are named: they have one cause as a rule."""


@attrs.frozen
class LatePod:
    """A pod that has not ended although its grace period is over."""

    name: str
    node: str
    """Empty: it is on none."""
    due: datetime
    """When its grace period was over."""

    def __str__(self) -> str:
        node = f" on node {plain(self.node)}" if self.node else ""
        why = ": the node may be down" if self.node else ""
        return f"pod {plain(self.name)}{node} should have ended at {timestamp(self.due)}{why}"


def held_by(finalizers: Sequence[str]) -> str:
    """Which finalizers hold an object, in words."""
    return f"held by the finalizer{'' if len(finalizers) == 1 else 's'} {', '.join(map(plain, finalizers))}"


@attrs.frozen
class EndingCopy:
    """A job copy that has not ended, or whose pods may still end."""

    kind: str
    key: ObjectKey
    """On the worker."""
    uid: str
    created: datetime | None
    deleted: datetime | None
    """When somebody has deleted it; of a pod, when its grace period was over. None: nobody has."""
    due: datetime | None = None
    """When its pods should have ended, and a minute; None: nobody has deleted it."""
    finalizers: tuple[str, ...] = ()
    """Those that hold it, but for Kubernetes' own."""
    workload: ObjectKey | None = None
    """The manager's Workload that it was made for, if it says that."""
    pods: tuple[LatePod, ...] = ()
    """Those of its pods that should have ended; they are looked for once it is overdue."""
    pods_unseen: str = ""
    """Why its pods could not be looked for; empty: they could, or it is not overdue."""
    orphaned: bool = False
    """Whether its Workload is gone from the manager for a while, and nobody has deleted it."""

    def __str__(self) -> str:
        return plain(f"{self.kind} {self.key} (UID {self.uid})")

    def is_overdue(self, now: datetime) -> bool:
        """Whether it is there for longer than its pods may need to end, and a minute."""
        return self.orphaned or (self.due is not None and self.due <= now)

    def is_given_up(self, worker: str, cluster: Json, workloads: Iterable[Json]) -> bool:
        """Whether somebody has said that nobody waits for it: on its worker's MultiKueueCluster, or on one of these
        Workloads of the manager.
        """
        own = [workload for workload in workloads if ObjectKey.of(workload) == self.workload]
        return is_given_up(self.uid, self.created, worker, annotations_of(cluster), own)

    def why(self, now: datetime) -> str:
        """What it waits for, or who holds it."""
        if self.orphaned:
            return "its Workload is gone, and it was not deleted: a webhook or a permission there may refuse that"
        if self.deleted is None:
            return "nobody has deleted it, and it may run"
        deletion = f"deleted at {timestamp(self.deleted)}"
        if not self.is_overdue(now):
            return f"{deletion}, its pods have until {timestamp(self.due)} to end" if self.due is not None else deletion
        return "; ".join([f"{deletion}, should have ended at {timestamp(self.due or self.deleted)}", *self._holders()])

    def _holders(self) -> Iterator[str]:
        """What holds it: there is always something to look at."""
        if self.finalizers:
            yield held_by(self.finalizers)
        yield from map(str, self.pods[:MOST_NAMED])
        if len(self.pods) > MOST_NAMED:
            yield f"and {len(self.pods) - MOST_NAMED} more such pods"
        if self.pods_unseen:
            yield f"its pods are not known: {self.pods_unseen}"

    def way_out(self, worker: str, *, known: bool) -> str:
        """What to do about one that is overdue.

        Args:
            worker: the name of the worker that it is on.
            known: whether its Workload is still on the manager.
        """
        if self.orphaned:
            log = "the daemon's log says what the worker answers (deletion refused): let it delete that, or delete it"
            return f"{log} there; if nothing of it runs, {self._given_up(worker, known=known)}"
        look = "look at that node" if any(pod.node for pod in self.pods) else "look at the node of its pods"
        if self.finalizers:
            look = "look at what the finalizer waits for" if not self.pods else f"{look}, and at the finalizer"
        return f"{look}; if nothing of it runs, {self._given_up(worker, known=known)}"

    def _given_up(self, worker: str, *, known: bool) -> str:
        if known and self.workload is not None:
            words = {"worker": worker, "uid": self.uid, "ns": self.workload.namespace, "name": self.workload.name}
            return filled("give it up: kubectl -n {ns} annotate workload {name} " + _GIVE_UP, words)
        before = timestamp(self.created + timedelta(seconds=1)) if self.created is not None else "TIME"
        annotation = f"{GIVE_UP_BEFORE_ANNOTATION}={before} --overwrite"
        command = filled(f"kubectl annotate multikueuecluster {{worker}} {annotation}", {"worker": worker})
        return f"give up what was made there until then: {command}"
