"""The open sessions with one server, and the certificates of their connections: a new one needs new connections."""

from __future__ import annotations

import ssl
import weakref
from functools import partial
from typing import Final

import aiohttp
import anyio
import anyio.to_thread
import attrs

from multikueue.errors import KubeconfigError
from multikueue.kube.credentials.credential import KeyPair
from multikueue.kube.credentials.exec_run import no_credentials
from multikueue.kube.http.single_flight import SingleFlight
from multikueue.kube.http.transport import CLOSE_DEADLINE, ssl_context
from multikueue.kube.kubeconfigs.config import ClusterConfig

SETTLED: Final = 10.0
"""Seconds for which watches go on when their certificate is replaced. One that was just opened, by the request that had
the certificate renewed perhaps, would count as a failure of the worker if it ended at once (`WATCH_BACKOFF`)."""


@attrs.define(eq=False)
class Sessions:
    """One session for calls and one for watches, so that no watch waits for a connection.

    When an exec plugin gives another client certificate, what is sent from then on goes over new connections: a session
    shares one only among requests with the same TLS settings. Watches over earlier ones end soon, and begin again with
    the new one; calls that are under way end first. Then nobody uses these connections, and they close (`POOLED_FOR`).
    """

    config: ClusterConfig
    calls: aiohttp.ClientSession
    watches: aiohttp.ClientSession
    flights: SingleFlight
    deadline: float
    """Seconds within which a stream has begun."""
    _tls: ssl.SSLContext
    """Of the certificate in use."""
    _pair: KeyPair | None = attrs.field(default=None, init=False)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _streams: weakref.WeakKeyDictionary[aiohttp.ClientResponse, ssl.SSLContext] = attrs.field(
        factory=weakref.WeakKeyDictionary, init=False
    )
    """Answers of watches that are being read."""

    def __repr__(self) -> str:
        return f"<Sessions: {'closed' if self.closed else 'open'}>"

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.calls.closed

    async def tls(self, pair: KeyPair | None) -> ssl.SSLContext:
        """The settings with this client certificate; None: with that of the configuration, if it has one.

        Raises:
            Unauthorized: the certificate cannot be used.
        """
        if pair == self._pair:
            return self._tls
        async with self._lock:
            if pair != self._pair:
                tls = await self._loaded(pair)
                if not self.closed:
                    self.flights.begin(partial(self._end_streams, self._tls))
                    self._tls, self._pair = tls, pair
        return self._tls

    def began(self, stream: aiohttp.ClientResponse, tls: ssl.SSLContext) -> None:
        """A stream is read from now on; it ends when these settings are replaced."""
        self._streams[stream] = tls

    async def close(self) -> None:
        """Close both, also while being cancelled."""
        with anyio.move_on_after(CLOSE_DEADLINE, shield=True):
            await self.calls.close()
            await self.watches.close()

    async def _loaded(self, pair: KeyPair | None) -> ssl.SSLContext:
        try:
            return await anyio.to_thread.run_sync(ssl_context, self.config, pair)
        except KubeconfigError as error:
            raise no_credentials(str(error)) from None

    async def _end_streams(self, earlier: ssl.SSLContext) -> None:
        """Give an error to those who read a stream with settings that are not used any more; in a second round to those
        whose streams had not begun."""
        for left in (SETTLED, self.deadline):
            await anyio.sleep(left)
            for stream in [stream for stream, tls in self._streams.items() if tls is earlier]:
                stream.close()
