"""Requests as values."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, SECRET, WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import Invalid
from multikueue.kube.http import requests
from multikueue.kube.http.requests import Request
from multikueued.reading.queue_places import QUEUE

KEY = ObjectKey("team a", "system:job")
OBJ = {"metadata": {"namespace": "n", "name": "a"}}


@pytest.mark.parametrize(
    ("request_", "method", "path"),
    [
        (requests.get(JOB, KEY), "GET", "/apis/batch/v1/namespaces/team%20a/jobs/system%3Ajob"),
        (requests.get(SECRET, ObjectKey("n", "s")), "GET", "/api/v1/namespaces/n/secrets/s"),
        (
            requests.get(MULTIKUEUE_CLUSTER, ObjectKey("", "w")),
            "GET",
            "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters/w",
        ),
        (
            requests.part(QUEUE, ObjectKey("n", "q"), "pendingworkloads"),
            "GET",
            "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/n/localqueues/q/pendingworkloads",
        ),
        (requests.create(JOB, OBJ), "POST", "/apis/batch/v1/namespaces/n/jobs"),
        (requests.replace(JOB, OBJ, "status"), "PUT", "/apis/batch/v1/namespaces/n/jobs/a/status"),
        (requests.merge_patch(JOB, ObjectKey("n", "a"), {}, ""), "PATCH", "/apis/batch/v1/namespaces/n/jobs/a"),
        (
            requests.apply(WORKLOAD, OBJ, "kueue-admission", True, "status"),
            "PATCH",
            "/apis/kueue.x-k8s.io/v1beta2/namespaces/n/workloads/a/status?fieldManager=kueue-admission&force=true",
        ),
        (
            requests.list_page(JOB, namespace="", label_selector="", limit=0),
            "GET",
            "/apis/batch/v1/jobs",
        ),
        (
            requests.watch(WORKLOAD, namespace="", label_selector="kueue.x-k8s.io/o=m", resource_version="7"),
            "GET",
            "/apis/kueue.x-k8s.io/v1beta2/workloads"
            "?watch=true&allowWatchBookmarks=true&labelSelector=kueue.x-k8s.io%2Fo%3Dm&resourceVersion=7",
        ),
    ],
)
def test_each_verb_has_its_url(request_: Request, method: str, path: str) -> None:
    assert (request_.method, request_.path) == (method, path)


def test_patches_say_what_kind_they_are() -> None:
    """Custom resources do not support the default patch type of other clients."""
    assert requests.merge_patch(JOB, KEY, {"a": None}, "").content_type == "application/merge-patch+json"
    assert requests.apply(JOB, OBJ, "me", False, "").content_type == "application/apply-patch+yaml"


def test_a_deletion_carries_its_preconditions() -> None:
    plain = requests.delete(JOB, KEY, uid=None, resource_version=None, propagation=None)
    assert orjson.loads(plain.body or b"") == {"apiVersion": "v1", "kind": "DeleteOptions"}
    careful = requests.delete(JOB, KEY, uid="u", resource_version=None, propagation="Background")
    assert orjson.loads(careful.body or b"") == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Background",
    }
    kubelets = requests.delete(JOB, KEY, uid=None, resource_version=None, propagation=None, grace=0)
    assert orjson.loads(kubelets.body or b"")["gracePeriodSeconds"] == 0


ODD = ["", ".", "..", "a/b", "a/../b", "a%2Fb"]


@pytest.mark.parametrize(
    "resource",
    [
        *(Resource(GVK(odd, "v1", "Widget"), "widgets") for odd in ODD if odd),
        *(Resource(GVK("example.com", odd, "Widget"), "widgets") for odd in ODD),
        *(Resource(GVK("example.com", "v1", "Widget"), odd) for odd in ODD),
    ],
)
def test_a_resource_that_is_no_path_is_refused(resource: Resource) -> None:
    """Workers name kinds, too: the request must not become one for something else."""
    with pytest.raises(Invalid, match=r"is not a (group|version|plural)"):
        requests.list_page(resource, namespace="n", label_selector="")
    with pytest.raises(Invalid, match=r"is not a (group|version|plural)"):
        requests.delete(resource, ObjectKey("n", "a"), uid=None, resource_version=None, propagation=None)


def test_a_resource_is_quoted() -> None:
    odd = Resource(GVK("example.com?x", "v1 HTTP", "Widget"), "wid gets\r\n#")
    path = requests.list_page(odd, namespace="a b", label_selector="", limit=0).path
    assert path == "/apis/example.com%3Fx/v1%20HTTP/namespaces/a%20b/wid%20gets%0D%0A%23"


@pytest.mark.parametrize("name", [name for name in ODD if name])
def test_a_kind_that_is_no_path_is_not_asked_about(name: str) -> None:
    """The owner of any pod of a worker names it."""
    with pytest.raises(Invalid, match="group"):
        requests.discover(name, "v1")
    with pytest.raises(Invalid, match="version"):
        requests.discover("example.com", name)


@pytest.mark.parametrize("name", ODD)
def test_a_key_that_names_no_single_object_is_refused(name: str) -> None:
    """Without its name, the deletion of one object would delete all of the namespace."""
    for key in (ObjectKey("n", name), ObjectKey(name, "a")):
        with pytest.raises(Invalid, match="job"):
            requests.delete(JOB, key, uid=None, resource_version=None, propagation=None)
        with pytest.raises(Invalid, match="job"):
            requests.get(JOB, key)
        with pytest.raises(Invalid, match="job"):
            requests.merge_patch(JOB, key, {}, "status")
        obj = {"metadata": {"namespace": key.namespace, "name": key.name}}
        with pytest.raises(Invalid, match="job"):
            requests.replace(JOB, obj, "")
        with pytest.raises(Invalid, match="job"):
            requests.apply(JOB, obj, "me", True, "status")


def test_what_is_nested_too_deep_is_refused_before_it_is_sent() -> None:
    """Free-form fields allow such objects. The error names the kind, and is not retryable."""
    deep: Json = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(Invalid, match="cannot be sent"):
        requests.create(JOB, {**OBJ, "spec": deep})
    with pytest.raises(Invalid, match="cannot be sent"):
        requests.merge_patch(JOB, KEY, deep, "")


def test_bodies_do_not_show_in_reprs() -> None:
    """They may hold Secrets."""
    secret = {"metadata": {"name": "s"}, "data": {"a": "canary"}}
    assert "canary" not in repr(requests.create(SECRET, secret))


@pytest.mark.parametrize(
    ("resource", "key", "words"),
    [
        ("configmaps", ObjectKey("team", "a"), "'configmaps' is no Resource, as multikueue.JOB"),
        (JOB, "a", """'a' is no ObjectKey, as ObjectKey("namespace", "name")"""),
        (JOB, ("team", "a"), "is no ObjectKey"),
    ],
)
def test_what_names_no_object_is_told_what_would(resource: Any, key: Any, words: str) -> None:
    """It was an attribute that a text does not have."""
    with pytest.raises(TypeError, match=re.escape(words)):
        requests.get(resource, key)
