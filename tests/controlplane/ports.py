"""Free TCP ports on the loopback interface."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST, _LAST = 20_000, 29_999  # below NodePorts and, usually, below the ports the kernel hands out by itself
_TRIES = 100


def free_port() -> int:
    """Return a port that nothing listens on right now.

    It is taken from below the kernel's own (ephemeral) range where possible. So no outgoing connection and no
    `bind` to port 0 takes it while an API server restarts. Another test run may still pick it before the caller
    listens: the caller must be ready to try again with another port.
    """
    ports = range(_FIRST, min(_LAST + 1, _ephemeral_start()))
    for port in random.sample(ports, min(_TRIES, len(ports))):
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ephemeral_start() -> int:
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except OSError:
        return _LAST + 1  # not Linux: the kernel's range starts at 49152


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
