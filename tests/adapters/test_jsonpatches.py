"""JSON patches of copies: what they may change, with which values, and what is said if they do not apply."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.adapters.declared.patches import DeclaredPatch, Operation
from multikueue.core.model.names import Json
from multikueue.errors import RuleError

VARIABLES = ("object", "remote")


def patch(*steps: Any) -> DeclaredPatch:
    return DeclaredPatch(
        "externalFrameworks[0].creationPatches", tuple(Operation.parse(step, VARIABLES) for step in steps)
    )


def target() -> Json:
    return {"metadata": {"name": "train", "labels": {}, "annotations": {}}, "spec": {"list": [1], "a": {"b": 1}}}


@pytest.mark.parametrize(
    ("step", "spec"),
    [
        ({"op": "add", "path": "/spec/x", "value": None}, {"list": [1], "a": {"b": 1}, "x": None}),
        ({"op": "add", "path": "/spec/list/-", "value": 2}, {"list": [1, 2], "a": {"b": 1}}),
        ({"op": "replace", "path": "/spec/a", "value": 2}, {"list": [1], "a": 2}),
        ({"op": "remove", "path": "/spec/a"}, {"list": [1]}),
        ({"op": "move", "from": "/spec/a/b", "path": "/spec/c"}, {"list": [1], "a": {}, "c": 1}),
        ({"op": "copy", "from": "/metadata/name", "path": "/spec/a"}, {"list": [1], "a": "train"}),
        ({"op": "test", "path": "/spec/a/b", "value": 1}, {"list": [1], "a": {"b": 1}}),
        (
            {"op": "add", "path": "/spec/a/b", "valueExpression": "object.metadata.name + '-' + string(1 + 1)"},
            {"list": [1], "a": {"b": "there-2"}},
        ),
    ],
)
def test_every_operation_of_the_standard_works(step: Json, spec: Json) -> None:
    before = target()
    after = patch(step).applied(before, {"object": {"metadata": {"name": "there"}}})

    assert after["spec"] == spec
    assert before == target()


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("add", "is not a step of a patch"),
        ({}, "op: None is not one of add, replace"),
        ({"op": "merge"}, "op: 'merge' is not one of"),
        ({"op": "add", "path": "/spec/a"}, "value: add needs it"),
        ({"op": "add", "value": 1}, "path: add needs it"),
        ({"op": "move", "path": "/spec/a"}, "from: move needs it"),
        ({"op": "remove", "path": "/spec/a", "value": 1}, "value: remove does not use it"),
        ({"op": "remove", "path": "/spec/a", "valueExpression": "1"}, "valueExpression: remove has no value"),
        ({"op": "add", "path": "/spec/a", "value": 1, "valueExpression": "1"}, "value says it already"),
        ({"op": "add", "path": "/spec/a", "valueExpression": "1 +"}, "valueExpression: '1 \\+' is not an expression"),
        ({"op": "add", "path": "/spec/a", "valueExpression": "job.x"}, "there is no variable 'job'"),
        ({"op": "add", "path": "/spec/a", "valueExpression": 1}, "put it in quotes"),
        ({"op": "add", "path": "spec.a", "value": 1}, "path: 'spec.a' is not a JSON pointer"),
        ({"op": "add", "path": 1, "value": 1}, "path: 1 is not a JSON pointer"),
        ({"op": "remove", "path": "/spec/a", "when": "job.x"}, "when: 'job.x': there is no variable 'job'"),
        ({"op": "replace", "path": "", "value": {}}, "is what makes the copy a copy"),
        ({"op": "add", "path": "/kind", "value": "Other"}, "is what makes the copy a copy"),
        ({"op": "add", "path": "/metadata/name", "value": "x"}, "is not ours to change"),
        ({"op": "add", "path": "/metadata/labels", "value": {}}, "is not ours to change"),
        ({"op": "remove", "path": "/metadata/labels/kueue.x-k8s.io~1multikueue-origin"}, "marks the copy as ours"),
        ({"op": "remove", "path": "/metadata/annotations/multikueue.dev~1copy-of"}, "marks the copy as ours"),
        ({"op": "add", "path": "/status/phase", "value": "Done"}, "belongs to the worker"),
    ],
)
def test_what_is_no_step_or_not_ours_to_do_is_refused_at_start(step: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        patch(step)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"op": "replace", "path": "/spec/x", "value": 1}, "replace /spec/x does not apply: can't replace"),
        ({"op": "add", "path": "/spec/x/y", "value": 1}, "add /spec/x/y does not apply: member 'x' not found"),
        ({"op": "add", "path": "/spec/list/9", "value": 1}, "does not apply: can't insert outside of list"),
        ({"op": "test", "path": "/spec/a", "value": 7}, "test /spec/a does not apply"),
        ({"op": "copy", "from": "/spec/x", "path": "/spec/y"}, "copy /spec/y does not apply"),
        ({"op": "add", "path": "/spec/x", "valueExpression": "object.spec.x"}, "there is no 'x'"),
    ],
)
def test_a_step_that_does_not_apply_names_the_setting(step: Json, why: str) -> None:
    first = {"op": "add", "path": "/metadata/labels/a", "value": "b"}
    with pytest.raises(RuleError, match=why) as failed:
        patch(first, step).applied(target(), {"object": {}})
    assert str(failed.value).startswith("externalFrameworks[0].creationPatches[1]: ")


def test_a_step_may_have_a_condition() -> None:
    step = {"op": "add", "path": "/spec/x", "value": 1, "when": "object.spec.stop == 'now'"}
    assert patch(step).applied(target(), {"object": {"spec": {"stop": "now"}}})["spec"]["x"] == 1
    assert patch(step).applied(target(), {"object": {}}) == target()

    with pytest.raises(
        RuleError, match=r"creationPatches\[0\]: when: object.spec.stop: gives a text, which is neither"
    ):
        patch({**step, "when": "object.spec.stop"}).applied(target(), {"object": {"spec": {"stop": "now"}}})


def test_a_patch_that_changes_the_copy_each_time_is_an_error() -> None:
    with pytest.raises(RuleError, match="would change the copy again each time"):
        patch({"op": "add", "path": "/spec/list/-", "value": 1}).applied_idempotently(
            target(), {"object": {}, "remote": target()}
        )

    counting = {"op": "add", "path": "/spec/a/b", "valueExpression": "remote.spec.a.b + 1"}
    with pytest.raises(RuleError, match="would change the copy again each time"):
        patch(counting).applied_idempotently(target(), {"object": {}, "remote": target()})


def test_a_failed_test_does_not_show_the_whole_job() -> None:
    """It is told in logs and on the Workload."""
    step = Operation.parse({"op": "test", "path": "/spec/note", "value": "y"}, ("object",))
    with pytest.raises(RuleError) as caught:
        step.applied({"spec": {"note": "x" * 5000}}, {})
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("where", ["labels", "annotations"])
@pytest.mark.parametrize("value", [5, True, 1.5, {"a": "b"}, ["a"]])
def test_a_label_that_is_no_text_is_refused_at_start(where: str, value: Any) -> None:
    """YAML makes numbers of `2026` and `1e3`, and no server takes the copy: no job of the kind was ever made."""
    for op in ("add", "replace"):
        with pytest.raises(ValueError, match=r"value: labels and annotations are texts, .*: put it in quotes"):
            patch({"op": op, "path": f"/metadata/{where}/a", "value": value})
    patch({"op": "add", "path": f"/metadata/{where}/a", "value": f"a{type(value).__name__}"})


@pytest.mark.parametrize(
    "step",
    [
        {"op": "add", "path": "/metadata/labels/a", "valueExpression": "object.spec.priority"},
        {"op": "copy", "from": "/spec/list", "path": "/metadata/annotations/a"},
        {"op": "move", "from": "/spec/a/b", "path": "/metadata/labels/a"},
    ],
)
def test_one_that_is_none_for_a_job_is_told_with_the_setting(step: Json) -> None:
    with pytest.raises(RuleError, match=r"creationPatches\[0\]: .* does not apply: labels and annotations are texts"):
        patch(step).applied(target(), {"object": {"spec": {"priority": 3}}})


@pytest.mark.parametrize("value", ["a b", "-a", "a.", "x" * 64, "é", "a/b", "a\n"])
def test_nor_is_a_label_with_a_value_that_no_server_takes(value: str) -> None:
    with pytest.raises(ValueError, match="is no value of a label: at most 63"):
        patch({"op": "add", "path": "/metadata/labels/a", "value": value})
    made = patch({"op": "add", "path": "/metadata/labels/a", "valueExpression": "object.spec.value"})
    with pytest.raises(RuleError, match=r"does not apply: .* is no value of a label"):
        made.applied(target(), {"object": {"spec": {"value": value}}})
    patch({"op": "add", "path": "/metadata/annotations/a", "value": value})
    patch({"op": "add", "path": "/metadata/labels/a", "value": ""})
