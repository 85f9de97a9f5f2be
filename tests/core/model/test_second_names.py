"""Which MultiKueueCluster comes first of those that lead to one cluster: a table, and what holds for any of them."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.conditions import replaced
from multikueue.core.model.labels import CORDON_ANNOTATION, DIFFERENT_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.second_names import (
    SECOND_NAME,
    Because,
    ClusterNames,
    SecondName,
    cluster_names,
    second_name,
    second_name_status,
    why_nothing_new,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
BOTH = {"w1": "uid", "w2": "uid"}


def cluster(name: str, *, made: int = 0, different: str | None = None, says: SecondName | None = None) -> Json:
    """A MultiKueueCluster, made so many minutes after others."""
    metadata: Json = {"name": name, "creationTimestamp": f"2026-01-01T00:{made:02}:00Z"}
    if different is not None:
        metadata["annotations"] = {DIFFERENT_ANNOTATION: different}
    obj: Json = {"metadata": metadata}
    return obj if says is None else saying(obj, says)


def saying(cluster: Json, says: SecondName | None) -> Json:
    """The MultiKueueCluster with what a process has written there."""
    listed = [entry for entry in (cluster.get("status") or {}).get("conditions", []) if entry["type"] != SECOND_NAME]
    wanted = second_name_status({**cluster, "status": {}}, says, NOW) if says is not None else None
    return {**cluster, "status": {"conditions": listed if wanted is None else replaced(listed, wanted)}}


def seconds(*clusters: Json, listed: Collection[str] = (), of: Mapping[str, str] = BOTH) -> dict[str, str]:
    return {name: second.first for name, second in cluster_names(clusters, listed, of).seconds.items()}


@pytest.mark.parametrize(
    ("clusters", "listed", "expected"),
    [
        ((cluster("w1"), cluster("w2")), (), {"w2": "w1"}),
        ((cluster("w1", made=1), cluster("w2")), (), {"w1": "w2"}),
        ((cluster("w1"), cluster("w2", made=1)), ("w2",), {"w1": "w2"}),
        ((cluster("w1", made=1), cluster("w2")), ("w1", "w2"), {"w1": "w2"}),
        ((cluster("w2"),), ("w1",), {"w1": "w2"}),
    ],
    ids=["by name", "the older one", "the listed one", "the older one of the listed", "not one that is gone"],
)
def test_which_comes_first(clusters: tuple[Json, ...], listed: tuple[str, ...], expected: Mapping[str, str]) -> None:
    assert seconds(*clusters, listed=listed) == expected


def test_other_clusters_are_not_concerned() -> None:
    assert seconds(cluster("w1"), cluster("w2"), of={"w1": "uid", "w2": "another"}) == {}
    assert seconds(cluster("w1"), cluster("w2"), of={"w1": "uid"}) == {}


def test_a_third_name_is_one_of_the_first() -> None:
    three = cluster_names([*map(cluster, ("w1", "w2", "w3"))], (), {"w1": "uid", "w2": "uid", "w3": "uid"})
    assert {second.first for second in three.seconds.values()} == {"w1"}
    assert [three.same_as(name) for name in ("w1", "w2", "w4")] == [["w2", "w3"], ["w1", "w3"], []]


@pytest.mark.parametrize("on", ["w1", "w2"])
@pytest.mark.parametrize("text", ["{other}", "w7, {other} ,", "w7"], ids=["it", "with others", "another one"])
def test_two_may_be_said_to_be_different(on: str, text: str) -> None:
    other = {"w1": "w2", "w2": "w1"}[on]
    said = (cluster(name, different=text.format(other=other) if name == on else None) for name in ("w1", "w2"))
    names = cluster_names(said, (), BOTH)
    assert (names.seconds == {}, bool(names.apart)) == ((True, True) if "{" in text else (False, False))


def test_which_is_void_once_one_shows_what_was_made_through_the_other() -> None:
    """Also for a process that starts, which has not seen that; until the annotation is taken off."""
    pair = frozenset(("w1", "w2"))
    clusters = cluster("w1", different="w2"), cluster("w2")
    names = cluster_names(clusters, (), BOTH, {pair})
    assert names.seconds == {"w2": SecondName("w1", "uid", Because.NOT_DIFFERENT)}
    second = saying(clusters[1], names.seconds["w2"])
    assert cluster_names([clusters[0], second], (), BOTH) == names
    assert cluster_names([cluster("w1"), second], (), BOTH).seconds["w2"].because is Because.SAME_CLUSTER


def test_a_process_that_starts_knows_it_before_the_first_answers() -> None:
    second = cluster("w2", says=SecondName("w1", "uid"))
    assert seconds(cluster("w1"), second, of={"w2": "uid"}) == {"w2": "w1"}
    assert seconds(cluster("w1"), second, of={}) == {"w2": "w1"}
    assert seconds(second, of={"w2": "uid"}) == {}, "the first was removed"
    assert seconds(cluster("w1"), second, of={"w2": "another"}) == {}, "it leads elsewhere by now"
    assert seconds(cluster("w1", made=1), second, listed=["w2"], of={"w2": "uid"}) == {"w1": "w2"}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"first": "w1"}', '{"first": "", "uid": "uid"}'])
def test_what_cannot_be_read_says_nothing(text: str) -> None:
    made = cluster("w2", says=SecondName("w1", "uid"))
    made["status"]["conditions"][0]["message"] = text
    assert second_name(made) is None


def test_why_it_gets_nothing_new() -> None:
    made = cluster("w2", says=SecondName("w1", "uid"))
    assert why_nothing_new(cluster("w2")) == ""
    assert why_nothing_new(made) == "it leads to the same cluster as w1, and gets nothing beside it"
    made["metadata"]["annotations"] = {CORDON_ANNOTATION: "racks"}
    assert why_nothing_new(made) == "cordoned: racks"


NAMES = st.sampled_from(["w1", "w2", "w3", "w4"])
CLUSTERS = st.lists(
    st.builds(
        cluster,
        NAMES,
        made=st.integers(0, 2),
        different=st.none() | st.lists(NAMES, max_size=2).map(",".join),
    ),
    unique_by=lambda obj: obj["metadata"]["name"],
)
UIDS = st.dictionaries(NAMES, st.sampled_from(["a", "b"]))
PAIRS = st.sets(st.sets(NAMES, min_size=2, max_size=2).map(frozenset), max_size=2)


@given(clusters=CLUSTERS, listed=st.sets(NAMES), uids=UIDS, shown=PAIRS, dice=st.randoms(use_true_random=False))
def test_the_order_of_what_is_shown_changes_nothing(
    clusters: list[Json], listed: set[str], uids: dict[str, str], shown: set[frozenset[str]], dice: random.Random
) -> None:
    names = cluster_names(clusters, listed, uids, shown)
    mixed = sorted(clusters, key=lambda _: dice.random())
    assert cluster_names(mixed, listed, dict(reversed(uids.items())), shown) == names
    for name, second in names.seconds.items():
        assert second.first not in names.seconds
        assert uids[name] == uids[second.first] == second.uid
    for pair in names.apart:
        assert not {*pair} & {name for name, second in names.seconds.items() if second.first in pair and name in pair}


@given(clusters=CLUSTERS, listed=st.sets(NAMES), uids=UIDS, shown=PAIRS, heard=st.sets(NAMES))
def test_a_process_that_has_heard_of_some_only_finds_the_same_second_names(
    clusters: list[Json], listed: set[str], uids: dict[str, str], shown: set[frozenset[str]], heard: set[str]
) -> None:
    """Of a cluster that nobody has said to be the same nothing is known yet: it is in no group before it answers."""
    known = {obj["metadata"]["name"] for obj in clusters}
    uids = {name: uid for name, uid in uids.items() if name in known}
    before = cluster_names(clusters, listed, uids, shown)
    written = [saying(obj, before.seconds.get(obj["metadata"]["name"])) for obj in clusters]
    after = cluster_names(written, listed, {name: uid for name, uid in uids.items() if name in heard})
    assert after.seconds == before.seconds


def test_the_condition_is_written_once() -> None:
    made, says = cluster("w2"), SecondName("w1", "uid")
    written = saying(made, says)
    assert second_name(written) == says
    assert second_name_status(written, says, NOW) is None
    assert second_name_status(written, attrs.evolve(says, first="w3"), NOW) is not None
    assert second_name(made) is None
    assert ClusterNames().same_as("w2") == []
