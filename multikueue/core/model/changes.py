"""When a change of a Workload, or of a copy of it, asks for a decision: at once, soon, or not at all.

A decision costs the same whether something follows from it or not, and most changes come in groups: a Kueue writes the
conditions of a Workload one after the other, and what was removed is shown gone on one worker after the other. So a
change from which nothing follows at once waits `SOON`, together with what comes meanwhile. A change that no row of the
plan reads asks for no decision. What is not named here asks for one at once.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from multikueue.core.model.copies import is_spent
from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import (
    CheckState,
    checks,
    cluster_name,
    has_quota,
    is_admitted,
    is_evicted,
    is_finished,
)

NOW: Final = 0.0
SOON: Final = 1.0
"""Seconds for which changes are collected from which nothing follows at once. Kueue's own controller collects all
changes as long."""

_UNREAD: Final = frozenset({"PodsReady"})
"""Conditions that no row of the plan reads."""
_LATER: Final = frozenset({"Requeued", "Admitted"})
"""Conditions of a Workload on the manager that follow from what was decided before."""
_BOOKKEEPING: Final = frozenset({"resourceRequests", "requeueState"})
"""Fields of the status in which Kueue keeps what it needs itself."""
_VERSIONS: Final = frozenset({"resourceVersion", "generation", "managedFields"})


def due_after(old: Json | None, new: Json | None, *, is_own: bool = False) -> float | None:
    """In how many seconds a decision is due after a change of a Workload on the manager; None: it asks for none.

    Args:
        old: as it was; None: it has just come.
        new: as it is; None: it is gone.
        is_own: whether we have written it. What we offer has been offered by the decision that wrote it.
    """
    if new is None:
        return NOW
    if old is None:  # Kueue names its checks a moment later, and each copy there is tells of itself
        return NOW if checks(new) or has_quota(new) or is_terminating(new) else SOON
    if not _is_of_status(old, new):
        return NOW
    waits = not has_quota(old) and not has_quota(new)
    fields, kinds = _changed_fields(old, new), _changed_conditions(old, new)
    later, kinds_later = {*_BOOKKEEPING}, {*_LATER, "QuotaReserved"} if waits else _LATER
    if (waits and _is_open(old) and _is_open(new)) or (is_own and _states(old) == _states(new)):
        later.add("admissionChecks")  # a kind that is refused is so when it has quota, or soon
    if is_own and cluster_name(old) is None and cluster_name(new) is None:
        later.add("nominatedClusterNames")
    return _due(fields, kinds, later, kinds_later)


def copy_due_after(
    old: Json | None, new: Json | None, workload: Json | None, cluster: str, *, ends: bool = False
) -> float | None:
    """In how many seconds a decision is due after a change of a copy on a worker; None: it asks for none.

    Args:
        old: the copy as it was; None: it has just come.
        new: as it is; None: it is gone.
        workload: the manager's Workload; None if it is gone.
        cluster: the worker.
        ends: whether jobs of the kind end: then the job's own end is synced, and the manager's Kueue does the rest.
    """
    if workload is None or is_evicted(workload) or is_terminating(workload):
        return NOW
    if new is None:
        return removal_due_after(workload, cluster)
    if old is None:
        offered = has_quota(workload) and cluster_name(workload) is None and "spec" in new
        return SOON if offered and not is_terminating(new) and not _is_decided(new) else NOW
    if not _is_of_status(old, new):
        return NOW
    later = set()
    if not has_quota(old) and not has_quota(new):
        later.add("QuotaReserved")  # other words of one that waits
    if ends and cluster_name(workload) == cluster and _all_ready(workload) and not is_spent(new):
        later.add("Finished")
    return _due(_changed_fields(old, new), _changed_conditions(old, new), _BOOKKEEPING, later)


def removal_due_after(workload: Json | None, cluster: str) -> float:
    """In how many seconds a decision is due after something of a Workload was removed on a worker.

    Where it is finished, or another worker is recorded, nothing comes in the place of what is gone.
    """
    if workload is None or is_evicted(workload) or is_terminating(workload):
        return NOW
    recorded = cluster_name(workload)
    return SOON if is_finished(workload) or (recorded is not None and recorded != cluster) else NOW


def _is_of_status(old: Json, new: Json) -> bool:
    """Whether no more has changed than the status, and what the API server and Kueue note beside it.

    What cannot be read has no spec: any change of it counts.
    """
    if "spec" not in old or "spec" not in new or old["spec"] != new["spec"]:
        return False
    return _frame(old) == _frame(new)


def _frame(workload: Json) -> Json:
    noted = _VERSIONS if is_terminating(workload) else _VERSIONS | {"finalizers"}
    return {field: value for field, value in workload["metadata"].items() if field not in noted}


def _due(fields: Set[str], kinds: Set[str], later: Set[str], kinds_later: Set[str]) -> float | None:
    """When a change of these fields of the status and these conditions asks for a decision.

    Args:
        fields: of the status, without the conditions.
        kinds: of the conditions.
        later: fields that may wait.
        kinds_later: conditions that may.
    """
    if fields - later or kinds - _UNREAD - kinds_later:
        return NOW
    return None if kinds and not fields and kinds <= _UNREAD else SOON


def _changed_fields(old: Json, new: Json) -> set[str]:
    """The fields of the status that differ, but for the conditions."""
    before, after = old.get("status") or {}, new.get("status") or {}
    return {field for field in before.keys() | after.keys() if before.get(field) != after.get(field)} - {"conditions"}


def _changed_conditions(old: Json, new: Json) -> set[str]:
    before, after = ({str(one.get("type")): one for one in _conditions(obj)} for obj in (old, new))
    return {kind for kind in before.keys() | after.keys() if before.get(kind) != after.get(kind)}


def _conditions(obj: Json) -> list[Json]:
    return (obj.get("status") or {}).get("conditions") or []


def _states(workload: Json) -> dict[str, str]:
    """The state of each check."""
    return {str(one.get("name")): one.get("state") or CheckState.PENDING for one in checks(workload)}


def _is_open(workload: Json) -> bool:
    """Whether no check has decided yet."""
    return all(state == CheckState.PENDING for state in _states(workload).values())


def _all_ready(workload: Json) -> bool:
    return all(state == CheckState.READY for state in _states(workload).values())


def _is_decided(copy: Json) -> bool:
    return has_quota(copy) or is_admitted(copy) or is_evicted(copy) or is_finished(copy)
