"""Answers to the reviews: may I, may they, what may I, who am I, whose token is this."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.identity.access import Access
from multikueue.sandbox.apiserver.identity.rbac import Attributes
from multikueue.sandbox.apiserver.identity.tokens import AUDIENCE
from multikueue.sandbox.apiserver.identity.users import User, of_type, struct, texts
from multikueue.sandbox.apiserver.status_errors import bad_request, method_not_allowed, no_route

GROUPS: Final = ("authorization.k8s.io", "authentication.k8s.io")
_Answer: TypeAlias = Callable[[Access, User, Json, str], Json]


def review(access: Access, user: User, method: str, place: tuple[str, str, list[str]], body: Any) -> Json:
    """Answer a review that is posted to a place: group, version and the rest of the path.

    Raises:
        StatusError: 404 for a kind of review that is not served, 403 for one that the user may not ask for.
    """
    group, version, rest = place
    namespace = rest[1] if rest[0] == "namespaces" and len(rest) == 3 else ""
    plural = rest[2] if namespace else rest[0]
    answer = _ANSWERS.get((group, plural))
    if version != "v1" or answer is None or bool(namespace) != (plural == "localsubjectaccessreviews"):
        raise no_route()
    if method != "POST":
        raise method_not_allowed()
    access.authorize(user, Attributes("create", group, plural, namespace=namespace))
    status = answer(access, user, struct(body, "spec"), namespace)
    return {**body, "metadata": body.get("metadata") or {}, "status": status}


def _may_i(access: Access, user: User, spec: Json, _namespace: str) -> Json:
    return _verdict(access, user, spec)


def _may_they(access: Access, _user: User, spec: Json, namespace: str) -> Json:
    asked = struct(spec, "resourceAttributes")
    if namespace and asked.get("namespace") != namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    about = User(spec.get("user") or "", tuple(texts(spec, "groups")), spec.get("uid") or "")
    return _verdict(access, about, spec)


def _verdict(access: Access, user: User, spec: Json) -> Json:
    why = access.reason(user, Attributes.of_review(spec))
    return {"allowed": False} if why is None else {"allowed": True, "reason": why}


def _what_may_i(access: Access, user: User, spec: Json, _namespace: str) -> Json:
    rules = access.rules_of(user, spec.get("namespace") or "")
    return {
        "resourceRules": list(_without(rules, "nonResourceURLs")),
        "nonResourceRules": list(_without(rules, "resources")),
        "incomplete": False,
    }


def _without(rules: Iterable[Json], field: str) -> Iterable[Json]:
    return (rule for rule in rules if not rule.get(field))


def _who_am_i(_access: Access, user: User, _spec: Json, _namespace: str) -> Json:
    return {"userInfo": user.described()}


def _whose_token(access: Access, _user: User, spec: Json, _namespace: str) -> Json:
    identity = access.identify(of_type(spec, "token", str) or "", texts(spec, "audiences") or (AUDIENCE,))
    if identity is None:
        return {"authenticated": False, "user": {}, "error": "invalid bearer token"}
    user, audiences = identity
    return {"authenticated": True, "user": user.described(), "audiences": audiences}


_ANSWERS: Final[Mapping[tuple[str, str], _Answer]] = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): _may_i,
    ("authorization.k8s.io", "selfsubjectrulesreviews"): _what_may_i,
    ("authorization.k8s.io", "subjectaccessreviews"): _may_they,
    ("authorization.k8s.io", "localsubjectaccessreviews"): _may_they,
    ("authentication.k8s.io", "selfsubjectreviews"): _who_am_i,
    ("authentication.k8s.io", "tokenreviews"): _whose_token,
}
