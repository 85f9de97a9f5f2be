"""To which workers a Workload may go, whoever nominates; and in which namespace of a worker its copies are.

A cordon is an annotation on a MultiKueueCluster: that worker gets nothing new. It is applied after nomination, so
whoever nominates: copies that no worker was recorded for are withdrawn there. What runs there stays: a recorded worker
keeps its job. A job cannot be split, so what belongs to a running one, as another part of a group or another slice of
an elastic job, goes to its worker all the same: cordoned, or not in the config any more, as at once when a Placement
does not select it. All but the first of several MultiKueueClusters that lead to one cluster are as if cordoned.

The namespace of its copies is chosen before the first one is made, and kept. The Workload itself says it
(`multikueue.dev/namespace-on`), so a process that starts knows it, and what a MultiKueueCluster says later moves
nothing. A creation is sent only once the caches show that its namespace is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model import workloads
from multikueue.core.model.labels import NAMESPACE_ON_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import dig, namespace_of, resource_version, uid
from multikueue.core.model.worker_names import is_copy_elsewhere, namespace_on, namespaces_on_workers, record_counts
from multikueue.core.workload.effects import MANAGER, CreateJob, CreateWorkload, PatchWorkload, Plan
from multikueue.core.workload.seen.situation import Situation, once
from multikueue.core.workload.seen.snapshot import Snapshot, Worker
from multikueue.errors import Cause

_CREATIONS: Final = (CreateWorkload, CreateJob)


def is_own_copy(situation: Situation) -> bool:
    """Whether it is a copy that we have made, because the manager is a worker, too: it belongs to its original.

    Those of a manager above this one are Workloads like any other, and so is what we have recorded a worker for: it is
    followed, whatever somebody has put on it since.
    """
    workload = situation.snapshot.workload
    if workload is None or situation.recorded_on is not None:
        return False
    elsewhere = is_copy_elsewhere(workload, situation.snapshot.key.namespace, situation.settings.origin)
    return elsewhere and situation.marks.are_on(workload)


@once
def withheld(situation: Situation) -> Mapping[ClusterName, Reason]:
    """The workers that are not offered the Workload although they were nominated, and why.

    Another reason for not offering is one more line of `_why_withheld`, and one more `Cause`: whoever nominates, the
    check says it then, and a dispatcher that gives reasons counts it.
    """
    reasons = ((worker, _why_withheld(situation, worker)) for worker in situation.workers)
    # Where its job is, it is recorded first, and may leave it then.
    return {worker.name: why for worker, why in reasons if why is not None and not _has_its_job(situation, worker)}


def _why_withheld(situation: Situation, worker: Worker) -> Reason | None:
    if situation.facts.leaves == worker.name:
        return Reason(Cause.BEING_MOVED)
    if worker.cordon:
        return Reason(Cause.SECOND_NAME if worker.second_of else Cause.CORDONED, worker.cordon)
    if nowhere := worker.names.why_none(situation.snapshot.key.namespace):
        return Reason(Cause.NAMESPACE_UNNAMED, nowhere)
    lost = worker.kueue.why_not_found(situation.workload)
    return Reason(Cause.NAME_TOO_LONG, lost) if lost else None


def _has_its_job(situation: Situation, worker: Worker) -> bool:
    """Whether this attempt's job is there without being recorded, or what it belongs to runs there."""
    jobs = filter(None, (*situation.jobs_on(worker), situation.shared_job_on(worker)))
    return any(situation.whose(worker, job).runs_for_it for job in jobs) or has_company(situation, worker)


def has_company(situation: Situation, worker: Worker) -> bool:
    """Whether what a Workload belongs to runs on a worker."""
    if worker.name in situation.group_workers:
        return True
    if not situation.facts.is_elastic or situation.any_job_on(worker) is None:
        return False
    having = map(workloads.cluster_name, filter(record_counts, situation.snapshot.siblings))
    return worker.name in having


def is_misplaced(situation: Situation, worker: Worker, copy: Json) -> bool:
    """Whether a copy without quota is where none would be made by now: in another namespace, or LocalQueue."""
    snapshot, names = situation.snapshot, worker.names
    if names.flaw or worker.facts.has_quota:
        return False
    here, there = (dig(either, "spec", "queueName") for either in (snapshot.workload, copy))
    moved = names.namespace(snapshot.key.namespace) not in ("", worker.namespace or snapshot.key.namespace)
    return (moved and worker.name not in snapshot.recorded_workers) or there != names.queues.get(here or "", here)


def with_places_written(situation: Situation, decided: Plan) -> Plan:
    """The plan without creations in namespaces that the Workload does not name yet, but with what writes them there.

    Nothing else is done on the manager then: it is decided anew once the note is seen. Of two writes made from the same
    version of the Workload the second is refused.
    """
    snapshot, workload = situation.snapshot, situation.snapshot.workload
    if workload is None:
        return decided
    if not (missing := dict((*_unsaid(snapshot, workload), *_unwritten(workload, decided)))):
        return decided
    on_workers = [effect for effect in decided.effects if effect.cluster != MANAGER]
    kept = [effect for effect in on_workers if effect.cluster not in missing or not isinstance(effect, _CREATIONS)]
    places = {**namespaces_on_workers(workload), **missing}
    places = {name: there for name, there in places.items() if there != snapshot.key.namespace}
    noted = json.dumps(places, sort_keys=True) if places else None
    # The whole of it is written: what another process has written meanwhile must not go.
    metadata: Json = {"uid": uid(workload), "resourceVersion": resource_version(workload)}
    metadata["annotations"] = {NAMESPACE_ON_ANNOTATION: noted}
    write = PatchWorkload(MANAGER, snapshot.key, {"metadata": metadata})
    return attrs.evolve(decided, effects=(*kept, write))


def _unsaid(snapshot: Snapshot, workload: Json) -> Iterator[tuple[str, str]]:
    """The recorded worker's namespace that others of the job say, for a slice that Kueue gave its worker.

    Once those are gone, nothing but its own note would tell where its copies belong.
    """
    name = workloads.cluster_name(workload)
    if name is None or not snapshot.siblings or not workloads.is_live(workload):
        return
    worker, said = snapshot.worker(name), namespace_on(workload, name, snapshot.siblings)
    if worker is not None and worker.namespace == said != namespace_on(workload, name):
        yield name, said


def _unwritten(workload: Json, decided: Plan) -> Iterator[tuple[str, str]]:
    for effect in decided.effects:
        if isinstance(effect, _CREATIONS):
            namespace = namespace_of(effect.object)
            if namespace != namespace_on(workload, effect.cluster):
                yield effect.cluster, namespace
