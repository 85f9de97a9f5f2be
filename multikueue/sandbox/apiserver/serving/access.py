"""Who may ask, how often they did, and the answers to access and token reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.faults import Call
from multikueue.sandbox.apiserver.status_errors import bad_request, no_route

ANONYMOUS = "system:anonymous"
REVIEW_GROUPS = ("authorization.k8s.io", "authentication.k8s.io")
_ACCESS = ("selfsubjectaccessreviews", "subjectaccessreviews", "localsubjectaccessreviews")


class Access:
    """Tokens and their users, and a count of requests.

    Attributes:
        tokens: user by token; change it while the server runs to revoke or add one. None: everyone may ask.
        requests: how many requests came in by (user, verb, resource), the refused and the failed ones too.
    """

    def __init__(self, tokens: dict[str, str] | None) -> None:
        self.tokens = tokens
        self.requests: Counter[tuple[str, str, str]] = Counter()

    def user_of(self, token: str) -> str | None:
        """Whose a token is; None if nobody's."""
        if self.tokens is None:
            return ANONYMOUS
        return self.tokens.get(token)

    def token_of(self, user: str) -> str | None:
        """A token of a user."""
        return next((token for token, name in (self.tokens or {}).items() if name == user), None)

    def count(self, call: Call) -> None:
        """Note a request."""
        self.requests[call.user, call.verb, call.resource] += 1


def review(
    plural: str,
    body: Any,
    user: str,
    user_of: Callable[[str], str | None],
    forbidden: Callable[[Call], bool] = lambda _: False,
) -> Json:
    """Answer a review.

    Args:
        plural: the kind of review.
        body: the review.
        user: who asks.
        user_of: says whose a token is.
        forbidden: whether a call would be refused: everything else may be done by everybody.

    Raises:
        StatusError: 404 for a kind of review that is not served.
    """
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized")
    answered = {**body, "metadata": body.get("metadata") or {}}
    if plural in _ACCESS:
        answered["status"] = {"allowed": not forbidden(_asked(body.get("spec") or {}, user))}
    elif plural == "selfsubjectreviews":
        answered["status"] = {"userInfo": _who(user)}
    elif plural == "tokenreviews":
        found = user_of((body.get("spec") or {}).get("token") or "")
        answered["status"] = {"authenticated": True, "user": _who(found)} if found else {"authenticated": False}
    else:
        raise no_route()
    return answered


def _asked(spec: Json, user: str) -> Call:
    """The call that an access review is about."""
    told = spec.get("resourceAttributes") or {}
    plural, group = told.get("resource") or "", told.get("group") or ""
    return Call(
        user=spec.get("user") or user,
        verb=told.get("verb") or "",
        resource=f"{plural}.{group}" if group else plural,
        namespace=told.get("namespace") or "",
        name=told.get("name") or "",
        subresource=told.get("subresource") or "",
    )


def _who(user: str) -> Json:
    return {"username": user, "groups": ["system:masters", "system:authenticated"]}
