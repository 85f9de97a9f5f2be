"""The page of a server, for all who may see something of the manager: people sign in, and see what is theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import ClassVar, Final
from urllib.parse import urlsplit

import attrs
import structlog
from aiohttp import web

from multikueue.errors import SettingsError
from multikueue.kube.kubeconfigs.kubeconfig_document import is_loopback
from multikueued.logserver.access import ReviewedRights
from multikueued.page.port import application
from multikueued.page.signed_in import SignedIn
from multikueued.remoteapi.handlers import JobHandlers
from multikueued.serving.certificate_files import CertificateFolder
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening
from multikueued.serving.reviews import Create
from multikueued.serving.serving_tls import ServingTls

CONNECTIONS: Final = 256
"""Open at a time: a browser opens six."""
_STRICT: Final = "max-age=31536000"

log = structlog.get_logger(__name__)


@attrs.frozen
class PageOptions:
    """Where the page is."""

    hosts: tuple[str, ...]
    """The names by which browsers reach it."""
    port: int = 8444
    address: str = ""
    """Empty: all addresses."""
    cert_dir: str = ""
    """With tls.crt and tls.key; empty: plain HTTP, on an address of the loopback alone."""


@attrs.frozen(eq=False)
class SignInDoor:
    """Implements `multikueued.page.port.Door`: for whom the manager's API server knows."""

    callers: SignedIn
    hosts: frozenset[str]
    """In lower case."""
    name: ClassVar[str] = "sign-in"
    namespace: ClassVar[str] = ""

    def is_host(self, host: str) -> bool:
        """See `Door`: the port may be another one, that of what stands in front."""
        return _name_in(f"//{host}") in self.hosts

    def is_origin(self, origin: str) -> bool:
        """See `Door`."""
        name = _name_in(origin)
        return name in self.hosts and (origin.startswith("https://") or is_loopback(name))

    async def let_in(self, request: web.Request) -> None:
        """See `Door`."""
        await self.callers.confirmed(request)


def is_host_name(text: str) -> bool:
    """Whether browsers can say it of a server: a name or an address alone, no pattern."""
    read = {_name_in(f"//{text}"), _name_in(f"//[{text}]")}
    return text.lower() in read and "*" not in text and text.split() == [text]


def _name_in(address: str) -> str:
    try:
        parts = urlsplit(address)
        plain = not (parts.path or parts.query or parts.fragment or parts.username is not None)
        return parts.hostname or "" if plain and parts.port != 0 else ""
    except ValueError:
        return ""


@asynccontextmanager
async def serving_page(options: PageOptions, jobs: JobHandlers, create: Create) -> AsyncIterator[int]:
    """Serve the page while the context lasts; it yields the port.

    Args:
        options: where.
        jobs: what answers for the API; the page's viewers have its informers, and rights of their own.
        create: sends a review to the manager's API server.

    Raises:
        SettingsError: the address cannot be listened on, or there is no certificate for it.
    """
    tls = ServingTls()
    certificate = await _certificate(options, tls)
    callers = SignedIn(create)
    rights = ReviewedRights(create, callers, kept=callers.kept, namespaces_kept=callers.kept)
    door = SignInDoor(callers, frozenset(map(str.lower, options.hosts)) - {""})
    made = application(attrs.evolve(jobs, rights=rights), door)
    made.on_response_prepare.append(partial(_with_headers, certificate is not None))
    where, limits = (options.address, options.port), Limits(connections=CONNECTIONS)
    secure, kept = (tls if certificate is not None else None), (certificate.run if certificate is not None else None)
    async with listening(made, *where, settings="", tls=secure, limits=limits, streams=True, beside=kept) as port:
        log.info("serving the page", port=port, hosts=sorted(door.hosts))
        yield port


async def _certificate(options: PageOptions, tls: ServingTls) -> CertificateFolder | None:
    if options.cert_dir:
        otherwise = "leave --page-cert-dir out, with --page-address 127.0.0.1"
        return await CertificateFolder.open(options.cert_dir, tls, "--page-cert-dir", otherwise)
    if not is_loopback(options.address):
        why = "tokens would be sent in plain text: name --page-cert-dir, or --page-address 127.0.0.1"
        raise SettingsError(f"--page-address: {why}")
    return None


async def _with_headers(is_https: bool, request: web.Request, response: web.StreamResponse) -> None:
    if response.status == 401:  # RFC 6750: the page tells a token that nobody knows from none, and from a proxy's word
        is_given = "Authorization" in request.headers
        response.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"' if is_given else "Bearer"
    if is_https:
        response.headers["Strict-Transport-Security"] = _STRICT
