"""The versioned store."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import decode
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.storage.store import Store

THINGS = ("", "things")


def thing(name: str, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}}


def test_every_write_has_its_own_revision() -> None:
    """A client can order any two writes, of whatever kind."""
    store = Store(10)
    revisions = [
        store.put(THINGS, ("n", "a"), thing("a")).revision,
        store.put(("", "others"), ("n", "b"), thing("b")).revision,
        store.put(THINGS, ("n", "a"), thing("a")).revision,
        store.remove(THINGS, ("n", "a")).revision,
    ]
    assert revisions == sorted(set(revisions))


def test_an_old_revision_can_be_read_as_long_as_it_is_remembered() -> None:
    """Pages of one list come from one snapshot although others write in between."""
    store = Store(10)
    store.put(THINGS, ("n", "a"), thing("a", labels={"x": "1"}))
    then = store.put(THINGS, ("n", "b"), thing("b")).revision
    store.put(THINGS, ("n", "a"), thing("a", labels={"x": "2"}))
    store.remove(THINGS, ("n", "b"))
    store.put(THINGS, ("n", "c"), thing("c"))
    keys, objects = store.snapshot(THINGS, then)
    assert keys == [("n", "a"), ("n", "b")]
    assert objects["n", "a"].obj["metadata"]["labels"] == {"x": "1"}


def test_a_forgotten_revision_is_410() -> None:
    """The log is bounded, and says so when it is asked for more."""
    store = Store(2)
    first = store.put(THINGS, ("n", "a"), thing("a")).revision
    for _ in range(5):
        store.put(THINGS, ("n", "a"), thing("a"))
    with pytest.raises(StatusError) as caught:
        store.snapshot(THINGS, first)
    assert caught.value.code == 410


def test_compaction_forgets_everything() -> None:
    """After it, only the present can be read."""
    store = Store(10)
    first = store.put(THINGS, ("n", "a"), thing("a")).revision
    store.put(THINGS, ("n", "a"), thing("a"))
    store.compact()
    with pytest.raises(StatusError):
        store.snapshot(THINGS, first)
    assert store.snapshot(THINGS, store.revision)[0] == [("n", "a")]


def test_the_bytes_are_encoded_once_and_hold_the_revision() -> None:
    """Lists and watches share them."""
    store = Store(10)
    entry = store.put(THINGS, ("n", "a"), thing("a"))
    change = store.bucket(THINGS).log[-1]
    assert change.new.raw is entry.raw
    assert decode(entry.raw)["metadata"]["resourceVersion"] == str(entry.revision)


def test_superseded_entries_still_read_right() -> None:
    """Dropping the decoded object of an old revision loses nothing."""
    store = Store(10)
    old = store.put(THINGS, ("n", "a"), thing("a", labels={"x": "1"}))
    store.put(THINGS, ("n", "a"), thing("a"))
    assert old.obj["metadata"]["labels"] == {"x": "1"}
    assert old.labels == {"x": "1"}


def test_dependents_follow_owner_references() -> None:
    """The index knows who names an owner, and forgets when the reference goes."""
    store = Store(10)
    owned = thing("a", ownerReferences=[{"uid": "u"}])
    store.put(THINGS, ("n", "a"), owned)
    assert [key for _, key, _ in store.dependents("u")] == [("n", "a")]
    store.put(THINGS, ("n", "a"), thing("a"))
    assert not store.owns("u")


def test_keys_of_a_namespace_are_a_slice() -> None:
    """Namespaces whose names are prefixes of each other stay apart."""
    store = Store(10)
    for namespace in ("n", "n-1", "m", "na"):
        store.put(THINGS, (namespace, "a"), thing("a"))
    assert store.bucket(THINGS).keys_of("n") == [("n", "a")]
    assert len(store.bucket(THINGS).keys_of(None)) == 4
