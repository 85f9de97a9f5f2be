"""Access and token reviews: everyone who has a token may do everything here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.verbs.statuses import bad_request, no_route

REVIEW_GROUPS = ("authorization.k8s.io", "authentication.k8s.io")
_ACCESS = ("selfsubjectaccessreviews", "subjectaccessreviews", "localsubjectaccessreviews")


def review(plural: str, body: Any, user: str, user_of: Callable[[str], str | None]) -> Json:
    """Answer a review; `user_of` says whose a token is.

    Raises:
        StatusError: 404 for a kind of review that is not served.
    """
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized")
    answered = {**body, "metadata": body.get("metadata") or {}}
    if plural in _ACCESS:
        answered["status"] = {"allowed": True}
    elif plural == "selfsubjectreviews":
        answered["status"] = {"userInfo": _who(user)}
    elif plural == "tokenreviews":
        found = user_of((body.get("spec") or {}).get("token") or "")
        answered["status"] = {"authenticated": True, "user": _who(found)} if found else {"authenticated": False}
    else:
        raise no_route()
    return answered


def _who(user: str) -> Json:
    return {"username": user, "groups": ["system:masters", "system:authenticated"]}
