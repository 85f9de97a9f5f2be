"""Admission policies: what ClusterPermissions may grant on spokes, and whose copies a worker's namespaces take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from multikueue.core.inventory.names import BASE_NAME, CLUSTER_PERMISSION
from multikueue.core.model.labels import ALLOW_FROM_ANNOTATION, FROM_ANNOTATION
from multikueue.core.model.names import GVK, Json, Resource

_ROLE: Final = "has(object.spec.clusterRole)"
_BINDING: Final = "has(object.spec.clusterRoleBinding)"
API: Final = "admissionregistration.k8s.io/v1"
TAKING: Final = Resource(
    GVK("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
    "validatingadmissionpolicybindings",
    namespaced=False,
)
POLICY: Final = Resource(
    GVK("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    "validatingadmissionpolicies",
    namespaced=False,
)
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
    named = f"this account may only write ClusterPermissions named {BASE_NAME}"
    rules, subject = spec["clusterRole"]["rules"], spec["clusterRoleBinding"]
    validations: list[Json] = [
        {"expression": f"object.metadata.name == {cel(BASE_NAME)}", "message": named},
        *({"expression": expression, "message": _PRINTED} for expression in _only(spec)),
        {"expression": f"{_ROLE} && object.spec.clusterRole.rules == {cel(rules)}", "message": _PRINTED},
        {"expression": f"{_BINDING} && object.spec.clusterRoleBinding == {cel(subject)}", "message": _PRINTED},
    ]
    return _policy(name, user, [CLUSTER_PERMISSION], {"validations": validations})


def taking_name(manager: str) -> str:
    """The name of the policy by which a worker's namespaces take the copies of those that they name."""
    return f"multikueue-from-{manager}"


def taking_objects(manager: str, user: str, made: Iterable[Resource]) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding, by which namespaces take copies of those they name.

    Args:
        manager: the name of the only manager that the user makes copies for.
        user: whom it binds.
        made: what it makes copies of.
    """
    taken = f"variables.allowed.split(',').exists(one, one.trim() == {_FROM})"
    refusal = (
        f"'namespace ' + request.namespace + ' takes no copies from ' + ({_FROM} == '' ? 'who does not say where they "
        f"come from' : {_FROM}) + ': its annotation {ALLOW_FROM_ANNOTATION} does not name it'"
    )
    kept = "whose copy it is stays as it was"
    spec: Json = {
        "variables": [
            {"name": "from", "expression": _annotation("object", FROM_ANNOTATION)},
            {"name": "allowed", "expression": _annotation("namespaceObject", ALLOW_FROM_ANNOTATION)},
        ],
        "validations": [
            {
                "expression": f"oldObject != null || ({_FROM}.startsWith({cel(f'{manager}/')}) && {taken})",
                "messageExpression": refusal,
                "message": f"its namespace does not name it in {ALLOW_FROM_ANNOTATION}",
            },
            {
                "expression": f"oldObject == null || {_FROM} == {_annotation('oldObject', FROM_ANNOTATION)}",
                "message": kept,
            },
        ],
    }
    return _policy(taking_name(manager), user, made, spec)


_FROM: Final = "variables.from"


def _annotation(of: str, name: str) -> str:
    return f"{of}.metadata.?annotations[{cel(name)}].orValue('')"


def _policy(name: str, user: str, written: Iterable[Resource], spec: Json) -> list[Json]:
    """What a user may write of some kinds, and what puts that in force."""
    plurals: dict[str, list[str]] = {}
    for resource in written:
        plurals.setdefault(resource.gvk.group, []).append(resource.plural)
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": sorted(names)}
        for group, names in plurals.items()
    ]
    common = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "ours", "expression": f"request.userInfo.username == {cel(user)}"}],
    }
    return refusing(name, {**common, **spec})


def refusing(name: str, spec: Json) -> list[Json]:
    """A ValidatingAdmissionPolicy, and the binding by which it refuses everywhere."""
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": API, "kind": f"ValidatingAdmissionPolicy{kind}", "metadata": {"name": name}, "spec": part}
        for kind, part in (("", spec), ("Binding", bound))
    ]


def _only(spec: Json) -> Iterator[str]:
    """That there is nothing beside what is compared. `dyn`: fields count that the definition got later, too."""
    yield f"dyn(object.spec).all(field, field in {cel(sorted(spec))})"
    yield f"{_ROLE} && dyn(object.spec.clusterRole).all(field, field in {cel(sorted(spec['clusterRole']))})"


def cel(value: Any) -> str:
    """A JSON value as an expression of CEL: objects, lists and texts are written as in JSON. API servers want the
    members of an object, and the items of a list, to be of one type."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)
