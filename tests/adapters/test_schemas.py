"""Whether a field of a declaration exists: where a definition tells, and where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.adapters.paths import FieldPath
from multikueue.core.model.names import Json


def definition(spec: Json) -> Json:
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}, {"name": "v1alpha1"}]}}


RUN_POLICY: Json = {"type": "object", "properties": {"managedBy": {"type": "string"}}}
KNOWN: Json = {
    "type": "object",
    "properties": {
        "runPolicy": RUN_POLICY,
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "limits": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"type": "object", "additionalProperties": True},
    },
}


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        (".spec.runPolicy.managedBy", False),
        (".spec.managedBy", True),
        (".spec.runPolicy.suspend", True),
        (".spec.free.anything.at.all", False),
        (".spec.limits.cpu", False),
        (".spec.limits.cpu.max", True),
        (".spec.open.whatever", False),
        (".status.phase", True),
        (".metadata.labels.team", False),
    ],
)
def test_a_field_is_missing_only_if_the_server_would_drop_it(path: str, missing: bool) -> None:
    assert FieldPath.parse(path).is_unknown_to(definition(KNOWN), "v1") is missing


@pytest.mark.parametrize("version", ["v1alpha1", "v2"])
def test_a_version_without_a_schema_tells_nothing(version: str) -> None:
    assert not FieldPath.parse(".spec.nothing").is_unknown_to(definition(KNOWN), version)


@pytest.mark.parametrize("broken", [{}, {"spec": None}, {"spec": {"versions": None}}])
def test_a_definition_that_is_none_tells_nothing(broken: dict[str, Any]) -> None:
    assert not FieldPath.parse(".spec.a").is_unknown_to(broken, "v1")
