"""`multikueue exec`: a command in a pod of the remote run, over a WebSocket as API servers speak it."""

from __future__ import annotations

import os
import pty
import ssl
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import orjson
import pytest
import trustme
from aiohttp import web

from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError, Forbidden, Invalid, NotFound, Unreachable
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.pod_exec import ExecRequest
from multikueued.exits import NOT_FOUND, NOT_REACHABLE, CommandError
from multikueued.reading.owned import Owned
from multikueued.reading.pod_lookup import why_no_pods
from multikueued.remote.exec_command import raw_mode, run_on, send_input
from tests.kube.scripted import eventually
from tests.remote.objects import SOUGHT, pod

ASKED = ExecRequest(ObjectKey("default", "train-1"), "main", ("sh", "-c", "true"), stdin=True)
SUCCESS = b'\x03{"status":"Success"}'


def failed(code: int) -> bytes:
    """The status of a command that ends with a code."""
    cause = {"reason": "ExitCode", "message": str(code)}
    return b"\x03" + orjson.dumps({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}})


@attrs.define(eq=False)
class Kubelet:
    """An API server that connects a WebSocket to a script."""

    script: Callable[[web.WebSocketResponse], Awaitable[None]]
    protocols: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io")
    refusal: int = 0
    url: str = ""
    asked: list[web.Request] = attrs.field(factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if self.refusal:
            return web.json_response({"kind": "Status"}, status=self.refusal)
        socket = web.WebSocketResponse(protocols=self.protocols)
        await socket.prepare(request)
        await self.script(socket)
        await socket.close()
        return socket


@asynccontextmanager
async def serving(kubelet: Kubelet, **config: Any) -> AsyncIterator[KubeClient]:
    """A client of it, over TLS; `config` is more of the client's."""
    authority, app = trustme.CA(), web.Application()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("worker.example").configure_cert(tls)
    app.router.add_get("/{path:.*}", kubelet.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    server = f"https://127.0.0.1:{runner.addresses[0][1]}"
    made = ClusterConfig(
        server, ca_pem=authority.cert_pem.bytes().decode(), token="t", tls_server_name="worker.example", **config
    )
    try:
        async with KubeClient(made, name="worker1", options=ClientOptions(deadline=5.0)) as client:
            yield client
    finally:
        await runner.cleanup()


async def test_output_and_exit_code_come_back() -> None:
    async def script(socket: web.WebSocketResponse) -> None:
        for data in (b"\x01", b"\x01out", b"\x02err", failed(3)):
            await socket.send_bytes(data)

    said: list[tuple[bytes, bool]] = []
    kubelet = Kubelet(script)
    async with serving(kubelet) as client, client.exec(ASKED) as running:
        assert await running.wait(lambda data, is_error: said.append((data, is_error))) == 3
    assert said == [(b"out", False), (b"err", True)]
    (request,) = kubelet.asked
    assert request.path == "/api/v1/namespaces/default/pods/train-1/exec"
    assert request.query.getall("command") == ["sh", "-c", "true"]
    assert (request.query["container"], request.query["stdin"], request.query["tty"]) == ("main", "True", "False")
    assert request.headers["Authorization"] == "Bearer t"


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_input_is_passed_on_and_its_end_where_the_server_knows_that(protocol: str) -> None:
    got: list[bytes] = []

    async def script(socket: web.WebSocketResponse) -> None:
        async for message in socket:
            got.append(message.data)
            if message.data[:1] == b"\xff" or message.data == b"\x00last":
                break
        await socket.send_bytes(SUCCESS)

    async with serving(Kubelet(script, (protocol,))) as client, client.exec(ASKED) as running:
        for data in (b"typed", b"", b"last") if protocol == "v4.channel.k8s.io" else (b"typed", b""):
            await running.write(data)
        assert await running.wait(lambda *_: None) == 0
    assert got == ([b"\x00typed", b"\xff\x00"] if protocol == "v5.channel.k8s.io" else [b"\x00typed", b"\x00last"])


async def test_a_command_that_cannot_be_started_says_why() -> None:
    async def script(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b'\x03{"status":"Failure","message":"no such\\nfile: \\u001b[2Jnope"}')

    async with serving(Kubelet(script)) as client, client.exec(ASKED) as running:
        with pytest.raises(Invalid, match=r"worker1: create pods/exec: no such file: \[2Jnope"):
            await running.wait(lambda *_: None)


async def test_a_connection_that_ends_before_the_command_is_an_error() -> None:
    async def script(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01out")

    async with serving(Kubelet(script)) as client, client.exec(ASKED) as running:
        with pytest.raises(Unreachable, match="the command may still run"):
            await running.wait(lambda *_: None)


@pytest.mark.parametrize(("status", "error"), [(403, Forbidden), (404, NotFound), (500, ApiError)])
async def test_a_refusal_is_an_error_of_ours(status: int, error: type[ApiError]) -> None:
    async def script(_: web.WebSocketResponse) -> None: ...

    async with serving(Kubelet(script, refusal=status)) as client:
        with pytest.raises(error):
            async with client.exec(ASKED):
                pass


@attrs.define
class Pods:
    """The pods of a job."""

    pods: tuple[Json, ...]
    sought: Any = SOUGHT
    copied: bool = True
    latest: Owned = attrs.field(factory=lambda: Owned(()))
    replaced: bool = False

    async def now(self) -> Owned:
        return Owned(self.pods)

    async def is_still_there(self, _: Json) -> bool:
        return not self.replaced


@pytest.mark.parametrize(
    ("pods", "says", "code"),
    [
        (Pods(()), "has no pods on worker cluster", NOT_FOUND),
        (Pods((pod("a", phase="Succeeded"),)), "has ended: none of its pods runs", NOT_FOUND),
        (Pods((pod("a", phase="Pending"),)), "has not started: none of its pods runs", NOT_FOUND),
        (Pods((pod("a"),), replaced=True), "has just been replaced", NOT_FOUND),
    ],
)
async def test_each_way_that_nothing_runs_has_a_message(pods: Any, says: str, code: int) -> None:
    async def script(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    async with serving(Kubelet(script)) as client:
        with pytest.raises(CommandError, match=says) as caught:
            await run_on(client, pods, ASKED)
    assert caught.value.exit_code == code


async def test_a_refused_command_names_the_grant() -> None:
    async def script(_: web.WebSocketResponse) -> None: ...

    pods: Any = Pods((pod("a"),))
    async with serving(Kubelet(script, refusal=403)) as client:
        with pytest.raises(CommandError, match="multikueue rbac worker --exec") as caught:
            await run_on(client, pods, ASKED)
    assert caught.value.exit_code == NOT_REACHABLE


async def test_the_terminal_is_restored_and_typing_reaches_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a pseudo-terminal: keys arrive one by one, also Ctrl-C, and the size comes first."""
    person, ours = pty.openpty()
    before = termios.tcgetattr(ours)
    got: list[bytes] = []

    async def script(socket: web.WebSocketResponse) -> None:
        async for message in socket:
            got.append(message.data)
            if message.data == b"\x00\x03":
                break
        await socket.send_bytes(failed(130))

    @attrs.define
    class Stdin:
        def fileno(self) -> int:
            return ours

    monkeypatch.setattr(sys, "stdin", Stdin())
    pods: Any = Pods((pod("a"),))
    try:
        async with serving(Kubelet(script)) as client, anyio.create_task_group() as tasks:

            async def types() -> None:
                await eventually(lambda: bool(got))  # the size
                os.write(person, b"\x03")

            tasks.start_soon(types)
            assert await run_on(client, pods, attrs.evolve(ASKED, tty=True)) == 130
        assert got[0].startswith(b'\x04{"Width":')
        assert got[-1] == b"\x00\x03"
        assert termios.tcgetattr(ours) == before
    finally:
        os.close(person)
        os.close(ours)


def test_the_terminal_is_restored_after_an_error() -> None:
    person, ours = pty.openpty()
    before = termios.tcgetattr(ours)
    try:
        with pytest.raises(RuntimeError), raw_mode(ours):
            raise RuntimeError
        assert termios.tcgetattr(ours) == before
    finally:
        os.close(person)
        os.close(ours)


@pytest.mark.parametrize("kind", ["pipe", "file"])
async def test_input_ends_with_its_source(kind: str, tmp_path: Any) -> None:
    sent: list[bytes] = []

    async def send(data: bytes) -> None:
        sent.append(data)

    if kind == "pipe":
        descriptor, writing = os.pipe()
        os.write(writing, b"data")
        os.close(writing)
    else:
        (tmp_path / "input").write_bytes(b"data")
        descriptor = os.open(tmp_path / "input", os.O_RDONLY)
    try:
        await send_input(descriptor, send)
    finally:
        os.close(descriptor)
    assert sent == [b"data", b""]


def test_where_pods_cannot_be_told_as_the_jobs_it_is_no_word_of_none() -> None:
    """What stands between them may not be listed: `logs` said that there are none yet."""
    pods: Any = Pods((), latest=Owned((), ("jobs.batch may not be listed there",)))
    assert why_no_pods(pods).endswith('"worker1" that are known: jobs.batch may not be listed there')
