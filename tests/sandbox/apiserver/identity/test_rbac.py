"""Which rules allow what, as a function of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.identity.rbac import Attributes, allows, reason, rules_of
from multikueue.sandbox.apiserver.identity.users import User, impersonated, user_named

LIST_JOBS = Attributes("list", "batch", "jobs", namespace="team")
ROBOT = user_named("system:serviceaccount:team:robot")
JANE = User("jane", ("devs",))


def rule(**fields: list[str]) -> Json:
    """A rule for jobs, with these fields instead."""
    return {"verbs": ["list"], "apiGroups": ["batch"], "resources": ["jobs"], **fields}


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        (rule(), LIST_JOBS, True),
        (rule(verbs=["*"]), LIST_JOBS, True),
        (rule(verbs=["get"]), LIST_JOBS, False),
        (rule(apiGroups=["*"]), LIST_JOBS, True),
        (rule(apiGroups=[""]), LIST_JOBS, False),
        (rule(resources=["*"]), LIST_JOBS, True),
        (rule(), Attributes("list", "batch", "jobs", "status"), False),
        (rule(resources=["jobs/status"]), Attributes("list", "batch", "jobs", "status"), True),
        (rule(resources=["*/status"]), Attributes("list", "batch", "jobs", "status"), True),
        (rule(resources=["*/scale"]), Attributes("list", "batch", "jobs", "status"), False),
        (rule(resources=["*"]), Attributes("list", "batch", "jobs", "status"), True),
        (rule(resourceNames=["a"]), Attributes("list", "batch", "jobs", name="a"), True),
        (rule(resourceNames=["a"]), Attributes("list", "batch", "jobs", name="b"), False),
        (rule(resourceNames=["a"]), LIST_JOBS, False),
        (rule(), Attributes("*", "batch", "jobs"), False),
        (rule(verbs=["*"]), Attributes("*", "batch", "jobs"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/healthz"]}, Attributes("get", path="/healthz"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, Attributes("get", path="/api/v1"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, Attributes("get", path="/apis"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["*"]}, Attributes("get", path="/metrics"), True),
        (rule(), Attributes("list", path="/metrics"), False),
        ({}, LIST_JOBS, False),
    ],
)
def test_a_rule(given: Json, asked: Attributes, allowed: bool) -> None:
    """As Kubernetes matches verbs, groups, resources, subresources, names and paths."""
    assert allows(given, asked) is allowed


@attrs.frozen
class Given:
    """Roles by kind, namespace and name, and bindings."""

    roles: dict[tuple[str, str, str], list[Json]]
    bound: list[Json]

    def bindings(self, namespace: str) -> Iterable[Json]:
        """Those of the cluster, and those of a namespace."""
        return [binding for binding in self.bound if binding["metadata"].get("namespace") in (None, namespace)]

    def rules(self, kind: str, namespace: str, name: str) -> Sequence[Json] | None:
        """The rules of a role."""
        return self.roles.get((kind, namespace if kind == "Role" else "", name))


def binding(subject: Json, role: Json, namespace: str | None = "team") -> Json:
    """A RoleBinding, or a ClusterRoleBinding."""
    metadata = {"name": "b", **({"namespace": namespace} if namespace else {})}
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    return {"kind": kind, "metadata": metadata, "subjects": [subject], "roleRef": role}


ROLE = {"kind": "Role", "name": "lists"}
CLUSTER_ROLE = {"kind": "ClusterRole", "name": "lists"}
ROLES = {("Role", "team", "lists"): [rule()], ("ClusterRole", "", "lists"): [rule()]}


@pytest.mark.parametrize(
    ("given", "user", "allowed"),
    [
        (binding({"kind": "ServiceAccount", "name": "robot", "namespace": "team"}, ROLE), ROBOT, True),
        (binding({"kind": "ServiceAccount", "name": "robot"}, ROLE), ROBOT, True),
        (binding({"kind": "ServiceAccount", "name": "robot", "namespace": "other"}, ROLE), ROBOT, False),
        (binding({"kind": "Group", "name": "system:serviceaccounts:team"}, ROLE), ROBOT, True),
        (binding({"kind": "Group", "name": "system:serviceaccounts:other"}, ROLE), ROBOT, False),
        (binding({"kind": "User", "name": ROBOT.name}, ROLE), ROBOT, True),
        (binding({"kind": "User", "name": "jane"}, CLUSTER_ROLE), JANE, True),
        (binding({"kind": "User", "name": "jane"}, CLUSTER_ROLE, None), JANE, True),
        (binding({"kind": "Group", "name": "devs"}, CLUSTER_ROLE, None), JANE, True),
        (binding({"kind": "Group", "name": "jane"}, CLUSTER_ROLE, None), JANE, False),
        (binding({"kind": "User", "name": "jane"}, ROLE, "other"), JANE, False),
        (binding({"kind": "User", "name": "jane"}, {"kind": "Role", "name": "missing"}), JANE, False),
        (binding({"kind": "User", "name": "jane"}, {}), JANE, False),
        (binding({"kind": "ServiceAccount"}, ROLE), JANE, False),
        (binding({}, ROLE), JANE, False),
    ],
)
def test_a_binding(given: Json, user: User, allowed: bool) -> None:
    """It is for users, groups and service accounts, and holds in its namespace, or everywhere."""
    roles = Given(ROLES, [given])

    assert (reason(roles, user, LIST_JOBS) is not None) is allowed
    assert rules_of(roles, user, "team") == ([rule()] if allowed else [])


def test_the_reason_names_binding_role_and_subject() -> None:
    """In the words of kube-apiserver."""
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "team"}

    assert reason(Given(ROLES, [binding(subject, ROLE)]), ROBOT, LIST_JOBS) == (
        'RBAC: allowed by RoleBinding "b/team" of Role "lists" to ServiceAccount "robot/team"'
    )


def test_a_role_of_one_namespace_gives_nothing_in_another() -> None:
    """Nor at the cluster's scope."""
    roles = Given(ROLES, [binding({"kind": "User", "name": "jane"}, ROLE)])
    for namespace in ("", "other"):
        assert reason(roles, JANE, attrs.evolve(LIST_JOBS, namespace=namespace)) is None


def test_administrators_need_no_roles() -> None:
    """They are in `system:masters`, by their token or because they act as somebody in it."""
    for user in (user_named("admin"), impersonated("jane", ["system:masters"])):
        assert reason(Given({}, []), user, LIST_JOBS)
        assert rules_of(Given({}, []), user, "team")[0]["verbs"] == ["*"]
    assert reason(Given({}, []), impersonated("jane", []), LIST_JOBS) is None
