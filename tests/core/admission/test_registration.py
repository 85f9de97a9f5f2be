"""The object that has API servers ask us."""

from __future__ import annotations

import base64

import pytest

from multikueue.adapters import AVAILABLE
from multikueue.core.admission.registration import Registration
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey

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
