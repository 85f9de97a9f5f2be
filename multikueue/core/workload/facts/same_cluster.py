"""Several MultiKueueClusters that lead to one cluster: for each Workload one of them counts.

All of them show the same objects there, and a mark is made for one worker's name. So each would take the others' copies
for some of an earlier attempt, and remove what runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import attrs

from multikueue.core.model.marks import Proof
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import uid
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import CheckState, check_state, nominated
from multikueue.core.workload.facts.places import holders, namespace_for
from multikueue.core.workload.facts.possible_runs import assumed_for
from multikueue.core.workload.facts.snapshot import Snapshot, Worker

if TYPE_CHECKING:
    from multikueue.core.workload.facts.situation import Situation

SHOWN_BY: Final = timedelta(minutes=2)
"""After so long without a change all names of a cluster show the same: a watch without events is found out before."""


def one_of_each_cluster(snapshot: Snapshot) -> Snapshot:
    """The snapshot with one of those workers that lead to one namespace of one cluster.

    It is the one that has the Workload, or others of its job, also while it is evicted; else one that it is offered to;
    else the first of the config that is connected and not cordoned.
    """
    if sum(bool(worker.cluster_uid) for worker in snapshot.workers) < 2:
        return snapshot
    having, asked = (*_having(snapshot),), nominated(snapshot.workload or {})

    def rank(worker: Worker) -> tuple[bool, ...]:
        usable = not worker.configured, bool(worker.cordon), not worker.reachable
        return worker.name not in having, worker.name not in asked, *usable

    first: dict[tuple[str, str], Worker] = {}
    kept: dict[str, Worker] = {}
    for worker in sorted(snapshot.workers, key=rank):
        counts = first.setdefault((worker.cluster_uid or worker.name, namespace_for(snapshot, worker)), worker)
        if counts is not worker and _shows_alone(snapshot, worker, counts):
            kept[worker.name] = attrs.evolve(worker, configured=False)
    kept.update((worker.name, worker) for worker in first.values())
    return attrs.evolve(snapshot, workers=tuple(kept[one.name] for one in snapshot.workers if one.name in kept))


def _shows_alone(snapshot: Snapshot, worker: Worker, other: Worker) -> bool:
    """Whether a worker shows a Workload copy that the other one would show by now, if they were one cluster.

    The UID of a cluster may lie: those that were made from one image have the same.
    """
    if worker.workload is None or not (worker.reachable and other.reachable) or other.unreadable:
        return False
    if snapshot.quiet_for < SHOWN_BY:
        return False
    if (worker.namespace or snapshot.key.namespace) != (other.namespace or snapshot.key.namespace):
        return False
    return other.workload is None or uid(other.workload) != uid(worker.workload)


def _having(snapshot: Snapshot) -> Iterator[str | None]:
    yield from holders(snapshot)
    if (workload := snapshot.workload) is None:
        return
    facts = WORKLOADS.of(workload)
    offered = facts.has_quota and not facts.is_evicted
    if not offered or (snapshot.check and check_state(workload, snapshot.check) is CheckState.READY):
        yield from (snapshot.last_worker, facts.noted_worker)


def may_be_of(situation: Situation, worker: Worker, name: ClusterName | None, copy: Json) -> bool:
    """Whether a copy is one that we have made for this attempt on another worker, which may be this one's cluster.

    Args:
        situation: the Workload.
        worker: where the copy shows.
        name: of the other worker, if there is one.
        copy: the Workload's, or its job's.
    """
    other = situation.snapshot.worker(name) if name is not None else None
    if name in (None, worker.name) or (worker.identified and other is not None and other.identified):
        return False
    made_for = (situation.workload, *situation.snapshot.siblings)  # slices share their job
    return any(situation.marks.proof(copy, one, name) is Proof.EXACT for one in made_for)


def may_show(situation: Situation, worker: Worker, copy: Json) -> bool:
    """Whether a worker shows that object, or may: one that is out of sight, for as long as it is waited for."""
    if not worker.in_sight:
        return assumed_for(situation, worker) > timedelta(0)
    shown = (worker.workload, *(one.object for one in (*worker.jobs, *worker.shared)))
    return any(one is not None and uid(one) == uid(copy) for one in shown)
