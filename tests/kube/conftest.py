"""Fixtures for tests of the client."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import aiohttp
import pytest
import yarl

from multikueue.kube.http_call import Answer, HttpRequests
from multikueue.kube.requests import Request
from multikueue.kube.transport import Connector


@pytest.fixture(params=["first", "later"])
def first_and_later(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test twice: its first request goes through aiohttp's session, and is written by us, as later ones are."""
    send = HttpRequests.send

    async def later(
        self: HttpRequests,
        session: aiohttp.ClientSession,
        request: Request,
        headers: Mapping[str, str],
        limit: int,
        where: str,
    ) -> Answer:
        if isinstance(session.connector, Connector) and session.connector.first is None:
            await _go_ahead(session, session.connector, self)
        return await send(self, session, request, headers, limit, where)

    if request.param == "later":
        monkeypatch.setattr(HttpRequests, "send", later)


async def _go_ahead(session: aiohttp.ClientSession, connector: Connector, http: HttpRequests) -> None:
    """Make the request that the connector takes for its first; it gets no connection."""

    async def refused(*_: object) -> None:
        raise aiohttp.ClientPayloadError

    with contextlib.suppress(Exception), pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiohttp.TCPConnector, "connect", refused)
        address = yarl.URL(http.config.server, encoded=True)
        await session.get(address, server_hostname=http.config.tls_server_name or None)
