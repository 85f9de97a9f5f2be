"""The open sessions with one server, with the client certificate in use: a new certificate needs new connections."""

from __future__ import annotations

import ssl
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import aiohttp
import anyio
import anyio.to_thread
import attrs

from multikueue.errors import KubeconfigError
from multikueue.kube.config import ClusterConfig
from multikueue.kube.credentials.credential import KeyPair
from multikueue.kube.credentials.exec_run import no_credentials
from multikueue.kube.single_flight import SingleFlight
from multikueue.kube.transport import CLOSE_DEADLINE, ssl_context

SETTLED: Final = 10.0
"""Seconds for which watches go on when their certificate is replaced. One that was just opened, by the request that had
the certificate renewed perhaps, would count as a failure of the worker if it ended at once (`WATCH_BACKOFF`)."""


@attrs.frozen(eq=False)
class Opened:
    """One session for calls and one for watches, so that no watch waits for a connection."""

    calls: aiohttp.ClientSession
    watches: aiohttp.ClientSession
    streams: weakref.WeakSet[aiohttp.ClientResponse] = attrs.field(factory=weakref.WeakSet, repr=False)
    """Answers of watches that are being read."""

    def end_streams(self) -> None:
        """Give an error to those who read a stream: with the session merely closed, they would wait for ever."""
        for response in list(self.streams):
            response.close()

    async def close(self) -> None:
        """Close both, also while being cancelled."""
        with anyio.move_on_after(CLOSE_DEADLINE, shield=True):
            await self.calls.close()
            await self.watches.close()


@attrs.define(eq=False)
class Sessions:
    """The sessions of a client.

    When an exec plugin gives another client certificate, new sessions take the place of those in use. The watches of
    these end soon, and begin again with the new one; calls that are under way end first.
    """

    config: ClusterConfig
    opened: Opened
    """Those in use."""
    open: Callable[[ssl.SSLContext], Opened] = attrs.field(kw_only=True)
    """Makes others; this sends nothing."""
    flights: SingleFlight = attrs.field(kw_only=True)
    patience: float = attrs.field(kw_only=True)
    """Seconds for which calls that are under way may use connections with an earlier certificate."""
    _pair: KeyPair | None = attrs.field(default=None, init=False)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _calls: set[object] = attrs.field(factory=set, init=False)
    """Those that are under way."""
    _call_ended: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __repr__(self) -> str:
        return f"<Sessions: {'closed' if self.opened.calls.closed else 'open'}, {len(self._calls)} calls>"

    async def of(self, pair: KeyPair | None) -> Opened:
        """The sessions with this client certificate; None: with that of the configuration, if it has one.

        Raises:
            Unauthorized: the certificate cannot be used.
        """
        if pair == self._pair:
            return self.opened
        async with self._lock:
            if pair != self._pair:
                tls = await self._tls(pair)
                if not self.opened.calls.closed:  # by the end of the client
                    self.flights.begin(partial(self._retire, self.opened))
                    self.opened, self._pair = self.open(tls), pair
        return self.opened

    @contextmanager
    def call(self) -> Iterator[None]:
        """Surrounds a call, or the begin of a stream: the connections that it uses stay open."""
        call = object()
        self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)
            self._call_ended.set()

    async def _tls(self, pair: KeyPair | None) -> ssl.SSLContext:
        try:
            return await anyio.to_thread.run_sync(ssl_context, self.config, pair)
        except KubeconfigError as error:
            raise no_credentials(str(error)) from None

    async def _retire(self, earlier: Opened) -> None:
        """Close sessions that are not used any more."""
        begun = set(self._calls)
        try:
            with anyio.move_on_after(self.patience):
                await anyio.sleep(SETTLED)
                earlier.end_streams()
                while begun & self._calls:
                    if self._call_ended.is_set():
                        self._call_ended = anyio.Event()
                    await self._call_ended.wait()
        finally:
            earlier.end_streams()  # those that have begun meanwhile
            await earlier.close()
