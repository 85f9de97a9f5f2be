"""The scale subresource: replicas seen and set through `autoscaling/v1 Scale`."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.serving.encoding import clone
from multikueue.sandbox.apiserver.storage.resources import ResourceType
from multikueue.sandbox.apiserver.storage.selectors import field_value
from multikueue.sandbox.apiserver.verbs.statuses import bad_request

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _path(row: ResourceType, which: str) -> str:
    declared = (row.custom.scale if row.custom else None) or {}
    path: str = declared.get(f"{which}ReplicasPath") or f".{which}.replicas"
    return path.lstrip(".")


def scale_of(row: ResourceType, obj: Json) -> Json:
    """The Scale of an object."""
    metadata = obj["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _KEPT if key in metadata},
        "spec": {"replicas": field_value(obj, _path(row, "spec")) or 0},
        "status": {"replicas": field_value(obj, _path(row, "status")) or 0},
    }


def scaled(row: ResourceType, obj: Json, scale: Any) -> Json:
    """A copy of an object with the replicas of a Scale.

    Raises:
        StatusError: 400, it is no Scale.
    """
    replicas = field_value(scale, "spec.replicas")
    if not isinstance(replicas, int):
        raise bad_request("the scale has no spec.replicas")
    changed = node = clone(obj)
    *parents, last = _path(row, "spec").split(".")
    for parent in parents:
        node = node.setdefault(parent, {})
    node[last] = replicas
    return changed
