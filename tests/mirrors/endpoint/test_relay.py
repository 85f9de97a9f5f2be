"""One request and its answer: whose bytes reach whom. The manager and the worker are played."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final

import anyio
import anyio.lowlevel
import attrs
import orjson
import pytest
from structlog.testing import capture_logs

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import NotFound, Unreachable
from multikueue.kube.tunnel import Tunnel
from multikueue.testing import until
from multikueued.mirror_names import PROOF, WORKER, WORKER_POD, WORKER_POD_UID
from multikueued.mirrors.endpoint import relay
from multikueued.mirrors.endpoint.callers import NodeRights
from multikueued.mirrors.endpoint.heads import MAX_HEAD, answer_head
from multikueued.mirrors.endpoint.places import TOO_MANY_WAIT, Places
from multikueued.mirrors.endpoint.relay import LOOKED_UP, Relay, _refused_by
from multikueued.mirrors.proof import proof
from multikueued.serving.refusal import RefusedError
from tests.integration.planes import connection
from tests.logserver.stage import secret
from tests.mirrors.endpoint.worker import PlayedWorker, PlayedWorkers

KEY: Final = b"k" * 32
CALLER: Final[Json] = {
    "subject": ((("organizationName", "masters"),), (("commonName", "apiserver"),)),
}
LOGS: Final = "GET /containerLogs/default/train-x/main HTTP/1.1"


@attrs.define(eq=False)
class Manager:
    """Has one mirror, and says who may what."""

    mirror: Json
    allowed: set[tuple[str, str]] = attrs.field(factory=lambda: {("apiserver", "get"), ("apiserver", "create")})
    reviews: list[Json] = attrs.field(factory=list)
    silent: bool = False
    key: bytes = KEY
    held: anyio.Event | None = None
    """With it no pod is read before it is set."""
    asking: int = 0
    """Pods that are being read."""
    read: list[ObjectKey] = attrs.field(factory=list)
    """Pods, in the order in which they were asked for."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        if self.silent:
            raise Unreachable("no answer")
        if resource is SECRET:
            return secret(key.name, key.namespace, key=self.key)
        self.read.append(key)
        if self.held is not None:
            self.asking += 1
            await self.held.wait()
            self.asking -= 1
        if key != ObjectKey.of(self.mirror):
            raise NotFound("not found")
        return self.mirror

    async def create(self, resource: Resource, review: Json) -> Json:
        self.reviews.append(review["spec"])
        spec = review["spec"]
        return {"status": {"allowed": (spec["user"], spec["resourceAttributes"]["verb"]) in self.allowed}}


def mirror(key: bytes = KEY, *, namespace: str = "default", worker: str = "w1") -> Json:
    there = f"{namespace}/train-x"
    said = {WORKER: worker, WORKER_POD: there, WORKER_POD_UID: "uid"}
    sign = proof(key, mirror_uid="own", worker=worker, worker_pod=there, worker_pod_uid="uid")
    metadata = {"namespace": namespace, "name": "train-x", "uid": "own", "annotations": {**said, PROOF: sign}}
    return {"metadata": metadata, "spec": {"nodeName": f"multikueue-{worker}"}}


@attrs.define(eq=False)
class Stage:
    manager: Manager
    worker: PlayedWorker
    relay: Relay
    port: int
    certificate: Mapping[str, Any] | None

    @asynccontextmanager
    async def asking(self, *lines: str, more: bytes = b"") -> AsyncIterator[anyio.abc.SocketStream]:
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send("\r\n".join([*lines, "", ""]).encode() + more)
            yield stream

    async def ask(self, *lines: str, more: bytes = b"") -> bytes:
        """The whole answer."""
        async with self.asking(*lines, more=more) as stream:
            return await rest(stream)


async def rest(stream: anyio.abc.SocketStream) -> bytes:
    received = b""
    with anyio.fail_after(20):
        while True:
            try:
                received += await stream.receive(1 << 20)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return received


@asynccontextmanager
async def stage(**changed: Any) -> AsyncIterator[Stage]:
    manager, worker = Manager(mirror()), PlayedWorker(uids={"default/train-x": "uid"})
    async with worker.running():
        workers = PlayedWorkers({"w1": connection(worker.kubeconfig())})
        given = {"places": Places(), "enters": True, **changed}
        relay = Relay(manager, ObjectKey("ns", "key"), NodeRights(manager.create), workers, **given)  # type: ignore[arg-type]
        made = Stage(manager, worker, relay, 0, CALLER)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await relay.serve(reader, writer, made.certificate)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=MAX_HEAD)
        made.port = server.sockets[0].getsockname()[1]
        try:
            yield made
        finally:
            server.close()


def chunks(body: bytes) -> bytes:
    """What was sent in chunks, as one."""
    received = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        count = int(size, 16)
        received, body = received + body[:count], body[count + 2 :]
        if not count:
            return received
    raise AssertionError("it breaks off")


@pytest.mark.gate
async def test_fifty_megabytes_come_unchanged_to_the_last_byte() -> None:
    async with stage() as here:
        here.worker.log = hashlib.shake_256(b"log").digest(50_000_000)
        head, _, body = (await here.ask(LOGS)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Audit-Id" not in head
        assert hashlib.sha256(chunks(body)).digest() == hashlib.sha256(here.worker.log).digest()


async def test_a_followed_log_comes_as_it_is_written_and_its_end_ends_it() -> None:
    async with stage() as here:
        here.worker.more = anyio.Event()
        async with here.asking(LOGS.replace("main ", "main?follow=true ")) as stream:
            received = b""
            while b"three" not in received:
                received += await stream.receive()
            here.worker.more.set()
            assert (await rest(stream)).endswith(b"more\n\r\n0\r\n\r\n")
        assert not here.relay.places.held("mirror")


async def test_a_reader_who_goes_gives_back_the_place_and_the_workers_connection() -> None:
    async with stage() as here:
        here.worker.more = anyio.Event()
        async with here.asking(LOGS.replace("main ", "main?follow=true ")) as stream:
            await stream.receive()
        with anyio.fail_after(5):
            await here.relay.places.none_held()


class TestWhatReachesTheWorker:
    async def test_its_own_credentials_and_none_of_the_request(self) -> None:
        async with stage() as here:
            await here.ask(LOGS, "Impersonate-User: admin", "Cookie: a", "User-Agent: kubectl", "Accept: a/b")
            (asked,) = here.worker.streams()
            assert {name: value for name, value in asked.headers.items() if name not in ("Host", "Authorization")} == {
                "User-Agent": "kubectl",
                "Accept": "a/b",
                "Connection": "close",
                "Accept-Encoding": "identity",
                "Content-Length": "0",
            }

    async def test_no_byte_after_the_head_of_a_log_request(self) -> None:
        """They would be one more request, over a connection that our certificate may have opened."""
        smuggled = b"DELETE /api/v1/namespaces/default/pods/train-x HTTP/1.1\r\nHost: w\r\n\r\n"
        async with stage() as here:
            await here.ask(LOGS, "Content-Length: 1000", more=smuggled)
            assert {request.method for request in here.worker.asked} == {"GET"}

    async def test_no_byte_before_the_worker_has_agreed_to_another_protocol(self) -> None:
        smuggled = b"DELETE /api/v1/namespaces/default/pods/train-x HTTP/1.1\r\nHost: w\r\n\r\n"
        async with stage() as here:
            here.worker.refusal = (400, "no such container")
            entering = ("POST /exec/default/train-x/main?command=sh HTTP/1.1", "Upgrade: SPDY/3.1")
            answer = await here.ask(*entering, more=smuggled)
            assert answer.endswith(b'"message":"no such container","code":400}')
            assert {request.method for request in here.worker.asked} == {"GET", "POST"}

    async def test_older_websockets_as_they_are(self) -> None:
        key = (
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {'A' * 22}==",
        )
        entering = "GET /exec/default/train-x/main?command=sh&input=1 HTTP/1.1"
        async with stage() as here, here.asking(entering, *key, "Sec-WebSocket-Protocol: v4.channel.k8s.io") as stream:
            head = await stream.receive()
            assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
            assert b"Sec-Websocket-Protocol: v4.channel.k8s.io" in head
            assert dict(here.worker.streams()[0].query) == {"container": "main", "command": "sh", "stdin": "true"}
            await stream.send(bytes([0x82, 0x84, 0, 0, 0, 0]) + b"\0abc")  # a frame with its mask of zeros
            assert await stream.receive() == bytes([0x82, 4]) + b"\1ABC"


class TestRefusals:
    @pytest.mark.parametrize(
        ("refusal", "code", "words"),
        [
            (
                (400, 'container "main" is waiting to start: PodInitializing'),
                400,
                "is waiting to start: PodInitializing",
            ),
            ((403, "pods is forbidden: User ours"), 502, 'worker cluster "w1" does not let multikueue do that'),
            ((500, "dial tcp 10.1.2.3:10250: i/o timeout"), 502, "dial tcp [address]: i/o timeout"),
            ((503, ""), 502, 'worker cluster "w1" answers 503: without a reason'),
        ],
    )
    async def test_a_workers_is_plain_text_with_a_code_that_clients_show(
        self, refusal: tuple[int, str], code: int, words: str
    ) -> None:
        async with stage() as here:
            here.worker.refusal = refusal
            answer = (await here.ask(LOGS)).decode()
        assert answer.startswith(f"HTTP/1.1 {code} ")
        assert "Content-Type: text/plain" in answer
        assert words in answer
        assert "ours" not in answer

    @pytest.mark.parametrize("size", ["9" * 5000, "0" * 5000, "9" * 10, "-1", "1_0", "\xb2"])
    async def test_a_length_that_is_no_number_is_no_failure_of_ours(self, size: str) -> None:
        """Python reads no number of more than 4,300 digits."""
        head = answer_head(f"HTTP/1.1 400 Bad Request\r\nContent-Length: {size}\r\n\r\n".encode("latin-1"))
        reader = asyncio.StreamReader()
        reader.feed_data(b'{"message": "it waits"}')
        reader.feed_eof()
        unused: Any = None
        error = await _refused_by("w1", head, Tunnel(b"", reader, unused))
        assert error.code in (400, 502)

    async def test_of_entering_is_a_status_as_clients_take_a_text_with_a_colon_for_one_without_words(self) -> None:
        """kubectl up to 1.35 printed `Error from server: ` and no more."""
        async with stage(enters=False) as here:
            entering = ("POST /exec/default/train-x/main?command=sh HTTP/1.1", "Upgrade: SPDY/3.1")
            head, _, body = (await here.ask(*entering)).partition(b"\r\n\r\n")
        assert b"Content-Type: application/json" in head
        said = orjson.loads(body)
        assert (said["kind"], said["code"], said["message"].endswith(": mirrorPods.exec is off")) == (
            "Status",
            400,
            True,
        )

    async def test_what_we_did_not_make_has_nothing(self) -> None:
        forgeries: list[Json] = [
            {"metadata": {**mirror()["metadata"], "uid": "made again by a tenant"}},
            {"metadata": {**mirror()["metadata"], "annotations": {WORKER: "w1"}}},
            {"metadata": {**mirror()["metadata"], "annotations": mirror()["metadata"]["annotations"] | {WORKER: "w2"}}},
            {"spec": {"nodeName": "real-1"}},
            {"spec": {}},
        ]
        async with stage() as here:
            for forged in forgeries:
                here.manager.mirror = {**mirror(), **forged}
                assert b"multikueue does not show a pod default/train-x" in await here.ask(LOGS)
            assert b"does not show a pod default/other" in await here.ask(LOGS.replace("train-x", "other"))
            assert here.worker.asked == []

    @pytest.mark.parametrize("key", [b"", b"short"])
    async def test_while_there_is_no_key_nobody_makes_a_proof_by_that(self, key: bytes) -> None:
        """The Secret is made empty; the daemon's first leader puts the key there."""
        async with stage() as here:
            here.manager.key = key
            for forged in (mirror(b""), mirror(b"short")):
                here.manager.mirror = forged
                assert b"multikueue does not show a pod default/train-x" in await here.ask(LOGS)
            assert here.worker.asked == []

    async def test_a_mirror_without_its_proof_is_asked_for_again(self) -> None:
        """It comes with the first status, a moment after the mirror: nobody is told that there is no log."""
        async with stage() as here:
            said = {name: value for name, value in mirror()["metadata"]["annotations"].items() if name != PROOF}
            here.manager.mirror = {**mirror(), "metadata": {**mirror()["metadata"], "annotations": said}}
            answer = await here.ask(LOGS)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert b"does not show a pod default/train-x yet: ask again in a second" in answer
            assert here.worker.asked == []

    async def test_another_pod_of_the_same_name_and_one_that_is_gone(self) -> None:
        async with stage() as here:
            for uids in ({"default/train-x": "another"}, {}):
                here.worker.uids = uids
                assert b'gone from worker cluster "w1"' in await here.ask(LOGS)
            assert here.worker.streams() == []
            here.worker.uids, here.worker.on_open = {"default/train-x": "uid"}, [("default/train-x", "another")]
            answer = await here.ask(LOGS)  # it took the name after we had looked
            assert b'gone from worker cluster "w1"' in answer
            assert b"three" not in answer

    async def test_who_may_not_or_is_nobody(self) -> None:
        async with stage() as here:
            assert (await here.ask(LOGS, "Authorization: Bearer x")).startswith(b"HTTP/1.1 401")
            here.manager.allowed = {("apiserver", "get")}
            entering = ("GET /exec/default/train-x/main?command=sh HTTP/1.1", "Upgrade: websocket")
            assert (await here.ask(*entering)).startswith(b"HTTP/1.1 403")
            for subject in ((), ((("commonName", "a"),), (("commonName", "b"),)), ((("commonName", ""),),)):
                here.certificate = {"subject": subject}
                assert (await here.ask(LOGS)).startswith(b"HTTP/1.1 401")
            here.certificate = None
            assert (await here.ask("GET /healthz HTTP/1.1")).startswith(b"HTTP/1.1 401")
            assert here.worker.streams() == []

    async def test_a_manager_or_a_worker_that_does_not_answer_opens_nothing(self) -> None:
        async with stage() as here:
            here.manager.silent = True
            assert (await here.ask(LOGS)).startswith(b"HTTP/1.1 502")
        async with stage() as here:
            here.worker.authority.issue_cert("other")
            here.relay.workers = PlayedWorkers({"w1": attrs.evolve(connection(here.worker.kubeconfig()), ca_pem="")})
            assert b'worker cluster "w1" does not answer' in await here.ask(LOGS)

    async def test_a_head_without_an_end(self) -> None:
        async with stage() as here:
            assert (await here.ask(LOGS, f"User-Agent: {'x' * MAX_HEAD}")).startswith(b"HTTP/1.1 431")


async def test_who_may_ask_nothing_takes_few_of_the_managers_connections() -> None:
    """Whose certificate it is says nothing about what they may: that is known once the pod is read."""
    async with stage() as here:
        here.manager.held = anyio.Event()
        strangers, stranger = list[bytes](), {"subject": ((("commonName", "stranger"),),)}

        async def ask() -> None:
            strangers.append(await here.ask(LOGS))

        async with anyio.create_task_group() as tasks:
            here.certificate = stranger
            for _ in range(3 * LOOKED_UP):
                tasks.start_soon(ask)
            await until(lambda: here.manager.asking == LOOKED_UP)
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            assert here.manager.asking == LOOKED_UP
            here.certificate = CALLER
            async with here.asking(LOGS) as stream:
                await until(lambda: here.manager.asking == LOOKED_UP + 1)
                here.manager.held.set()
                assert (await rest(stream)).startswith(b"HTTP/1.1 200")
        assert {answer[:12] for answer in strangers} == {b"HTTP/1.1 403"}


async def test_who_waits_too_long_for_a_turn_is_told_and_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """All logs that an API server asks for are one caller's: while the manager was slow they held their places."""
    monkeypatch.setattr(relay, "PATIENCE", 0.2)
    async with stage() as here:
        here.manager.held = anyio.Event()
        refused = await here.ask(LOGS)
        assert (refused[:12], TOO_MANY_WAIT.encode() in refused) == (b"HTTP/1.1 502", True)
        here.manager.held.set()
        assert (await here.ask(LOGS)).startswith(b"HTTP/1.1 200")


async def test_the_answer_of_the_manager_is_kept_for_a_minute() -> None:
    async with stage() as here:
        for _ in range(3):
            await here.ask(LOGS)
        assert len(here.manager.reviews) == 1
        asked = here.manager.reviews[0]
        assert asked["groups"] == ["masters", "system:authenticated"]
        assert asked["resourceAttributes"] == {
            "verb": "get",
            "group": "",
            "version": "v1",
            "resource": "nodes",
            "subresource": "proxy",
            "name": "multikueue-w1",
        }


def test_one_tenant_leaves_places_for_the_others() -> None:
    """With many pods and as many programs: whoever asks chooses what their program is called."""
    places = Places()
    with ExitStack() as stack:
        for number in range(places.of_a_namespace):
            stack.enter_context(places.taken(f"mirror{number}", "theirs", f"program{number}"))
        with pytest.raises(RefusedError, match="of this namespace"):
            stack.enter_context(places.taken("one more", "theirs", "another"))
        with places.taken("mirror", "ours", "kubectl"):
            pass


async def test_streams_are_bounded_in_all_of_a_mirror_and_of_a_program() -> None:
    for places, words in (
        (Places(most=1), b"1 streams of all pods"),
        (Places(of_a_mirror=1), b"1 streams of this pod"),
        (Places(of_a_namespace=1), b"1 streams of this namespace"),
        (Places(of_a_program=1, few=0), b"1 streams of this program"),
    ):
        async with stage(places=places) as here:
            here.worker.more = anyio.Event()
            async with here.asking(LOGS.replace("main ", "main?follow=true ")) as stream:
                await stream.receive()
                refused = await here.ask(LOGS)
                assert refused.startswith(b"HTTP/1.1 502")
                assert words in refused
            await here.relay.places.none_held()
            assert (await here.ask(LOGS)).startswith(b"HTTP/1.1 200")


async def test_a_reader_who_breaks_off_is_no_failure_of_ours() -> None:
    """As an API server does whose client has gone: it closes with bytes that it has not read."""
    async with stage() as here:
        here.worker.log = bytes(20_000_000)
        with capture_logs() as logs:
            async with here.asking(LOGS) as stream:
                await stream.receive()
            await until(lambda: bool(logs), 20)
        said = [(line["event"], line["code"], line["bytes"] > 0, line.get("why")) for line in logs]
        assert said == [("asked as a kubelet", 200, True, None)]


@pytest.mark.parametrize("reset", [False, True])
async def test_a_worker_that_breaks_off_is_told(reset: bool) -> None:
    """Without its last chunk a log that is cut short would look like one that has ended."""
    async with stage() as here:
        here.worker.more, here.worker.breaks_off = anyio.Event(), True
        with capture_logs() as logs:
            async with here.asking(LOGS.replace("main ", "main?follow=true ")) as stream:
                received = b""
                while b"three" not in received:
                    received += await stream.receive()
                here.worker.resets = reset
                here.worker.more.set()
                await rest(stream)
            await until(lambda: bool(logs), 20)
        said = [(line["event"], line["code"], line["bytes"] > 0, line.get("why")) for line in logs]
        assert said == [("asked as a kubelet", 200, True, 'worker cluster "w1" broke off')]


async def test_of_a_log_that_ends_nothing_is_told() -> None:
    async with stage() as here:
        with capture_logs() as logs:
            await here.ask(LOGS)
            await until(lambda: bool(logs), 20)
        assert [(line["code"], line.get("why")) for line in logs] == [(200, None)]
