"""Where a Workload may go: to which workers, and in which namespace of each.

The namespace of its copies is chosen before the first one is made, and kept.

The Workload itself says it (`multikueue.dev/namespace-on`), so a process that starts knows it, and what a
MultiKueueCluster says later moves nothing. A creation is sent only once the caches show that its namespace is written.

A cordon is an annotation on a MultiKueueCluster: that worker gets nothing new. It is applied after nomination, so
whoever nominates: copies that no worker was recorded for are withdrawn there. What runs there stays: a recorded worker
keeps its job. A job cannot be split, so what belongs to a running one, as another part of a group or another slice of
an elastic job, goes to its worker all the same: cordoned, or not in the config any more, as at once when a Placement
does not select it.

Several MultiKueueClusters may lead to one cluster. All but the first get nothing new, as if they were cordoned. All of
them show the same objects there, and a mark is made for one worker's name: so each copy counts on one of them.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.labels import MAX_LABEL_VALUE, NAMESPACE_ON_ANNOTATION, NAMESPACES_ANNOTATION
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, namespace_of, resource_version, uid
from multikueue.core.model.worker_names import is_copy_elsewhere, may_run, namespace_on, namespaces_on_workers
from multikueue.core.workload.effects import MANAGER, CreateJob, CreateWorkload, PatchWorkload, Plan
from multikueue.core.workload.facts.snapshot import PlanSettings, Snapshot, Worker
from multikueue.core.workload.facts.worker_states import Idle, Unanswered

if TYPE_CHECKING:
    from multikueue.core.workload.facts.situation import Situation

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
    here, there = (dig(one, "spec", "queueName") for one in (snapshot.workload, copy))
    elsewhere = names.namespace(own) not in ("", worker.namespace or own) and worker.name not in holders(snapshot)
    return elsewhere or there != names.queues.get(here or "", here)


def holders(snapshot: Snapshot) -> set[str]:
    """The workers that have the Workload, or others of its job."""
    sharing = (snapshot.workload or {}, *filter(may_run, snapshot.siblings))
    return {name for one in sharing if (name := workloads.cluster_name(one)) is not None}


def without_foreign(snapshot: Snapshot, mark_key: bytes) -> Snapshot:
    """The snapshot without copies that nothing proves, where the worker gives their namespace to somebody else.

    A worker that had the Workload before its namespaces were named keeps it: there they count as everywhere. Of a
    Workload that was never seen here it is without what has another key's mark: another manager may have this origin.
    """
    workload, marks = snapshot.workload, Marks(mark_key)
    if workload is None:
        if snapshot.was_here:
            return snapshot
        workers = (_with(one, lambda copy: not marks.are_anothers(copy)) for one in snapshot.workers)
        return attrs.evolve(snapshot, workers=tuple(workers))
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
        return _with(worker, lambda copy: marks.proof(copy, workload, worker.name, of_attempt) is not Proof.NONE)

    return attrs.evolve(snapshot, workers=tuple(map(seen, snapshot.workers)))


def _with(worker: Worker, counts: Callable[[Json], bool]) -> Worker:
    """The worker with those copies that count."""
    kept = worker.workload if worker.workload is not None and counts(worker.workload) else None
    jobs, shared = (tuple(one for one in listed if counts(one.object)) for listed in (worker.jobs, worker.shared))
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
    on_workers = [one for one in decided.effects if one.cluster != MANAGER]
    kept = [one for one in on_workers if one.cluster not in missing or not isinstance(one, _CREATIONS)]
    places = namespaces_on_workers(workload)
    places.update(missing)
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


LEAVING = "the job is being moved away from it"
"""Why a worker is not offered a Workload that shall leave it."""


def why_withheld(situation: Situation, worker: Worker) -> str:
    """Why a worker is not offered the Workload although it was nominated; empty: it may be. `Situation.withheld` keeps
    it for one decision."""
    why = LEAVING if situation.facts.leaves == worker.name else worker.hold
    nowhere = worker.names.why_none(situation.snapshot.key.namespace)  # there is no namespace for it
    why = why or nowhere or _why_not_found(situation, worker)
    return "" if not why or _has_its_job(situation, worker) else why  # its job is recorded first, and may leave it then


def _why_not_found(situation: Situation, worker: Worker) -> str:
    """Why a job there would not find its Workload, and run without it; empty: it would. Groups look for none."""
    if not worker.kueue.loses_long_names or len(situation.snapshot.key.name) <= MAX_LABEL_VALUE:
        return ""
    if situation.facts.has_members or situation.facts.component_index is not None:
        return ""
    return f"{worker.kueue.name} there has no room for the name of its Workload: upgrade it, or shorten the job's name"


def _has_its_job(situation: Situation, worker: Worker) -> bool:
    """Whether this attempt's job is there without being recorded, or what it belongs to runs there."""
    shared = situation.shared_job_on(worker)
    if situation.has_job(worker) or (shared is not None and situation.is_current(worker, shared)):
        return True
    return has_company(situation, worker)


def has_company(situation: Situation, worker: Worker) -> bool:
    """Whether what a Workload belongs to runs on a worker."""
    if worker.name in situation.group_workers:
        return True
    if not situation.facts.is_elastic:
        return False
    if not situation.jobs_on(worker) and situation.shared_job_on(worker) is None:
        return False
    slices = [one for one in situation.snapshot.siblings if workloads.is_replaced(one) or workloads.is_live(one)]
    return any(workloads.cluster_name(one) == worker.name for one in slices)


def with_company(situation: Situation) -> Situation:
    """The situation in which a worker that has left the config counts as configured where the rest of the job runs.

    One whose MultiKueueCluster is gone does not: it is kept for what it runs, and gets nothing more.
    """
    if situation.snapshot.workload is None or not situation.snapshot.siblings:
        return situation
    if not situation.facts.is_live or situation.facts.is_evicted:
        return situation
    joined = tuple(
        attrs.evolve(one, configured=True) if _may_join(situation, one) else one for one in situation.workers
    )
    if joined == situation.workers:
        return situation
    return attrs.evolve(situation, snapshot=attrs.evolve(situation.snapshot, workers=joined))


def _may_join(situation: Situation, worker: Worker) -> bool:
    return not worker.configured and not worker.removed and has_company(situation, worker)


def with_own_copies(situation: Situation) -> Situation:
    """The situation in which each copy shows on one worker only, though several lead to its cluster, or may.

    It is the one that a copy of this attempt was made for: nothing is removed through another one while the Workload
    goes on there, or that may lead there. What else there is shows on the one that has the Workload, else on the first.
    """
    workers = tuple(_without_others(situation, worker) for worker in situation.workers)
    if all(map(operator.is_, workers, situation.workers)):
        return situation
    return attrs.evolve(situation, snapshot=attrs.evolve(situation.snapshot, workers=workers))


def _without_others(situation: Situation, worker: Worker) -> Worker:
    """The worker without what shows on others. It gets nothing of the Workload while that is there."""
    elsewhere = {
        id(copy): on for copy in worker.copies if (on := _shown_elsewhere(situation, worker, copy)) is not None
    }
    if not elsewhere:
        return worker
    seen = _with(worker, lambda copy: id(copy) not in elsewhere)
    return attrs.evolve(seen, second_of=next(iter(elsewhere.values())).name)


def _shown_elsewhere(situation: Situation, worker: Worker, copy: Json) -> Worker | None:
    """On which other worker a copy shows; None: on this one."""
    if _was_made_for(situation, worker, copy):
        return None
    having = {*_having(situation)}
    made_for = next((one for one in situation.workers if _was_made_for(situation, one, copy)), None)
    if made_for is not None:
        unknown = not (made_for.removed or (worker.identified and made_for.identified))
        goes_on = made_for.name in having and situation.snapshot.workload is not None and situation.facts.is_live
        return made_for if unknown or goes_on or _are_one(worker, made_for) else None

    def rank(one: Worker) -> tuple[bool, ...]:
        return one.name not in having, not one.reachable, bool(one.second_of)

    first = min((one for one in situation.workers if _are_one(one, worker)), key=rank)
    shows = first.name in having or any(uid(one) == uid(copy) for one in first.copies)
    return first if shows and first is not worker else None


def _was_made_for(situation: Situation, worker: Worker, copy: Json) -> bool:
    """Whether we have made a copy on that worker, for this attempt or for another slice that shares the job."""
    of = (situation.snapshot.workload, *situation.snapshot.siblings)
    return any(situation.marks.proof(copy, one, worker.name) is Proof.EXACT for one in filter(None, of))


def _are_one(one: Worker, other: Worker) -> bool:
    """Whether two workers are known to lead to one cluster, or are one."""
    return (one.second_of or one.name) == (other.second_of or other.name)


def _having(situation: Situation) -> Iterator[str | None]:
    """The workers that have the Workload, or others of its job, or had it last, unless it is offered anew."""
    yield from holders(situation.snapshot)
    if situation.snapshot.workload is not None:
        ready = situation.snapshot.check is not None and situation.state is workloads.CheckState.READY
        if ready or situation.facts.is_evicted or not situation.facts.has_quota:
            yield from (situation.snapshot.last_worker, situation.facts.noted_worker)
