"""The Workloads that carry a job copy, and which of its changes matter to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from multikueue.adapters import JobKind
from multikueue.core.guard import Guard
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import dig, is_terminating
from multikueue.kube.caching import drop_managed_fields


def carriers_of(kind: JobKind, copy: Json | None) -> list[ObjectKey]:
    """The Workloads that a copy belongs to: one for most kinds."""
    if copy is None:
        return []
    namespace = copy["metadata"].get("namespace", "")
    return [ObjectKey(namespace, name) for name in kind.workload_names(copy)]


def index_entries(kind: JobKind, copy: Json) -> list[str]:
    """The entries under which the copies of a Workload are found."""
    return [str(key) for key in carriers_of(kind, copy)]


def concerned(kind: JobKind, old: Json | None, new: Json | None) -> list[ObjectKey]:
    """The Workloads to look at after a change of a copy.

    Where the status stays on the worker, its changes are nobody's concern. A large LeaderWorkerSet would otherwise
    wake one Workload per replica each time one of its pods becomes ready.
    """
    if kind.status is None and is_of_status_only(old, new):
        return []
    return list(dict.fromkeys((*carriers_of(kind, old), *carriers_of(kind, new))))


def kept_of(kind: JobKind, copy: Json) -> Json:
    """What is kept in memory of a copy."""
    for path in kind.unread:
        parent = dig(copy, *path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
    return drop_managed_fields(copy)


STATUS_BATCH: Final = 1.0
"""Seconds for which status changes of a running job are collected. Kueue's own controller collects everything as long;
here what decides something is acted on at once: a job's start and its end, and whatever happens to its Workload."""


def patience(kind: JobKind, old: Json | None, new: Json | None) -> float:
    """Seconds that a change of a job or its copy may wait: none, but for numbers in the status of one that runs."""
    if old is None or new is None or not is_of_status_only(old, new) or not old.get("status"):
        return 0.0
    try:
        return STATUS_BATCH if Guard(kind).outcome(new) is None else 0.0
    except Exception:  # a row of another package: what it raises in a watch would end all work, not that of one job
        return 0.0


def is_of_status_only(old: Json | None, new: Json | None) -> bool:
    """Whether only the status of an object has changed."""
    try:
        return old is not None and new is not None and _says(old) == _says(new)
    except RecursionError:  # where a kind takes anything, anybody may nest it a thousand deep
        return False


def _says(copy: Json) -> tuple[object, ...]:
    metadata = copy["metadata"]
    marks = metadata.get("labels"), metadata.get("annotations")
    return (metadata.get("uid"), is_terminating(copy), dig(copy, "spec"), *marks)


def telling(
    kind: JobKind, tell: Callable[[ObjectKey, float], None]
) -> Callable[[ObjectKey, Json | None, Json | None], None]:
    """A handler for changes of copies of a kind: it tells which Workloads are concerned, and how long they may wait."""

    def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        del key
        after = patience(kind, old, new)
        for workload in concerned(kind, old, new):
            tell(workload, after)

    return changed
