"""The objects the checks use: a custom kind with a bit of everything, and small objects of builtin kinds."""

from __future__ import annotations

from multikueue.core.model.names import Json

GROUP = "probe.example.com"


def _strings() -> Json:
    return {"type": "array", "items": {"type": "string"}}


def _keyed_list(key: str, *fields: str, required: list[str]) -> Json:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
        "items": {
            "type": "object",
            "required": required,
            "properties": {field: {"type": "string"} for field in (key, *fields)},
        },
    }


def _schema() -> Json:
    immutable = {"rule": "self == oldSelf", "message": "cluster is immutable"}
    spec = {
        "size": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
        "replicas": {"type": "integer"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "cluster": {"type": "string", "x-kubernetes-validations": [immutable]},
        "entries": _keyed_list("name", "value", required=["name"]),
        "tags": {**_strings(), "x-kubernetes-list-type": "set"},
        "plain": _strings(),
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    status = {
        "phase": {"type": "string"},
        "replicas": {"type": "integer"},
        "conditions": _keyed_list("type", "status", "reason", required=["type", "status"]),
    }
    return {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": status},
        },
    }


def _version(name: str) -> Json:
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "selectableFields": [{"jsonPath": ".spec.mode"}],
        "additionalPrinterColumns": [{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}],
        "schema": {"openAPIV3Schema": _schema()},
    }


def definition(kind: str = "Widget") -> Json:
    """The CustomResourceDefinition of widgets, or of a kind with another name that is otherwise the same."""
    singular = kind.lower()
    names = {"plural": singular + "s", "singular": singular, "kind": kind, "listKind": kind + "List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [_version(name) for name in ("v1", "v1alpha1")],
        },
    }


def widget(
    name: str | None,
    spec: Json | None = None,
    status: Json | None = None,
    meta: Json | None = None,
    version: str = "v1",
) -> Json:
    """A widget; without a name it needs a generateName in `meta`."""
    obj: Json = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Widget",
        "metadata": {**({"name": name} if name is not None else {}), **(meta or {})},
        "spec": spec if spec is not None else {"size": 1},
    }
    if status is not None:
        obj["status"] = status
    return obj


def owned_by(owner: Json, **reference: bool) -> Json:
    """Metadata that names a widget as the owner."""
    identity = {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}
    metadata = owner["metadata"]
    return {"ownerReferences": [{**identity, "name": metadata["name"], "uid": metadata["uid"], **reference}]}


def config_map(name: str, data: Json | None = None) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {}}


def pod(name: str) -> Json:
    """A pod with two containers."""
    containers = [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


def binding(name: str, node: str) -> Json:
    """A Binding of a pod to a node."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


def job(name: str) -> Json:
    """A suspended Job."""
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"suspend": True, "template": {"spec": pod_spec}},
    }
