"""Reading and comparing JSON objects.

Text from outside as people may be shown it.

Identities and how they are written.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import (
    annotations_of,
    counted,
    dig,
    digest,
    is_terminating,
    labels_of,
    merge_patch,
    names_any,
    pruned,
    resource_version,
    shortened,
    uid,
    version_number,
    with_value,
    without,
)
from multikueue.core.model.outside_text import one_line, without_controls
from tests.core.applying import merged

scalars = st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2)
keys = st.text("abc", min_size=1, max_size=1)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(keys, values, max_size=4)


@given(objects, objects)
def test_a_merge_patch_applied_gives_the_new_object(old: Json, new: Json) -> None:
    """Whatever a worker's status becomes, the manager's becomes the same."""
    before = copy.deepcopy(old)
    assert merged(old, merge_patch(old, new)) == new
    assert old == before


@given(objects)
def test_equal_objects_have_an_empty_patch(value: Json) -> None:
    """An empty patch is a write that need not be sent."""
    assert merge_patch(value, copy.deepcopy(value)) == {}


@given(objects, objects)
def test_a_patch_is_empty_only_for_equal_objects(old: Json, new: Json) -> None:
    """No difference is overlooked."""
    assert (merge_patch(old, new) == {}) == (old == new)


def test_lists_are_replaced_and_missing_fields_removed() -> None:
    """As RFC 7386 has it."""
    old = {"a": [1, 2], "b": {"c": 1, "d": 2}, "e": 1}
    assert merge_patch(old, {"a": [1], "b": {"c": 1}}) == {"a": [1], "b": {"d": None}, "e": None}


@given(objects)
def test_a_digest_does_not_depend_on_the_order_of_keys(value: Json) -> None:
    """API servers are free to reorder them."""
    assert digest(dict(reversed(value.items()))) == digest(value)


def test_digests_tell_values_apart() -> None:
    assert len({digest(value) for value in ({}, {"a": 1}, {"a": "1"}, {"a": [1]}, {"b": 1})}) == 5


@given(values)
def test_pruning_twice_is_pruning_once(value: Any) -> None:
    assert pruned(pruned(value)) == pruned(value)


def test_pruning_drops_what_api_servers_may_not_keep() -> None:
    """And keeps zero, false and the empty string, which mean something."""
    value = {"a": None, "b": {}, "c": [], "d": {"e": {"f": None}}, "g": 0, "h": False, "i": "", "j": [{"k": None}, 1]}
    assert pruned(value) == {"g": 0, "h": False, "i": "", "j": [{}, 1]}


@pytest.mark.parametrize("path", [("x",), ("a", "x"), ("a", "b", "c", "d"), ("l", "b")])
def test_a_path_that_leads_nowhere_is_none(path: tuple[str, ...]) -> None:
    """Objects of newer or older versions lack fields: that is no error."""
    assert dig({"a": {"b": {"c": 1}}, "l": [1]}, *path) is None


def test_a_path_leads_to_its_value() -> None:
    assert dig({"a": {"b": {"c": 1}}}, "a", "b", "c") == 1
    assert dig(None, "a") is None


def test_metadata_that_is_absent_or_null_reads_as_empty() -> None:
    """The wire has both."""
    for obj in ({}, {"metadata": None}, {"metadata": {"labels": None, "annotations": None}}):
        assert labels_of(obj) == annotations_of(obj) == {}
        assert uid(obj) == resource_version(obj) == ""
        assert not is_terminating(obj)
    assert is_terminating({"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}})


def test_removing_paths_leaves_the_original_alone() -> None:
    """Caches hand out their own objects; a path that is not there is no error."""
    original = {"a": {"b": 1, "c": 2}, "d": 3}
    assert without(original, [("a", "b"), ("d",), ("x", "y"), ("a", "b", "z")]) == {"a": {"c": 2}}
    assert original == {"a": {"b": 1, "c": 2}, "d": 3}


def test_setting_a_path_makes_its_parents() -> None:
    original: Json = {"a": {"b": 1}}
    assert with_value(original, ("a", "c", "d"), 5) == {"a": {"b": 1, "c": {"d": 5}}}
    assert original == {"a": {"b": 1}}


@given(st.text(max_size=40), st.integers(4, 30))
def test_a_shortened_text_fits_and_says_that_it_was_cut(text: str, limit: int) -> None:
    """Limits are in bytes; no character is cut in half."""
    short = shortened(text, limit)
    assert len(short.encode()) <= limit
    assert short == text or short.endswith(" ...")


def test_a_resource_version_without_end_is_none() -> None:
    """A server's: Python refuses to read 4,300 digits, and its connection would end with an error of ours."""
    read = [version_number(version) for version in ("7", "9" * 30, "9" * 5000, "x", "")]
    assert read == [7, 10**30 - 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("012", 12), ("", None), ("-1", None), ("1.5", None), ("²", None), ("9" * 5000, None)],
)
def test_a_number_in_an_annotation_is_one_or_none(text: str, number: int | None) -> None:
    """Anybody may write it: Python refuses to read one of thousands of digits, and nothing that reads it may stop."""
    assert counted(text) == number


HIDDEN = [
    "\x1b]0;title\x07",  # the terminal's title
    "\x1b[2J",  # clears the screen
    "\x9b2J",  # the same, as one character
    "\u202e",  # turns the direction
    "\u200b",
    "\u2066",
    "\x08",
    "\r",
    "\u2028",
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_a_terminal_acts_on_is_taken_out(hidden: str) -> None:
    for cleaned in (one_line(f"a{hidden}b"), without_controls(f"a{hidden}b")):
        assert not any(character in cleaned for character in "\x1b\x07\x9b\u202e\u200b\u2066\x08\r\u2028")
        assert cleaned[0] + cleaned[-1] == "ab"


def test_lines_and_tabs_stay_where_there_may_be_several() -> None:
    assert without_controls("a\n\tb é 日本") == "a\n\tb é 日本"
    assert one_line(" a\n\tb  é ") == "a b é"


POD = GVK("", "v1", "Pod")
SET = GVK("apps", "v1", "StatefulSet")


@pytest.mark.parametrize(
    ("gvk", "api_version", "text"),
    [(POD, "v1", "/v1, Kind=Pod"), (SET, "apps/v1", "apps/v1, Kind=StatefulSet")],
    ids=["core group", "named group"],
)
def test_a_gvk_reads_and_writes_both_forms(gvk: GVK, api_version: str, text: str) -> None:
    """The owner annotation's form is Kueue's; an owner reference has the other."""
    assert (gvk.api_version, str(gvk)) == (api_version, text)
    assert GVK.of(api_version, gvk.kind) == gvk
    assert GVK.parse(text) == gvk


@pytest.mark.parametrize("text", ["", "Pod", "v1, Kind=Pod", "apps/v1, Kind=", "apps/v1 Kind=Pod"])
def test_what_is_not_a_gvk_is_none(text: str) -> None:
    """A damaged annotation is no crash."""
    assert GVK.parse(text) is None


def test_a_resource_is_named_as_in_rbac() -> None:
    assert str(JOB) == "jobs.batch"
    assert str(WORKLOAD) == "workloads.kueue.x-k8s.io"
    assert str(Resource(POD, "pods")) == "pods"


def test_keys_are_namespace_and_name() -> None:
    """Cluster-scoped objects have no namespace; an object without metadata has an empty key."""
    assert str(ObjectKey.of({"metadata": {"namespace": "a", "name": "b"}})) == "a/b"
    assert str(ObjectKey.of({"metadata": {"name": "b"}})) == "b"
    assert ObjectKey.of({}) == ObjectKey("", "")


@pytest.mark.parametrize("depth", [0, 900])
def test_a_name_is_found_wherever_it_is(depth: int) -> None:
    value: Any = {"labels": {"example.com/name": "é"}}
    for _ in range(depth):
        value = [value]
    assert names_any(value, ("another", "example.com/name"))
    assert not names_any(value, ("another",))
