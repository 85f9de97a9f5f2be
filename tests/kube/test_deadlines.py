"""The deadline of a call begins when it is sent; its wait for a connection has a bound of its own."""

from __future__ import annotations

import collections
from typing import Any

import anyio
import attrs
import pytest
from aiohttp import web

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json
from multikueue.errors import ApiError, DeadlineExceeded, NotSent
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.credentials.sources import StaticToken
from multikueue.kube.http.requester import Requester
from multikueue.kube.http.requests import create
from multikueue.kube.http.transport import CallTime, has_connection
from tests.kube.scripted import eventually, hangs, job, refuses, says, sessions_of, talking


@attrs.define(eq=False)
class Response:
    """An answer of 201."""

    status: int = 201
    headers: dict[str, str] = attrs.field(factory=dict)

    _left: list[bytes] = attrs.field(factory=lambda: [b"{}"])

    @property
    def content(self) -> Response:
        return self

    async def readany(self) -> bytes:
        return self._left.pop() if self._left else b""

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


@attrs.define(eq=False)
class SlowSession:
    """32 connections to a server that takes a second for each answer, on the loop's clock."""

    takes: float = 1.0
    free: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(32))
    sent: int = 0
    closed: bool = False
    connector: None = None

    async def request(self, *_: Any, **__: Any) -> Response:
        async with self.free:
            has_connection()
            self.sent += 1
            await anyio.sleep(self.takes)
            return Response()


async def outcomes(session: Any, calls: int, options: ClientOptions) -> collections.Counter[type[ApiError] | None]:
    """What so many creations at once come to; None: an answer."""
    exchange = Requester(ClusterConfig("http://w"), "w1", options, None, StaticToken(""), sessions_of(session))
    errors: collections.Counter[type[ApiError] | None] = collections.Counter()

    async def send() -> None:
        try:
            await exchange.call(create(JOB, job("1")))
        except ApiError as error:
            errors[type(error)] += 1
        else:
            errors[None] += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(calls):
            tasks.start_soon(send)
    return errors


@pytest.mark.looptime
async def test_calls_that_wait_for_a_connection_are_in_no_doubt() -> None:
    """3,000 creations at once, of which a healthy server answers 32 a second: what is not answered was not sent."""
    session = SlowSession()
    errors = await outcomes(session, 3000, ClientOptions(deadline=30, connection_wait=30))
    assert set(errors) == {None, NotSent}
    assert errors[None] == session.sent


@pytest.mark.looptime
async def test_the_wait_for_a_connection_is_no_part_of_the_deadline() -> None:
    session = SlowSession()
    assert await outcomes(session, 3000, ClientOptions(deadline=1.5, connection_wait=300)) == {None: 3000}


@pytest.mark.looptime
async def test_once_it_is_sent_the_deadline_holds() -> None:
    session = SlowSession(takes=2.0)
    assert await outcomes(session, 32, ClientOptions(deadline=1.5, connection_wait=300)) == {DeadlineExceeded: 32}
    assert session.sent == 32


@pytest.mark.looptime
async def test_a_second_connection_of_a_try_has_no_deadline_of_its_own() -> None:
    """The first one broke, and the request is sent again."""
    time = CallTime(deadline=1.0, wait=30.0)
    began = anyio.current_time()
    time.has_connection()
    await anyio.sleep(0.9)
    time.has_connection()
    assert time.scope.deadline == pytest.approx(began + 1.0)


async def test_a_call_that_finds_no_connection_says_that_it_was_not_sent() -> None:
    """Over real connections: the server has got the other one only."""
    go_on = anyio.Event()

    async def answers(request: web.Request) -> web.StreamResponse:
        await go_on.wait()
        return await says(200, job("1"))(request)

    options = ClientOptions(connections=1, connection_wait=0.2)
    created: list[Json] = []
    async with talking(answers, options=options) as (server, client):

        async def first() -> None:
            created.append(await client.create(JOB, job("1")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await eventually(lambda: len(server.asked) == 1)
            with pytest.raises(NotSent, match=r"w1: create jobs.batch: not sent: no connection was free within 0.2 s"):
                await client.create(JOB, job("1", "b"))
            go_on.set()
        assert (len(created), len(server.asked)) == (1, 1)


async def test_after_a_503_the_next_try_is_in_doubt_however_it_fails() -> None:
    """The write may have happened at the 503."""
    options, script = ClientOptions(deadline=0.3), (refuses(503, Retry_After="0"), hangs)
    async with talking(*script, options=options) as (_, client):
        with pytest.raises(DeadlineExceeded):
            await client.create(JOB, job("1"))


async def test_a_server_that_does_not_complete_the_connection_was_sent_nothing() -> None:
    """It accepts TCP and says nothing to the TLS handshake."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        options = ClientOptions(connect_deadline=0.2)
        async with KubeClient(ClusterConfig(f"https://127.0.0.1:{port}"), name="w1", options=options) as client:
            with pytest.raises(NotSent, match="cannot connect"):
                await client.create(JOB, job("1"))
