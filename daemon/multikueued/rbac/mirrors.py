"""The rules, and the policy, of who makes mirrors and of who answers for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from multikueue import JobKind
from multikueue.core.model.labels import OWN_PREFIX
from multikueue.core.model.names import Json
from multikueued.mirror_names import MIRROR, NODE_PREFIX
from multikueued.rbac.logs import between_rules
from multikueued.rbac.policies import cel, refusing
from multikueued.rbac.role_rule import rule

NODE_LEASES: Final = "kube-node-lease"
"""The namespace of the Leases by which Nodes live."""
ADMISSION: Final = "admissionregistration.k8s.io"
PARTS: Final = ("pods/exec", "pods/attach", "pods/portforward")
"""Of a worker's pods, to enter their containers."""


def mirroring_rules(policy: str) -> list[Json]:
    """In the whole manager cluster, for who makes Nodes and mirrors; `policy` is the name of what bounds them.

    RBAC knows no beginnings of names: the policy lets this account write nothing else.
    """
    return [
        rule("", ["nodes"], ["create", "delete", "get", "list"]),
        rule("", ["pods"], ["create", "delete", "list", "watch"]),
        rule("", ["nodes/status", "pods/status"], ["patch"]),
        rule(ADMISSION, ["validatingadmissionpolicies", "validatingadmissionpolicybindings"], ["get"], [policy]),
    ]


def node_lease_rules() -> list[Json]:
    """In `kube-node-lease`, for the same account."""
    return [rule("coordination.k8s.io", ["leases"], ["create", "patch"])]


def mirror_key_rules(key: str) -> list[Json]:
    """In its own namespace, for the same account: the Secret with the key of mirrors, which is made beforehand."""
    return [rule("", ["secrets"], ["get", "patch"], [key])]


def shown_rules(kinds: Sequence[JobKind]) -> list[Json]:
    """In a whole worker cluster, for the same: the pods of runs as they change, and what stands between a job and its
    pods."""
    return [rule("", ["pods"], ["list", "watch"]), *between_rules(kinds, "get")]


def endpoint_rules(*, signed: bool) -> list[Json]:
    """In the whole manager cluster, for who answers for mirrors, beside what `multikueue api-server` may.

    Args:
        signed: whether somebody is asked to sign its certificate. It may approve nothing.
    """
    asks = [rule("certificates.k8s.io", ["certificatesigningrequests"], ["create", "get"])] if signed else []
    return [rule("", ["pods"], ["get"]), *asks]


def endpoint_secret_rules(key: str, certificate: str, *, brought: bool) -> list[Json]:
    """In the daemon's namespace, for the same: the Secrets with the key of mirrors and with its certificate.

    Args:
        key: names one.
        certificate: names the other.
        brought: whether somebody else writes the certificate.
    """
    return [
        rule("", ["secrets"], ["get"], [key]),
        rule("", ["secrets"], ["get"] if brought else ["get", "patch"], [certificate]),
    ]


def mirrored_rules(*, exec: bool) -> list[Json]:
    """In a whole worker cluster, for who answers for mirrors: their pods and logs.

    Args:
        exec: whether containers are entered: by `create`, and by `get`, as which older WebSockets come.
    """
    enter = [rule("", PARTS, ["create", "get"])] if exec else []
    return [rule("", ["pods"], ["get"]), rule("", ["pods/log"], ["get"]), *enter]


_OURS: Final = "variables.ours"
_NEW, _OLD = "variables.node", "variables.oldNode"
_WHAT: Final = "variables.what"


def _on(node: str) -> str:
    return f"{node}.startsWith({cel(NODE_PREFIX)})"


def _node_of(pod: str) -> str:
    there = f"{pod} != null && has({pod}.spec) && has({pod}.spec.nodeName)"
    return f"{there} ? string({pod}.spec.nodeName) : ''"


def _kept() -> str:
    """Whether two versions of a pod say the same of what is ours."""
    own = f"startsWith({cel(OWN_PREFIX)})"
    both = ("object", "oldObject")
    sides = [
        f"{of}.metadata.?annotations.orValue({{}}).all(name, !name.{own} || "
        f"{to}.metadata.?annotations[name].orValue('') == {of}.metadata.annotations[name])"
        for of, to in (both, both[::-1])
    ]
    labels = " == ".join(f"{of}.metadata.?labels[{cel(MIRROR)}].orValue('')" for of in both)
    return " && ".join([*sides, labels, "object.spec == oldObject.spec"])


def _finalizers(pod: str) -> str:
    return f"{pod}.metadata.?finalizers.orValue([])"


def _owners(pod: str) -> str:
    return f"{pod}.metadata.?ownerReferences.orValue([])"


def _validations() -> tuple[tuple[str, str], ...]:
    """What must hold, and what is said otherwise: a row each."""
    created = "request.operation == 'CREATE'"
    changes = f"{_WHAT} in ['pods', 'pods/status', 'pods/resize'] && request.operation == 'UPDATE'"
    others_change = f"{_OURS} || !({changes}) || !{_on(_OLD)}"
    return (
        (
            f"!({_OURS} && {_WHAT} == 'pods' && {created}) || {_on(_NEW)}",
            f"this account makes pods on Nodes named {NODE_PREFIX}* only",
        ),
        (
            f"!({_OURS} && {_WHAT} == 'pods' && !({created})) || {_OLD} == '' || {_on(_OLD)}",
            f"this account changes and deletes pods without a Node, or on Nodes named {NODE_PREFIX}*, only",
        ),
        (
            f"!({_OURS} && {_WHAT} in ['nodes', 'nodes/status']) || {_on('variables.name')}",
            f"this account writes Nodes named {NODE_PREFIX}* only",
        ),
        (
            f"!({_OURS} && {_WHAT} == 'leases' && request.namespace == {cel(NODE_LEASES)}) || {_on('variables.name')}",
            f"this account writes Leases of Nodes named {NODE_PREFIX}* only",
        ),
        (
            f"{_OURS} || {_WHAT} != 'pods' || !({created}) || !{_on(_NEW)}",
            f"multikueue alone puts pods on Nodes named {NODE_PREFIX}*",
        ),
        (
            f"!({_WHAT} in ['pods/binding', 'bindings']) || {_OURS} == {_on('variables.target')}",
            f"multikueue alone binds pods to Nodes named {NODE_PREFIX}*, and to no other",
        ),
        (
            f"{_WHAT} != 'pods/ephemeralcontainers' || !{_on(_OLD)}",
            "this pod is a view of one on a worker: a container that is added here never starts",
        ),
        (f"{others_change} || ({_kept()})", "what multikueue has written on this pod stays as it is"),
        (
            f"{others_change} || {_finalizers('object')}.all(one, one in {_finalizers('oldObject')})",
            "this pod is a view, and waits for nobody: it gets no finalizer",
        ),
        (
            f"{others_change} || {_owners('object')}.all(one, one in {_owners('oldObject')})",
            "this pod belongs to the job that it is shown for: it gets no other owner",
        ),
    )


def mirror_policy_objects(name: str, user: str) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding: our account on our Nodes alone, and nobody else there.

    Without it the right to create pods, wherever they are, would be that of every service account of the manager; and
    who may create pods could put one of their own in place of a mirror.

    Args:
        name: of both.
        user: who makes mirrors.
    """
    by_us = f"request.userInfo.username == {cel(user)}"
    target = "object != null && has(object.target) && has(object.target.name)"
    spec: Json = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                _matched("", ["pods", "pods/status", "nodes", "nodes/status"], "CREATE", "UPDATE", "DELETE"),
                _matched("", ["pods/binding", "bindings"], "CREATE"),
                _matched("", ["pods/ephemeralcontainers", "pods/resize"], "UPDATE"),
                _matched("coordination.k8s.io", ["leases"], "CREATE", "UPDATE", "DELETE"),
            ]
        },
        # Kubelets' Leases and statuses are not looked at any further.
        "matchConditions": [
            {"name": "concerned", "expression": f"{by_us} || request.resource.resource in ['pods', 'bindings']"},
        ],
        "variables": [
            {"name": "ours", "expression": by_us},
            {"name": "what", "expression": f"request.resource.resource + ({_SUBRESOURCE})"},
            {"name": "name", "expression": "object != null ? object.metadata.name : oldObject.metadata.name"},
            {"name": "node", "expression": _node_of("object")},
            {"name": "oldNode", "expression": _node_of("oldObject")},
            {"name": "target", "expression": f"{target} ? string(object.target.name) : ''"},
        ],
        "validations": [{"expression": expression, "message": message} for expression, message in _validations()],
    }
    return refusing(name, spec)


_SUBRESOURCE: Final = "has(request.subResource) && request.subResource != '' ? '/' + request.subResource : ''"


def _matched(group: str, resources: list[str], *operations: str) -> Json:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": [*operations], "resources": resources}
