"""Paths of fields, as people write them in settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.adapters.paths import FieldPath
from multikueue.adapters.templates import EACH


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (".spec.managedBy", ("spec", "managedBy")),
        ("spec.runPolicy.managedBy", ("spec", "runPolicy", "managedBy")),
        (".metadata.labels['example.com/team']", ("metadata", "labels", "example.com/team")),
        ('.metadata.labels["example.com/team"].x', ("metadata", "labels", "example.com/team", "x")),
    ],
)
def test_a_path_is_read_with_or_without_its_first_dot(text: str, steps: tuple[str, ...]) -> None:
    assert FieldPath.parse(text) == FieldPath(steps)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "an empty path names no field"),
        (".", "from character 1 on"),
        (".spec..managedBy", "from character 6 on"),
        (".spec.managed by", "from character 14 on"),
        (".spec['a", "from character 6 on"),
        (".spec.containers[0].image", "names an item of a list"),
        ("['spec']managedBy", "from character 9 on"),
    ],
)
def test_what_is_no_path_is_refused_where_it_ceases_to_be_one(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FieldPath.parse(text)


NAMES = st.text(st.characters(exclude_characters="'\""), min_size=1).filter(lambda name: name != EACH)
"""Of fields, as labels may be called; what stands for every entry of a list is none."""


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_a_path_reads_as_it_is_written(steps: list[str]) -> None:
    """Whatever a label may be called."""
    path = FieldPath(tuple(steps))
    assert FieldPath.parse(str(path)) == path


def test_a_path_is_a_json_pointer_too() -> None:
    assert FieldPath(("metadata", "labels", "a/b~c")).pointer == "/metadata/labels/a~1b~0c"
