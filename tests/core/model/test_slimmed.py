"""What is kept of large objects."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any
from unittest import mock

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored.job_annotations import LONGEST as LONGEST_WISH
from multikueue.core.dispatchers.scored.job_annotations import SELECTOR
from multikueue.core.model import copies
from multikueue.core.model.copies import SLIMMED, know_digests, spec_digests
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone
from multikueue.core.model.slimmed import (
    LARGE,
    LEFT,
    Slimmer,
    is_slimmed,
    job_slimmer,
    known_spec,
    size_noted,
    small_metadata,
    small_part,
    workload_slimmer,
)
from tests.core.building import workload

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=20), inner, max_size=40),
    max_leaves=200,
)


@given(ANY)
def test_what_is_left_is_small_and_of_the_same_type(value: Any) -> None:
    left = small_part(value)
    assert type(left) is type(value)
    assert len(orjson.dumps(left)) <= 3 * LEFT
    if len(orjson.dumps(value)) <= LEFT and isinstance(value, dict):
        assert left == value


def large(**metadata: Any) -> Json:
    made = workload()
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}, "env": [{"name": "A", "value": "x" * LARGE}]}
    made["spec"]["podSets"] = [{"name": "main", "count": 3, "template": {"spec": {"containers": [container]}}}]
    made["metadata"] |= metadata
    return made


def test_what_decisions_read_of_a_large_workload_stays() -> None:
    whole = large()
    slim = workload_slimmer()(whole, 2 * LARGE)
    assert is_slimmed(slim)
    assert size_noted(slim) == 2 * LARGE
    assert spec_digests(slim) == spec_digests(whole)
    (pod_set,) = slim["spec"]["podSets"]
    assert (pod_set["name"], pod_set["count"]) == ("main", 3)
    assert pod_set["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert slim["status"] == whole["status"]
    assert len(orjson.dumps(slim)) < LARGE


def test_a_small_one_stays_as_it_is() -> None:
    made = workload()
    assert workload_slimmer()(made, LARGE) is made


def test_a_change_of_the_status_takes_the_spec_that_was_left_before() -> None:
    slimmer = workload_slimmer()
    first = slimmer(large(uid="u", generation=1), 2 * LARGE)
    second = slimmer(large(uid="u", generation=1), 3 * LARGE, first)
    third = slimmer(large(uid="u", generation=2), 2 * LARGE, first)
    assert (size_noted(first), size_noted(second)) == (2 * LARGE, 3 * LARGE)
    assert second["spec"] is first["spec"]
    assert third["spec"] is not first["spec"]


class Spec(dict[str, Any]):
    """A spec that can be seen to go."""


@pytest.mark.parametrize("slimmer", [workload_slimmer(), job_slimmer()])
def test_nothing_keeps_the_spec_of_what_was_slimmed(slimmer: Slimmer) -> None:
    """A cache of digests by object kept the specs of a thousand Workloads, of 1.2 MB each."""
    whole = large()
    whole["spec"] = spec = Spec(whole["spec"])
    seen = weakref.ref(spec)
    slim = slimmer(whole, 2 * LARGE)
    del whole, spec
    assert is_slimmed(slim)
    assert seen() is None


@pytest.mark.parametrize("field", ["text", 5, ["item"], None, {"digests": 1}, {"size": "x"}])
def test_an_object_that_comes_with_a_field_of_that_name_is_whole(field: Any) -> None:
    given = {**large(), SLIMMED: field}
    assert not is_slimmed(given)
    assert size_noted(given) == 0
    assert spec_digests(given) == spec_digests(large())
    know_digests(given, given)
    slim = workload_slimmer()(given, 2 * LARGE)
    assert slim == workload_slimmer()(large(), 2 * LARGE)
    given["metadata"] |= {"uid": "u", "generation": 1}
    assert known_spec(given, given).keys() == {"spec"}


def test_a_clone_of_a_slimmed_one_is_slimmed() -> None:
    slim = workload_slimmer()(large(), 2 * LARGE)
    assert clone(slim) == slim
    assert is_slimmed(clone(slim))


def test_annotations_that_decisions_read_stay() -> None:
    names = {"multikueue.dev/a": "x" * 999, "kueue.x-k8s.io/b": "y" * 999, "example.com/c": "z" * 999, "d": "short"}
    slim = job_slimmer()(large(annotations=names), 2 * LARGE)
    assert set(slim["metadata"]["annotations"]) == {"multikueue.dev/a", "kueue.x-k8s.io/b", "d"}


MANY: dict[str, Any] = {
    "labels": {f"example.com/{number}": "x" * 60 for number in range(20_000)},
    "annotations": {f"x{number}.kueue.x-k8s.io/a": "x" * 5_000 for number in range(50)},
    "finalizers": [f"example.com/{number}" for number in range(50_000)],
    "ownerReferences": [{"kind": "ConfigMap", "name": f"map-{number}", "uid": str(number)} for number in range(10_000)],
}
"""What an API server takes of whoever may create jobs."""


@pytest.mark.parametrize("field", MANY)
def test_metadata_are_bounded_too(field: str) -> None:
    """Of 1.5 MB that a tenant had put into them all was kept, of each job, and of the share it took nothing."""
    slim = job_slimmer()(large(**{field: MANY[field]}), 2 * LARGE)
    assert len(orjson.dumps(slim)) < 3 * LARGE
    assert slim["metadata"][field]


def test_what_we_read_of_many_is_kept_first() -> None:
    own = {"multikueue.dev/last-worker": "w1", "kueue.x-k8s.io/pod-group-name": "g" * 60}
    slim = job_slimmer()(large(annotations=MANY["annotations"] | own, labels=MANY["labels"] | own), 2 * LARGE)
    for field in ("annotations", "labels"):
        assert own.items() <= slim["metadata"][field].items()


def test_all_jobs_of_a_large_workload_stay_its_owners() -> None:
    slim = workload_slimmer()(large(ownerReferences=MANY["ownerReferences"]), 2 * LARGE)
    assert slim["metadata"]["ownerReferences"] == MANY["ownerReferences"]


def test_what_is_beside_spec_and_status_is_small_as_well() -> None:
    """Kinds without a schema of their own may have any field."""
    whole = {**large(), "data": {"text": "x" * LARGE, "short": "kept"}}
    assert job_slimmer()(whole, 2 * LARGE)["data"] == {"text": "", "short": "kept"}


def test_what_is_too_long_to_be_read_stays_so() -> None:
    """A selector that cannot be read holds its job; without any it would go anywhere."""
    slim = job_slimmer()(large(annotations={SELECTOR: "x" * 100_000}), 2 * LARGE)
    assert len(slim["metadata"]["annotations"][SELECTOR]) > LONGEST_WISH


def test_kueues_finalizer_is_kept_beside_any_number_of_others() -> None:
    """It is taken off by a write of the whole list: what was cut out would go with it, and Kueue's never."""
    others = [f"example.com/finalizer-{number}" for number in range(300)]
    slim = job_slimmer()(large(finalizers=[*others, "kueue.x-k8s.io/resource-in-use"]), 2 * LARGE)
    assert set(slim["metadata"]["finalizers"]) == {*others, "kueue.x-k8s.io/resource-in-use"}
    slim = job_slimmer()(large(finalizers=[*MANY["finalizers"], "kueue.x-k8s.io/resource-in-use"]), 2 * LARGE)
    assert "kueue.x-k8s.io/resource-in-use" in slim["metadata"]["finalizers"]


def test_labels_and_annotations_are_bounded_in_bytes() -> None:
    texts = {f"multikueue.dev/{number}": "ü" * 4_000 for number in range(9)}
    kept = job_slimmer()(large(annotations=texts), 2 * LARGE)["metadata"]["annotations"]
    assert 0 < sum(len(name) + len(text.encode()) for name, text in kept.items()) <= LARGE


def test_what_was_noted_of_a_spec_is_not_made_again_of_its_body() -> None:
    """Of 1.2 MB in small parts it held up the loop for a tenth of a second, each time that the body was read."""
    whole = large(uid="u", generation=1)
    noted = workload_slimmer()(whole, 2 * LARGE)
    with mock.patch.object(copies, "_digest", side_effect=AssertionError):
        again = large(uid="u", generation=1)
        know_digests(again, noted)
        assert spec_digests(again) == spec_digests(noted)


@pytest.mark.parametrize("changed", [{"generation": 2}, {"uid": "v"}, {"generation": None}])
def test_what_was_noted_of_another_spec_says_nothing(changed: Json) -> None:
    noted = workload_slimmer()(large(uid="u", generation=1), 2 * LARGE)
    other = large(**{"uid": "u", "generation": 1, **changed})
    other["spec"]["podSets"][0]["count"] = 4
    know_digests(other, noted)
    assert spec_digests(other) != spec_digests(noted)


@pytest.mark.parametrize("slimmer", [workload_slimmer(), job_slimmer()])
def test_one_that_comes_with_the_spec_that_is_kept_is_noted_as_the_whole_was(slimmer: Slimmer) -> None:
    """Of a large event of a watch the spec is not even decoded then; its metadata may have grown meanwhile."""
    first = slimmer(large(uid="u", generation=1), 2 * LARGE)
    grown = {**large(uid="u", generation=1, labels={f"l{number}": "x" for number in range(9_000)}), "status": {"a": 1}}
    del grown["spec"]
    second = slimmer({**grown, **known_spec(grown, first)}, 3 * LARGE)
    assert (second["spec"], second["status"]) == (first["spec"], {"a": 1})
    assert second[SLIMMED] == replace(first[SLIMMED], size=3 * LARGE)
    assert len(orjson.dumps(second["metadata"])) < 3 * LARGE


@pytest.mark.parametrize("changed", [{"generation": 2}, {"uid": "v"}, {"generation": None}, {"uid": ""}])
def test_the_spec_of_another_version_is_not_known(changed: Json) -> None:
    first = workload_slimmer()(large(uid="u", generation=1), 2 * LARGE)
    other = {"metadata": {**first["metadata"], **changed}, "status": {}}
    assert not known_spec(other, first)
    assert not known_spec(other, None)


@pytest.mark.parametrize("inner", [lambda value: {"a": value}, lambda value: [value]], ids=["fields", "lists"])
@pytest.mark.parametrize("beside", [0, LARGE])
def test_what_nests_as_deep_as_can_be_decoded_is_slimmed(inner: Any, beside: int) -> None:
    """It raised, and so ended the process: anybody may create an AppWrapper that nests so, of more than 16 KiB."""
    deep: Any = "x"
    for _ in range(1_000):
        deep = inner(deep)
    made = large(uid="u", generation=1)
    made["spec"]["podSets"][0]["template"]["deep"] = deep
    assert is_slimmed(workload_slimmer()(made, 2 * LARGE))
    left = small_part({"deep": deep, "beside": "x" * beside, "short": "kept"})
    assert left["short"] == "kept"
    assert len(orjson.dumps(left)) <= 3 * LEFT


def test_each_of_many_labels_is_looked_at_once() -> None:
    """60,000 of them, which API servers take, held up the loop for a tenth of a second with each event."""
    looked = list[str]()

    class Counted(str):
        def startswith(self, *given: Any) -> bool:
            looked.append(self)
            return super().startswith(*given)

    names = {Counted(f"l{number}"): "x" for number in range(9_000)}
    kept = small_metadata({"labels": names})["labels"]
    assert len(looked) == len(names)
    assert 0 < sum(map(len, kept)) <= LARGE
