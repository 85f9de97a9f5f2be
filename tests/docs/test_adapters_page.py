"""The page for authors of job kinds: what it shows works as it stands, beside the package and not in it."""

from __future__ import annotations

import re
import tomllib

import attrs
import pytest
import yaml

from multikueue.adapters.declaration import Declaration
from multikueue.adapters.profiles import names
from multikueue.runtime.plugins import KIND_GROUP
from multikueued.settings.file import parse_settings
from multikueued.settings.frameworks import framework_names
from multikueued.settings.kinds import chosen_kinds
from tests.docs.blocks import ADAPTERS, blocks

PAGE = ADAPTERS.read_text()


def test_the_settings_it_shows_can_be_used() -> None:
    shown = [text for text in blocks(ADAPTERS, "yaml") if "externalFrameworks" in text]
    assert shown
    for text in shown:
        assert chosen_kinds(parse_settings(text))


def test_the_object_it_shows_is_one() -> None:
    (shown,) = (yaml.safe_load(text) for text in blocks(ADAPTERS, "yaml") if "apiVersion" in text)
    assert (shown["apiVersion"], shown["kind"]) == ("studio.example.com/v1", "Render")


def test_the_entry_point_it_shows_is_in_our_group() -> None:
    (shown,) = (tomllib.loads(text) for text in blocks(ADAPTERS, "toml"))
    assert list(shown["project"]["entry-points"]) == [KIND_GROUP]


@pytest.mark.parametrize("field", [field.name for field in attrs.fields(Declaration)])
def test_every_field_of_a_declaration_is_in_the_table(field: str) -> None:
    first, *rest = field.split("_")
    assert f"`{first + ''.join(word.capitalize() for word in rest)}`" in PAGE


def test_every_profile_is_named() -> None:
    assert [name for name in names() if name not in PAGE] == []


def test_the_frameworks_it_names_exist() -> None:
    named = set(re.findall(r"\b(?:batch/job|[a-z.-]+\.(?:io|org|dev)/[a-z]+job)\b", PAGE))
    assert named
    assert named <= set(framework_names())
