"""What a job of the manager says while it waits, against the controller of its kind, as the sandbox has its words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from multikueue.adapters import JobKind
from multikueue.core.model.conditions import conditions
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, with_value
from multikueue.sandbox.apiserver.verbs.patching import merge_patch
from multikueue.sandbox.kinds.course import Moment
from tests.kinds.cases import Case, cases

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
WITH_WORDS = [case for case in cases() if case.adapter.status.words is not None]


def waiting(case: Case) -> Json:
    """A job that has just been made, suspended."""
    adapter: JobKind = case.adapter
    metadata = {"name": "train", "namespace": "team", "uid": "u", "resourceVersion": "1"}
    gvk = adapter.resource.gvk
    job: Json = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": clone(case.kind.spec)}
    assert adapter.copies.suspend is not None
    return with_value(job, adapter.copies.suspend, adapter.copies.suspend_value)


def words(status: Json) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition."""
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in conditions({"status": status})
    }


@pytest.mark.parametrize("case", WITH_WORDS, ids=lambda case: case.name)
def test_it_says_what_its_own_controller_would(case: Case) -> None:
    job = waiting(case)
    moment = Moment(time=0.0, now=NOW, startup=0.0, draw=lambda: pytest.fail("it does not start"), suspended=True)
    course = case.kind.course
    assert course is not None
    theirs = course.turn(job, None, moment).status or {}
    patch = case.adapter.waiting_patch(job, NOW)
    assert patch is not None
    ours = merge_patch({}, patch["status"])
    assert words(theirs) == words(ours)
    fields = {field: value for field, value in ours.items() if field != "conditions"}
    assert fields == {field: theirs.get(field) for field in fields}
    assert ours, "it says something"


def test_all_kinds_that_can_be_suspended_say_it() -> None:
    """What a declared kind's controller says nobody knows."""
    known = {
        case.name for case in cases() if case.adapter.copies.suspend is not None and case.adapter.declaration is None
    }
    assert known | {"pipelinerun"} == {case.name for case in WITH_WORDS}
