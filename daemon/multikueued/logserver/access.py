"""Who asks, whether they may, by the word of the manager's API server, and how much they may read at a time."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, Protocol

import anyio
import attrs
import orjson
from aiohttp import web

from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError
from multikueue.runtime.loop import utc_now
from multikueued.api_answers import GROUP, REMOTE_JOB, VERSION
from multikueued.logserver.frontproxy import FrontProxy
from multikueued.serving.caller_tls import CallerTls, peer_of
from multikueued.serving.kept_answers import KeptAnswers
from multikueued.serving.places import Holders
from multikueued.serving.refusal import RefusedError
from multikueued.serving.reviews import Create, may
from multikueued.serving.users import User

CHECK: Final = 60.0
"""Seconds after which it is asked again whether a user may read what is still being read."""
UNANSWERED: Final = 3
"""How often in a row nobody may say whether the reader still may: then nothing more is shown."""
REVIEWS: Final = 8
"""Users asked about at a time."""
KEPT: Final = 60.0
"""Seconds for which it is known in which namespaces a user may list jobs."""
USERS: Final = 256
"""How many are kept: by user and page."""
ANSWERS: Final = 4096
"""How many answers are kept: by user and what is asked."""

Check = Callable[[], Awaitable[None]]
"""Raises RefusedError if who asks may not, or nobody says."""


class Rights(Protocol):
    """Who asks, and what they may."""

    def user(self, request: web.Request) -> str:
        """The name of who asks.

        Raises:
            RefusedError: nobody vouches for one.
        """

    async def check(self, request: web.Request, verb: str, resource: str, key: ObjectKey, part: str = "") -> None:
        """
        Raises:
            RefusedError: who asks may not, or nobody says.
        """

    async def namespaces(self, request: web.Request, known: list[str]) -> list[str]:
        """Those of the known ones in which who asks may list jobs."""


async def until_refused(check: Check) -> None:
    """Ask again and again; it ends once the user may not, or nobody has said for a while."""
    unanswered = 0
    while unanswered < UNANSWERED:
        await anyio.sleep(CHECK)
        try:
            await check()
            unanswered = 0
        except RefusedError as error:
            unanswered += 1 if error.code not in (401, 403) else UNANSWERED


class Callers(Protocol):
    """Who asks."""

    def user(self, request: web.Request) -> User:
        """
        Raises:
            RefusedError: nobody vouches for one.
        """

    async def confirmed(self, request: web.Request) -> User:
        """The same, asked again whether that still holds; raises as `user`."""


@attrs.define(eq=False)
class FrontTls(CallerTls):
    """Of a server that the front proxy calls: that one's certificate, and no other, is believed."""

    front: FrontProxy | None = attrs.field(default=None, init=False)
    """Whom to believe; None: not known yet, so nobody."""

    def take(self, config_map: Json) -> None:
        """See `CallerTls.take`."""
        self.believe(FrontProxy.read(config_map))

    def believe(self, front: FrontProxy) -> None:
        """Believe this front proxy from now on, and no other; raises as `take`."""
        self.trust(front.authorities)
        self.front = front


@attrs.frozen(eq=False)
class FrontProxyCallers:
    """Implements `Callers`: who asks by the word of the front proxy."""

    tls: FrontTls

    def user(self, request: web.Request) -> User:
        """See `Callers`."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        peer = peer_of(connection, utc_now())
        if connection is None or peer is None or self.tls.front is None:
            raise RefusedError(401, "only the front proxy of the manager's API servers may ask: use kubectl")
        if not self.tls.is_current(connection.context):
            raise RefusedError(503, "the front proxy's authorities have changed: ask again", 1)
        user = self.tls.front.user(peer, request.headers)
        if user is None:
            refusal = "only the front proxy of the manager's API servers may ask, for a user that it names"
            raise RefusedError(401, refusal)
        return user

    async def confirmed(self, request: web.Request) -> User:
        """See `Callers`."""
        return self.user(request)


@attrs.define(eq=False)
class ReviewedRights:
    """Implements `Rights`: what those who ask may, by the word of the manager's API server."""

    create: Create
    """Of the manager."""
    callers: Callers
    kept: float = 0.0
    """Seconds for which it is known what a user may."""
    namespaces_kept: float = KEPT
    """The same of the namespaces in which a user may list jobs."""
    _reviews: KeptAnswers[bytes, bool] = attrs.field(init=False, repr=False)
    """By user and what is asked."""
    _lists: KeptAnswers[bytes, list[str]] = attrs.field(init=False, repr=False)
    """By user and page."""

    @_reviews.default
    def _kept_reviews(self) -> KeptAnswers[bytes, bool]:
        return KeptAnswers(self.kept, self.kept, ANSWERS, anyio.CapacityLimiter(REVIEWS))

    @_lists.default
    def _kept_lists(self) -> KeptAnswers[bytes, list[str]]:
        """Each is made of many reviews, which have turns and deadlines of their own."""
        kept, turns = self.namespaces_kept, anyio.CapacityLimiter(math.inf)
        return KeptAnswers(kept, kept, USERS, turns, is_good=lambda _: True, timeout=math.inf)

    def user(self, request: web.Request) -> str:
        """See `Rights`."""
        return self.callers.user(request).name

    async def check(self, request: web.Request, verb: str, resource: str, key: ObjectKey, part: str = "") -> None:
        """See `Rights`."""
        asked = {"verb": verb, "group": GROUP, "version": VERSION, "resource": resource}
        given = {"subresource": part, "namespace": key.namespace, "name": key.name}
        asked |= {field: value for field, value in given.items() if value}
        user = await self.callers.confirmed(request)
        question = orjson.dumps([user.spec, asked], option=orjson.OPT_SORT_KEYS)
        try:
            allowed = await self._reviews.of(question, partial(may, self.create, user, resourceAttributes=asked))
        except (ApiError, TimeoutError) as error:
            raise RefusedError(503, "the manager cluster does not say who may read this", 2) from error
        if not allowed:
            what = f'{resource}.{GROUP} "{key.name}" is forbidden: User "{user.name}" cannot {verb} resource'
            where = f'"{resource}{f"/{part}" if part else ""}" in API group "{GROUP}"'
            where += f' in the namespace "{key.namespace}"' if key.namespace else " at the cluster scope"
            raise RefusedError(403, f"{what} {where}")

    async def namespaces(self, request: web.Request, known: list[str]) -> list[str]:
        """See `Rights`."""
        asked = orjson.dumps([self.callers.user(request).spec, known], option=orjson.OPT_SORT_KEYS)
        return await self._lists.of(asked, partial(self._listable, request, known))

    async def _listable(self, request: web.Request, known: list[str]) -> list[str]:
        listable: list[str] = []
        unanswered: list[RefusedError] = []

        async def ask(namespace: str) -> None:
            try:
                await self.check(request, "list", REMOTE_JOB.plural, ObjectKey(namespace, ""))
                listable.append(namespace)
            except RefusedError as error:
                if error.code != 403:
                    unanswered.append(error)

        await ask("")  # one answer for all, of those who may everywhere
        if listable:
            return sorted(known)
        async with anyio.create_task_group() as tasks:
            for namespace in known:
                tasks.start_soon(ask, namespace)
        if unanswered:
            raise unanswered[0]
        return sorted(listable)


@attrs.define(eq=False)
class Slots(Holders):
    """How many logs, lists or watches are read at a time."""

    most: int
    per_user: int
    what: str = "logs"

    def of_user(self, user: str) -> AbstractContextManager[None]:
        """A place for one request while the context lasts.

        Raises:
            RefusedError: there is none.
        """
        if self.held("user", user) >= self.per_user:
            raise RefusedError(429, f"you read {self.per_user} {self.what} already: end one first", 5)
        if self.held("user") >= self.most:
            raise RefusedError(429, f"{self.most} {self.what} are read already, of all users: ask again later", 5)
        return self.holding(user=user)

    def in_namespace(self, namespace: str) -> AbstractContextManager[None]:
        """One of a namespace's places: for a user who may read there, or strangers could take them.

        Raises:
            RefusedError: there is none.
        """
        most = max(1, self.most // 2)  # one tenant leaves places for the others
        if self.held("namespace", namespace) >= most:
            full = f"{most} {self.what} of namespace {namespace} are read already: ask again later"
            raise RefusedError(429, full, 5)
        return self.holding(namespace=namespace)
