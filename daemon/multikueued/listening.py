"""Opens and closes a port of the daemon; the error says why it cannot be opened."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from aiohttp import web

from multikueue.errors import SettingsError

_CLOSE_TIMEOUT: Final = 2.0


@asynccontextmanager
async def listening(
    application: web.Application, address: str, port: int, *, settings: str, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve an application while the context lasts; it yields the port.

    Args:
        application: handles the requests.
        address: empty for all addresses.
        port: 0 for any free one.
        settings: the group of settings that has the address, for the error.
        tls: for HTTPS.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=_CLOSE_TIMEOUT / 2)
    try:
        await runner.setup()
        try:
            await web.TCPSite(runner, address or None, port, ssl_context=tls).start()
        except OSError as error:
            raise SettingsError(_error_message(error, address, port, settings)) from error
        yield runner.addresses[0][1]
    finally:
        with anyio.move_on_after(_CLOSE_TIMEOUT, shield=True):
            await runner.cleanup()


def _error_message(error: OSError, address: str, port: int, settings: str) -> str:
    where = f"{address or 'port'}{':' if address else ' '}{port}"
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {where}: it is in use; set {settings}.port to a free one"
    # asyncio's own text repeats the address. Since Python 3.13 it gives no errno if none of the addresses is this
    # machine's. A resolver's errno is negative, and not one of the system.
    number = errno.EADDRNOTAVAIL if error.errno is None else error.errno
    why = os.strerror(number) if number > 0 else error.strerror
    return (
        f"cannot listen on {where}: {why}; set {settings}.bindAddress and {settings}.port to an address of this "
        "machine and a port this user may open"
    )
