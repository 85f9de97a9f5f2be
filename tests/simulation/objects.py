"""Looking into a cluster's store, past every API: what is really there."""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of
from tests.simulation.world import SimCluster

ORIGIN = "multikueue"


def objects(cluster: SimCluster, resource: Resource) -> Iterator[Json]:
    """All objects of a kind on a cluster."""
    row = cluster.registry.type_of(resource)
    for entry in list(cluster.registry.cluster.store.bucket((row.group, row.plural)).objects.values()):
        yield entry.obj


def find(cluster: SimCluster, resource: Resource, key: ObjectKey) -> Json | None:
    """One object, or None."""
    row = cluster.registry.type_of(resource)
    entry = cluster.registry.cluster.store.get((row.group, row.plural), (key.namespace, key.name))
    return None if entry is None else entry.obj


def is_ours(copy: Json) -> bool:
    """Whether it carries our origin label."""
    return labels_of(copy).get(ORIGIN_LABEL) == ORIGIN


def runs(job: Json) -> bool:
    """Whether pods of a Job run."""
    return bool(dig(job, "status", "active")) and not dig(job, "spec", "suspend") and not has_ended(job)


def has_ended(job: Json) -> bool:
    """Whether a Job is over."""
    return is_true(job, "Complete") or is_true(job, "Failed")


def jobs_running_on(cluster: SimCluster) -> list[ObjectKey]:
    """The Jobs of ours that run there."""
    return sorted(ObjectKey.of(job) for job in objects(cluster, JOB) if is_ours(job) and runs(job))
