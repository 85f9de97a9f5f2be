"""The ring does not start where its policy cannot be read or is not in force."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import Forbidden, NotFound
from multikueued.metrics.hooks import Metrics
from multikueued.mirrors.guard import why_unguarded
from multikueued.rbac.mirrors import mirror_policy_objects
from multikueued.run import daemon
from multikueued.settings.config import Settings
from multikueued.settings.sections import MirrorPodSettings


class Manager:
    def __init__(self, objects: list[Json], *, forbidden: bool = False) -> None:
        self.objects = {obj["kind"]: obj for obj in objects}
        self.forbidden = forbidden

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        if self.forbidden:
            raise Forbidden("no")
        obj = self.objects.get(resource.gvk.kind)
        if obj is None or obj["metadata"]["name"] != key.name:
            raise NotFound("none")
        return obj


def objects() -> list[Json]:
    return mirror_policy_objects("multikueue-mirrors", "system:serviceaccount:multikueue:multikueue")


async def unguarded(manager: Any) -> str | None:
    return await why_unguarded(manager, "multikueue-mirrors")


async def test_what_rbac_prints_is_enough() -> None:
    assert await unguarded(Manager(objects())) is None


@pytest.mark.parametrize(
    ("manager", "words"),
    [
        (Manager(objects(), forbidden=True), "may not be read"),
        (Manager([]), "Policy multikueue-mirrors is not there"),
        (Manager(objects()[1:]), "Policy multikueue-mirrors is not there"),
        (Manager(objects()[:1]), "Binding multikueue-mirrors is not there"),
    ],
)
async def test_else_it_says_why(manager: Manager, words: str) -> None:
    assert words in str(await unguarded(manager))


def test_each_way_by_which_a_pod_is_changed_is_looked_at() -> None:
    """On a real server: `tests/integration/test_mirror_adversary.py`."""
    spec = objects()[0]["spec"]
    updated = {
        resource
        for rule in spec["matchConstraints"]["resourceRules"]
        if "UPDATE" in rule["operations"]
        for resource in rule["resources"]
    }
    assert {"pods", "pods/status", "pods/resize", "pods/ephemeralcontainers"} <= updated
    for words in ("stays as it is", "no finalizer", "no other owner"):
        (validation,) = (row for row in spec["validations"] if words in row["message"])
        assert "'pods/resize'" in validation["expression"]


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("ValidatingAdmissionPolicy", {"failurePolicy": "Ignore"}),
        ("ValidatingAdmissionPolicyBinding", {"validationActions": ["Audit"]}),
        ("ValidatingAdmissionPolicyBinding", {"policyName": "another"}),
        ("ValidatingAdmissionPolicyBinding", {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}),
    ],
)
async def test_one_that_refuses_nothing_is_none(kind: str, changed: Json) -> None:
    manager = Manager(objects())
    manager.objects[kind]["spec"] |= changed
    assert await unguarded(manager) is not None


async def test_the_daemon_asks_before_it_makes_any() -> None:
    settings = Settings(name="other", mirror_pods=MirrorPodSettings(logs=True, address="10.0.0.7"))
    client: Any = Manager([])
    options = daemon._mirrors(settings, client, Metrics("leader"), b"k" * 32)
    assert "ValidatingAdmissionPolicy other-mirrors is not there" in str(await options.guard(client))
