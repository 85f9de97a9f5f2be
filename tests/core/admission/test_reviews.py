"""AdmissionReview: what is read of a question, and the form of the answer.

The object that has API servers ask us.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from multikueue.adapters import AVAILABLE
from multikueue.core.admission.registration import Registration
from multikueue.core.admission.reviews import BadReviewError, allowed, parse_review
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import GVK, Json, ObjectKey


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


SERVICE = Registration("multikueue", ObjectKey("kueue-system", "multikueue-webhook"))


def test_only_new_jobs_with_a_queue_are_asked_about_and_nothing_depends_on_us() -> None:
    """A daemon that is down must not keep anybody from creating anything."""
    [webhook] = SERVICE.configuration([JOB], "PEM")["webhooks"]

    assert webhook["rules"] == [
        {
            "apiGroups": ["batch"],
            "apiVersions": ["v1"],
            "resources": ["jobs"],
            "operations": ["CREATE"],
            "scope": "Namespaced",
        }
    ]
    assert webhook["objectSelector"] == {
        "matchExpressions": [{"key": "kueue.x-k8s.io/queue-name", "operator": "Exists"}]
    }
    assert (webhook["failurePolicy"], webhook["sideEffects"]) == ("Ignore", "None")
    assert webhook["timeoutSeconds"] <= 5


def test_each_version_of_a_group_has_one_rule_with_all_its_kinds() -> None:
    rules = SERVICE.configuration([kind.resource for kind in AVAILABLE])["webhooks"][0]["rules"]

    served = {(rule["apiGroups"][0], rule["apiVersions"][0]): rule["resources"] for rule in rules}
    assert len(served) == len(rules)
    assert served["kubeflow.org", "v2beta1"] == ["mpijobs"]
    assert {"pytorchjobs", "tfjobs"} <= set(served["kubeflow.org", "v1"])


def test_it_is_reached_through_its_service() -> None:
    client = SERVICE.configuration([JOB], "PEM")["webhooks"][0]["clientConfig"]

    assert client == {
        "service": {
            "namespace": "kueue-system",
            "name": "multikueue-webhook",
            "port": 443,
            "path": "/managed-by",
        },
        "caBundle": base64.b64encode(b"PEM").decode(),
    }
    assert SERVICE.host == "multikueue-webhook.kueue-system.svc"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://10.0.0.1:9443", "10.0.0.1"),
        ("https://[fd00::1]:9443/", "fd00::1"),
        ("https://hooks.example.com", "hooks.example.com"),
    ],
)
def test_or_at_an_address(url: str, host: str) -> None:
    """For a daemon outside of the cluster."""
    direct = Registration("multikueue", ObjectKey("", ""), url=url)
    client = direct.configuration([JOB])["webhooks"][0]["clientConfig"]

    assert client == {"url": url.rstrip("/") + "/managed-by"}
    assert direct.host == host


def test_its_name_puts_it_behind_kueues() -> None:
    """API servers ask webhooks in the order of these names, and Kueue's gives jobs a queue."""
    assert SERVICE.configuration([])["metadata"]["name"] > "kueue-mutating-webhook-configuration"
