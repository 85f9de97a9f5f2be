"""CustomResourceDefinitions for the job kinds: as much of each as the sandbox needs.

They are made from the rows, so that a kind of one's own has one as well. Where a job is suspended and who runs it is in
the schema; everything else is kept as it comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver import Registry, StatusError
from multikueue.sandbox.kinds.kind import SandboxKind

_ANYTHING: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TYPES = {bool: "boolean", str: "string", int: "integer"}
_AGE = ("Age", ".metadata.creationTimestamp", "date")


def define(registry: Registry, kinds: Iterable[SandboxKind], crds: Iterable[Json] = ()) -> None:
    """Have a server serve kinds.

    Args:
        registry: the server.
        kinds: those that it does not serve yet get a definition made from their row.
        crds: definitions that come first, so they stand in place of those made from rows.

    Raises:
        StatusError: one of `crds` is not valid.
    """
    for crd in crds:
        registry.create_object(crd)
    for kind in kinds:
        try:
            registry.type_of(kind.resource)
        except StatusError:
            registry.create_object(definition(kind))


def definition(kind: SandboxKind) -> Json:
    """The CustomResourceDefinition of a kind."""
    gvk, plural = kind.resource.gvk, kind.resource.plural
    columns = [*((name, path, "string") for name, path in kind.columns), _AGE]
    version: Json = {
        "name": gvk.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema(kind)},
        "additionalPrinterColumns": [{"name": name, "type": of, "jsonPath": path} for name, path, of in columns],
    }
    if kind.status_subresource:
        version["subresources"] = {"status": {}}
    names = {
        "kind": gvk.kind,
        "listKind": f"{gvk.kind}List",
        "plural": plural,
        "singular": gvk.kind.lower(),
        "shortNames": list(kind.short_names),
        "categories": ["all"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{gvk.group}"},
        "spec": {"group": gvk.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _schema(kind: SandboxKind) -> Json:
    schema: Json = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": dict(_ANYTHING),
            "status": dict(_ANYTHING),
        },
    }
    for path, example in ((kind.suspend, kind.suspended_as), (kind.managed_by, "")):
        if path is not None and path[0] == "spec":  # the rest is the same for all kinds
            _declare(schema, path, example)
    return schema


def _declare(schema: Json, path: tuple[str, ...], example: Any) -> None:
    """Give the field at a path the type of an example of its values."""
    for step in path[:-1]:
        schema = schema.setdefault("properties", {}).setdefault(step, dict(_ANYTHING))
    known = (
        {"type": _TYPES[type(example)]} if type(example) in _TYPES else {"x-kubernetes-preserve-unknown-fields": True}
    )
    schema.setdefault("properties", {})[path[-1]] = known
