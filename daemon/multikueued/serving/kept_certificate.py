"""A certificate in a Secret that all replicas of a server share: looked at in turn, renewed and served."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import structlog

from multikueue.core.model.names import ObjectKey
from multikueue.errors import ApiError, SettingsError
from multikueue.webhook.certificates import UnusableError

INTERVAL: Final = 60.0
"""Seconds between two looks at the Secret."""
RETRY: Final = 5.0
"""The same after a failure, and while a request waits."""

log = structlog.get_logger(__name__)


async def keep_certificate(keep: Callable[[], Awaitable[None]], secret: ObjectKey, of: str) -> None:
    """Keep a certificate until cancelled. What fails, or waits, is logged once, and tried again.

    Args:
        keep: looks once, renews what is due, and serves it; raises ApiError, UnusableError or SettingsError.
        secret: where it is.
        of: whose it is, for the log.
    """
    failure = ""
    while True:
        try:
            await keep()
            failure = ""
        except (ApiError, UnusableError, SettingsError) as error:
            if str(error) != failure:
                log.warning("the certificate cannot be kept", of=of, secret=str(secret), error=str(error))
            failure = str(error)
        await anyio.sleep(RETRY if failure else INTERVAL)
