"""The Workloads that carry a job copy, and which of its changes matter to them."""

from __future__ import annotations

from collections.abc import Callable

from multikueue.adapters import JobKind
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import dig, is_terminating


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
    if old is not None and new is not None and kind.status is None and _says(old) == _says(new):
        return []
    return list(dict.fromkeys((*carriers_of(kind, old), *carriers_of(kind, new))))


def _says(copy: Json) -> tuple[object, ...]:
    metadata = copy["metadata"]
    marks = metadata.get("labels"), metadata.get("annotations")
    return (metadata.get("uid"), is_terminating(copy), dig(copy, "spec"), *marks)


def telling(kind: JobKind, tell: Callable[[ObjectKey], None]) -> Callable[[ObjectKey, Json | None, Json | None], None]:
    """A handler for changes of copies of a kind: it tells of each Workload that is concerned."""

    def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        del key
        for workload in concerned(kind, old, new):
            tell(workload)

    return changed
