"""What becomes of a job while it is created: `managedBy` is filled in if its queue leads to worker clusters.

Pods, which have no such field, can get our scheduling gate instead.

Kueue's own rule (`ApplyDefaultForManagedBy`): only a job with a queue, only a queue with a check of ours, and only
where nobody has said who runs the job, or its own controller was named. Every other value is the user's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import attrs

from multikueue.adapters.paths import FieldPath
from multikueue.adapters.safe import SafeAdapter
from multikueue.core.config.quota import check_names
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE
from multikueue.core.model.labels import CONTROLLER_NAME, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, with_value
from multikueue.core.model.worker_names import is_copy_elsewhere
from multikueue.errors import RuleError

DELEGATED: Final = CONTROLLER_NAME
"""What is filled in, whatever our own name is: many kinds accept no other one beside their own controller's.
Kinds that say it in their own way have it in `Delegation.value`."""


Lookup: TypeAlias = Callable[[Resource, ObjectKey], Json | None]
"""Finds a LocalQueue, ClusterQueue or AdmissionCheck of the manager; None if none is known."""


@attrs.frozen
class Admission:
    """What is to be done about a job that is being created."""

    patch: tuple[Json, ...] = ()
    """A JSON patch (RFC 6902); empty if the job is right as it is, or not ours."""
    warning: str = ""
    """What whoever creates it should know."""


NOTHING: Final = Admission()


def admit(
    adapter: SafeAdapter,
    job: Json,
    namespace: str,
    lookup: Lookup,
    controller_name: str,
    *,
    origin: str = "",
    holds: bool = False,
) -> Admission:
    """Decide about one job.

    One of which it cannot be told whether it is delegated is created as it is: nobody runs it before that can be told.

    Args:
        adapter: of its kind.
        job: as it would be created.
        namespace: where.
        lookup: finds the queues and checks that are known.
        controller_name: `spec.controllerName` of our AdmissionChecks.
        origin: of our own copies, which are left alone where the manager is a worker, too.
        holds: whether jobs that can be held on the manager are.
    """
    queue = dig(job, "metadata", "labels", QUEUE_LABEL)
    if not isinstance(queue, str) or is_copy_elsewhere(job, namespace, origin):
        return NOTHING
    holding, refused = adapter.hold(job) if holds else None, adapter.refused(job)
    try:
        if holding is None and not refused and adapter.not_delegated(job, controller_name) is None:
            return NOTHING
    except RuleError:  # the adapter has noted it
        return NOTHING
    if not leads_to_workers(ObjectKey(namespace, queue), lookup, controller_name):
        return NOTHING
    if holding is not None:
        return Admission(patch=(holding,))
    if refused:
        return Admission(warning=f"{refused}; as the queue leads to worker clusters, the job will be rejected")
    delegation = adapter.row.delegation
    path, wanted = delegation.path or (), delegation.value or DELEGATED
    manager = dig(job, *path)
    if not manager or manager == delegation.own_controller:
        return Admission(patch=_set(job, path, wanted))
    return Admission(
        warning=f'{".".join(path)} is "{str(manager)[:63]}", but the queue leads to worker clusters: the job will be '
        f'rejected. Leave the field out, or set it to "{wanted}"'
    )


def leads_to_workers(queue: ObjectKey, lookup: Lookup, controller_name: str) -> bool:
    """Whether jobs of a LocalQueue are for us: one of its ClusterQueue's checks is ours.

    Args:
        queue: the LocalQueue.
        lookup: finds the queues and checks that are known.
        controller_name: `spec.controllerName` of our AdmissionChecks.
    """
    name = dig(lookup(LOCAL_QUEUE, queue), "spec", "clusterQueue") or ""
    cluster_queue = lookup(CLUSTER_QUEUE, ObjectKey("", name))
    if cluster_queue is None:
        return False
    checks = (lookup(ADMISSION_CHECK, ObjectKey("", check)) for check in check_names(cluster_queue))
    return any(dig(check, "spec", "controllerName") == controller_name for check in checks)


def _set(job: Json, path: tuple[str, ...], value: str) -> tuple[Json, ...]:
    """The patch that sets a field; none if what should hold it is not an object, which the API server will refuse."""
    parent: object = job
    for depth, step in enumerate(path, start=1):
        if not isinstance(parent, dict):
            return ()
        parent = parent.get(step)
        if parent is None or depth == len(path):
            missing = with_value({}, path[depth - 1 :], value)
            return ({"op": "add", "path": FieldPath(path[:depth]).pointer, "value": missing[step]},)
    return ()
