"""AdmissionReview: what is read of a question, and the form of the answer."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from multikueue.core.admission.reviews import BadReviewError, allowed, parse_review
from multikueue.core.model.names import GVK, Json


def question(**request: Any) -> Json:
    """As kube-apiserver 1.36 asks; the object is the test's."""
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5",
            "kind": {"group": "batch", "version": "v1", "kind": "Job"},
            "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
            "namespace": "team",
            "operation": "CREATE",
            "userInfo": {"username": "somebody"},
            "object": {"spec": {}},
            "oldObject": None,
            "dryRun": False,
            **request,
        },
    }


def test_a_question_is_read() -> None:
    review = parse_review(question(subResource="status"))

    assert (review.uid, review.gvk) == ("705ab4f5", GVK("batch", "v1", "Job"))
    assert (review.operation, review.subresource, review.namespace) == ("CREATE", "status", "team")
    assert review.object == {"spec": {}}


@pytest.mark.parametrize("obj", [None, [], "x", 5])
def test_what_is_no_object_is_none(obj: object) -> None:
    """A deletion has no object."""
    assert parse_review(question(object=obj)).object is None


def test_fields_of_a_wrong_type_are_empty() -> None:
    review = parse_review(question(operation=5, namespace=None, kind={"kind": ["x"]}))
    assert (review.operation, review.namespace, review.gvk) == ("", "", GVK("", "", ""))


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "not a JSON object"),
        (None, "not a JSON object"),
        ({}, "expected admission.k8s.io/v1 AdmissionReview, got None None"),
        (question() | {"apiVersion": "admission.k8s.io/v1beta1"}, "got admission.k8s.io/v1beta1 AdmissionReview"),
        (question() | {"kind": "ConversionReview"}, "got admission.k8s.io/v1 ConversionReview"),
        (question() | {"request": None}, "no request with a uid"),
        (question() | {"request": [1]}, "no request with a uid"),
        (question(uid=""), "no request with a uid"),
        (question(uid=7), "no request with a uid"),
        (question(kind="Job"), "no request with a uid and a kind"),
    ],
)
def test_what_is_no_question_is_refused_with_the_reason(document: object, why: str) -> None:
    with pytest.raises(BadReviewError) as caught:
        parse_review(document)
    assert why in str(caught.value)


def test_a_plain_yes_repeats_the_questions_uid() -> None:
    assert allowed(parse_review(question())) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "705ab4f5", "allowed": True},
    }


def test_a_patch_is_base64_of_json() -> None:
    patch = [{"op": "add", "path": "/spec/managedBy", "value": "é"}]
    response = allowed(parse_review(question()), patch)["response"]

    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == patch


def test_a_warning_is_cut_to_what_api_servers_pass_on() -> None:
    assert allowed(parse_review(question()), warning="x" * 1000)["response"]["warnings"] == ["x" * 256]
