"""The Workloads that carry a job copy, which of its changes matter to them, and what of it its cache keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from multikueue.adapters import SafeAdapter
from multikueue.adapters.safe import Problems
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating
from multikueue.logs import get_logger

log = get_logger(__name__)


def log_problems(problems: Problems) -> None:
    """Log which functions of rows have failed since the last time, with the object."""
    for key, told in problems.unlogged():
        log.warning("row failed", object=str(key), error=told)


def concerned(adapter: SafeAdapter, old: Json | None, new: Json | None) -> tuple[list[ObjectKey], bool]:
    """The Workloads to look at after a change of a copy, and whether these are all.

    Where the status stays on the worker, its changes are nobody's concern. A large LeaderWorkerSet would otherwise
    wake one Workload per replica each time one of its pods becomes ready.
    """
    if adapter.traits.keeps_status and is_of_status_only(old, new):
        return [], True
    found: dict[ObjectKey, None] = {}
    whole = True
    for copy in (one for one in (old, new) if one is not None):
        namespace, entries = ObjectKey.of(copy).namespace, adapter.copy_entries(copy)
        whole = whole and entries is not None
        found.update((ObjectKey(namespace, entry.rpartition("/")[2]), None) for entry in entries or ())
    return list(found), whole


STATUS_BATCH: Final = 1.0
"""Seconds for which status changes of a running job are collected. Kueue's own controller collects everything as long;
here what decides something is acted on at once: a job's start and its end, and whatever happens to its Workload."""


def patience(adapter: SafeAdapter, old: Json | None, new: Json | None) -> float:
    """Seconds that a change of a job or its copy may wait: none, but for numbers in the status of one that runs."""
    if old is None or new is None or not is_of_status_only(old, new) or not old.get("status"):
        return 0.0
    return 0.0 if adapter.may_have_ended(new) else STATUS_BATCH


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
    adapter: SafeAdapter, tell: Callable[[ObjectKey, float], None], tell_owned: Callable[[GVK, ObjectKey, float], None]
) -> Callable[[ObjectKey, Json | None, Json | None], None]:
    """A handler for changes of copies of a kind: it tells which Workloads are concerned, and how long they may wait.

    Args:
        adapter: of the kind.
        tell: told each Workload.
        tell_owned: told the copy itself, where the row cannot tell its Workloads, and when it is gone: Workloads may be
            found by its name.
    """

    def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        after = patience(adapter, old, new)
        workloads, whole = concerned(adapter, old, new)
        for workload in workloads:
            tell(workload, after)
        if not whole or new is None:  # one that is gone makes room for another of its name
            tell_owned(adapter.resource.gvk, key, after)
        if new is None and old is not None:
            adapter.problems.forget(old)
        log_problems(adapter.problems)

    return changed
