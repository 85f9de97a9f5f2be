"""Opening a port, and what is told if that cannot be done."""

from __future__ import annotations

import errno
import os
import ssl

from aiohttp import web

from multikueue.errors import SettingsError


async def listen(
    runner: web.AppRunner, address: str, port: int, *, settings: str, tls: ssl.SSLContext | None = None
) -> int:
    """Have a runner listen; return the port.

    Args:
        runner: what answers; it has been set up.
        address: empty for all addresses.
        port: 0 for any free one.
        settings: the group of settings that says where, for the error.
        tls: for HTTPS.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    site = web.TCPSite(runner, address or None, port, ssl_context=tls)
    try:
        await site.start()
    except OSError as error:
        where = f"{address or 'port'}{':' if address else ' '}{port}"
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(f"cannot listen on {where}: it is in use; set {settings}.port to a free one") from error
        # asyncio's own text names the address again; what a resolver says has no number of the system's.
        why = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        raise SettingsError(
            f"cannot listen on {where}: {why}; set {settings}.bindAddress and {settings}.port to an "
            "address of this machine and a port this user may open"
        ) from error
    found: tuple[str, int] = runner.addresses[0]
    return found[1]
