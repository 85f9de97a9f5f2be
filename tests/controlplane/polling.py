"""Waiting for something in another process, which has no event to wait for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from tests.controlplane.errors import NotReady


async def poll_until(
    condition: Callable[[], Awaitable[bool]], *, seconds: float, otherwise: str, interval: float = 0.05
) -> None:
    """Ask `condition` again and again until it says yes.

    Raises:
        NotReady: `seconds` have passed; `otherwise` is the message.
    """
    with anyio.move_on_after(seconds):
        while True:
            if await condition():
                return
            await anyio.sleep(interval)
    raise NotReady(otherwise)
