"""From a request about a mirror to the pod that it shows, and its bytes back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

import anyio
import attrs
import orjson
import structlog

from multikueue.core.model.kinds import POD, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.core.model.outside_text import one_line, without_addresses
from multikueue.errors import ApiError, Forbidden, KubeconfigError, NotFound, Unauthorized
from multikueue.kube import KubeClient
from multikueue.kube.http.error_mapping import MAX_MESSAGE, decoded
from multikueue.kube.http.requests import Request
from multikueue.kube.http.turns import Turns
from multikueue.kube.tunnel import Tunnel
from multikueue.protocols import Reader, read
from multikueued.exits import CommandError
from multikueued.mirror_names import NODE_PREFIX, PROOF, node_name
from multikueued.mirrors.endpoint.callers import NodeRights, caller
from multikueued.mirrors.endpoint.heads import (
    END,
    AnswerHead,
    RequestHead,
    answer,
    answer_head,
    passed_back,
    passed_on,
    request_head,
    status,
    text,
)
from multikueued.mirrors.endpoint.places import TOO_MANY_WAIT, Places
from multikueued.mirrors.endpoint.routes import HEALTH, WELL, Asked, asked_in, is_pod
from multikueued.mirrors.proof import ProvenMirror, proven
from multikueued.reading.worker_access import key_in
from multikueued.serving.refusal import RefusedError
from multikueued.serving.users import User

CHUNK: Final = 64 << 10
"""Bytes that are passed on at a time."""
REFUSAL: Final = 64 << 10
"""Bytes of a worker's refusal that are read."""
LAST_CHUNK: Final = b"0\r\n\r\n"
"""Ends an answer that comes in chunks."""
PATIENCE: Final = 20.0
"""Seconds for that, and for a look-up of the manager with the wait for it."""
LOOKED_UP: Final = 8
"""Mirrors that are looked up at a time for one caller, others wait: whether they may ask is known only then. Namespaces
take turns."""
BEGUN: Final = 8
"""Requests that are begun at a time on one worker, which takes most of what one costs: a connection with TLS, and a
look at the pod. Namespaces take turns there, too. What a kubelet takes to answer is waited for without one: only the
pods of whoever asks may be on a node that hangs."""

log = structlog.get_logger(__name__)


class Workers(Protocol):
    """How workers are reached."""

    def open(self, worker: str) -> AbstractAsyncContextManager[KubeClient]:
        """A client of one; raises CommandError if it cannot be asked."""


@attrs.define(eq=False)
class Relay:
    """Answers one request after the other, each with a connection of its own."""

    manager: Reader
    key: ObjectKey
    """The Secret with the key of mirrors."""
    rights: NodeRights
    workers: Workers
    places: Places
    enters: bool
    """Whether containers may be entered: exec, attach, cp, port-forward."""
    _turns: WeakValueDictionary[str, Turns] = attrs.field(factory=WeakValueDictionary, init=False)
    """Of look-ups, by caller."""
    _begin: WeakValueDictionary[str, Turns] = attrs.field(factory=WeakValueDictionary, init=False)
    """Of what is begun, by worker."""

    async def serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        certificate: Mapping[str, Any] | None,
        on_head: Callable[[], None] = lambda: None,
    ) -> None:
        """Answer the one request of a connection.

        Args:
            reader: what comes of it.
            writer: what goes to it; the caller closes it.
            certificate: the client's; None: it has none that counts.
            on_head: called once the request's head has come.
        """
        audit: Json = {}
        began = anyio.current_time()
        refusal: Callable[[int, str], bytes] = text
        try:
            raw = await reader.readuntil(END)
            on_head()
            head = request_head(raw)
            refusal = status if head.upgrade else text
            await self._answer(head, reader, writer, certificate, audit)
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError:
            writer.write(text(431, "the head of this request is too long\n"))
        except RefusedError as error:
            audit |= {"code": error.code, "why": one_line(str(error))}
            writer.write(refusal(error.code, str(error)))
        except (ConnectionError, OSError):
            audit |= {"why": "the connection broke"}
        except Exception as error:  # a bug: the traceback goes to the log only
            log.error("internal error", exc_info=error)
            writer.write(refusal(500, "multikueue has failed: ask an operator\n"))
        finally:
            log.info("asked as a kubelet", **audit, seconds=round(anyio.current_time() - began, 3))

    async def _answer(
        self,
        head: RequestHead,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        certificate: Mapping[str, Any] | None,
        audit: Json,
    ) -> None:
        audit |= {"method": head.method, "path": head.path, "agent": one_line(head.first("user-agent"))[:200]}
        if head.all("authorization"):
            raise RefusedError(401, "Unauthorized\n")
        user = caller(certificate)
        audit |= {"caller": user.name}
        if (head.method, head.path) == ("GET", HEALTH):
            await self.rights.check(user, "get", "")
            writer.write(text(200, f"{orjson.dumps(WELL).decode()}\n"))
            return
        asked = asked_in(head)
        mirror = None
        with self.places.asked(user.name, asked.mirror.namespace), anyio.move_on_after(PATIENCE):
            async with self._turns.setdefault(user.name, Turns(LOOKED_UP)).of(asked.mirror.namespace):
                mirror = await self._mirror(asked, user)
        if mirror is None:
            raise RefusedError(502, TOO_MANY_WAIT)
        audit |= {"worker": mirror.worker, "pod": str(mirror.worker_pod)}
        with self.places.taken(mirror.uid, mirror.namespace, head.first("user-agent")):
            async with self._from_worker(asked, head, mirror) as (tunnel, answered):
                audit |= {"code": answered.code}
                writer.write(answer(answered.code, passed_back(answered)))
                passed, last = await piped(tunnel, reader, writer, both=asked.route.enters)
                audit |= {"bytes": passed}
                if _broke_off(tunnel, answered, last):
                    audit |= {"why": f'worker cluster "{mirror.worker}" broke off'}

    async def _mirror(self, asked: Asked, user: User) -> ProvenMirror:
        """The mirror that is asked about, if it is one of ours and who asks may."""
        try:
            pod = await read(self.manager, POD, asked.mirror)
            # Of what is not there, or is elsewhere, nobody learns but who may ask every node.
            node = str(dig(pod, "spec", "nodeName") or "")
            await self.rights.check(user, asked.route.verb, node)
            mirror = proven(key_in(await self.manager.get(SECRET, self.key)), pod) if pod else None
        except ApiError as error:
            log.warning("the manager cannot be read", error=str(error))
            raise RefusedError(502, "the manager cluster does not answer multikueue as it must\n") from error
        if mirror is None or node != node_name(mirror.worker) or not is_pod(mirror.worker_pod):
            is_new = pod is not None and node.startswith(NODE_PREFIX) and PROOF not in annotations_of(pod)
            why = " yet: ask again in a second" if is_new else ": it has no logs of it"
            raise RefusedError(400, f"multikueue does not show a pod {asked.mirror}{why}\n")
        if asked.route.enters and not self.enters:
            raise RefusedError(400, "containers of workers are not entered from here: mirrorPods.exec is off\n")
        return mirror

    @asynccontextmanager
    async def _from_worker(
        self, asked: Asked, head: RequestHead, mirror: ProvenMirror
    ) -> AsyncIterator[tuple[Tunnel, AnswerHead]]:
        """The worker's answer, where its pod is the one that the mirror shows.

        A request names no UID. So the pod is looked at before anything is started there, and again once the worker has
        answered: who has the name then had it when it was asked for.
        """
        wanted = HTTPStatus.SWITCHING_PROTOCOLS if asked.route.enters else HTTPStatus.OK
        request = Request(
            asked.route.verb,
            attrs.evolve(POD, plural=f"pods/{asked.route.subresource}"),
            head.method,
            asked.path_on_worker(mirror.worker_pod),
        )
        with refusals_of(mirror.worker, asked.mirror):
            async with contextlib.AsyncExitStack() as stack:
                client = await self._begun(stack, mirror)
                sent = passed_on(head, upgrade=asked.route.enters)
                tunnel = await stack.enter_async_context(client.tunnel(request, sent))
                answered = answer_head(tunnel.head)
                if answered.code != wanted:
                    raise await _refused_by(mirror.worker, answered, tunnel)
                await self._still_it(client, mirror)
                yield tunnel, answered

    async def _begun(self, stack: contextlib.AsyncExitStack, mirror: ProvenMirror) -> KubeClient:
        """A client of its worker, which was seen to have the pod."""
        turns = self._begin.setdefault(mirror.worker, Turns(BEGUN))
        async with contextlib.AsyncExitStack() as turn:
            with anyio.move_on_after(PATIENCE) as waiting:
                await turn.enter_async_context(turns.of(mirror.namespace))
            if waiting.cancelled_caught:
                raise RefusedError(502, TOO_MANY_WAIT)
            client = await stack.enter_async_context(self.workers.open(mirror.worker))
            await self._still_it(client, mirror)
        return client

    async def _still_it(self, client: Reader, mirror: ProvenMirror) -> None:
        pod = await read(client, POD, mirror.worker_pod)
        if pod is None or uid(pod) != mirror.worker_pod_uid:
            gone = f'the pod {mirror.namespace}/{mirror.name} shows is gone from worker cluster "{mirror.worker}"'
            raise RefusedError(400, f"{gone}: its logs went with it\n")


@contextlib.contextmanager
def refusals_of(worker: str, mirror: ObjectKey) -> Any:
    """Turn what goes wrong with a worker into words for its tenants."""
    begin = f'worker cluster "{worker}"'
    try:
        yield
    except CommandError as error:
        raise RefusedError(502, f"{one_line(str(error))}\n") from error
    except (ApiError, KubeconfigError) as error:
        log.warning("a worker does not serve a mirror", worker=worker, mirror=str(mirror), error=str(error))
        match error:
            case Forbidden() | Unauthorized():
                raise RefusedError(502, f"{begin} refuses multikueue: ask an operator\n") from error
            case NotFound():
                raise RefusedError(400, f"{begin} has no such pod any more\n") from error
        raise RefusedError(502, f"{begin} does not answer\n") from error


async def _refused_by(worker: str, answered: AnswerHead, tunnel: Tunnel) -> RefusedError:
    """What a worker says instead: of a container that waits, its own words, as its kubelet said them."""
    body = b""
    with anyio.move_on_after(PATIENCE):
        while not _is_whole(answered, body) and (piece := await tunnel.reader.read(REFUSAL - len(body))):
            body += piece
    said = str((decoded(_without_chunks(answered, body)) or {}).get("message") or "")
    words = without_addresses(one_line(said[:MAX_MESSAGE]))
    log.info("a worker refuses", worker=worker, code=answered.code, words=words)
    if answered.code == HTTPStatus.BAD_REQUEST and words:
        return RefusedError(400, f"{words}\n")
    if answered.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return RefusedError(502, f'worker cluster "{worker}" does not let multikueue do that: ask an operator\n')
    return RefusedError(502, f'worker cluster "{worker}" answers {answered.code}: {words or "without a reason"}\n')


def _is_whole(answered: AnswerHead, body: bytes) -> bool:
    """Whether no more needs to be read: a connection that was to become another one stays open."""
    size = answered.first("content-length")
    is_size = size.isascii() and size.isdecimal() and len(size) < 10  # beyond that Python may refuse to read it
    ends = len(body) >= int(size) if is_size else body.endswith(LAST_CHUNK)
    return ends or len(body) >= REFUSAL


def _without_chunks(answered: AnswerHead, body: bytes) -> bytes:
    """A short body: all of it is in the first chunk, as API servers write it."""
    if "chunked" not in answered.first("transfer-encoding").lower():
        return body
    size, _, rest = body.partition(b"\r\n")
    try:
        return rest[: int(size, 16)]
    except ValueError:
        return b""


def _broke_off(tunnel: Tunnel, answered: AnswerHead, last: bytes) -> bool:
    """Whether a worker's connection broke, or ended before its answer did; not whether a reader has gone."""
    in_chunks = answered.first("transfer-encoding").lower() == "chunked"
    is_cut = in_chunks and tunnel.reader.at_eof() and last != LAST_CHUNK
    return is_cut or tunnel.reader.exception() is not None


async def piped(
    tunnel: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, both: bool
) -> tuple[int, bytes]:
    """Pass bytes on as they are, until one of the two ends, with no bound on time.

    Args:
        tunnel: to the worker.
        reader: of the API server's connection.
        writer: of the same.
        both: whether the worker gets bytes, too. Else none reaches it: it would take them for one more request of ours.

    Returns:
        How many bytes went back, and the last few of them.
    """
    passed, last = 0, b""

    async def back() -> None:
        nonlocal passed, last
        while piece := await tunnel.reader.read(CHUNK):
            writer.write(piece)
            await writer.drain()
            passed, last = passed + len(piece), (last + piece)[-len(LAST_CHUNK) :]
        tasks.cancel_scope.cancel()

    async def forth() -> None:
        while (piece := await reader.read(CHUNK)) and both:
            tunnel.writer.write(piece)
            await tunnel.writer.drain()
        tasks.cancel_scope.cancel()

    writer.transport.set_write_buffer_limits(CHUNK)  # with TLS it is 512 KiB: readers who do not read would fill each
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(back)
            tasks.start_soon(forth)
    except* OSError:  # a connection that breaks ends, too
        pass
    return passed, last
