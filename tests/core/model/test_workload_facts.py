"""A Workload read once says what its readers say one by one."""

from __future__ import annotations

import attrs
import pytest

from multikueue.core.model import workloads
from multikueue.core.model.grace import pod_grace
from multikueue.core.model.labels import ELASTIC_ANNOTATION, LAST_WORKER_ANNOTATION, MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import ByIdentity, is_terminating
from multikueue.core.model.workload_facts import COPIES, WORKLOADS, WorkloadFacts
from tests.core.building import condition, copy_of, workload


def noted(local: Json, **annotations: str) -> Json:
    local["metadata"]["annotations"] = annotations
    return local


def with_conditions(*listed: Json) -> Json:
    local = workload()
    local["status"]["conditions"] += listed
    return local


@pytest.mark.parametrize(
    "local",
    [
        workload(),
        workload(quota=False),
        workload(cluster="w1"),
        workload(nominated=("w1", "w2")),
        with_conditions(condition("Finished", "WorkloadSliceReplaced")),
        with_conditions(condition("Evicted", "Preempted"), condition("Admitted", status=False)),
        noted(with_conditions(condition("Finished", workloads.SLICE_REPLACED)), **{ELASTIC_ANNOTATION: "true"}),
        noted(workload(), **{LAST_WORKER_ANNOTATION: "w2"}),
        {"metadata": {"name": "bare", "namespace": "default"}},
        {"metadata": {"name": "nulls", "annotations": None}, "spec": None, "status": {"conditions": None}},
    ],
)
def test_each_fact_is_what_its_reader_says(local: Json) -> None:
    facts = WORKLOADS.of(local)
    readers = {field.name for field in attrs.fields(WorkloadFacts)} - {"is_terminating", "leaves", "pod_grace"}
    assert {name: getattr(facts, name) for name in readers} == {
        name: getattr(workloads, name)(local) for name in readers
    }
    assert facts.is_terminating == is_terminating(local)
    assert facts.is_live == workloads.is_live(local)
    assert facts.pod_grace == pod_grace(local)


@pytest.mark.parametrize(
    "copy",
    [
        copy_of(workload()),
        copy_of(workload(), admitted=True, owned=True),
        copy_of(workload(), evicted=True),
        copy_of(workload(), finished="OutOfSync"),
        copy_of(workload(), spec={"active": False}),
    ],
)
def test_each_fact_of_a_copy_is_what_its_reader_says(copy: Json) -> None:
    facts = COPIES.of(copy)
    readers = ("has_quota", "is_admitted", "is_evicted", "is_finished", "is_active", "has_had_owner", "finish_reason")
    assert [getattr(facts, name) for name in readers] == [getattr(workloads, name)(copy) for name in readers]
    assert facts.is_terminating == is_terminating(copy)


@pytest.mark.parametrize(
    ("said", "leaves"), [({}, None), ({MOVE_FROM_ANNOTATION: ""}, None), ({MOVE_FROM_ANNOTATION: "w1"}, "w1")]
)
def test_a_move_names_the_worker_that_it_leaves(said: dict[str, str], leaves: str | None) -> None:
    assert WORKLOADS.of(noted(workload(), **said)).leaves == leaves


def test_what_was_computed_of_an_object_is_kept_for_the_last_few() -> None:
    """By the object, and not by what is in it."""
    asked: list[Json] = []

    def size(obj: Json) -> int:
        asked.append(obj)
        return len(obj)

    kept, first, equal, third = ByIdentity(size, size=2), {"a": 1}, {"a": 1}, {"a": 1, "b": 2}
    assert [kept.of(obj) for obj in (first, first, equal, third, third, first)] == [1, 1, 1, 2, 2, 1]
    assert [id(obj) for obj in asked] == [id(first), id(equal), id(third), id(first)], "the oldest one was forgotten"
