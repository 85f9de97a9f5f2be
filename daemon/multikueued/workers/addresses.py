"""Which address of a worker a daemon can use, and whom it is to trust there."""

from __future__ import annotations

import ipaddress
import re
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from multikueued.exits import CommandError
from multikueued.settings.documents import read_text

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


def check_server(server: str, *, outside: bool) -> str:
    """The address under which the daemon reaches a worker.

    Args:
        server: the URL.
        outside: whether the daemon runs on this machine and not in a cluster.

    Raises:
        CommandError: the daemon cannot use it.
    """
    advice = "name the address that the daemon reaches with --server https://HOST:PORT"
    url: SplitResult | None
    try:
        url = urlsplit(server)
        host, _ = url.hostname, url.port
    except ValueError:
        url, host = None, None
    if url is not None and url.username is not None:
        raise CommandError(f"the server's address has a user in it, which API servers do not take: {advice}")
    if not host or not server.startswith("https://"):
        raise CommandError(f"the server {server!r} is no https:// address: {advice}")
    if is_loopback(host) and not outside:
        why = f"the server {server} is this machine's own address, and in a daemon's pod it is the pod's"
        raise CommandError(f"{why}: {advice}, or say --outside if the daemon runs on this machine")
    return server.rstrip("/")


def is_own_machine(server: str) -> bool:
    """Whether a worker's address is that of the machine that the daemon runs on, so `worker add` wants `--outside`."""
    try:
        return is_loopback(urlsplit(server).hostname or "")
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Whether a host name or address means the machine itself."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def certificates_in(text: str) -> str:
    """The certificates of a PEM text, and nothing else: files of authorities may have their private keys as well."""
    return "".join(f"{block}\n" for block in _CERTIFICATE.findall(text))


def authority_in(ca: Path | None) -> str:
    """The certificates in a file that a user names as authorities.

    Args:
        ca: None: no file; the text is empty.

    Raises:
        SettingsError: it cannot be read.
        CommandError: it has none that can be used.
    """
    if ca is None:
        return ""
    certificates = certificates_in(read_text(ca))
    try:
        ssl.create_default_context(cadata=certificates or " ")
    except ssl.SSLError:
        raise CommandError(f"--ca: {ca} is no PEM file with certificates") from None
    return certificates
