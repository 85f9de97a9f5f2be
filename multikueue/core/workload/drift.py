"""What of a Workload copy can be patched to follow the manager's Workload, and what cannot."""

from __future__ import annotations

from multikueue.core.model.copies import Drift, drift, priority_patch, spec_digest
from multikueue.core.model.labels import SPEC_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig, uid
from multikueue.core.model.workloads import is_elastic


def must_be_replaced(workload: Json, remote: Json, spec: str | None = None) -> bool:
    """Whether the copy differs in something that cannot be patched; see `drift` for `spec`."""
    return drift(workload, remote, spec) is Drift.SPEC and not is_scaled_down(workload, remote)


def drift_patch(workload: Json, remote: Json) -> Json | None:
    """Merge patch that brings a copy in line that is not beyond mending; None if it is in line."""
    priority = priority_patch(workload, remote)
    if not is_scaled_down(workload, remote):
        return priority
    counts = _counts(workload)
    pod_sets = clone(dig(remote, "spec", "podSets") or [])
    for pod_set in pod_sets:
        pod_set["count"] = counts[pod_set.get("name")]
    return {
        "metadata": {"uid": uid(remote), "annotations": {SPEC_ANNOTATION: spec_digest(workload)}},
        "spec": {**(priority["spec"] if priority else {}), "podSets": pod_sets},
    }


def is_scaled_down(workload: Json, remote: Json) -> bool:
    """Whether an elastic job has become smaller, and nothing else that cannot be patched has changed.

    A bigger job gets a new Workload, a slice; a smaller one keeps its own, and so does its copy.
    """
    if not is_elastic(workload):
        return False
    here, there = _counts(workload), _counts(remote)
    if here == there or set(here) != set(there) or any(here[name] > there[name] for name in here):
        return False
    before = clone(workload)
    for pod_set in before["spec"]["podSets"]:
        pod_set["count"] = there[pod_set.get("name")]
    return drift(before, remote) is not Drift.SPEC


def _counts(workload: Json) -> dict[str | None, int]:
    return {pod_set.get("name"): pod_set.get("count", 1) for pod_set in dig(workload, "spec", "podSets") or []}
