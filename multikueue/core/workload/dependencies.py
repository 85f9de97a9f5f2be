"""Which of a plan's steps need something done about the dependencies of the job, before or after them.

A worker is asked before it is offered a job. ResourceClaimTemplates are made with the Workload copy, as its Kueue reads
them before it gives quota; ConfigMaps before the job. Both go with the Workload copy, and with the job copy as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from multikueue.core.model.dependencies import RESOURCE_CLAIM_TEMPLATE, Dependency, DependencyMark, dependencies_of
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import is_terminating, namespace_of, reference_to, uid
from multikueue.core.workload import effects
from multikueue.core.workload.effects import Effect, Plan
from multikueue.core.workload.seen.situation import Situation
from multikueue.core.workload.seen.snapshot import Worker

_CHANGES: Final = (effects.CreateWorkload, effects.CreateJob, effects.DeleteWorkload, effects.DeleteJob)


def with_dependencies(situation: Situation, decided: Plan) -> Plan:
    """The plan with what must be done so that the job finds on its worker what it needs."""
    needed = _needed(situation)
    if not needed:
        return decided
    steps = (*_beside(situation, needed, decided.effects), *_missing(situation, needed, decided.effects))
    return attrs.evolve(decided, effects=steps)


def _needed(situation: Situation) -> tuple[Dependency, ...]:
    """What is copied or looked for, of what the job needs."""
    kinds = situation.settings.dependencies.get(situation.snapshot.config)
    if not kinds or situation.snapshot.workload is None or not situation.facts.goes_on:
        return ()
    job = situation.job
    named = situation.adapter.config_maps(job) if job is not None else ()
    return tuple(dependency for dependency in dependencies_of(situation.workload, named) if dependency.kind in kinds)


def _beside(situation: Situation, needed: tuple[Dependency, ...], steps: tuple[Effect, ...]) -> Iterator[Effect]:
    """The effects of a plan, with what must be done before or after each."""
    with_job: set[ClusterName] = set()
    for effect in steps:
        match effect:
            case effects.CreateWorkload(cluster, made):
                namespace = namespace_of(made)
                if not _runs_there(situation, cluster):
                    yield effects.CheckDependencies(cluster, namespace, needed, _mark(situation, cluster, namespace))
                yield effect
                yield from _create(situation, cluster, ObjectKey.of(made), _claims(needed))
            case effects.CreateJob(cluster, _, made) if cluster not in with_job:
                with_job.add(cluster)  # the pods of a group need the same
                copy = ObjectKey(namespace_of(made), situation.snapshot.key.name)
                yield from _create(situation, cluster, copy, needed)
                yield effect
            case _:
                yield effect


def _missing(situation: Situation, needed: tuple[Dependency, ...], steps: tuple[Effect, ...]) -> Iterator[Effect]:
    """What an earlier plan could not do, or this process does not know of."""
    copied = tuple(dependency for dependency in needed if dependency.is_copied)
    changed = {step.cluster for step in steps if isinstance(step, _CHANGES)}
    for worker in situation.workers if copied else ():
        copy = situation.this_copy(worker)
        if copy is None or is_terminating(copy) or not worker.in_sight or worker.name in changed:
            continue
        key = ObjectKey.of(copy)
        job = _owning_job(situation, worker)
        if job is None and uid(copy) not in worker.supplied:
            yield from _create(situation, worker.name, key, _claims(needed))
        elif job is not None and uid(job) not in worker.supplied:
            owner = reference_to(job, situation.adapter.resource.gvk)
            mark = _mark(situation, worker.name, key.namespace)
            yield effects.OwnDependencies(worker.name, key.namespace, copied, mark, owner)


def _runs_there(situation: Situation, cluster: ClusterName) -> bool:
    """Whether its job is there: a slice or a part of a group joins it, with what it has."""
    worker = situation.snapshot.worker(cluster)
    return worker is not None and bool(worker.jobs or worker.shared)


def _owning_job(situation: Situation, worker: Worker) -> Json | None:
    """The job copy there. What the pods of a group need goes with their Workload alone: they may be thousands."""
    job = situation.any_job_on(worker)
    if job is None or situation.facts.has_members or not situation.whose(worker, job).runs_for_it:
        return None
    return job


def _create(
    situation: Situation, cluster: ClusterName, copy: ObjectKey, needed: tuple[Dependency, ...]
) -> Iterator[effects.CreateDependencies]:
    if copied := tuple(dependency for dependency in needed if dependency.is_copied):
        mark, origin = _mark(situation, cluster, copy.namespace), situation.settings.origin
        yield effects.CreateDependencies(cluster, copy.namespace, copied, mark, copy.name, origin)


def _claims(needed: tuple[Dependency, ...]) -> tuple[Dependency, ...]:
    return tuple(dependency for dependency in needed if dependency.resource == RESOURCE_CLAIM_TEMPLATE)


def _mark(situation: Situation, cluster: ClusterName, namespace: str) -> DependencyMark:
    return DependencyMark.of(situation.settings.mark_key, cluster, namespace)
