"""One request over a connection of its own, and then bytes as they are."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
import trustme

from multikueue.core.model.kinds import POD
from multikueue.errors import NotSent, Unreachable
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.kube.http.requests import Request

Serve = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ENTER = Request("create", POD, "POST", "/exec?command=sh")


@asynccontextmanager
async def serving(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that is given the head of each request; its address, and these heads."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await serve(heads[-1], reader, writer)
            await writer.drain()
            writer.close()
        except BaseException:
            writer.transport.abort()
            raise

    async with anyio.create_task_group() as tasks:

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.start_soon(answer, reader, writer)

        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
        finally:
            server.close()
            tasks.cancel_scope.cancel()
    for _ in range(3):  # what was closed or aborted is gone then
        await anyio.lowlevel.checkpoint()


async def capitals(_head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Agrees, with a byte of the other protocol in the same packet, and gives back what comes."""
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x00")
    writer.write((await reader.read(100)).upper())


def client(url: str) -> KubeClient:
    return KubeClient(ClusterConfig(url, token="t"), name="w1")


@pytest.mark.parametrize("use_uvloop", [False, True])
@pytest.mark.parametrize("way", ["straight", "through a proxy"])
def test_after_the_head_bytes_go_both_ways(way: str, use_uvloop: bool) -> None:
    """On the loop of the image as well, whose transports are types of their own."""
    opened = straight if way == "straight" else through_a_proxy
    anyio.run(opened, backend_options={"use_uvloop": use_uvloop})


async def straight() -> None:
    sent = [("Upgrade", "x"), ("User-Agent", "kubectl")]
    async with serving(capitals) as (url, heads), client(f"{url}/k8s/clusters/c-1") as worker:
        tunnelled = worker.tunnel(ENTER, sent)
        async with tunnelled as tunnel:
            assert tunnel.head == b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"
            tunnel.writer.write(b"hello")
            assert await tunnel.reader.readexactly(6) == b"\0HELLO"
    lines = heads[0].decode().splitlines()
    assert lines[0] == "POST /k8s/clusters/c-1/exec?command=sh HTTP/1.1"
    assert {"Upgrade: x", "User-Agent: kubectl", "Authorization: Bearer t", "Content-Length: 0"} <= {*lines}
    assert lines[1].lower() == f"host: {url.removeprefix('http://')}"


async def through_a_proxy() -> None:
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("worker.example").configure_cert(tls)

    async def connect(_head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(copied, reader, outer)
                await copied(inner, writer)
                tasks.cancel_scope.cancel()
        finally:
            outer.transport.abort()

    async with serving(capitals, tls) as (url, heads), serving(connect) as (proxy, asked):
        ca = authority.cert_pem.bytes().decode()
        there = ClusterConfig("https://worker.example:6443", token="t", ca_pem=ca, proxy=proxy)
        async with KubeClient(there, name="w1") as worker, worker.tunnel(ENTER, []) as tunnel:
            tunnel.writer.write(b"abc")
            assert await tunnel.reader.readexactly(4) == b"\0ABC"
    assert asked[0].startswith(b"CONNECT worker.example:6443 HTTP/1.1\r\n")
    assert b"Bearer" not in asked[0]
    assert b"host: worker.example:6443" in heads[0].lower()


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1000):
        writer.write(piece)


@pytest.mark.parametrize("said", [b"HELLO", b"HTTP/1.1 200 OK\r\n" + b"a" * 200_000])
async def test_what_is_no_head_is_an_error(said: bytes) -> None:
    async def answer(_head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    async with serving(answer) as (url, _), client(url) as worker:
        with pytest.raises(Unreachable, match="not HTTP, or breaks off"):
            async with worker.tunnel(ENTER, []):
                pass


async def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    async with serving(capitals) as (url, _):
        pass
    async with client(url) as worker:
        with pytest.raises(NotSent):
            async with worker.tunnel(ENTER, []):
                pass


async def test_the_connection_is_closed_however_it_ends() -> None:
    closed = anyio.Event()

    async def answer(_head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        await reader.read()
        closed.set()

    async with serving(answer) as (url, _), client(url) as worker:
        with anyio.CancelScope() as scope:
            async with worker.tunnel(ENTER, []):
                scope.cancel()
                await anyio.sleep_forever()
        with anyio.fail_after(5):
            await closed.wait()
