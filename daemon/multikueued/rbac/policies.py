"""The admission policy by which ClusterPermissions grant on spokes what the daemon needs there, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from multikueue.core.inventory.names import BASE_NAME, CLUSTER_PERMISSION
from multikueue.core.model.names import Json

_ROLE: Final = "has(object.spec.clusterRole)"
_BINDING: Final = "has(object.spec.clusterRoleBinding)"
_API: Final = "admissionregistration.k8s.io/v1"
_PRINTED: Final = (
    "this account may only grant what `multikueue rbac manager` printed: after a change of the daemon's settings or "
    "version, apply what it prints now"
)


def policy_objects(name: str, user: str, spec: Json) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding.

    Args:
        name: of both.
        user: whom it binds.
        spec: what the ClusterPermissions of that user must say, word for word.
    """
    group, plural = CLUSTER_PERMISSION.gvk.group, CLUSTER_PERMISSION.plural
    matched = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    named = f"this account may only write ClusterPermissions named {BASE_NAME}"
    rules, subject = spec["clusterRole"]["rules"], spec["clusterRoleBinding"]
    validations = [
        {"expression": f"object.metadata.name == {cel(BASE_NAME)}", "message": named},
        *({"expression": one, "message": _PRINTED} for one in _only(spec)),
        {"expression": f"{_ROLE} && object.spec.clusterRole.rules == {cel(rules)}", "message": _PRINTED},
        {"expression": f"{_BINDING} && object.spec.clusterRoleBinding == {cel(subject)}", "message": _PRINTED},
    ]
    policy = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [matched]},
            "matchConditions": [{"name": "ours", "expression": f"request.userInfo.username == {cel(user)}"}],
            "validations": validations,
        },
    }
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return [
        policy,
        {"apiVersion": _API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": bound},
    ]


def _only(spec: Json) -> Iterator[str]:
    """That there is nothing beside what is compared. `dyn`: fields count that the definition got later, too."""
    yield f"dyn(object.spec).all(field, field in {cel(sorted(spec))})"
    yield f"{_ROLE} && dyn(object.spec.clusterRole).all(field, field in {cel(sorted(spec['clusterRole']))})"


def cel(value: Any) -> str:
    """A JSON value as an expression of CEL: objects, lists and texts are written as in JSON. API servers want the
    members of an object, and the items of a list, to be of one type."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)
