"""The Active condition of an AdmissionCheck, in Kueue's words."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.config.admission_check import active_condition, clusters, config_name
from multikueue.core.model.labels import PROFILE_ANNOTATION
from multikueue.core.model.names import Json
from tests.core.building import condition
from tests.core.door import NOW

GOOD = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "fleet"}


def check(parameters: Json | None) -> Json:
    spec = {} if parameters is None else {"parameters": parameters}
    return {"metadata": {"name": "mk", "generation": 4}, "spec": spec}


def config(*names: str) -> Json:
    return {"spec": {"clusters": list(names)}}


def known(**active: bool | None) -> dict[str, Json]:
    return {
        name: {"status": {"conditions": [] if value is None else [condition("Active", status=value)]}}
        for name, value in active.items()
    }


def verdict(check: Json, fleet: Json | None, workers: dict[str, Json]) -> tuple[Any, ...]:
    active = active_condition(check, fleet, workers, NOW)
    assert (active["type"], active["observedGeneration"]) == ("Active", 4)
    return active["status"], active["reason"], active["message"]


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        (None, "missing parameters reference"),
        ({**GOOD, "name": ""}, "empty name: bad parameters reference"),
        ({**GOOD, "apiGroup": "a.b"}, 'wrong group "a.b", expecting "kueue.x-k8s.io": bad parameters reference'),
        ({**GOOD, "kind": "Secret"}, 'wrong kind "Secret", expecting "MultiKueueConfig": bad parameters reference'),
        (GOOD, 'MultiKueueConfig.kueue.x-k8s.io "fleet" not found'),
    ],
    ids=["none", "no name", "group", "kind", "no config"],
)
def test_a_bad_reference_says_what_is_wrong(parameters: Json | None, problem: str) -> None:
    """The ClusterQueue admits nothing until it is mended."""
    message = f"Cannot load the AdmissionChecks parameters: {problem}"
    assert verdict(check(parameters), None, {}) == ("False", "BadConfig", message)


def test_a_bad_reference_is_bad_with_any_config() -> None:
    assert verdict(check(None), config("w1"), known(w1=True))[1] == "BadConfig"


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (known(w1=True, w2=True), ("True", "Active", "The admission check is active")),
        (known(w1=True), ("True", "SomeActiveClusters", "Missing clusters: [w2]")),
        (known(w1=False, w2=True), ("True", "SomeActiveClusters", "Inactive clusters: [w1]")),
        (known(w2=None), ("False", "NoUsableClusters", "Missing clusters: [w1], Inactive clusters: [w2]")),
        ({}, ("False", "NoUsableClusters", "Missing clusters: [w1 w2]")),
    ],
    ids=["all", "one missing", "one inactive", "none usable", "none"],
)
def test_one_usable_cluster_is_enough(workers: dict[str, Json], expected: tuple[str, ...]) -> None:
    """One broken worker does not stop the queue; the message names it."""
    assert verdict(check(GOOD), config("w1", "w2"), workers) == expected


def test_workers_that_answer_with_too_much_leave_it_active() -> None:
    """Jobs wait for them with a reason; an inactive check would stop every queue that has it."""
    unread = {"status": {"conditions": [condition("Active", "AnswersUnreadable", status=False)]}}
    expected = ("True", "SomeActiveClusters", "Inactive clusters: [w1 w2]")
    assert verdict(check(GOOD), config("w1", "w2"), {"w1": unread, "w2": unread}) == expected


@pytest.mark.parametrize(
    ("named", "profiles", "active"),
    [
        ("cheap", ("default", "cheap"), "True"),
        ("cheap", ("default",), "False"),
        (None, ("default",), "True"),
        ("cheap", None, "True"),
    ],
)
def test_a_profile_that_does_not_exist_is_told(
    named: str | None, profiles: tuple[str, ...] | None, active: str
) -> None:
    fleet = {**config("w1"), "metadata": {"name": "fleet", "annotations": {PROFILE_ANNOTATION: named} if named else {}}}
    condition = active_condition(check(GOOD), fleet, known(w1=True), NOW, profiles)
    assert condition["status"] == active
    assert ('no dispatch profile "cheap"' in condition["message"]) is (active == "False")


def test_the_config_is_found_by_a_good_reference_only() -> None:
    assert config_name(check(GOOD)) == "fleet"
    assert config_name(check(None)) == config_name(check({**GOOD, "kind": "Secret"})) == ""
    assert clusters(config("b", "a")) == ["b", "a"]
    assert clusters({}) == []
