"""What becomes of connections: which are used again, which are closed, and what was sent on them."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio
import attrs
import orjson
import pytest
from aiohttp import web

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import ApiError, Conflict, Invalid, NotFound, NotSent, Unreachable, Unreadable
from multikueue.kube import AnswerLimits, ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.http.turns import Turns
from multikueue.protocols import RequestHook
from tests.kube.scripted import job, refuses, says, talking

KEY = ObjectKey("default", "a")
READ = 100_000
"""Bytes of a body that a raw server reads before it answers."""
BODY = orjson.dumps(job("1"))

Reaction: TypeAlias = Callable[[int, asyncio.StreamWriter], Awaitable[bool]]
"""Gets the number of a request and answers it; returns whether the connection stays open."""


@attrs.define(eq=False)
class RawServer:
    """A server that writes bytes."""

    react: Reaction
    url: str = ""
    asked: int = 0
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read requests, and answer them."""
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, sized, size = head.lower().partition(b"content-length: ")
                expected = int(size.split(b"\r\n")[0]) if sized else 0
                await reader.readexactly(min(expected, READ))
                self.asked += 1
                if not await self.react(self.asked, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def listening() -> socket.socket:
    """A socket that takes little before the server reads."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
    sock.bind(("127.0.0.1", 0))
    return sock


@asynccontextmanager
async def raw(
    react: Reaction, listens: list[asyncio.Server] | None = None, hook: RequestHook | None = None
) -> AsyncIterator[tuple[RawServer, KubeClient]]:
    """A raw server and a client of it, which knows it already: its first request is answered by hand."""

    async def after_the_first(number: int, writer: asyncio.StreamWriter) -> bool:
        return await (answered if number == 1 else react)(number, writer)

    served = RawServer(after_the_first)
    server = await asyncio.start_server(served.serve, sock=listening())
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    if listens is not None:
        listens.append(server)
    options = ClientOptions(limits=AnswerLimits(answer_bytes=1_000), deadline=5.0)
    async with server, KubeClient(ClusterConfig(served.url), name="w1", options=options, hook=hook) as client:
        assert await client.get(JOB, KEY) == job("1")
        yield served, client


def head(size: int, *more: str) -> bytes:
    """An answer's status and headers."""
    return "\r\n".join(("HTTP/1.1 200 OK", *more, f"Content-Length: {size}", "", "")).encode()


async def answered(_: int, writer: asyncio.StreamWriter) -> bool:
    """Answer with a Job."""
    writer.write(head(len(BODY)) + BODY)
    return True


async def test_a_read_is_sent_again_if_the_server_closed_the_connection_meanwhile() -> None:
    async def closes_once(number: int, writer: asyncio.StreamWriter) -> bool:
        return number > 2 and await answered(number, writer)

    async with raw(closes_once) as (server, client):
        assert await client.get(JOB, KEY) == job("1")
    assert (server.asked, server.connections) == (3, 2)


async def test_a_write_is_not_sent_again_it_may_have_had_its_effect() -> None:
    async def closes(_: int, __: asyncio.StreamWriter) -> bool:
        return False

    async with raw(closes) as (server, client):
        with pytest.raises(Unreachable) as caught:
            await client.create(JOB, job("1"))
    assert type(caught.value) is Unreachable
    assert server.asked == 2


async def test_a_delete_that_was_sent_does_not_count_as_not_sent() -> None:
    """It is sent again, since the connection broke, but the server does not listen any more."""
    listens: list[asyncio.Server] = []

    async def ends(_: int, __: asyncio.StreamWriter) -> bool:
        listens[0].close()
        return False

    async with raw(ends, listens) as (server, client):
        with pytest.raises(Unreachable) as caught:
            await client.delete(JOB, KEY)
    assert not isinstance(caught.value, NotSent)
    assert server.asked == 2


async def test_a_body_that_nobody_reads_holds_up_no_other_call() -> None:
    """A server that refuses a write before it has read it: what is left of the body stays in our buffer."""
    closed = anyio.Event()

    async def refuses(number: int, writer: asyncio.StreamWriter) -> bool:
        if number > 2:
            return await answered(number, writer)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
        await closed.wait()
        return False

    async with raw(refuses) as (server, client):
        with pytest.raises(Invalid):
            await client.create(JOB, {**job("1"), "spec": {"text": "x" * 6_000_000}})
        assert await client.get(JOB, KEY) == job("1")
        closed.set()
    assert server.connections == 2


async def test_an_answer_that_breaks_off_has_no_status_for_the_hook() -> None:
    seen: list[int] = []

    class Hook:
        def observe(self, cluster: str, verb: str, resource: str, status: int, seconds: float) -> None:
            del cluster, verb, resource, seconds
            seen.append(status)

    async def breaks(_: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(head(500) + b"{")
        return False

    async with raw(breaks, hook=Hook()) as (_, client):
        with pytest.raises(Unreachable):
            await client.create(JOB, job("1"))
    assert seen == [200, 0]


async def test_a_server_that_closes_every_connection_is_asked_twice() -> None:
    async def closes(_: int, __: asyncio.StreamWriter) -> bool:
        return False

    async with raw(closes) as (server, client):
        with pytest.raises(Unreachable):
            await client.get(JOB, KEY)
    assert server.asked == 3


async def test_what_comes_before_the_answer_is_passed_over() -> None:
    async def hints(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0)
        return await answered(number, writer)

    async with raw(hints) as (server, client):
        assert await client.get(JOB, KEY) == job("1")
        assert await client.get(JOB, KEY) == job("1")
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        head(len(BODY), "Connection: close") + BODY,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + BODY,
        b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    ],
)
async def test_a_connection_that_is_closed_is_not_used_again(answer: bytes) -> None:
    async def says_farewell(_: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer)
        return False

    async with raw(says_farewell) as (server, client):
        assert await client.get(JOB, KEY) == job("1")
        assert await client.get(JOB, KEY) == job("1")
    assert (server.asked, server.connections) == (3, 2)


async def test_an_answer_in_chunks_and_compressed_is_read() -> None:
    packed = gzip.compress(BODY)

    async def in_chunks(_: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n")
        for piece in (packed[:5], packed[5:]):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        return True

    async with raw(in_chunks) as (server, client):
        assert await client.get(JOB, KEY) == job("1")
        assert await client.get(JOB, KEY) == job("1")
    assert server.connections == 1


@pytest.mark.parametrize("compressed", [False, True])
async def test_an_answer_that_is_too_large_is_not_read_to_its_end(compressed: bool) -> None:
    body = gzip.compress(b" " * 9_000_000) if compressed else b" " * 9_000_000

    async def says_much(_: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(head(len(body), *(["Content-Encoding: gzip"] if compressed else [])) + body)
        return True

    async with raw(says_much) as (server, client):
        for _ in range(2):
            with pytest.raises(Unreadable, match="more than 1000 bytes"):
                await client.get(JOB, KEY)
    assert server.connections == 2  # the connection of the first is closed


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nbad\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", head(500) + b"{"])
async def test_an_answer_that_is_none_is_an_error_and_ends_its_connection(answer: bytes) -> None:
    async def says_so(number: int, writer: asyncio.StreamWriter) -> bool:
        if number > 3:
            return await answered(number, writer)
        writer.write(answer)
        return False

    async with raw(says_so) as (server, client):
        for _ in range(2):
            with pytest.raises(Unreachable, match="w1: create jobs"):
                await client.create(JOB, job("1"))
        assert await client.get(JOB, KEY) == job("1")
    assert server.asked == 4


async def test_a_call_that_is_given_up_ends_its_connection() -> None:
    """Otherwise the next call would read its answer."""
    asked = anyio.Event()

    async def is_slow(number: int, writer: asyncio.StreamWriter) -> bool:
        if number > 2:
            return await answered(number, writer)
        writer.write(head(500) + b"{")
        asked.set()
        return True

    async with raw(is_slow) as (server, client):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.get, JOB, KEY)
            await asked.wait()
            tasks.cancel_scope.cancel()
        assert await client.get(JOB, KEY) == job("1")
        assert server.connections == 2


@pytest.mark.parametrize("token", ["a\r\nX-Remote-User: admin", "a\nb", "a\rb", "a\0b"])
async def test_no_token_adds_a_header(token: str) -> None:
    async with talking(says(200, job("1")), token="good") as (server, client):
        await client.get(JOB, KEY)
        exchange = client._exchange
        object.__setattr__(exchange, "options", attrs.evolve(exchange.options, impersonate=token))
        with pytest.raises(ApiError, match="cannot be made") as caught:
            await client.get(JOB, KEY)
        assert "admin" not in str(caught.value)
    assert len(server.asked) == 1


async def test_calls_at_once_have_connections_of_their_own() -> None:
    meet = asyncio.Barrier(8)

    async def together(request: web.Request) -> web.StreamResponse:
        if "wait" in request.path:
            await meet.wait()
        return web.Response(body=orjson.dumps({"metadata": {"name": request.path.rpartition("/")[2]}}))

    headers: dict[str, str] = {}
    async with talking(together) as (_, client):
        await client.get(JOB, KEY)

        async def ask(name: str) -> None:
            headers[name] = (await client.get(JOB, ObjectKey("default", name)))["metadata"]["name"]

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(ask, f"wait-{number}")
    assert headers == {name: name for name in headers}
    assert len(headers) == 8


async def test_many_calls_for_one_namespace_delay_one_for_another_by_a_turn() -> None:
    """A hundred calls for one tenant's jobs went out before the first of another's."""
    meet, go = asyncio.Barrier(3), anyio.Event()

    async def answer(_: web.Request) -> web.StreamResponse:
        if not go.is_set():
            await meet.wait()
            await go.wait()
        return web.Response(body=BODY, content_type="application/json")

    async with (
        talking(answer, options=ClientOptions(connections=2)) as (server, client),
        anyio.create_task_group() as tasks,
    ):
        for number in range(50):
            tasks.start_soon(client.get, JOB, ObjectKey("many", f"job-{number}"))
        await meet.wait()
        tasks.start_soon(client.get, JOB, ObjectKey("one", "job"))
        await anyio.wait_all_tasks_blocked()
        go.set()
    paths = [request.path for request in server.asked]
    assert len(paths) == 51
    assert next(number for number, path in enumerate(paths) if "/one/" in path) <= 4


async def test_who_gives_up_waiting_for_a_turn_leaves_it_to_the_next() -> None:
    turns, sent = Turns(1), list[str]()

    async def send(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            async with turns.of(name):
                sent.append(name)

    scopes = [anyio.CancelScope() for _ in range(3)]
    async with anyio.create_task_group() as tasks, turns.of("first"):
        for number, scope in enumerate(scopes):
            tasks.start_soon(send, f"{number}", scope)
        await anyio.wait_all_tasks_blocked()
        scopes[0].cancel()
        await anyio.wait_all_tasks_blocked()
        scopes[1].cancel()  # before it notices that it is given the place of the first
    assert sent == ["2"]
    assert repr(turns) == "<Turns: 0 of 1 taken, 0 wait>"


def refusing(code: int, reason: str, name: str) -> Reaction:
    """A server that takes a request, ends the connection without an answer, and refuses the same one when it comes
    again: it has done it, or somebody else has."""
    body = orjson.dumps({"kind": "Status", "code": code, "reason": reason, "details": {"name": name}})

    async def react(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 %d -\r\nContent-Length: %d\r\n\r\n%s" % (code, len(body), body) if number > 2 else b"")
        return number > 2

    return react


async def test_a_delete_that_was_sent_twice_is_done_where_the_object_is_not_there() -> None:
    """aiohttp has sent it again: it was not found since the first one has deleted it."""
    async with raw(refusing(404, "NotFound", "a")) as (server, client):
        assert await client.delete(JOB, KEY, uid="u") is None
    assert server.asked == 3


@pytest.mark.parametrize(
    ("code", "reason", "name", "error"),
    [
        (404, "NotFound", "", NotFound),  # the kind is not served any more
        (404, "NotFound", "default", NotFound),  # of a namespace
        (
            409,
            "Conflict",
            "a",
            Conflict,
        ),  # it is another object, or it has a new version: of the first deletion, perhaps
        (403, "Forbidden", "a", ApiError),
    ],
)
async def test_any_other_refusal_of_a_second_delete_is_one(
    code: int, reason: str, name: str, error: type[ApiError]
) -> None:
    async with raw(refusing(code, reason, name)) as (_, client):
        with pytest.raises(error):
            await client.delete(JOB, KEY, uid="u", resource_version="1")


async def test_a_put_that_was_sent_twice_may_conflict_with_itself() -> None:
    async with raw(refusing(409, "Conflict", "a")) as (server, client):
        with pytest.raises(Conflict):
            await client.replace(JOB, job("1"))
    assert server.asked == 3


async def test_a_delete_is_done_that_failed_first_and_then_finds_nothing() -> None:
    """The server has asked for a second try, and its first one may have had its effect."""
    overloaded = refuses(503, Retry_After="0")
    gone = says(404, {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": "a"}})
    async with talking(overloaded, gone, gone) as (_, client):
        assert await client.delete(JOB, KEY) is None
        with pytest.raises(NotFound):
            await client.delete(JOB, KEY)
