"""Looks again and again at what somebody else may change: a file, a Secret, a ConfigMap."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import structlog

from multikueue.errors import ApiError, SettingsError
from multikueue.webhook.errors import UnusableError


async def look_again(
    look: Callable[[], Awaitable[None]], pause: Callable[[bool], float], event: str, **about: str
) -> None:
    """Look until cancelled. What fails is logged once, and tried again.

    Args:
        look: raises ApiError, UnusableError, or SettingsError, as where a disk is full.
        pause: seconds until the next look, by whether this one has failed.
        event: of the line of the log about a failure.
        about: what else that line has.
    """
    log, failure = structlog.get_logger(__name__), ""
    while True:
        try:
            await look()
            failure = ""
        except (ApiError, UnusableError, SettingsError) as error:
            if str(error) != failure:
                log.warning(event, **about, error=str(error))
            failure = str(error)
        await anyio.sleep(pause(bool(failure)))
