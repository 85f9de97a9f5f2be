"""Whether a user may read a log, by the word of the manager's API server; and how many they may read at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import anyio
import attrs
from aiohttp import web

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import ApiError
from multikueued.logserver.answers import GROUP, REMOTE_JOB, SUBRESOURCE, VERSION
from multikueued.logserver.frontproxy import User

ACCESS_REVIEW: Final = Resource(
    GVK("authorization.k8s.io", "v1", "SubjectAccessReview"), "subjectaccessreviews", namespaced=False
)
TIMEOUT: Final = 10.0
"""Seconds that the manager's API server may take to say."""
REVIEWS: Final = 8
"""Users asked about at a time."""

Create = Callable[[Resource, Json], Awaitable[Json]]


class RefusedError(Exception):
    """A request is not served."""

    def __init__(self, code: int, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class Rights(Protocol):
    """Who asks, and what they may."""

    def user(self, request: web.Request) -> str:
        """The name of who asks.

        Raises:
            RefusedError: nobody vouches for one.
        """
        ...

    async def check(self, request: web.Request, verb: str, resource: str, key: ObjectKey, part: str = "") -> None:
        """
        Raises:
            RefusedError: who asks may not, or nobody says.
        """
        ...

    async def namespaces(self, request: web.Request, known: list[str]) -> list[str]:
        """Those of the known ones in which who asks may list jobs."""
        ...


@attrs.define(eq=False)
class AccessReviews:
    """Asks the manager's API server."""

    create: Create
    _turns: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(REVIEWS), init=False)

    async def check(
        self, user: User, key: ObjectKey, verb: str = "get", resource: str = REMOTE_JOB.plural, part: str = SUBRESOURCE
    ) -> None:
        """
        Args:
            user: who asks.
            key: of the object; without a name: all of the namespace, without a namespace: of the cluster.
            verb: `get`, `list` or `watch`.
            resource: of our group.
            part: the subresource; empty: none.

        Raises:
            RefusedError: the user may not, or nobody says.
        """
        asked = {"verb": verb, "group": GROUP, "version": VERSION, "resource": resource}
        given = {"subresource": part, "namespace": key.namespace, "name": key.name}
        asked |= {field: value for field, value in given.items() if value}
        review: Json = {"apiVersion": ACCESS_REVIEW.gvk.api_version, "kind": ACCESS_REVIEW.gvk.kind, "metadata": {}}
        review["spec"] = {**user.spec, "resourceAttributes": asked}
        try:
            with anyio.fail_after(TIMEOUT):
                async with self._turns:
                    answer = await self.create(ACCESS_REVIEW, review)
        except (ApiError, TimeoutError) as error:
            raise RefusedError(503, "the manager cluster does not say who may read this", 2) from error
        if dig(answer, "status", "allowed") is not True:
            what = f'{resource}.{GROUP} "{key.name}" is forbidden: User "{user.name}" cannot {verb} resource'
            where = f'"{resource}{f"/{part}" if part else ""}" in API group "{GROUP}"'
            where += f' in the namespace "{key.namespace}"' if key.namespace else " at the cluster scope"
            raise RefusedError(403, f"{what} {where}")


@attrs.define(eq=False)
class Slots:
    """How many logs, lists or watches are read at a time."""

    most: int
    per_user: int
    what: str = "logs"
    _users: Counter[str] = attrs.field(factory=Counter, init=False)
    _namespaces: Counter[str] = attrs.field(factory=Counter, init=False)

    @property
    def per_namespace(self) -> int:
        """Half of all: one tenant leaves places for the others."""
        return max(1, self.most // 2)

    @contextmanager
    def of_user(self, user: str) -> Iterator[None]:
        """A place for one request while the context lasts.

        Raises:
            RefusedError: there is none.
        """
        if self._users[user] >= self.per_user:
            raise RefusedError(429, f"you read {self.per_user} {self.what} already: end one first", 5)
        if self._users.total() >= self.most:
            raise RefusedError(429, f"{self.most} {self.what} are read already, of all users: ask again later", 5)
        with _counted(self._users, user):
            yield

    @contextmanager
    def in_namespace(self, namespace: str) -> Iterator[None]:
        """One of a namespace's places: for a user who may read there, or strangers could take them.

        Raises:
            RefusedError: there is none.
        """
        if self._namespaces[namespace] >= self.per_namespace:
            told = f"{self.per_namespace} {self.what} of namespace {namespace} are read already: ask again later"
            raise RefusedError(429, told, 5)
        with _counted(self._namespaces, namespace):
            yield


@contextmanager
def _counted(taken: Counter[str], one: str) -> Iterator[None]:
    taken[one] += 1
    try:
        yield
    finally:
        taken[one] -= 1
        if not taken[one]:
            del taken[one]
