"""What is wrong with an object's shape, and what can be told of it all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from multikueue.core.model.names import Json
from multikueue.core.model.shape import (
    any_job_flaw,
    has_name,
    has_odd_labels,
    job_flaw,
    object_flaw,
    outline,
    queue_flaw,
    workload_flaw,
)
from tests.core.building import PLACED, copy_of, job, job_copy_of, workload
from tests.core.odd_shapes import odd, paths, spoiled

SOUND = copy_of(
    workload(
        check="Ready", cluster="w1", nominated=("w1",), evictions=2, other_checks={"b": "Retry"}, assignments=PLACED
    ),
    admitted=True,
    gate="Open",
)


@pytest.mark.parametrize("obj", [SOUND, workload(), workload(deleting=True, evictions=3)])
def test_what_kueue_writes_is_fine(obj: Json) -> None:
    assert (workload_flaw(obj), object_flaw(obj)) == ("", "")


@pytest.mark.parametrize("obj", [job(status={"conditions": [{"type": "Complete", "message": None}]}), job(status={})])
def test_what_job_controllers_write_is_fine(obj: Json) -> None:
    assert (job_flaw(obj), any_job_flaw(obj)) == ("", "")


FLAWS: list[tuple[tuple[Any, ...], Any, str]] = [
    (("metadata", "labels"), ["a"], "metadata.labels has an unexpected form (a list)"),
    (("metadata", "annotations"), {"a": None}, "metadata.annotations has an unexpected form (an object)"),
    (("metadata", "finalizers"), 7, "metadata.finalizers has an unexpected form (a number)"),
    (("metadata", "ownerReferences"), [{"apiVersion": None}], "metadata.ownerReferences[0] has"),
    (("metadata", "uid"), "", "metadata.uid is missing"),
    (("spec",), "x", "spec has an unexpected form (a text)"),
    (("status",), "x", "status has an unexpected form (a text)"),
    (("status", "conditions"), {}, "status.conditions has an unexpected form (an object)"),
    (("status", "conditions"), [{}, 1], "status.conditions[1] has an unexpected form (a number)"),
    (("status", "conditions"), [None], "status.conditions[0] has an unexpected form (null)"),
    (("status", "conditions"), [{"type": 1.5}], "status.conditions[0].type has an unexpected form (a number)"),
    (("status", "conditions"), [{"status": ["True"]}], "status.conditions[0].status has an unexpected form (a list)"),
]
OF_WORKLOADS: list[tuple[tuple[Any, ...], Any, str]] = [
    (("spec", "podSets"), {"name": "main"}, "spec.podSets has an unexpected form (an object)"),
    (("spec", "podSets"), [{"count": True}], "spec.podSets[0].count has an unexpected form (a boolean)"),
    (("spec", "active"), "no", "spec.active has an unexpected form (a text)"),
    (
        ("status", "admissionChecks"),
        [{"state": "Odd"}],
        "status.admissionChecks[0].state has an unexpected form (a text)",
    ),
    (("status", "schedulingStats"), {"evictions": [{"count": "2"}]}, "status.schedulingStats.evictions[0].count has"),
]


@pytest.mark.parametrize(("path", "value", "flaw"), [*FLAWS, *OF_WORKLOADS])
def test_what_decisions_read_of_a_workload_is_checked(path: tuple[Any, ...], value: Any, flaw: str) -> None:
    assert flaw in workload_flaw(spoiled(SOUND, path, value))


@pytest.mark.parametrize(("path", "value", "flaw"), FLAWS)
def test_what_rows_read_of_a_job_is_checked(path: tuple[Any, ...], value: Any, flaw: str) -> None:
    assert flaw in job_flaw(spoiled(job(status={"conditions": []}), path, value))


def test_what_only_a_row_from_elsewhere_reads_is_left_to_it() -> None:
    """Its conditions may be of another form; a rule that fails is told."""
    other = job(status={"conditions": {"Ready": True}})
    assert any_job_flaw(other) == ""
    assert "status.conditions" in job_flaw(other)
    assert any_job_flaw({**other, "status": 7})


@pytest.mark.parametrize(
    ("spec", "sound"),
    [
        ({"clusterQueue": "cq"}, True),
        ({"clusterQueue": 1}, False),
        ({"resourceGroups": [{"flavors": [{"resources": [{"name": "cpu", "nominalQuota": "500m"}]}]}]}, True),
        ({"resourceGroups": [{"flavors": [{"resources": [{"name": "cpu", "nominalQuota": 4}]}]}]}, True),
        ({"resourceGroups": [{"flavors": [{"resources": [{"name": "cpu", "nominalQuota": "much"}]}]}]}, False),
        ({"resourceGroups": [{"flavors": [{"resources": [{"name": "cpu", "nominalQuota": "1e999999"}]}]}]}, False),
        ({"resourceGroups": [{"flavors": [{"resources": [{"name": "cpu", "nominalQuota": "9" * 50}]}]}]}, False),
        ({"resourceGroups": [{"flavors": [{"resources": [{"nominalQuota": "4"}]}]}]}, False),
        ({"resourceGroups": {}}, False),
    ],
)
def test_what_sums_of_quota_are_made_of_is_checked(spec: Json, sound: bool) -> None:
    assert (queue_flaw({"metadata": {"name": "q"}, "spec": spec}) == "") == sound


def test_fields_may_be_missing_or_null() -> None:
    bare: Json = {"metadata": {"name": "a", "uid": "u", "labels": None}, "spec": None}
    assert [flaw(bare) for flaw in (object_flaw, workload_flaw, job_flaw)] == ["", "", ""]


@pytest.mark.parametrize(
    ("obj", "named"),
    [
        ({"metadata": {"name": "a"}}, True),
        ({"metadata": {"name": "a", "namespace": None}}, True),
        ({"metadata": {"name": ""}}, False),
        ({"metadata": {"name": 1}}, False),
        ({"metadata": {"name": "a", "namespace": []}}, False),
        ({"metadata": []}, False),
        ({}, False),
        (None, False),
    ],
)
def test_without_a_name_there_is_no_object(obj: Any, named: bool) -> None:
    assert has_name(obj) == named


@pytest.mark.parametrize("check", [workload_flaw, job_flaw])
@given(odd(copy_of(workload(), admitted=True)) | odd(job_copy_of(workload())))
def test_an_outline_is_always_sound(check: Callable[[Json], str], obj: Json) -> None:
    """Whatever is wrong: indexes and handlers may read what is told of it."""
    outlined = outline(obj)
    assert object_flaw(outlined) == ""
    assert check({**outlined, "metadata": {**outlined["metadata"], "uid": "u"}}) == ""
    assert outlined["metadata"]["name"] == obj["metadata"]["name"]
    assert "spec" not in outlined
    assert has_odd_labels(obj) == ("labels" not in outlined["metadata"] and obj["metadata"].get("labels") is not None)


def test_each_field_of_the_path_can_be_spoiled() -> None:
    assert ("status", "conditions", 0, "type") in set(paths(SOUND))
