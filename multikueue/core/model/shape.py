"""Whether an object has the shape that decisions rely on: checked once, where it comes in.

A real API server holds objects against schemas, but not every field of every kind, and whoever runs a worker decides
what its API server answers. Decisions read fields without looking at their types. So what does not fit is unknown to
them, as if it could not be decoded: see `kube.informers.informer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeAlias

from multikueue.core.model.names import Json
from multikueue.core.model.quantities import Quantity
from multikueue.core.model.workloads import CheckState

Schema: TypeAlias = Any
"""A type; a function that tells whether a value fits; `[schema]` for a list of such; or fields and their schemas.

A field may be missing or null, an entry of a list may not be null. Other fields may be anything.
"""


_TEXT: Final = frozenset([str])


def _is_texts(value: Any) -> bool:
    """Whether it is a mapping to texts, as labels are."""
    return type(value) is dict and _TEXT.issuperset(map(type, value.values()))


LONGEST: Final = 317
"""Characters that the key of a label has at most, with its prefix; its value has fewer."""


def _is_mark(value: Any) -> bool:
    """Whether it is a text that may be a part of a label, a taint or a toleration."""
    return type(value) is str and len(value) <= LONGEST


def _is_marks(value: Any) -> bool:
    """Whether it is a mapping of such texts."""
    return _is_texts(value) and all(map(_is_mark, (*value, *value.values())))


def _is_reference(value: Any) -> bool:
    """Whether it is an owner reference. Those who read it expect no null in place of a text."""
    if type(value) is not dict:
        return False
    return _TEXT.issuperset([type(value.get(field, "")) for field in ("apiVersion", "kind", "name", "uid")])


_LARGE_EXPONENT: Final = re.compile(r"[eE]\+?-?\d{3}")


def is_amount(value: Any) -> bool:
    """Whether it is a quantity whose digits can be written."""
    amount = str(value or 0)
    if _LARGE_EXPONENT.search(amount):  # a number of a million digits
        return False
    try:
        Quantity.parse(amount)
    except ValueError:
        return False
    return True


def _is_nominal(value: Any) -> bool:
    """Whether it is the quota of a resource."""
    if type(value) is not dict or type(value.get("name")) is not str:
        return False
    return all(is_amount(value.get(field)) for field in ("nominalQuota", "borrowingLimit", "lendingLimit"))


def _is_state(value: Any) -> bool:
    return type(value) is str and (not value or value in _STATES)


_STATES: Final = frozenset(map(str, CheckState))
_METADATA: Final[Schema] = {
    "namespace": str,
    "uid": str,
    "resourceVersion": str,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "generation": int,
    "labels": _is_texts,
    "annotations": _is_texts,
    "finalizers": [str],
    "ownerReferences": [_is_reference],
}
_CONDITIONS: Final[Schema] = [
    {"type": str, "status": str, "reason": str, "message": str, "lastTransitionTime": str},
]
_OBJECT: Final[Schema] = {"apiVersion": str, "kind": str, "metadata": _METADATA}
_ANY_JOB: Final[Schema] = {**_OBJECT, "spec": dict, "status": dict}
_JOB: Final[Schema] = {**_OBJECT, "spec": dict, "status": {"conditions": _CONDITIONS}}
_ASSIGNMENT: Final[Schema] = {
    "name": str,
    "count": int,
    "delayedTopologyRequest": str,
    "flavors": _is_texts,
    "resourceUsage": dict,
}
_WORKLOAD: Final[Schema] = {
    **_OBJECT,
    "spec": {
        "active": bool,
        "queueName": str,
        "priority": int,
        "priorityClassRef": {"kind": str},
        "podSets": [{"name": str, "count": int, "minCount": int, "template": dict}],
        "preemptionGates": [{"name": str}],
    },
    "status": {
        "conditions": _CONDITIONS,
        "admissionChecks": [{"name": str, "state": _is_state, "message": str, "lastTransitionTime": str}],
        "clusterName": str,
        "nominatedClusterNames": [str],
        "admission": {"clusterQueue": str, "podSetAssignments": [_ASSIGNMENT]},
        "schedulingStats": {"evictions": [{"count": int}]},
        "requeueState": dict,
        "preemptionGates": [{"name": str, "position": str, "lastTransitionTime": str}],
    },
}

_QUEUE: Final[Schema] = {
    **_OBJECT,
    "spec": {
        "clusterQueue": str,
        "cohort": str,
        "cohortName": str,
        "parent": str,
        "parentName": str,
        "preemption": {"withinClusterQueue": str, "reclaimWithinCohort": str},
        "resourceGroups": [{"coveredResources": [str], "flavors": [{"name": str, "resources": [_is_nominal]}]}],
    },
    "status": {
        "conditions": _CONDITIONS,
        "pendingWorkloads": int,
        "flavorsReservation": [{"name": str, "resources": [{"name": str, "total": is_amount}]}],
    },
}

_TAINTS: Final[Schema] = [{"key": _is_mark, "operator": _is_mark, "value": _is_mark, "effect": _is_mark}]
_FLAVOR: Final[Schema] = {
    **_OBJECT,
    "spec": {"nodeLabels": _is_marks, "nodeTaints": _TAINTS, "tolerations": _TAINTS, "topologyName": str},
}
_TERMS: Final[Schema] = [{"matchExpressions": [{"key": _is_mark, "operator": _is_mark, "values": [_is_mark]}]}]
_PODS: Final[Schema] = {
    "nodeSelector": _is_marks,
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _TERMS}}},
    "tolerations": _TAINTS,
}
_CONTAINERS: Final[Schema] = [
    {
        "name": str,
        "image": str,
        "command": [str],
        "args": [str],
        "restartPolicy": str,
        "ports": [{"name": str, "containerPort": int, "protocol": str}],
    },
]
_POD: Final[Schema] = {
    **_OBJECT,
    "spec": {"containers": _CONTAINERS, "initContainers": _CONTAINERS, "restartPolicy": str},
    "status": {"phase": str, "conditions": _CONDITIONS},
}

Check: TypeAlias = Callable[[Json], str]
"""What is wrong with an object's shape, by its path; empty: nothing that matters."""


def object_flaw(obj: Json) -> str:
    """What is wrong with the metadata of an object."""
    return _flaw(obj, _OBJECT)


def workload_flaw(obj: Json) -> str:
    """What is wrong with a Workload: the fields that decisions read."""
    return _flaw(obj, _WORKLOAD) or _unidentified(obj)


def job_flaw(obj: Json) -> str:
    """What is wrong with a job of a kind whose status has conditions as Kubernetes has them."""
    return _flaw(obj, _JOB) or _unidentified(obj)


def any_job_flaw(obj: Json) -> str:
    """What is wrong with a job of a kind whose status only its row knows: a rule that fails for one is told."""
    return _flaw(obj, _ANY_JOB) or _unidentified(obj)


def queue_flaw(obj: Json) -> str:
    """What is wrong with a ClusterQueue, a LocalQueue or a Cohort: what sums of quota and of room are made of."""
    return _flaw(obj, _QUEUE)


def flavor_flaw(obj: Json) -> str:
    """What is wrong with a ResourceFlavor: what decides which pods may use it."""
    return _flaw(obj, _FLAVOR)


def pods_flaw(spec: Json) -> str:
    """What is wrong with the spec of a pod template: what decides which flavors its pods may use."""
    return _flaw(spec, _PODS)


def pod_flaw(pod: Json) -> str:
    """What is wrong with a pod: what is shown of it."""
    return _flaw(pod, _POD)


def has_name(obj: Any) -> bool:
    """Whether it is an object that has a name, and so a key."""
    metadata = obj.get("metadata") if type(obj) is dict else None
    if type(metadata) is not dict or type(metadata.get("namespace", "")) not in (str, type(None)):
        return False
    name = metadata.get("name")
    return type(name) is str and bool(name)


def has_odd_labels(obj: Json) -> bool:
    """Whether its labels cannot be read, so that nobody knows whose it is."""
    labels = obj["metadata"].get("labels")
    return labels is not None and not _is_texts(labels)


def outline(obj: Json) -> Json:
    """What can be told of an object that cannot be used: of its metadata, what fits. Others may still change it.

    Args:
        obj: it has a name.
    """
    metadata = obj["metadata"]
    kept = {field: metadata[field] for field, schema in _METADATA.items() if field in metadata}
    fitting = {field: value for field, value in kept.items() if value is not None and _fits(value, _METADATA[field])}
    kind = {field: obj[field] for field in ("apiVersion", "kind") if type(obj.get(field)) is str}
    return {**kind, "metadata": {"name": metadata["name"], **fitting}}


def _unidentified(obj: Json) -> str:
    """Changes and deletions name the UID that they are meant for."""
    return "" if obj["metadata"].get("uid") else "metadata.uid is missing"


def _flaw(obj: Json, schema: Schema) -> str:
    return "" if _fits(obj, schema) else _misfit(obj, schema, "")


def _fits(value: Any, schema: Schema) -> bool:
    """Every object of every event is asked: plain loops, which take half the time of `all`."""
    kind = type(schema)
    if kind is dict:
        return type(value) is dict and _has_fields(value, schema)
    if kind is list:
        if type(value) is not list:
            return False
        for entry in value:
            if not _fits(entry, schema[0]):
                break
        else:
            return True
        return False
    return bool(schema(value)) if kind is FunctionType else type(value) is schema


def _has_fields(value: Json, schema: Schema) -> bool:
    get = value.get
    for field, inner in schema.items():
        inside = get(field)
        if inside is None or type(inside) is inner:
            continue
        if type(inner) is type or not _fits(inside, inner):
            break
    else:
        return True
    return False


def _misfit(value: Any, schema: Schema, path: str) -> str:
    """Where it does not fit first."""
    if type(schema) is dict and type(value) is dict:
        fields = ((value.get(field), inner, f"{path}.{field}" if path else field) for field, inner in schema.items())
        return next(_misfit(*field) for field in fields if field[0] is not None and not _fits(field[0], field[1]))
    if type(schema) is list and type(value) is list:
        entries = ((entry, f"{path}[{index}]") for index, entry in enumerate(value))
        return next(_misfit(entry, schema[0], where) for entry, where in entries if not _fits(entry, schema[0]))
    return f"{path or 'it'} has an unexpected form ({JSON_WORDS.get(type(value), 'no JSON')})"


JSON_WORDS: Final = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}
"""What a value is, by its type."""
