"""What a person has said nobody waits for: by UID on a Workload, or on a MultiKueueCluster all that was made before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.labels import (
    DETACHED_ANNOTATION,
    GIVE_UP_ANNOTATION,
    GIVE_UP_BEFORE_ANNOTATION,
    KUBERNETES_FINALIZERS,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, finalizers_of


def given_up(workload: Json) -> dict[str, set[str]]:
    """The UIDs by worker that the annotation on a Workload names."""
    uids: dict[str, set[str]] = {}
    for entry in annotations_of(workload).get(GIVE_UP_ANNOTATION, "").split(","):
        worker, _, of = entry.strip().partition("/")
        uids.setdefault(worker, set()).add(of)
    return uids


def is_given_up(
    of: str, made: datetime | None, worker: str, annotations: Mapping[str, str], workloads: Iterable[Json]
) -> bool:
    """Whether nobody waits for an object on a worker.

    Args:
        of: its UID.
        made: when it was created.
        worker: the worker's name.
        annotations: of the worker's MultiKueueCluster.
        workloads: of the manager, that may name it.
    """
    before = parse_timestamp(annotations.get(GIVE_UP_BEFORE_ANNOTATION))
    if before is not None and made is not None and made < before:
        return True
    return any(of in given_up(workload).get(worker, ()) for workload in workloads)


def detached_at(annotations: Mapping[str, str]) -> datetime | None:
    """Since when a worker's cluster is being detached, so that its jobs stay there until it is gone; None: it is not,
    or a person has said that it is broken, and then no time is given to it.

    Args:
        annotations: of its MultiKueueCluster.
    """
    if GIVE_UP_BEFORE_ANNOTATION in annotations:
        return None
    return parse_timestamp(annotations.get(DETACHED_ANNOTATION))


def holding_finalizers(left: Json) -> list[str]:
    """The finalizers that hold an object and are not Kubernetes' own: those wait for what it owns."""
    return [name for name in finalizers_of(left) if name not in KUBERNETES_FINALIZERS]
