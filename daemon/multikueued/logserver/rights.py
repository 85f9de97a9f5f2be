"""Who asks the API, by the word of the front proxy, and what they may, by the word of the manager's API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import attrs
import orjson
from aiohttp import web

from multikueue.core.model.names import ObjectKey
from multikueued.logserver.access import AccessReviews, RefusedError
from multikueued.logserver.answers import REMOTE_JOB
from multikueued.logserver.frontproxy import User

KEPT: Final = 60.0
"""Seconds for which it is known in which namespaces a user may list jobs."""
USERS: Final = 256


@attrs.define(eq=False)
class FrontProxyRights:
    """Implements `multikueued.logserver.access.Rights`."""

    access: AccessReviews
    user_of: Callable[[web.Request], User]
    _known: dict[bytes, tuple[float, list[str], list[str]]] = attrs.field(factory=dict, init=False)
    """By user and page: until when, of which namespaces, and the answer."""

    def user(self, request: web.Request) -> str:
        """See `Rights`."""
        return self.user_of(request).name

    async def check(self, request: web.Request, verb: str, resource: str, key: ObjectKey, part: str = "") -> None:
        """See `Rights`."""
        await self.access.check(self.user_of(request), key, verb, resource, part)

    async def namespaces(self, request: web.Request, known: list[str]) -> list[str]:
        """See `Rights`."""
        user, now = self.user_of(request), anyio.current_time()
        who = orjson.dumps([user.spec, known[:1]], option=orjson.OPT_SORT_KEYS)
        until, asked, found = self._known.get(who, (0.0, [], []))
        if now < until and asked == known:
            return found
        found, unanswered = [], []

        async def ask(namespace: str) -> None:
            try:
                await self.access.check(user, ObjectKey(namespace, ""), "list", REMOTE_JOB.plural, "")
                found.append(namespace)
            except RefusedError as error:
                if error.code != 403:
                    unanswered.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "")  # one answer for all, of those who may everywhere
        if found == [""]:
            found = list(known)
        else:
            async with anyio.create_task_group() as tasks:
                for namespace in known:
                    tasks.start_soon(ask, namespace)
        if unanswered:
            raise unanswered[0]
        if len(self._known) >= USERS:
            self._known.clear()
        self._known[who] = (now + KEPT, known, sorted(found))
        return sorted(found)
