"""The port: when it opens, whom it lets in, and how it ends."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import attrs
import pytest
import trustme
from anyio.streams.tls import TLSStream

from multikueue.core.model.names import ObjectKey
from multikueued.mirrors.endpoint.callers import KubeletTls, NodeRights
from multikueued.mirrors.endpoint.places import Places
from multikueued.mirrors.endpoint.relay import Relay
from multikueued.mirrors.endpoint.serving import EndpointPort
from tests.integration.planes import connection
from tests.mirrors.endpoint.test_relay import LOGS, Manager, mirror
from tests.mirrors.endpoint.worker import HOST, PlayedWorker, PlayedWorkers


def config_map(authority: trustme.CA) -> dict[str, dict[str, str]]:
    return {"data": {"client-ca-file": authority.cert_pem.bytes().decode()}}


@attrs.define(eq=False)
class Stage:
    worker: PlayedWorker
    tls: KubeletTls
    callers: trustme.CA
    serving: trustme.CA
    port: int = 0
    over: anyio.Event = attrs.field(factory=anyio.Event)

    async def connect(self, authority: trustme.CA | None) -> TLSStream:
        return await connected(self.port, self.serving, authority)

    async def begin(self, authority: trustme.CA | None) -> bytes:
        """The beginning of an answer."""
        async with await self.connect(authority) as stream:
            await stream.send(f"{LOGS}\r\n\r\n".encode())
            return await stream.receive()

    async def ask(self, line: str = LOGS, authority: trustme.CA | None = None) -> bytes:
        async with await self.connect(authority or self.callers) as stream:
            await stream.send(f"{line}\r\n\r\n".encode())
            return await rest(stream)


async def connected(port: int, serving: trustme.CA, authority: trustme.CA | None) -> TLSStream:
    """A connection as API servers make it, with a certificate of that authority."""
    context = ssl.create_default_context(cadata=serving.cert_pem.bytes().decode())
    if authority is not None:
        authority.issue_cert(common_name="apiserver").configure_cert(context)
    return await anyio.connect_tcp(HOST, port, tls=True, ssl_context=context, tls_standard_compatible=False)


async def rest(stream: anyio.abc.ByteStream) -> bytes:
    received = b""
    with anyio.fail_after(10):
        while True:
            try:
                received += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return received


@asynccontextmanager
async def stage(drain: float = 20.0) -> AsyncIterator[tuple[Stage, anyio.CancelScope]]:
    """The port, and what stops it."""
    worker, manager = PlayedWorker(uids={"default/train-x": "uid"}), Manager(mirror())
    async with worker.running():
        workers = PlayedWorkers({"w1": connection(worker.kubeconfig())})
        relay = Relay(manager, ObjectKey("ns", "key"), NodeRights(manager.create), workers, Places(), True)  # type: ignore[arg-type]
        here, opened = Stage(worker, KubeletTls(), trustme.CA(), trustme.CA()), anyio.Event()

        def on_open(port: int) -> None:
            here.port = port
            opened.set()

        port = EndpointPort(relay, here.tls, HOST, 0, on_open, drain)
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                await port.run()
            here.over.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            assert not opened.is_set()  # nobody can be told apart yet
            here.tls.take(config_map(here.callers))
            await anyio.wait_all_tasks_blocked()
            assert not opened.is_set()  # and there is no certificate
            pair = here.serving.issue_cert(HOST)
            here.tls.load(pair.cert_chain_pems[0].bytes().decode(), pair.private_key_pem.bytes().decode())
            with anyio.fail_after(10):
                await opened.wait()
            yield here, scope
            scope.cancel()


async def test_it_opens_once_it_is_known_whom_to_believe_and_lets_nobody_else_in() -> None:
    async with stage() as (here, _):
        assert b"three" in await here.ask()
        assert (await here.ask("GET /healthz HTTP/1.1")).endswith(
            b'{"ok":"multikueue answers for the pods of its nodes"}\n'
        )
        for stranger in (None, trustme.CA()):
            with pytest.raises((ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream)):
                await here.begin(stranger)
        new = trustme.CA()
        here.tls.take(config_map(new))
        assert b"three" in await here.ask(authority=new)
        assert here.worker.streams()[0].path == here.worker.streams()[1].path


async def test_open_streams_end_by_themselves_before_the_process_does() -> None:
    async with stage() as (here, scope):
        here.worker.more = anyio.Event()
        async with await here.connect(here.callers) as stream:
            await stream.send(f"{LOGS.replace('main ', 'main?follow=true ')}\r\n\r\n".encode())
            assert b"200 OK" in await stream.receive()
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            assert not here.over.is_set()
            here.worker.more.set()
            assert (await rest(stream)).endswith(b"more\n\r\n0\r\n\r\n")
        with anyio.fail_after(10):
            await here.over.wait()


async def test_a_stream_without_an_end_holds_up_no_process() -> None:
    async with stage(drain=0.1) as (here, scope):
        here.worker.more = anyio.Event()
        async with await here.connect(here.callers) as stream:
            await stream.send(f"{LOGS.replace('main ', 'main?follow=true ')}\r\n\r\n".encode())
            assert b"200 OK" in await stream.receive()
            scope.cancel()
            assert not (await rest(stream)).endswith(b"0\r\n\r\n")  # it does not look like a whole log
        with anyio.fail_after(10):
            await here.over.wait()
