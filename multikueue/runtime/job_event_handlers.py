"""Event handlers of jobs: which Workloads a change of a job or its copy concerns, and how long it may wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from multikueue.adapters import SafeAdapter
from multikueue.adapters.safe import Problems
from multikueue.core.model.adapter import may_have_pods
from multikueue.core.model.kinds import POD
from multikueue.core.model.labels import FOREGROUND_FINALIZER
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig, finalizers_of, is_terminating, uid
from multikueue.core.model.worker_names import origin_key
from multikueue.kube.informers.informer import Handler
from multikueue.logs import get_logger

STATUS_BATCH: Final = 1.0
"""Seconds for which status changes of a running job are collected. Kueue's own controller collects all changes as long;
here the start and the end of a job, and changes of its Workload, are acted on at once."""

log = get_logger(__name__)


def log_problems(problems: Problems) -> None:
    """Log which rules of job kinds have failed since the last call, with the object."""
    for key, error in problems.unlogged():
        log.warning("rule of a job kind failed", object=str(key), error=error)


def handled(kind: SafeAdapter, old: Json | None, new: Json | None) -> None:
    """End the handling of a job's event: forget the problems of a job that is gone, and log new ones."""
    if new is None and old is not None:
        kind.problems.forget(old)
    log_problems(kind.problems)


def is_of_status_only(old: Json | None, new: Json | None) -> bool:
    """Whether only the status of an object has changed."""
    try:
        return old is not None and new is not None and _all_but_status(old) == _all_but_status(new)
    except RecursionError:  # a kind that takes any field may be nested a thousand deep
        return False


def _all_but_status(copy: Json) -> tuple[object, ...]:
    metadata = copy["metadata"]
    marks = metadata.get("labels"), metadata.get("annotations")
    return (metadata.get("uid"), is_terminating(copy), dig(copy, "spec"), *marks)


def concerned(adapter: SafeAdapter, old: Json | None, new: Json | None) -> tuple[list[ObjectKey], bool]:
    """The Workloads that a change of a copy concerns, and whether these are all.

    Where the status stays on the worker, its changes concern none. A large LeaderWorkerSet would otherwise enqueue one
    Workload per replica each time one of its pods becomes ready.
    """
    if adapter.traits.keeps_status and is_of_status_only(old, new):
        return [], True
    workloads: dict[ObjectKey, None] = {}
    complete = True
    for copy in (version for version in (old, new) if version is not None):
        entries = adapter.copy_entries(copy)
        complete = complete and entries is not None
        workloads.update(dict.fromkeys(map(ObjectKey.parsed, entries or ())))
    return list(workloads), complete


def delay_of(adapter: SafeAdapter, old: Json | None, new: Json | None) -> float:
    """Seconds that a change of a copy may wait: none, except for changed numbers in the status of one that runs."""
    if old is None or new is None or not is_of_status_only(old, new) or not old.get("status"):
        return 0.0
    return 0.0 if adapter.may_have_ended(new) else STATUS_BATCH


@attrs.define(eq=False)
class _PodsLeft:
    """Tells which copies may leave pods: what is deleted in the foreground goes after its own, and pods own none."""

    adapter: SafeAdapter
    _in_foreground: set[str] = attrs.field(factory=set)
    """UIDs. Another finalizer may hold a copy after its pods have gone."""

    def changed(self, old: Json | None, new: Json | None) -> bool:
        """Note an event of a copy; whether that is gone, or another has its name, and pods of it may still end."""
        if new is not None and FOREGROUND_FINALIZER in finalizers_of(new):
            self._in_foreground.add(uid(new))
        if old is None or (new is not None and uid(new) == uid(old)):
            return False
        in_order = uid(old) in self._in_foreground or FOREGROUND_FINALIZER in finalizers_of(old)
        self._in_foreground.discard(uid(old))
        return self.adapter.resource != POD and not in_order and may_have_pods(self.adapter, old)


def copy_handler(
    adapter: SafeAdapter,
    on_workload: Callable[[ObjectKey, float], None],
    on_job: Callable[[GVK, ObjectKey, float], None],
    on_pods_left: Callable[[ObjectKey], None],
) -> Handler:
    """An event handler for the copies of a kind on one worker.

    Args:
        adapter: of the kind.
        on_workload: called for each Workload that a change concerns, with the seconds it may wait.
        on_job: called for the copy itself where its row cannot tell its Workloads, and when it is deleted: Workloads
            may be found by its name.
        on_pods_left: called for each Workload of a copy that is gone while pods of it may still end.
    """

    pods_left = _PodsLeft(adapter)

    def on_change(_key: ObjectKey, old: Json | None, new: Json | None) -> None:
        after = delay_of(adapter, old, new)
        workloads, complete = concerned(adapter, old, new)
        left = pods_left.changed(old, new)
        for workload in workloads:
            if left:
                on_pods_left(workload)
            on_workload(workload, after)
        if not complete or new is None:  # a deleted one makes room for another of its name
            on_job(adapter.resource.gvk, origin_key(new or old or {}), after)
        handled(adapter, old, new)

    return on_change
