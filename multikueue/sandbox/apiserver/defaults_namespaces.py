"""Namespaces: active from the start, labelled with their own name."""

from __future__ import annotations

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.statuses import Cause


def create_namespace(namespace: Json) -> list[Cause]:
    """Default a new namespace."""
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}
    return label_namespace({}, namespace)


def label_namespace(_old: Json, namespace: Json) -> list[Cause]:
    """Keep the label that names the namespace; the server always sets it."""
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    metadata["labels"] = {**labels, "kubernetes.io/metadata.name": metadata.get("name") or ""}
    return []
