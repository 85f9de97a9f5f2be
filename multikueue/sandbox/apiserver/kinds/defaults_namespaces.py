"""Namespaces: active from the start, labelled with their own name."""

from __future__ import annotations

from multikueue.core.model.names import Json


def prepare_namespace(namespace: Json) -> None:
    """Complete a new namespace."""
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}
    label_namespace({}, namespace)


def label_namespace(_old: Json, namespace: Json) -> None:
    """Keep the label that names the namespace; the server always sets it."""
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    metadata["labels"] = {**labels, "kubernetes.io/metadata.name": metadata.get("name") or ""}
