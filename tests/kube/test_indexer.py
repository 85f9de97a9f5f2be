"""The indexer against the plainest store there is: a dictionary that is searched through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube.informers.indexer import Indexer

VALUES = "abc"
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["one", "two", "three"]),
        st.none() | st.lists(st.sampled_from(VALUES), max_size=3) | st.just("unknown"),
    ),
    max_size=20,
)


def labels_in(obj: Json) -> list[str] | None:
    labels = obj["labels"]
    return None if labels == "unknown" else labels


@given(CHANGES)
def test_an_index_finds_what_a_search_finds(changes: list[tuple[str, list[str] | str | None]]) -> None:
    indexer, values = Indexer({"labels": labels_in}), dict[ObjectKey, frozenset[str]]()

    for name, labels in changes:
        key = ObjectKey("", name)
        indexer.put(key, None if labels is None else {"metadata": {"name": name, "uid": name}, "labels": labels})
        if labels is None:
            values.pop(key, None)
        else:
            values[key] = values.get(key, frozenset()) if isinstance(labels, str) else frozenset(labels)

        assert set(indexer.keys()) == set(values)
        assert indexer.entries("labels") == sorted({value for known in values.values() for value in known})
        assert indexer.indexed("labels") == {key for key, known in values.items() if known}
        for value in VALUES:
            keys = {key for key, known in values.items() if value in known}
            assert indexer.keys_by("labels", value) == keys
            assert indexer.by("labels", value) == [indexer.get(key) for key in sorted(keys)]
        for key, known in values.items():
            assert indexer.values_of("labels", key) == known


def test_an_index_is_added_before_there_are_objects() -> None:
    """One that comes later would not have those that are there."""
    indexer = Indexer({})
    indexer.add_indexes({"name": lambda obj: [obj["metadata"]["name"]]})
    indexer.put(ObjectKey("default", "a"), {"metadata": {"name": "a", "uid": "u"}})
    assert indexer.entries("name") == ["a"]
    with pytest.raises(RuntimeError):
        indexer.add_indexes({"other": lambda _obj: []})
