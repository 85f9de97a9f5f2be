"""A kind that takes any fields, as AppWrappers do, and objects of it that cannot be decoded."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.apiserver.verbs.patching import MERGE_PATCH
from multikueue.sandbox.apiserver.verbs.updating import Target

GADGET: Final = Resource(GVK("example.com", "v1", "Gadget"), "gadgets")
DEFINITION: Final[Json] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}
DEEP: Final = b'{"a":' * 1500 + b"1" + b"}" * 1500
"""Nested deeper than the parser goes, in 9 KB."""


def gadget(name: str, **metadata: object) -> Json:
    """One of them, with a mark in its spec."""
    named = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": named, "spec": {"free": "here"}}


def spoil(registry: Registry, name: str, value: bytes = DEEP) -> None:
    """Change an object, so that it has this in place of its mark: in lists, and in events of watches."""
    row = registry.type_of(GADGET)
    registry.patch(
        Target(row, "default", name), MERGE_PATCH, {"spec": {"free": "here"}, "metadata": _touched(registry)}
    )
    entry = registry.cluster.entry(row, "default", name)
    entry.raw = entry.raw.replace(b'"here"', value)


def mend(registry: Registry, name: str) -> None:
    """Change it again, so that it can be read."""
    row = registry.type_of(GADGET)
    registry.patch(Target(row, "default", name), MERGE_PATCH, {"metadata": _touched(registry)})


def key(name: str) -> ObjectKey:
    """Of one of them."""
    return ObjectKey("default", name)


def _touched(registry: Registry) -> Json:
    return {"annotations": {"touched": str(registry.cluster.store.revision)}}
