"""Label and field selectors."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.storage.selectors import Selector, parse_fields, parse_labels
from multikueue.sandbox.apiserver.storage.store import Entry
from tests.sandbox.apiserver.objects import CONFIG_MAPS, config_map


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("x=1", {"x": "1"}, True),
        ("x = 1", {"x": "1"}, True),
        ("x==1", {"x": "2"}, False),
        ("x!=1", {}, True),
        ("x=", {"x": ""}, True),
        ("x in (1, 2)", {"x": "2"}, True),
        ("x in (1,2)", {}, False),
        ("x notin (1)", {}, True),
        ("x", {"x": ""}, True),
        ("!x", {"x": ""}, False),
        ("x>3", {"x": "4"}, True),
        ("x<3", {"x": "many"}, False),
        ("a/b.c=1,!y", {"a/b.c": "1"}, True),
    ],
)
def test_label_selectors_match_as_kubernetes_says(text: str, labels: dict[str, str], matches: bool) -> None:
    """Including the rule that a missing label satisfies the negative operators."""
    assert Selector(parse_labels(text)).matches(Entry(1, {"metadata": {"labels": labels}})) is matches


@pytest.mark.parametrize("text", ["x in (1", "x in 1", "=1", "!", "x=1 y=2", "x=1;y=2", "(", "x ~ 1"])
def test_nonsense_is_a_bad_request(text: str) -> None:
    """A selector that cannot be parsed never selects everything by accident."""
    with pytest.raises(StatusError) as caught:
        parse_labels(text)
    assert caught.value.code == 400


@given(st.text(alphabet="xy=!,()in 1<>", max_size=20))
def test_parsing_ends_in_a_selector_or_a_bad_request(text: str) -> None:
    """Whatever is typed, no other error comes out."""
    with suppress(StatusError):
        parse_labels(text)


def test_fields_that_cannot_be_selected_are_refused() -> None:
    """A client must not think its filter was applied."""
    with pytest.raises(StatusError, match=r"field label not supported: data.x"):
        Selector.parse(CONFIG_MAPS, fields="data.x=1")


def test_field_selectors_compare_text() -> None:
    """A missing field is the empty string."""
    entry = Entry(1, {**config_map("a"), "spec": {"unschedulable": True}})
    assert Selector((), parse_fields("metadata.name=a,spec.unschedulable=true,spec.none=")).matches(entry)
    assert not Selector((), parse_fields("metadata.name!=a")).matches(entry)
