"""The schema by which Helm refuses settings is made of their types."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from multikueue.core.model.names import Json
from multikueued.settings.kueue_configuration import PASSED_OVER, SPELLINGS
from tests.docs import chart_schema, settings_table

SCHEMA: Json = json.loads(chart_schema.FILE.read_text())


def resolved(schema: Json) -> Json:
    """The definition that a schema refers to."""
    return SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def paths(schema: Json, before: str = "") -> Iterator[str]:
    """The places that a schema has, as settings are named."""
    for name, inner in resolved(schema).get("properties", {}).items():
        yield f"{before}{name}"
        yield from paths(inner, f"{before}{name}.")


OURS = set(paths(SCHEMA["properties"]["settings"]["else"]))
KUEUES = set(paths(SCHEMA["properties"]["settings"]["then"]))


def test_it_is_up_to_date() -> None:
    """`python -m tests.docs.chart_schema` writes it."""
    assert chart_schema.schema() == chart_schema.FILE.read_text()


def test_every_setting_of_the_reference_is_in_it() -> None:
    reference = {".".join(setting.path) for setting in settings_table.settings()}
    assert len(reference) > 50
    assert reference - OURS == set()


def test_what_kueue_alone_has_is_taken_in_kueues_configuration_only() -> None:
    alone = {*PASSED_OVER, *SPELLINGS}
    assert alone & OURS == set()
    assert alone - KUEUES == set()
    assert OURS <= KUEUES


def test_each_group_refuses_what_it_does_not_know() -> None:
    groups = [definition for definition in SCHEMA["definitions"].values() if "properties" in definition]
    assert len(groups) > 15
    assert [group for group in groups if group["additionalProperties"] is not False] == []


def test_a_type_of_which_nothing_is_known_is_named() -> None:
    with pytest.raises(TypeError, match="complex"):
        chart_schema.Schemas().of(complex)
