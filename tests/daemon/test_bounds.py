"""What the clients of the daemon's ports may hold, with raw sockets: connections, time and bytes."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from contextlib import AbstractAsyncContextManager

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from aiohttp import web

from multikueue.core.admission.registration import PATH
from multikueue.webhook.reviewer import ReviewAnswer
from multikueued.serving.gate import ConnectionLimit, Limits
from multikueued.serving.port import bind, listening
from multikueued.webhook.server import LARGE, MAX_BODY, RequestBodies, reviewing
from tests.daemon.test_webhook_serving import ANY, HOST, credentials, echo, serving_tls

HALF = b"GET / HTTP/1.1\r\nHost: x\r\n"
WHOLE = HALF + b"\r\n"
MADE = credentials()
LONG = 16 << 20
"""Bytes: more than sockets keep."""


def served(limits: Limits) -> AbstractAsyncContextManager[int]:
    """A server that says hello."""

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    application = web.Application()
    application.router.add_get("/", hello)
    return listening(application, HOST, 0, settings="serving", limits=limits)


async def to_webhook(port: int) -> anyio.abc.ByteStream:
    tls = ssl.create_default_context(cadata=MADE.bundle)
    return await anyio.connect_tcp(HOST, port, ssl_context=tls, tls_standard_compatible=False)


def post(length: int, body: bytes, more: bytes = b"") -> bytes:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
    return head.encode() + more + b"\r\n" + body


async def answer(stream: anyio.abc.ByteReceiveStream) -> bytes:
    """What arrives next."""
    with anyio.fail_after(10):
        return await stream.receive()


async def closed(stream: anyio.abc.ByteReceiveStream) -> None:
    """Wait until the other side closes, and read nothing before."""
    with anyio.fail_after(10), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
        await stream.receive()


@pytest.mark.parametrize("sent", [b"", HALF])
async def test_who_does_not_finish_a_head_is_cut_off(sent: bytes) -> None:
    """300 such connections stayed open for ever."""
    async with served(Limits(head_timeout=0.05)) as port, await anyio.connect_tcp(HOST, port) as stream:
        if sent:
            await stream.send(sent)
        await closed(stream)


async def test_that_goes_for_the_second_head_too_and_for_who_says_nothing_more() -> None:
    async with served(Limits(head_timeout=0.05)) as port, await anyio.connect_tcp(HOST, port) as stream:
        await stream.send(WHOLE)
        assert b"hello" in await answer(stream)
        await stream.send(HALF)
        await closed(stream)
    async with served(Limits(idle_timeout=0.05)) as port, await anyio.connect_tcp(HOST, port) as stream:
        await stream.send(WHOLE)
        assert b"hello" in await answer(stream)
        await closed(stream)


async def test_who_does_not_finish_the_handshake_is_cut_off() -> None:
    limits = Limits(head_timeout=0.05)
    async with (
        reviewing(ANY, serving_tls(MADE), echo, limits=limits) as port,
        await anyio.connect_tcp(HOST, port) as stream,
    ):
        await closed(stream)


async def test_connections_beyond_the_limit_wait_for_a_place() -> None:
    async with (
        served(Limits(connections=2)) as port,
        await anyio.connect_tcp(HOST, port) as first,
        await anyio.connect_tcp(HOST, port) as second,
        await anyio.connect_tcp(HOST, port) as third,
    ):
        for stream in (first, second):
            await stream.send(HALF)
        await third.send(WHOLE)
        with pytest.raises(TimeoutError), anyio.fail_after(0.05):
            await third.receive()
        await first.aclose()
        assert b"hello" in await answer(third)


@pytest.mark.parametrize("sent", [b"", HALF])
async def test_who_owes_a_head_makes_room_for_who_sends_one(sent: bytes) -> None:
    """Else a few new connections a second, of anybody, would keep everybody out: each had its place for 5 s."""
    async with (
        served(Limits(connections=2, head_timeout=60)) as port,
        await anyio.connect_tcp(HOST, port) as first,
        await anyio.connect_tcp(HOST, port) as second,
    ):
        for stream in (first, second):
            if sent:
                await stream.send(sent)
        async with await anyio.connect_tcp(HOST, port) as third:
            await third.send(WHOLE)
            assert b"hello" in await answer(third)
        await closed(first)


async def test_who_does_not_finish_the_handshake_makes_room_for_who_does() -> None:
    limits = Limits(connections=1, head_timeout=60)
    async with (
        reviewing(ANY, serving_tls(MADE), echo, limits=limits) as port,
        await anyio.connect_tcp(HOST, port) as silent,
    ):
        async with await to_webhook(port) as stream:
            await stream.send(post(2, b"{}"))
            assert b" 200 " in await answer(stream)
        await closed(silent)


async def test_one_that_is_idle_makes_room() -> None:
    """Else whoever keeps connections open would keep API servers out."""
    async with served(Limits(connections=1)) as port, await anyio.connect_tcp(HOST, port) as idle:
        await idle.send(WHOLE)
        assert b"hello" in await answer(idle)
        async with await anyio.connect_tcp(HOST, port) as stream:
            await stream.send(WHOLE)
            assert b"hello" in await answer(stream)
        await closed(idle)


async def test_one_that_becomes_idle_makes_room_for_one_that_waits_already() -> None:
    asked, go = anyio.Event(), anyio.Event()

    async def slow(_: web.Request) -> web.Response:
        asked.set()
        await go.wait()
        return web.Response(text="hello")

    application = web.Application()
    application.router.add_get("/", slow)
    limits = Limits(connections=1)
    async with (
        listening(application, HOST, 0, settings="serving", limits=limits) as port,
        await anyio.connect_tcp(HOST, port) as first,
        await anyio.connect_tcp(HOST, port) as second,
    ):
        await first.send(WHOLE)
        await asked.wait()
        await second.send(WHOLE)
        go.set()
        assert b"hello" in await answer(first)
        assert b"hello" in await answer(second)


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent() -> None:
    async with reviewing(ANY, serving_tls(MADE), echo) as port, await to_webhook(port) as stream:
        await stream.send(post(MAX_BODY + 1, b""))
        assert b" 413 " in await answer(stream)


async def test_bodies_that_are_too_large_together_are_refused_and_those_before_are_not() -> None:
    bodies = RequestBodies(most=10)
    async with reviewing(ANY, serving_tls(MADE), echo, bodies=bodies) as port:
        async with await to_webhook(port) as first, await to_webhook(port) as second:
            await first.send(post(9, b"12345678"))
            with anyio.fail_after(10):
                while bodies.in_flight < 8:
                    await anyio.lowlevel.checkpoint()
            await second.send(post(5, b"12345"))
            assert b" 503 " in await answer(second)
            await first.send(b"9")
            assert b" 200 " in await answer(first)
        async with await to_webhook(port) as third:
            await third.send(post(5, b"12345"))
            assert b" 200 " in await answer(third)
    assert bodies.in_flight == 0


async def test_a_compressed_body_is_not_unpacked() -> None:
    packed = gzip.compress(b"x" * 100_000)
    async with (
        reviewing(ANY, serving_tls(MADE), lambda body: ReviewAnswer(200, b"%d bytes" % len(body))) as port,
        await to_webhook(port) as stream,
    ):
        await stream.send(post(len(packed), packed, b"Content-Encoding: gzip\r\n"))
        assert b"%d bytes" % len(packed) in await answer(stream)


async def test_large_reviews_take_turns_and_small_ones_go_between() -> None:
    """16 clients with 7 MiB each made the loop 3.2 s late."""
    bodies, order = RequestBodies(), list[str]()

    async def ask(name: str, size: int) -> None:
        def note(_: bytes) -> None:
            order.append(name)
            if size == LARGE:
                tasks.start_soon(ask, "small", 10)

        await bodies.answered(note, bytearray(size))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "large", LARGE)
        tasks.start_soon(ask, "second", LARGE)
    assert order == ["large", "small", "second", "small"]


class SaysMuch(asyncio.Protocol):
    """Closes with most of what it says still to be sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(bytes(LONG))
        transport.close()


async def test_one_that_is_closed_before_its_answer_is_sent_ends_no_server() -> None:
    """asyncio forgets the loop of such a transport, and aborting it then raised: one client ended the daemon."""
    gate = ConnectionLimit(Limits())
    (listener, *_) = await bind(HOST, 0)
    with listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.run, listener, SaysMuch)
            for _ in range(2):
                async with await anyio.connect_tcp(HOST, listener.getsockname()[1]) as stream:
                    got = 0
                    with anyio.fail_after(10):
                        while got < LONG:
                            got += len(await stream.receive())
                    await closed(stream)
            tasks.cancel_scope.cancel()


async def test_who_owes_a_body_makes_room_for_who_sends_one() -> None:
    """A head with Content-Length and nothing behind it had a place for 5 s: 128 of those kept API servers out."""
    limits = Limits(connections=1)
    async with (
        reviewing(ANY, serving_tls(MADE), echo, limits=limits, read_timeout=60) as port,
        await to_webhook(port) as silent,
    ):
        await silent.send(post(2, b""))
        async with await to_webhook(port) as stream:
            await stream.send(post(2, b"{}"))
            assert b" 200 " in await answer(stream)
        await closed(silent)


async def test_a_new_connection_closes_one_idle_one_though_that_does_not_hear_of_it() -> None:
    """Where closing took long, as of a client that has stopped without a word, several idle ones went."""
    limits = Limits(connections=3)
    async with reviewing(ANY, serving_tls(MADE), echo, limits=limits) as port:
        idle = [await to_webhook(port) for _ in range(3)]
        for stream in idle:
            await stream.send(post(2, b"{}"))
            assert b" 200 " in await answer(stream)
        async with await to_webhook(port) as new:  # the first one is not read from: it hears of nothing
            await new.send(post(2, b"{}"))
            assert b" 200 " in await answer(new)
            for stream in idle[1:]:
                await stream.send(post(2, b"{}"))
                assert b" 200 " in await answer(stream)
        for stream in idle:
            await stream.aclose()
