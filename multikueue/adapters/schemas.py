"""What the schema of a CustomResourceDefinition knows of a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from multikueue.adapters.declaration import Declaration
from multikueue.adapters.paths import FieldPath
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig


def lacks(definition: Json, version: str, path: FieldPath) -> bool:
    """Whether the API server would drop a field of that path. False too where the schema does not tell.

    Args:
        definition: the CustomResourceDefinition.
        version: of the kind.
        path: of the field.
    """
    if path.steps[0] == "metadata":
        return False  # every kind has the same
    versions = [found for found in dig(definition, "spec", "versions") or () if found.get("name") == version]
    schema: Any = dig(versions[0], "schema", "openAPIV3Schema") if versions else None
    for step in path.steps:
        if not isinstance(schema, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
            return False
        known = schema.get("properties")
        if isinstance(known, dict) and step in known:
            schema = known[step]
        elif schema.get("additionalProperties"):
            schema = schema["additionalProperties"]
        else:
            return True
    return False


def unknown_paths(declaration: Declaration, definition: Json, version: str) -> Iterator[tuple[str, str]]:
    """The paths of a declaration that its kind's definition does not have: each as the field it is in, and the path.

    Args:
        declaration: one that has been compiled.
        definition: the kind's CustomResourceDefinition on some cluster.
        version: of the kind.
    """
    for field, text in _paths(declaration):
        if lacks(definition, version, FieldPath.parse(text)):
            yield field, text


def _paths(declaration: Declaration) -> Iterator[tuple[str, str]]:
    single = (("managedByPath", declaration.managed_by_path), ("suspendPath", declaration.suspend_path))
    yield from ((field, text) for field, text in single if text is not None)
    for field, texts in (("statusPaths", declaration.status_paths), ("forwardedPaths", declaration.forwarded_paths)):
        yield from ((f"{field}[{number}]", text) for number, text in enumerate(texts or ()))
