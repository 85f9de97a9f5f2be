"""In which namespace of a worker the copies of a Workload are.

The namespace of its copies is chosen before the first one is made, and kept.

The Workload itself says it (`multikueue.dev/namespace-on`), so a process that starts knows it, and what a
MultiKueueCluster says later moves nothing. A creation is sent only once the caches show that its namespace is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.labels import NAMESPACE_ON_ANNOTATION, NAMESPACES_ANNOTATION
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, namespace_of, resource_version, uid
from multikueue.core.model.worker_names import is_copy_elsewhere, may_run, namespace_on, namespaces_on_workers
from multikueue.core.workload.effects import MANAGER, CreateJob, CreateWorkload, PatchWorkload, Plan
from multikueue.core.workload.facts.snapshot import PlanSettings, Snapshot, Worker
from multikueue.core.workload.facts.worker_states import Idle, Unanswered

_CREATIONS: Final = (CreateWorkload, CreateJob)


def is_own_copy(snapshot: Snapshot, settings: PlanSettings) -> bool:
    """Whether it is a copy that we have made, because the manager is a worker, too: it belongs to its original.

    Those of a manager above this one are Workloads like any other, and so is what we have recorded a worker for: it is
    followed, whatever somebody has put on it since.
    """
    workload = snapshot.workload
    if (
        workload is None
        or workloads.cluster_name(workload) is not None
        or not is_copy_elsewhere(workload, snapshot.key.namespace, settings.origin)
    ):
        return False
    return Marks(settings.mark_key).are_on(workload)


def namespace_for(snapshot: Snapshot, worker: Worker) -> str:
    """The namespace on a worker for new copies: that of what is there, or may be, else what it is called now."""
    looked_at = worker.namespace or snapshot.key.namespace
    if worker.workload is not None or worker.jobs or worker.shared:
        return looked_at
    if isinstance(worker.creation, Unanswered):
        return worker.creation.namespace or looked_at  # somebody may have removed what the Workload said
    proven = worker.namespace_proven or looked_at == snapshot.key.namespace
    stays = (proven and worker.name in holders(snapshot)) or not isinstance(worker.in_flight, Idle)
    return looked_at if stays else worker.names.namespace(snapshot.key.namespace) or looked_at


def is_misplaced(snapshot: Snapshot, worker: Worker, copy: Json) -> bool:
    """Whether a copy without quota is where none would be made by now: in another namespace, or LocalQueue."""
    names, own = worker.names, snapshot.key.namespace
    if names.flaw or worker.copy.has_quota:
        return False
    here, there = (dig(either, "spec", "queueName") for either in (snapshot.workload, copy))
    elsewhere = names.namespace(own) not in ("", worker.namespace or own) and worker.name not in holders(snapshot)
    return elsewhere or there != names.queues.get(here or "", here)


def holders(snapshot: Snapshot) -> set[str]:
    """The workers that have the Workload, or others of its job."""
    sharing = (snapshot.workload or {}, *filter(may_run, snapshot.siblings))
    return {name for sharer in sharing if (name := workloads.cluster_name(sharer)) is not None}


def without_foreign(snapshot: Snapshot, mark_key: bytes) -> Snapshot:
    """The snapshot without copies that nothing proves, where the worker gives their namespace to somebody else.

    A worker that had the Workload before its namespaces were named keeps it: there they count as everywhere. Of a
    Workload that was never seen here it is without what has another key's mark: another manager may have this origin.
    """
    workload, marks = snapshot.workload, Marks(mark_key)
    if workload is None:
        if snapshot.was_here:
            return snapshot
        return snapshot.with_workers(lambda worker: with_copies(worker, lambda copy: not marks.are_anothers(copy)))
    if not any(NAMESPACES_ANNOTATION in worker.annotations for worker in snapshot.workers):
        return snapshot
    last = (workloads.cluster_name(workload), snapshot.last_worker, workloads.noted_worker(workload))
    had = {*filter(None, last), *namespaces_on_workers(workload)}
    of_attempt = workloads.attempt(workload)

    def seen(worker: Worker) -> Worker:
        looked_at = worker.namespace or snapshot.key.namespace
        names = worker.names
        if worker.name in had or names.flaw or names.namespace(snapshot.key.namespace) == looked_at:
            return worker
        return with_copies(worker, lambda copy: marks.proof(copy, workload, worker.name, of_attempt) is not Proof.NONE)

    return snapshot.with_workers(seen)


def with_copies(worker: Worker, counts: Callable[[Json], bool]) -> Worker:
    """The worker with those copies that count."""
    kept = worker.workload if worker.workload is not None and counts(worker.workload) else None
    jobs, shared = (tuple(job for job in listed if counts(job.object)) for listed in (worker.jobs, worker.shared))
    return attrs.evolve(worker, workload=kept, jobs=jobs, shared=shared)


def with_places_written(snapshot: Snapshot, decided: Plan) -> Plan:
    """The plan without creations in namespaces that the Workload does not name yet, but with what writes them there.

    Nothing else is done on the manager then: it is decided anew once the note is seen. Of two writes made from the same
    version of the Workload the second is refused.
    """
    workload = snapshot.workload
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
