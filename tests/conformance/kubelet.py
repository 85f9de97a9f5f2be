"""A kubelet that plays: it remembers what an API server asks of it, answers what a test says, and echoes streams."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import trustme

from multikueue.core.model.names import Json
from multikueue.testing import until

FINE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n"
_SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {}\r\n{}\r\n"


@attrs.frozen
class Asked:
    """The head of a request, its header names in lower case, and who sent it: common name and organizations."""

    method: str
    target: str
    headers: Mapping[str, str]
    who: tuple[str, ...] = ()


@attrs.define(eq=False)
class PlayedKubelet:
    """What a kubelet was asked, and what it says.

    Attributes:
        port: where it listens, on 127.0.0.1.
        answer: head and body of each answer, as bytes on the wire; upgrades get a 101 and then an echo unless it is
            not `FINE`.
        asked: every request so far.
        bodies: of requests that had one.
        open: its connections.
    """

    port: int = 0
    answer: bytes = FINE
    asked: list[Asked] = attrs.field(factory=list)
    bodies: list[bytes] = attrs.field(factory=list)
    open: set[asyncio.StreamWriter] = attrs.field(factory=set, init=False, repr=False)

    def node(self, name: str, **status: object) -> Json:
        """The Node whose kubelet this is."""
        addresses = [{"type": "ExternalIP", "address": "192.0.2.1"}, {"type": "InternalIP", "address": "127.0.0.1"}]
        endpoint = {"kubeletEndpoint": {"Port": self.port}}
        whole_status = {"addresses": addresses, "daemonEndpoints": endpoint, **status}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": whole_status}


@asynccontextmanager
async def played_kubelet(client_ca: str = "") -> AsyncIterator[PlayedKubelet]:
    """A kubelet that runs with a certificate that nobody trusts; with `client_ca` it serves only clients of that CA."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    if client_ca:
        context.load_verify_locations(cadata=client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    kubelet = PlayedKubelet()
    server = await asyncio.start_server(partial(_serve, kubelet), "127.0.0.1", 0, ssl=context)
    kubelet.port = server.sockets[0].getsockname()[1]
    async with server:
        yield kubelet
        for writer in kubelet.open:
            writer.transport.abort()
        await until(lambda: not kubelet.open)


async def _serve(kubelet: PlayedKubelet, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    kubelet.open.add(writer)
    try:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, target, _ = first.split(" ")
        kubelet.asked.append(Asked(method, target, headers, _who(writer)))
        if length := int(headers.get("content-length", 0)):
            kubelet.bodies.append(await reader.readexactly(length))
        if "upgrade" not in headers or kubelet.answer != FINE:
            writer.write(kubelet.answer)
        else:
            chosen = headers.get("sec-websocket-protocol")
            more = f"Sec-WebSocket-Protocol: {chosen}\r\n" if chosen else ""
            writer.write(_SWITCHED.format(headers["upgrade"], more).encode())
            while data := await reader.read(65536):
                writer.write(data)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass  # whoever asked is gone
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        kubelet.open.discard(writer)


def _who(writer: asyncio.StreamWriter) -> tuple[str, ...]:
    certificate = writer.get_extra_info("peercert") or {}
    named = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return tuple(named[field] for field in ("commonName", "organizationName") if field in named)
