"""What an API server is asked about users: whose a token is, and what somebody may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from multikueue.core.model.names import GVK, Json, Resource

TOKEN_REVIEW: Final = Resource(GVK("authentication.k8s.io", "v1", "TokenReview"), "tokenreviews", namespaced=False)
ACCESS_REVIEW: Final = Resource(
    GVK("authorization.k8s.io", "v1", "SubjectAccessReview"), "subjectaccessreviews", namespaced=False
)
SELF_REVIEW: Final = Resource(
    GVK("authorization.k8s.io", "v1", "SelfSubjectAccessReview"), "selfsubjectaccessreviews", namespaced=False
)
Create: TypeAlias = Callable[[Resource, Json], Awaitable[Json]]


async def reviewed(create: Create, kind: Resource, spec: Json) -> Json:
    """The status of a review.

    Raises:
        ApiError: the server does not say.
    """
    review = {"apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind, "metadata": {}, "spec": spec}
    return (await create(kind, review)).get("status") or {}
