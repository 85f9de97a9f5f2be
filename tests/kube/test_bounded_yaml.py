"""Half a kilobyte of YAML must not be hours of work."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from multikueue.core.model.names import Json
from multikueue.errors import KubeconfigError
from multikueue.kube import parse_worker_kubeconfig
from multikueue.kube.kubeconfigs.bounded_yaml import (
    MAX_DEPTH,
    MAX_NUMBER,
    MAX_SIZE,
    MAX_VALUES,
    BoundedLoader,
    OutOfBoundsError,
)


def load(text: str) -> Any:
    """What it holds."""
    return yaml.load(text, BoundedLoader)  # a SafeLoader


def merges(levels: int, key: str) -> str:
    """Each level merges the one before nine times."""
    lines = ["m0: &m0 {a: 1}"]
    for level in range(1, levels):
        lines.append(f"m{level}: &m{level} {{{key}: [{', '.join([f'*m{level - 1}'] * 9)}]}}")
    return "\n".join(lines)


def aliases(levels: int) -> str:
    """Each level repeats the one before nine times."""
    lines = ["a0: &a0 x"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("key", ["<<", "!!merge <<", '!!merge "x"', "!<tag:yaml.org,2002:merge> y"])
def test_merge_keys_are_refused(key: str) -> None:
    """However they are written."""
    with pytest.raises(yaml.YAMLError, match=r"merge keys .* are not read"):
        load(merges(2, key))


def test_a_small_kubeconfig_that_merges_for_minutes_is_refused() -> None:
    """560 bytes, and nine to the power of ten values."""
    text = merges(12, "!!merge <<")
    assert len(text) < 1000
    with pytest.raises(KubeconfigError, match=r"failed to parse kubeconfig\(apiconfig\)"):
        parse_worker_kubeconfig(text.encode())
    with pytest.raises(KubeconfigError, match=r"merge keys \(<<\) are not read: write the fields out"):
        parse_worker_kubeconfig(merges(2, "!!merge <<").encode())


def test_a_plain_merge_key_in_a_kubeconfig_is_a_field_that_nobody_reads() -> None:
    """There all but booleans and null is text."""
    given: Json = {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "a", "user": "u"}}]}
    given["clusters"] = [{"name": "a", "cluster": {"server": "https://w1"}}]
    given["users"] = [{"name": "u", "user": {"token": "own", "MERGE": {"token": "merged", "username": "x"}}}]
    text = yaml.safe_dump(given).replace("MERGE", "<<")
    assert parse_worker_kubeconfig(text.encode()).token == "own"


def test_aliases_count_as_what_they_repeat() -> None:
    with pytest.raises(OutOfBoundsError, match=f"more than {MAX_VALUES} values"):
        load(aliases(12))
    with pytest.raises(KubeconfigError, match=f"more than {MAX_VALUES} values"):
        parse_worker_kubeconfig(aliases(12).encode())
    long = f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 200)}]"
    with pytest.raises(OutOfBoundsError, match=f"more than {MAX_SIZE} characters"):
        load(long)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x {b: &y 1}\nc: [*x, *y]", {"a": {"b": 1}, "c": [{"b": 1}, 1]}),
        ("&k key: *k", {"key": "key"}),
    ],
)
def test_aliases_within_the_bounds_are_read(text: str, expected: object) -> None:
    assert load(text) == expected


@pytest.mark.parametrize("text", ["&a [*a]", "a: &a {b: [*a]}"])
def test_nothing_holds_itself(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="stands in what it repeats"):
        load(text)


def test_anchors_hold_for_one_document() -> None:
    loaded = list(yaml.load_all("[&a 1, *a]\n---\n[&a 2, *a]", BoundedLoader))
    assert loaded == [[1, 1], [2, 2]]
    with pytest.raises(yaml.YAMLError, match="stands in what it repeats"):
        list(yaml.load_all("&a [1]\n---\n&a [*a]", BoundedLoader))


def test_an_unknown_alias_is_an_error_with_its_place() -> None:
    with pytest.raises(yaml.YAMLError, match="undefined alias"):
        load("a: *nothing")


def test_nesting_is_bounded() -> None:
    assert json.dumps(load("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))).count("[") == MAX_DEPTH - 1
    with pytest.raises(yaml.YAMLError, match=f"more than {MAX_DEPTH} levels"):
        load("[" * 5000)


@pytest.mark.parametrize("tag", ["!!int", "!!float"])
@pytest.mark.parametrize("digits", ["1" + ":1" * 100_000, "1" * 100_000])
def test_numbers_are_short(tag: str, digits: str) -> None:
    """In base 60 a long one takes time by the square of its length."""
    with pytest.raises(yaml.YAMLError, match=f"more than {MAX_NUMBER} characters"):
        load(f"a: {tag} {digits}")
    with pytest.raises(KubeconfigError, match=f"more than {MAX_NUMBER} characters"):
        parse_worker_kubeconfig(f"a: {tag} {digits}".encode())
