"""What a Kueue puts into a job when it starts it, and how a copy is made without that.

A worker's Kueue refuses to start a job that carries another cluster's labels. Not only a job that runs has them: so
does one that somebody created from what `kubectl get -o yaml` showed, and an elastic one that has grown. In these the
pod sets of the Workload have them, too, for they were made of the job's templates.
"""

from __future__ import annotations

from typing import Any, Final

from multikueue.core.model.labels import ADMISSION_GATE, OWN_PREFIX, STARTED_ANNOTATIONS, STARTED_LABELS, TOPOLOGY_GATE
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig, labels_of, names_any

_MARKS: Final = {"labels": frozenset(STARTED_LABELS), "annotations": frozenset(STARTED_ANNOTATIONS)}
_ALL_MARKS: Final = (*STARTED_LABELS, *STARTED_ANNOTATIONS)


def is_started(value: object) -> bool:
    """Whether a Kueue's marks of a start are anywhere in a job, or in a part of one."""
    return names_any(value, _ALL_MARKS) and _has_marks(value)  # hardly any names one, and that is told soon


def _has_marks(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_has_marks, value))
    return isinstance(value, dict) and (_is_marked(value) or any(map(_has_marks, value.values())))


def without_start(value: Any) -> Any:
    """A copy of a job, or of a part of one, without these marks and without gates of the clusters it comes from."""
    if isinstance(value, list):
        return [without_start(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: without_start(item) for key, item in value.items()}
    for field, marks in _MARKS.items():
        present = made.get(field)
        if isinstance(present, dict) and not marks.isdisjoint(present):
            put(made, field, {key: item for key, item in present.items() if key not in marks})
    if isinstance(made.get("schedulingGates"), list):
        put(made, "schedulingGates", lasting_gates(made["schedulingGates"]))
    return made


def lasting_gates(gates: list[Any]) -> list[Any]:
    """The scheduling gates of a pod that mean the same on every cluster: not the topology's, and not our own."""
    return [gate for gate in gates if not str(dig(gate, "name")).startswith((TOPOLOGY_GATE, OWN_PREFIX))]


def restore(template: Json, pod_set: Json, kept: tuple[str, ...] = ()) -> None:
    """Make a template of a job as Kueue makes it when it stops the job, in place.

    Args:
        template: labels, annotations, node selector, tolerations and scheduling gates change.
        pod_set: the Workload's, which was made of the template before the start.
        kept: labels that pod sets lack, since the API server fills them in.
    """
    metadata = template.setdefault("metadata", {})
    filled_in = {label: value for label, value in labels_of(template).items() if label in kept}
    put(metadata, "labels", {**(dig(pod_set, "template", "metadata", "labels") or {}), **filled_in})
    put(metadata, "annotations", dig(pod_set, "template", "metadata", "annotations"))
    restore_placement(template.setdefault("spec", {}), pod_set)
    put(template["spec"], "schedulingGates", dig(pod_set, "template", "spec", "schedulingGates"))
    if not metadata:
        del template["metadata"]


def restore_placement(spec: Json, pod_set: Json) -> None:
    """Give the spec of a pod the node selector and tolerations of its pod set, in place."""
    for field in ("nodeSelector", "tolerations"):
        put(spec, field, dig(pod_set, "template", "spec", field))


def runs_here(pod: Json) -> bool:
    """Whether the manager's Kueue has started a pod on the manager itself: no gate, Kueue's or ours, holds it."""
    held = any(
        str(dig(gate, "name")).startswith((ADMISSION_GATE, OWN_PREFIX))
        for gate in dig(pod, "spec", "schedulingGates") or []
    )
    return not held and not _MARKS["labels"].isdisjoint(labels_of(pod))


def unstarted_spec(workload: Json) -> Json:
    """The spec of a Workload with pod sets that know of no start; the very spec where none does."""
    spec: Json = workload.get("spec") or {}
    pod_sets = spec.get("podSets") or []
    if not any(_is_marked(dig(pod_set, "template", "metadata") or {}) for pod_set in pod_sets):
        return spec
    return {**spec, "podSets": [_unstarted(pod_set) for pod_set in pod_sets]}


def _unstarted(pod_set: Json) -> Json:
    marked = _is_marked(dig(pod_set, "template", "metadata") or {})
    return {**pod_set, "template": without_start(pod_set["template"])} if marked else pod_set


def _is_marked(holder: Json) -> bool:
    """Whether these metadata, or what stands for them, have a mark."""
    for field, marks in _MARKS.items():  # twice as fast as `any` of a generator, and asked of each part of a job
        present = holder.get(field)
        if isinstance(present, dict) and not marks.isdisjoint(present):
            return True
    return False


def put(holder: Json, field: str, value: Any) -> None:
    """Set a field, or remove it where nothing is left."""
    if value:
        holder[field] = clone(value)
    else:
        holder.pop(field, None)
