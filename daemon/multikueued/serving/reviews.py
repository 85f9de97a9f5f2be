"""What an API server is asked about users: whose a token is, and what somebody may."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from multikueue.core.model.names import GVK, Json, Resource
from multikueued.serving.users import User

TOKEN_REVIEW: Final = Resource(GVK("authentication.k8s.io", "v1", "TokenReview"), "tokenreviews", namespaced=False)
ACCESS_REVIEW: Final = Resource(
    GVK("authorization.k8s.io", "v1", "SubjectAccessReview"), "subjectaccessreviews", namespaced=False
)
WHO_AM_I: Final = Resource(
    GVK("authentication.k8s.io", "v1", "SelfSubjectReview"), "selfsubjectreviews", namespaced=False
)
SELF_REVIEW: Final = Resource(
    GVK("authorization.k8s.io", "v1", "SelfSubjectAccessReview"), "selfsubjectaccessreviews", namespaced=False
)
MAX_TOKEN: Final = 16 << 10
"""Bytes of a token."""
Create: TypeAlias = Callable[[Resource, Json], Awaitable[Json]]


async def reviewed(create: Create, kind: Resource, spec: Json) -> Json:
    """The status of a review.

    Raises:
        ApiError: the server does not say.
    """
    return (await create(kind, kind.object({"metadata": {}, "spec": spec}))).get("status") or {}


async def may(create: Create, user: User, **asked: Json) -> bool:
    """Whether a user may do something.

    Args:
        create: sends the review.
        user: who.
        asked: what, as `resourceAttributes` or `nonResourceAttributes` of a SubjectAccessReview.

    Raises:
        ApiError: the server does not say.
    """
    return (await reviewed(create, ACCESS_REVIEW, {**user.spec, **asked})).get("allowed") is True


async def user_of_token(create: Create, token: str) -> User | None:
    """Whose a token is; None: nobody's.

    Raises:
        ApiError: the server does not say.
    """
    review = await reviewed(create, TOKEN_REVIEW, {"token": token})
    if review.get("authenticated") is not True:
        return None
    user = review.get("user") or {}
    extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
    return User(user.get("username", ""), tuple(user.get("groups") or ()), user.get("uid", ""), extra)


def bearer_token(authorization: str) -> str:
    """The token of an `Authorization` header; empty: it has none that could be somebody's."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    is_one = scheme.lower() == "bearer" and token.isascii() and len(token) <= MAX_TOKEN
    return token if is_one else ""


def digest_of(token: str) -> str:
    """What stands for a token where answers are kept: the token itself is not."""
    return hashlib.sha256(token.encode()).hexdigest()
