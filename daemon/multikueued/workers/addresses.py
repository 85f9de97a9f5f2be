"""Which address of a worker a daemon can use. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from multikueued.exits import WorkerError


def check_server(server: str, *, outside: bool) -> str:
    """The address under which the daemon reaches a worker.

    Args:
        server: the URL.
        outside: whether the daemon runs on this machine and not in a cluster.

    Raises:
        WorkerError: the daemon cannot use it.
    """
    advice = "name the address that the daemon reaches with --server https://HOST:PORT"
    try:
        url = urlsplit(server)
        host, _ = url.hostname, url.port
    except ValueError:
        host = None
    if not host or not server.startswith("https://"):
        raise WorkerError(f"the server {server!r} is no https:// address: {advice}")
    if is_loopback(host) and not outside:
        why = f"the server {server} is this machine's own address, and in a daemon's pod it is the pod's"
        raise WorkerError(f"{why}: {advice}, or say --outside if the daemon runs on this machine")
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


def authority_of(data: str) -> str:
    """The PEM in a file's text.

    Raises:
        WorkerError: it is none.
    """
    if "-----BEGIN CERTIFICATE-----" not in data:
        raise WorkerError("--ca: this is no PEM file with certificates")
    return data
