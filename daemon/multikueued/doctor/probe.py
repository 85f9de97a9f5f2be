"""How long a server takes to answer, and how far its clock is from this machine's: three small requests.

They carry no credentials: the header Date is on a refusal, too.
"""

from __future__ import annotations

import email.utils
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import reduce
from typing import Final, TypeAlias

import aiohttp
import anyio
import attrs

from multikueue.errors import KubeconfigError
from multikueue.kube import ClusterConfig
from multikueue.kube.http.transport import Connector, ssl_context
from multikueue.runtime.loop import utc_now
from multikueued.reports.worker_facts import ClockBound

TIMES: Final = 3
DEADLINE: Final = 10.0
"""Seconds for all of them."""
_MOST: Final = 64 << 10
"""Bytes that are read of an answer: a version has a few hundred."""


@attrs.frozen
class ProbeResult:
    """What was measured."""

    latency: float | None = None
    """Seconds, the median; None: no answer."""
    clock: ClockBound | None = None
    error: str = ""


Measure: TypeAlias = Callable[[ClusterConfig], Awaitable[ProbeResult]]
"""How a server is measured."""


async def probe(config: ClusterConfig) -> ProbeResult:
    """Measure a server. It raises nothing: what goes wrong is in the answer."""
    taken: list[float] = []
    clocks: list[ClockBound] = []
    try:
        with anyio.fail_after(DEADLINE):
            connector = Connector(ssl=ssl_context(config), limit=1)
            async with aiohttp.ClientSession(
                connector=connector, proxy=config.proxy or None, auto_decompress=False
            ) as session:
                for _ in range(TIMES):
                    began, sent = time.monotonic(), utc_now().timestamp()
                    clock = await _date(session, config, sent)
                    taken.append(time.monotonic() - began)
                    clocks += [clock] if clock is not None else []
    except (aiohttp.ClientError, OSError, TimeoutError, KubeconfigError) as error:
        return ProbeResult(error=str(error) or f"no answer within {DEADLINE:g} s")
    return ProbeResult(statistics.median(taken), reduce(ClockBound.narrowed, clocks) if clocks else None)


async def _date(session: aiohttp.ClientSession, config: ClusterConfig, sent: float) -> ClockBound | None:
    """What one answer says of the clock; None: nothing."""
    named = config.tls_server_name or None
    async with session.get(f"{config.server}/version", server_hostname=named, allow_redirects=False) as response:
        received = utc_now().timestamp()
        await response.content.read(_MOST)  # a worker may answer without an end; what is left closes the connection
        try:
            date = email.utils.parsedate_to_datetime(response.headers.get("Date", ""))
        except (ValueError, OverflowError):
            return None
    return ClockBound.of(date.timestamp(), sent, received)
