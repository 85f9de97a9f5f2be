"""Who signs in at the page: whose a bearer token is, by the word of the manager's API server.

People type their own token, or an OIDC proxy in front passes theirs. No other header says who asks, whoever sends it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import anyio
import attrs
from aiohttp import web

from multikueue.errors import ApiError
from multikueued.serving.kept_answers import KeptAnswers
from multikueued.serving.refusal import RefusedError
from multikueued.serving.reviews import Create, bearer_token, digest_of, user_of_token
from multikueued.serving.users import User

KEPT: Final = 10.0
"""Seconds for which it is known whose a token is, and what a user may: how late it is noticed that they may not."""
TOKENS: Final = 1024
"""How many are known, by their digests."""
REVIEWS: Final = 8
"""Tokens asked about at a time."""
USER: Final = web.RequestKey("user", User)


@attrs.define(eq=False)
class SignedIn:
    """Implements `multikueued.logserver.access.Callers`."""

    create: Create
    """Asks the manager's API server."""
    kept: float = attrs.field(factory=lambda: KEPT)
    """Seconds for which it is known whose a token is."""
    _users: KeptAnswers[str, User | None] = attrs.field(init=False, repr=False)
    """By digest of the token."""

    @_users.default
    def _kept_users(self) -> KeptAnswers[str, User | None]:
        return KeptAnswers(self.kept, self.kept, TOKENS, anyio.CapacityLimiter(REVIEWS))

    def user(self, request: web.Request) -> User:
        """See `Callers`: who has been let in."""
        if USER not in request:
            raise RefusedError(401, _SIGN_IN)
        return request[USER]

    async def confirmed(self, request: web.Request) -> User:
        """See `Callers`: a token may have been revoked meanwhile."""
        given = request.headers.getall("Authorization", [])
        token = bearer_token(given[0]) if len(given) == 1 else ""
        if not token:
            raise RefusedError(401, _SIGN_IN)
        try:
            user = await self._users.of(digest_of(token), partial(user_of_token, self.create, token))
        except (ApiError, TimeoutError) as error:
            raise RefusedError(503, "the manager cluster does not say whose the token is", 2) from error
        if user is None:
            raise RefusedError(401, "the manager cluster does not know the token")
        request[USER] = user
        return user


_SIGN_IN: Final = "sign in with a token of the manager cluster: Authorization: Bearer TOKEN"
