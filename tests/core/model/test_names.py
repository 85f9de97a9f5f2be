"""Identities and how they are written."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import GVK, ObjectKey, Resource

POD = GVK("", "v1", "Pod")
SET = GVK("apps", "v1", "StatefulSet")


@pytest.mark.parametrize(
    ("gvk", "api_version", "text"),
    [(POD, "v1", "/v1, Kind=Pod"), (SET, "apps/v1", "apps/v1, Kind=StatefulSet")],
    ids=["core group", "named group"],
)
def test_a_gvk_reads_and_writes_both_forms(gvk: GVK, api_version: str, text: str) -> None:
    """The owner annotation's form is Kueue's; an owner reference has the other."""
    assert (gvk.api_version, str(gvk)) == (api_version, text)
    assert GVK.of(api_version, gvk.kind) == gvk
    assert GVK.parse(text) == gvk


@pytest.mark.parametrize("text", ["", "Pod", "v1, Kind=Pod", "apps/v1, Kind=", "apps/v1 Kind=Pod"])
def test_what_is_not_a_gvk_is_none(text: str) -> None:
    """A damaged annotation is no crash."""
    assert GVK.parse(text) is None


def test_a_resource_is_named_as_in_rbac() -> None:
    assert str(JOB) == "jobs.batch"
    assert str(WORKLOAD) == "workloads.kueue.x-k8s.io"
    assert str(Resource(POD, "pods")) == "pods"


def test_keys_are_namespace_and_name() -> None:
    """Cluster-scoped objects have no namespace; an object without metadata has an empty key."""
    assert str(ObjectKey.of({"metadata": {"namespace": "a", "name": "b"}})) == "a/b"
    assert str(ObjectKey.of({"metadata": {"name": "b"}})) == "b"
    assert ObjectKey.of({}) == ObjectKey("", "")
