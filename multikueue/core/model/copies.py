"""Making copies of Workloads and jobs, and comparing a copy with what it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from multikueue.core.model import labels, workloads
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.conditions import is_true
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import (
    ByIdentity,
    annotations_of,
    clone,
    dig,
    digest,
    is_terminating,
    labels_of,
    merge_patch,
    names_any,
    pruned,
    uid,
    with_value,
    without,
)
from multikueue.core.model.started import unstarted_spec
from multikueue.core.model.workload_facts import COPIES, WORKLOADS

_SYNCED_FIELDS = ("priority", "priorityClassRef")
"""Kept equal on a copy by patches."""
_IGNORED_FIELDS = ("preemptionGates", "active")
"""The worker's own: gates are opened there, and its Kueue deactivates what it evicts."""
SLIMMED: Final = "multikueue.dev/slimmed"
"""The field of an object in memory that notes that not all of it is there, see `Slimmed`. It is never sent."""
_NO_SLICE = "-"
"""A Workload that cannot be. The job follows its smaller Workload in a write of its own, and a worker's Kueue stops a
job that differs from its Workload (`OutOfSync`); only where that is said to replace another does it wait."""
STOPPED_BY_KUEUE: Final = "TerminationTarget"
"""The condition of a pod that Kueue is about to delete, as it has lost its quota."""
_STAYS_HERE = frozenset((*labels.NEVER_COPIED, *labels.MANAGER_ONLY))


@dataclass(frozen=True, slots=True)
class Slimmed:
    """The note itself. JSON decodes to none, so no server can send one; a dataclass, as orjson writes it."""

    size: int = 0
    """Bytes of the whole object, as it was sent."""
    digests: tuple[str, ...] | None = None
    """The `spec_digests` of the whole Workload; None: it is none."""


def slimmed_note(obj: Json) -> Slimmed | None:
    """What is noted of an object of which not all is here; None: all is, whatever a server calls a field."""
    note = obj.get(SLIMMED)
    return note if isinstance(note, Slimmed) else None


def _job_marks(stamp: Stamp) -> Json:
    """The annotations that prove for which attempt a copy of a job is made, and that it is one."""
    lasting = {labels.JOB_MARK_ANNOTATION: stamp.job_mark, labels.COPY_OF_ANNOTATION: stamp.copy_of}
    return {labels.ATTEMPT_ANNOTATION: stamp.attempt, **{name: mark for name, mark in lasting.items() if mark}}


def bare_metadata(obj: Json, extra_labels: Json, extra_annotations: Json) -> Json:
    """Name, namespace, labels and annotations: all of an object's metadata that a copy may have."""
    result: Json = {"name": obj["metadata"]["name"], "namespace": obj["metadata"].get("namespace", "")}
    result["labels"] = {**labels_of(obj), **extra_labels}
    own = {name: value for name, value in annotations_of(obj).items() if name not in _STAYS_HERE}
    result["annotations"] = {**own, **extra_annotations}
    return result


def workload_copy(workload: Json, stamp: Stamp) -> Json:
    """The Workload to create on a worker, to be read only: same name, same spec but for marks of a start, no owner, no
    status.
    """
    marks = {labels.ATTEMPT_ANNOTATION: stamp.attempt, labels.SPEC_ANNOTATION: spec_digest(workload)}
    metadata = bare_metadata(workload, {labels.ORIGIN_LABEL: stamp.origin}, marks)
    metadata["labels"].pop(labels.JOB_UID_LABEL, None)
    if workloads.has_members(workload):
        # Kueue lets go of a group's pods only while it sees their Workload being deleted: of a prebuilt one only so.
        metadata["finalizers"] = [labels.WORKLOAD_FINALIZER]
    return {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "metadata": metadata,
        "spec": unstarted_spec(workload),
    }


def with_worker_names(copy: Json, stamp: Stamp) -> Json:
    """A Workload copy, to be read only, under the names that its worker uses. It notes those that it comes from."""
    here = dig(copy, "spec", "queueName")
    there = stamp.queues.get(here, here)
    metadata = _placed(copy["metadata"], stamp)
    if there == here:
        return {**copy, "metadata": metadata}
    noted = {**metadata["annotations"], labels.ORIGIN_QUEUE_ANNOTATION: here}
    return {**copy, "metadata": {**metadata, "annotations": noted}, "spec": {**copy["spec"], "queueName": there}}


def _placed(metadata: Json, stamp: Stamp) -> Json:
    own, namespace = metadata["namespace"], stamp.namespace or metadata["namespace"]
    queue, annotations = metadata["labels"].get(labels.QUEUE_LABEL), metadata["annotations"]
    if queue in stamp.queues:
        metadata = {**metadata, "labels": {**metadata["labels"], labels.QUEUE_LABEL: stamp.queues[queue]}}
    replaced = annotations.get(labels.SLICE_REPLACEMENT_ANNOTATION)
    if replaced is not None:  # of the same job, so in the same namespace, whatever its user has written
        slice_there = ObjectKey(namespace, ObjectKey.parsed(replaced).name)
        annotations = {**annotations, labels.SLICE_REPLACEMENT_ANNOTATION: str(slice_there)}
    if namespace == own:
        return {**metadata, "annotations": annotations}
    noted = {labels.ORIGIN_NAMESPACE_ANNOTATION: own, labels.COPY_OF_ANNOTATION: stamp.copy_of}
    return {**metadata, "namespace": namespace, "annotations": {**annotations, **noted}}


def _as_here(remote: Json) -> Json:
    """A Workload copy with the queue that it comes from."""
    noted = annotations_of(remote).get(labels.ORIGIN_QUEUE_ANNOTATION)
    return remote if noted is None else {**remote, "spec": {**(remote.get("spec") or {}), "queueName": noted}}


def stamped_metadata(job: Json, stamp: Stamp, *, named: bool = True) -> Json:
    """Metadata of a job copy: linked to its Workload in both forms Kueue has known (label, later annotation).

    Args:
        job: what it is a copy of.
        stamp: what it is marked with.
        named: whether it names its Workload.
    """
    link = _link(stamp) if named else {"labels": {}, "annotations": _job_marks(stamp)}
    fitting = {label: value for label, value in link["labels"].items() if value is not None}
    return _placed(bare_metadata(job, {labels.ORIGIN_LABEL: stamp.origin, **fitting}, link["annotations"]), stamp)


def unlabelled(spec: Json) -> Json:
    """The spec of a job copy in which nothing but the copy itself has our origin label.

    What a worker's controllers make of a template has the template's labels, and its user says how much that is: with
    ours it would be read, and kept, as copies are.
    """
    return dict(_unlabelled(spec)) if names_any(spec, (labels.ORIGIN_LABEL,)) else spec


def _unlabelled(value: Any) -> Any:
    if isinstance(value, list):
        return [_unlabelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {field: _unlabelled(item) for field, item in value.items()}
    if isinstance(made.get("labels"), dict):
        made["labels"].pop(labels.ORIGIN_LABEL, None)
    return made


def _link(stamp: Stamp) -> Json:
    """What a job copy says of its Workload; a name that is too long for a label takes the label away."""
    label = stamp.workload if len(stamp.workload) <= labels.MAX_LABEL_VALUE else None
    marks = {labels.PREBUILT_WORKLOAD: stamp.workload, **_job_marks(stamp)}
    return {"labels": {labels.PREBUILT_WORKLOAD: label}, "annotations": marks}


def prebuilt_workload(job: Json) -> str:
    """The Workload a job copy belongs to; empty if it does not say."""
    return annotations_of(job).get(labels.PREBUILT_WORKLOAD) or labels_of(job).get(labels.PREBUILT_WORKLOAD) or ""


def member_there(pod: Json) -> Json:
    """The copy of a pod of a group that runs, as its end counts: a deletion takes none back.

    As on one cluster: Kueue keeps a pod that was deleted, and waits for another one in its place. It counts one without
    a node as failed, whose end no kubelet tells. What this Kueue has deleted itself says so, and is to run again.
    """
    if not is_terminating(pod) or is_true(pod, STOPPED_BY_KUEUE):
        return pod
    kept = without(pod, [("metadata", "deletionTimestamp")])
    never_ran = dig(pod, "status", "phase") == "Pending" and not dig(pod, "spec", "nodeName")
    return with_value(kept, ("status", "phase"), "Failed") if never_ran else kept


def is_copy_of(copied: Json, job: Json) -> bool:
    """Whether a copy was made of exactly this object. Copies that do not say are taken by their name."""
    noted = annotations_of(copied).get(labels.ORIGIN_UID_ANNOTATION)
    return noted is None or noted == uid(job)


def renaming_patch(remote: Json, stamp: Stamp) -> Json:
    """Merge patch that gives a job copy to another Workload, in both forms of the link; empty if it has it."""
    return {} if prebuilt_workload(remote) == stamp.workload else {"metadata": _link(stamp)}


def spec_digest(workload: Json) -> str:
    """Fingerprint of the part of the spec in which a copy must equal the Workload."""
    return spec_digests(workload)[0]


def spec_digests(workload: Json) -> tuple[str, ...]:
    """What a copy may have noted that was made of this spec: its `spec_digest`, or what earlier versions noted.

    They did not look past the marks of a start.
    """
    note = slimmed_note(workload)
    return _DIGESTS.of(workload.get("spec") or {}) if note is None or note.digests is None else note.digests


def digests_of(given: Json) -> tuple[str, ...]:
    """The `spec_digests` of a Workload with this spec, of which nothing is kept."""
    spec = unstarted_spec({"spec": given})
    return (_digest(spec),) if spec is given else (_digest(spec), _digest(given))


_DIGESTS: Final = ByIdentity(digests_of, size=1_024)
"""The versions of a Workload have the same spec, and so have those of one sweep."""


def know_digests(whole: Json, noted: Json) -> None:
    """A Workload has the digests that were noted of it, if its spec is the same: those of 1.2 MB take up to 0.1 s."""
    note, generation = slimmed_note(noted), dig(whole, "metadata", "generation")
    same = uid(whole) == uid(noted) and generation is not None and generation == dig(noted, "metadata", "generation")
    if note is not None and note.digests is not None and same:
        _DIGESTS.know(whole["spec"], note.digests)


def forget_replaced(_key: ObjectKey, old: Json | None, new: Json | None) -> None:
    """An event handler of Workloads and of copies: what was read of a version that is no more makes room for that of
    another, as nobody asks for it again. A spec that both have stays known.
    """
    if old is None:
        return
    WORKLOADS.forget(old)
    COPIES.forget(old)
    spec = old.get("spec")
    if spec is not None and (new is None or new.get("spec") is not spec):
        _DIGESTS.forget(spec)
        _SHAPES.forget(spec)


def _digest(spec: Json) -> str:
    try:
        return digest(_kept_equal(spec))
    except RecursionError:  # it nests a thousand deep: nothing that does can be sent, so there is no copy of it
        return ""


def _kept_equal(spec: Json) -> Json:
    """The part of a spec in which a copy must equal the Workload."""
    kept: Json = pruned({field: spec[field] for field in spec if field not in _SYNCED_FIELDS + _IGNORED_FIELDS})
    return kept


def differs_in_spec(workload: Json, remote: Json) -> bool:
    """Whether the copy differs from the Workload in more than its priority.

    A copy notes what it was made from, so a worker's defaults and webhooks do not count. Of the copy's own spec only
    the queue and the names and counts of its pod sets are compared: what decides where and how much is run.

    Once a worker is recorded, a field that only one side has is no difference. The API server lets no pod set change
    then but for its count; a new version of a CRD fills in defaults, or drops fields, in what is stored already.
    """
    noted, remote = annotations_of(remote).get(labels.SPEC_ANNOTATION), _as_here(remote)
    remade = noted is not None and noted not in spec_digests(workload)
    alike = not remade and _SHAPES.of(workload.get("spec") or {}) == _SHAPES.of(remote.get("spec") or {})
    if alike or workloads.cluster_name(workload) is None:
        return not alike
    here, there = (_kept_equal(unstarted_spec(either)) if remade else _queue(either) for either in (workload, remote))
    return _counts(workload) != _counts(remote) or _contradict(here, there)


def priority_patch(workload: Json, remote: Json) -> Json | None:
    """Merge patch that gives the copy the Workload's priority; None if it has it.

    Pod priority classes belong to each cluster and are not followed (Kueue's rule). While a copy has quota, its API
    server lets it neither get, lose nor change the kind of its class; then the number alone follows.
    """
    here, there = workload.get("spec") or {}, remote.get("spec") or {}
    local_class, remote_class = here.get("priorityClassRef") or {}, there.get("priorityClassRef") or {}
    if local_class.get("kind") == "PriorityClass" or remote_class.get("kind") == "PriorityClass":
        return None
    fixed = local_class.get("kind") != remote_class.get("kind") and workloads.has_quota(remote)
    fields = ("priority",) if fixed else _SYNCED_FIELDS
    if all(here.get(field) == there.get(field) for field in fields):
        return None
    wanted, present = (
        {field: spec[field] for field in fields if spec.get(field) is not None} for spec in (here, there)
    )
    return {"metadata": {"uid": uid(remote)}, "spec": merge_patch(present, wanted)}


def _shape(spec: Json) -> tuple[object, ...]:
    return _queue({"spec": spec}), _counts({"spec": spec})


_SHAPES: Final = ByIdentity(_shape, size=1_024)
"""As of `_DIGESTS`."""


def _queue(workload: Json) -> Json:
    named = dig(workload, "spec", "queueName")
    return {} if named is None else {"queueName": named}


def _counts(workload: Json) -> list[tuple[str, int]]:
    return list(workloads.pod_counts(workload).items())


def _contradict(here: Any, there: Any) -> bool:
    """Whether two values differ in more than fields that only one of them has."""
    if isinstance(here, dict) and isinstance(there, dict):
        return any(_contradict(here[field], there[field]) for field in here.keys() & there.keys())
    if isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        return any(map(_contradict, here, there))
    return bool(here != there)


def must_be_replaced(workload: Json, remote: Json) -> bool:
    """Whether the copy differs in something that cannot be patched."""
    return differs_in_spec(workload, remote) and not is_scaled_down(workload, remote)


def drift_patch(workload: Json, remote: Json) -> Json | None:
    """Merge patch for a copy that need not be replaced: its priority, and the pod counts of an elastic job that has
    become smaller. None if the copy has both."""
    priority = priority_patch(workload, remote)
    if not is_scaled_down(workload, remote):
        return priority
    noted = {labels.SPEC_ANNOTATION: spec_digest(workload)}
    if labels.SLICE_REPLACEMENT_ANNOTATION not in annotations_of(remote):
        noted[labels.SLICE_REPLACEMENT_ANNOTATION] = _NO_SLICE
    return {
        "metadata": {"uid": uid(remote), "annotations": noted},
        "spec": {**(priority["spec"] if priority else {}), "podSets": _resized(remote, workloads.pod_counts(workload))},
    }


def is_scaled_down(workload: Json, remote: Json) -> bool:
    """Whether an elastic job has become smaller, and nothing else that cannot be patched has changed.

    A bigger job gets a new Workload, a slice; a smaller one keeps its own, and so does its copy.
    """
    if not workloads.is_elastic(workload):
        return False
    here, there = workloads.pod_counts(workload), workloads.pod_counts(remote)
    if here == there or set(here) != set(there) or any(here[name] > there[name] for name in here):
        return False
    before = {**workload, "spec": {**workload["spec"], "podSets": _resized(workload, there)}}
    return not differs_in_spec(before, remote)


def _resized(workload: Json, counts: dict[str, int]) -> list[Json]:
    """The Workload's pod sets with these counts."""
    pod_sets = dig(workload, "spec", "podSets") or []
    return [{**clone(pod_set), "count": counts[str(pod_set.get("name"))]} for pod_set in pod_sets]


def topology_known(workload: Json, remote: Json) -> Json | None:
    """The manager's `status.admission`, with the topology of what the worker has placed no longer delayed.

    The placement itself stays the worker's: its nodes mean nothing to the manager. Kueue admits the Workload once no
    pod set is awaited.

    Args:
        workload: the manager's Workload.
        remote: the admitted copy.

    Returns:
        None if nothing awaited has been placed.
    """
    there = {assignment.get("name") for assignment in _assignments(remote) if assignment.get("topologyAssignment")}
    flipped = [
        {**assignment, "delayedTopologyRequest": "Ready"}
        if assignment.get("delayedTopologyRequest") == "Pending" and assignment.get("name") in there
        else assignment
        for assignment in _assignments(workload)
    ]
    if flipped == _assignments(workload):
        return None
    return {**workload["status"]["admission"], "podSetAssignments": flipped}


def _assignments(workload: Json) -> list[Json]:
    return dig(workload, "status", "admission", "podSetAssignments") or []
