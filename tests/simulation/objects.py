"""Looking into a cluster's store, past every API: what is really there."""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model.conditions import is_true
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of
from tests.simulation.own import is_there
from tests.simulation.world import DAEMON, SimCluster

ORIGIN = "multikueue"
IMPOSTOR_LABEL = "example.com/impostor"
"""On what users of a worker have made under the names of ours; see `impostors`."""
MARKS = Marks(b"of the simulation")
"""By which the daemon marks its copies."""


def objects(cluster: SimCluster, resource: Resource) -> Iterator[Json]:
    """All objects of a kind on a cluster."""
    row = cluster.registry.type_of(resource)
    for entry in list(cluster.registry.cluster.store.bucket((row.group, row.plural)).objects.values()):
        if not (cluster.name == "manager" and is_there(entry.obj)):
            yield entry.obj


def find(cluster: SimCluster, resource: Resource, key: ObjectKey) -> Json | None:
    """One object, or None."""
    row = cluster.registry.type_of(resource)
    entry = cluster.registry.cluster.store.get((row.group, row.plural), (key.namespace, key.name))
    return None if entry is None else entry.obj


def is_ours(copy: Json) -> bool:
    """Whether it carries our origin label, and no impostor has put it there."""
    labels = labels_of(copy)
    return labels.get(ORIGIN_LABEL) == ORIGIN and IMPOSTOR_LABEL not in labels


def is_made_by_daemon(obj: Json) -> bool:
    """Whether the daemon has made an object that has just been made, whatever labels it carries; not over HTTP."""
    return any(entry.get("manager") == DAEMON for entry in dig(obj, "metadata", "managedFields") or ())


def is_of_present_attempt(cluster: SimCluster, copy: Json, workload: Json) -> bool:
    """Whether the daemon has made a copy on a worker for the attempt that the manager's Workload is in."""
    return any(MARKS.proof(copy, workload, name) is Proof.EXACT for name in (cluster.name, *cluster.names))


def has_ended(job: Json) -> bool:
    """Whether a Job is over."""
    return is_true(job, "Complete") or is_true(job, "Failed")
