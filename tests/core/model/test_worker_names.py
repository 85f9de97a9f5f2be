"""How namespaces and queues are called on a worker: what is taken, what is refused, and why."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.labels import (
    NAMESPACE_ON_ANNOTATION,
    NAMESPACES_ANNOTATION,
    ORIGIN_LABEL,
    ORIGIN_NAMESPACE_ANNOTATION,
    QUEUES_ANNOTATION,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.worker_names import WorkerNames, is_copy_elsewhere, namespace_on

ISSUES = {"team-a": "mk-team-a", "*": "mk-*"}


def names(namespaces: object = None, queues: object = None) -> WorkerNames:
    annotations = {NAMESPACES_ANNOTATION: namespaces, QUEUES_ANNOTATION: queues}
    return WorkerNames.of(
        {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in annotations.items()
            if value is not None
        }
    )


def test_without_annotations_all_names_are_the_same() -> None:
    mapped = names()
    assert mapped.namespace("x" * 63) == "x" * 63
    assert mapped.why_none("team-a") == ""
    assert mapped.local_queue(ObjectKey("team-a", "lq")) == ObjectKey("team-a", "lq")


@pytest.mark.parametrize(
    ("mapping", "namespace", "there"),
    [
        (ISSUES, "team-a", "mk-team-a"),
        (ISSUES, "team-b", "mk-team-b"),
        ({"team-a": "a"}, "team-b", ""),
        ({}, "team-a", ""),
        ({"dev-*": "d-*", "*": "x-*", "dev-a": "own"}, "dev-a", "own"),
        ({"dev-*": "d-*", "*": "x-*", "dev-a": "own"}, "dev-b", "d-b"),
        ({"dev-*": "d-*", "*": "x-*"}, "dev-", "x-dev-"),
        ({"*": "mk-*"}, "x" * 60, "mk-" + "x" * 60),
        ({"*": "mk-*"}, "x" * 61, ""),
        ({"*-prod": "p-*"}, "a-prod", "p-a"),
        ({"*": "*"}, "team-a", "team-a"),
    ],
)
def test_the_name_alone_goes_before_the_longest_pattern(mapping: Json, namespace: str, there: str) -> None:
    mapped = names(mapping)
    assert mapped.flaw == ""
    assert mapped.namespace(namespace) == there
    assert bool(mapped.why_none(namespace)) is not bool(there)


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ({"a": "x", "b": "x"}, '"a" and "b" would be one namespace there'),
        ({"b": "mk-a", "*": "mk-*"}, '"b" and "a", as of "*", would be one namespace there'),
        ({"a-*": "x-*", "b-*": "x-*"}, "would be one namespace there"),
        ({"a-*": "x-*", "b-*": "x-y*"}, '"a-*" and "b-*" can lead to one namespace there'),
        ({"a": "x" * 64}, "is longer than 63"),
        ({"a": "A"}, "are not two names"),
        ({"a": "x-*"}, "are not two names"),
        ({"a*": "x"}, "are not two names"),
        ({"**": "x-**"}, "are not two names"),
        ({"*": "-*"}, "are not two names"),
        ({"a": ""}, "are not two names"),
        ('{"a": "x", "a": "y"}', "a name stands in it twice"),
        ("{", "it is no JSON"),
        ("[" * 100_000, "cannot be used"),
        ('{"a": 1}', "it must be an object of names"),
        ('["a"]', "it must be an object of names"),
    ],
)
def test_what_could_make_two_namespaces_one_is_refused_with_the_reason(mapping: object, why: str) -> None:
    mapped = names(mapping)
    assert why in mapped.flaw
    assert NAMESPACES_ANNOTATION in mapped.flaw
    assert mapped.namespace("a") == ""
    assert mapped.why_none("a") == mapped.flaw


def test_queues_have_names_of_their_own() -> None:
    mapped = names(ISSUES, {"lq-a": "lq-b"})
    assert mapped.local_queue(ObjectKey("team-a", "lq-a")) == ObjectKey("mk-team-a", "lq-b")
    assert mapped.local_queue(ObjectKey("team-a", "other")) == ObjectKey("mk-team-a", "other")
    assert "is no name" in names(queues={"lq-a": "B/c"}).flaw


_WORDS = st.text("ab-", min_size=1, max_size=4)
_PATTERNS = st.tuples(st.text("ab-", max_size=2), st.text("ab-", max_size=2)).map("*".join)


@given(st.dictionaries(_WORDS | _PATTERNS, _WORDS | _PATTERNS, max_size=4), st.sets(_WORDS, max_size=12))
def test_no_two_namespaces_are_ever_one(mapping: dict[str, str], namespaces: set[str]) -> None:
    """Whoever may create jobs in one must not read what is in the other."""
    mapped = names(mapping)
    images = [image for namespace in namespaces if (image := mapped.namespace(namespace))]
    assert len(set(images)) == len(images)


def test_the_workload_says_where_its_copies_are() -> None:
    def placed(noted: str | None, **status: object) -> Json:
        annotations = {} if noted is None else {NAMESPACE_ON_ANNOTATION: noted}
        return {"metadata": {"name": "w", "namespace": "team-a", "annotations": annotations}, "status": status}

    assert namespace_on(placed(None), "w1") == "team-a"
    assert namespace_on(placed('{"w1": "mk-a"}'), "w1") == "mk-a"
    assert namespace_on(placed('{"w1": "mk-a"}'), "w2") == "team-a"
    for odd in ("{", "[]", '{"w1": 1}', '{"w1": "../x"}', '{"w1": null}'):
        assert namespace_on(placed(odd), "w1") == "team-a"
    quota = [{"type": "QuotaReserved", "status": "True"}]
    running = placed('{"w1": "before"}', clusterName="w1", conditions=quota)
    assert namespace_on(placed('{"w1": "mk-a"}'), "w1", [running]) == "before"  # they share a job, which is there
    assert namespace_on(placed('{"w2": "mk-a"}'), "w2", [running]) == "mk-a"
    assert namespace_on(placed(None), "w1", [placed(None, clusterName="w1", conditions=quota), running]) == "before"
    over = placed('{"w1": "before"}', clusterName="w1", conditions=[*quota, {"type": "Finished", "status": "True"}])
    assert namespace_on(placed('{"w1": "mk-a"}'), "w1", [over]) == "mk-a"
    evicted = placed('{"w1": "before"}', conditions=[{"type": "Evicted", "status": "True"}])
    for left in (over, evicted):  # pods of its job may still end there
        assert namespace_on(placed(None), "w1", [left]) == "before"
        assert namespace_on(placed(None), "w2", [left]) == "team-a"


def on_manager(namespaces: object) -> WorkerNames:
    said = {} if namespaces is None else {NAMESPACES_ANNOTATION: json.dumps(namespaces)}
    return WorkerNames.of(said, of_manager=True)


class TestOnTheManagerItself:
    """A copy may have the name of nothing that a user has put there."""

    @pytest.mark.parametrize(
        "mapping",
        [
            None,
            {"*": "*"},
            {"a": "a"},
            {"a": "b", "b": "a"},
            {"a": "b", "b": "c"},
            {"team-*": "team-*"},
            {"team-x-*": "team-*"},
        ],
    )
    def test_names_that_both_sides_have_are_refused_with_what_to_do(self, mapping: Json | None) -> None:
        mapped = on_manager(mapping)
        assert NAMESPACES_ANNOTATION in mapped.flaw
        assert mapped.namespace("a") == ""
        elsewhere = names() if mapping is None else names(mapping)
        assert elsewhere.flaw == ""

    @pytest.mark.parametrize("mapping", [ISSUES, {"team-*": "local-team-*"}, {"*": "mk-*", "x": "pool"}, {}])
    def test_what_holds_copies_has_no_copies_itself(self, mapping: Json) -> None:
        mapped = on_manager(mapping)
        assert mapped.flaw == ""
        for namespace in ("team-a", "x", "b"):
            image = mapped.namespace(namespace)
            assert image != namespace
            assert not image or mapped.namespace(image) == ""
            assert not image or "for copies" in mapped.why_none(image) or "none there" in mapped.why_none(image)

    @given(st.dictionaries(st.from_regex(r"[ab*]{1,3}", fullmatch=True), st.from_regex(r"[ab*]{1,3}", fullmatch=True)))
    def test_no_namespace_has_both_jobs_and_copies(self, mapping: dict[str, str]) -> None:
        mapped = on_manager(mapping)
        sources = [word for length in (1, 2, 3, 4) for word in _words(length) if mapped.namespace(word)]
        assert not {mapped.namespace(source) for source in sources} & set(sources)


def _words(length: int) -> list[str]:
    return [""] if length == 0 else [word + letter for word in _words(length - 1) for letter in "ab"]


@pytest.mark.parametrize(
    ("origin", "came_from", "is_copy"),
    [("us", "team-a", True), ("us", "local-a", False), ("us", None, False), ("others", "team-a", False)],
)
def test_a_copy_of_what_another_namespace_has_is_nobodys_job(origin: str, came_from: str | None, is_copy: bool) -> None:
    annotations = {} if came_from is None else {ORIGIN_NAMESPACE_ANNOTATION: came_from}
    obj = {"metadata": {"labels": {ORIGIN_LABEL: origin}, "annotations": annotations}}
    assert is_copy_elsewhere(obj, "local-a", "us") is is_copy
