"""RBAC as a pure function: which rule of which binding allows what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.identity.users import User, account_user, struct

GROUP: Final = "rbac.authorization.k8s.io"
_ALL: Final = "*"


@attrs.frozen
class Attributes:
    """What is asked for: a verb on a resource, or on a path that is none (`path`)."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @classmethod
    def of_review(cls, spec: Json) -> Attributes:
        """What an access review asks about.

        Raises:
            StatusError: 400, it does not fit the kind.
        """
        if asked := struct(spec, "nonResourceAttributes"):
            return cls(verb=asked.get("verb") or "", path=asked.get("path") or "")
        asked = struct(spec, "resourceAttributes")
        names = ("verb", "group", "resource", "subresource", "namespace", "name")
        return cls(**{name: asked.get(name) or "" for name in names})

    @property
    def combined(self) -> str:
        """`jobs/status`: a resource as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Roles(Protocol):
    """Where roles and bindings are read from."""

    def bindings(self, namespace: str) -> Iterable[Json]:
        """The ClusterRoleBindings, then the RoleBindings of a namespace; of none if it is empty."""

    def rules(self, kind: str, namespace: str, name: str) -> Sequence[Json] | None:
        """The rules of a Role or ClusterRole; None if there is no such role."""


def reason(roles: Roles, user: User, asked: Attributes) -> str | None:
    """Why a user may do something, in words; None if no role allows it."""
    if user.is_administrator:
        return "members of system:masters may do everything"
    for binding, subject, rules in _bound(roles, user, asked.namespace):
        if any(allows(rule, asked) for rule in rules):
            metadata, role = binding["metadata"], _role_of(binding)
            where = f"{metadata['name']}/{metadata['namespace']}" if metadata.get("namespace") else metadata["name"]
            who = f'{subject["kind"]} "{subject["name"]}{_in(subject)}"'
            return f'RBAC: allowed by {binding["kind"]} "{where}" of {role[0]} "{role[1]}" to {who}'
    return None


def rules_of(roles: Roles, user: User, namespace: str) -> list[Json]:
    """All rules that hold for a user in a namespace."""
    if user.is_administrator:
        return [
            {"verbs": [_ALL], "apiGroups": [_ALL], "resources": [_ALL]},
            {"verbs": [_ALL], "nonResourceURLs": [_ALL]},
        ]
    return [rule for _, _, rules in _bound(roles, user, namespace) for rule in rules]


def _in(subject: Json) -> str:
    return f"/{subject['namespace']}" if subject.get("namespace") else ""


def _bound(roles: Roles, user: User, namespace: str) -> Iterator[tuple[Json, Json, Sequence[Json]]]:
    """The bindings of a user, each with the subject that is the user and the role's rules."""
    for binding in roles.bindings(namespace):
        within = binding["metadata"].get("namespace") or ""
        subject = next((listed for listed in binding.get("subjects") or () if _is(listed, user, within)), None)
        if subject is not None:
            kind, name = _role_of(binding)
            yield binding, subject, roles.rules(kind, within, name) or ()


def _role_of(binding: Json) -> tuple[str, str]:
    """Kind and name of a binding's role."""
    reference = binding.get("roleRef") or {}
    return reference.get("kind") or "", reference.get("name") or ""


def _is(subject: Json, user: User, namespace: str) -> bool:
    name = subject.get("name")
    match subject.get("kind"):
        case "User":
            return bool(name == user.name)
        case "Group":
            return name in user.groups
        case "ServiceAccount" if name:
            return account_user(subject.get("namespace") or namespace, name) == user.name
    return False


def allows(rule: Json, asked: Attributes) -> bool:
    """Whether one rule allows what is asked."""
    if not _has(rule, "verbs", asked.verb):
        return False
    if asked.path:
        return any(_covers(pattern, asked.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    resources = rule.get("resources") or ()
    return (
        _has(rule, "apiGroups", asked.group)
        and (
            _has(rule, "resources", asked.combined)
            or bool(asked.subresource and f"{_ALL}/{asked.subresource}" in resources)
        )
        and (not names or asked.name in names)
    )


def _has(rule: Json, field: str, value: str) -> bool:
    listed = rule.get(field) or ()
    return _ALL in listed or value in listed


def _covers(pattern: str, path: str) -> bool:
    return pattern in (_ALL, path) or (pattern.endswith(_ALL) and path.startswith(pattern.rstrip(_ALL)))
