"""What keeps the viewers of a server's page apart, taken away: the test of a line of the threat model must see each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import orjson
from aiohttp import web

from multikueued.page import port, signed_in
from multikueued.page.signed_in import SignedIn
from multikueued.serving.kept_answers import KeptAnswers
from multikueued.serving.users import User

Mutation = Callable[[], AbstractContextManager[Any]]


def what_one_viewer_may_all_may() -> AbstractContextManager[Any]:
    """What is kept of reviews is found again by what is asked, whoever asks."""
    original = KeptAnswers.of

    async def of(self: Any, asked: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
        if isinstance(asked, bytes):
            match orjson.loads(asked):
                case [_, namespaces]:
                    asked = orjson.dumps(namespaces)
                case review:
                    asked = orjson.dumps(review["resourceAttributes"])
        return await original(self, asked, ask)

    return mock.patch.object(KeptAnswers, "of", of)


def all_tokens_are_of_the_first_viewer() -> AbstractContextManager[Any]:
    """What is kept of tokens is not told apart by token."""
    return mock.patch.object(signed_in, "digest_of", return_value="")


def a_proxys_words_are_believed() -> AbstractContextManager[Any]:
    """A token in a header of proxies counts, whoever has sent it."""
    original = SignedIn.confirmed

    async def confirmed(self: SignedIn, request: web.Request) -> User:
        token = request.headers.get("X-Forwarded-Access-Token")
        given = {"Authorization": f"Bearer {token}"} if token else {}
        request[signed_in.USER] = await original(self, request.clone(headers={**request.headers, **given}))
        return request[signed_in.USER]

    return mock.patch.object(SignedIn, "confirmed", confirmed)


def links_lead_to_answers() -> AbstractContextManager[Any]:
    """Another site may open an answer of the API as it may open the page."""
    original = port._check

    def check(door: port.Door, request: web.Request) -> None:
        is_opened = request.headers.get("Sec-Fetch-Dest") == "document"
        headers = {**request.headers, **({"Sec-Fetch-Site": "none"} if is_opened else {})}
        original(door, request.clone(headers=headers))

    return mock.patch.object(port, "_check", check)


PAGE: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            what_one_viewer_may_all_may,
            all_tokens_are_of_the_first_viewer,
            a_proxys_words_are_believed,
            links_lead_to_answers,
        )
    }
)
