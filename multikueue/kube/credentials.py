"""Bearer tokens: static, from a file that is rotated, or from an exec plugin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import anyio
import anyio.to_thread
import attrs

from multikueue.errors import Unauthorized
from multikueue.kube.config import ClusterConfig, ExecPlugin
from multikueue.kube.kubeconfig_document import is_token
from multikueue.kube.plugin import Credential, run_plugin
from multikueue.kube.single_flight import Flight, SingleFlight
from multikueue.logs import get_logger

TOKEN_FILE_PERIOD: Final = 60.0
"""Seconds between reads of a token file. kubelet rotates it minutes before the old token expires."""
PLUGIN_PAUSE: Final = 5.0
"""Seconds between runs of a plugin that failed or whose token was refused: it may call a cloud's API."""
EARLY: Final = 60.0
"""A token is renewed this many seconds before it expires, but at most a tenth of its lifetime before."""

log = get_logger(__name__)


class TokenSource(Protocol):
    """A source of bearer tokens."""

    async def token(self, refused: str | None = None) -> str:
        """The token to use; empty: none.

        Args:
            refused: a token that the server has just answered with 401: return a newer one if there is one.

        Raises:
            Unauthorized: there is no token.
        """


@attrs.frozen
class StaticToken:
    """A token that never changes."""

    value: str = attrs.field(repr=False)

    async def token(self, refused: str | None = None) -> str:
        """See `TokenSource`."""
        return self.value


@attrs.define(eq=False)
class TokenFile:
    """A token in a file that another process rotates."""

    path: Path
    _value: str = attrs.field(default="", init=False)
    _read_at: float = attrs.field(default=float("-inf"), init=False)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    def __repr__(self) -> str:
        return f"<TokenFile {self.path}: {'has a token' if self._value else 'no token'}>"

    async def token(self, refused: str | None = None) -> str:
        """See `TokenSource`."""
        if self._current(refused):
            return self._value
        async with self._lock:
            if not self._current(refused):
                await self._renew(refused)
        return self._value

    def _current(self, refused: str | None) -> bool:
        fresh = anyio.current_time() - self._read_at < TOKEN_FILE_PERIOD
        return fresh and (refused is None or refused != self._value)

    async def _renew(self, refused: str | None) -> None:
        try:
            self._value = await self._read()
        except Unauthorized:
            if not self._value or refused == self._value:
                raise
            # The current token may be valid for minutes. The server answers 401 if it is not.
        self._read_at = anyio.current_time()

    async def _read(self) -> str:
        try:
            text = (await anyio.to_thread.run_sync(self.path.read_text)).strip()
        except (OSError, UnicodeDecodeError):
            raise Unauthorized(f"token file {self.path} cannot be read") from None
        if not text or not is_token(text):
            raise Unauthorized(f"token file {self.path} does not hold a token")
        return text


@attrs.frozen
class HeldToken:
    """A token of a plugin, and until when it is used. Times are on the loop's clock."""

    value: str = attrs.field(default="", repr=False)
    """Empty: no token yet."""
    renew_at: float = float("-inf")
    ends_at: float = float("-inf")
    refused: bool = False
    """Whether the server has answered with 401 to it."""


@attrs.define(eq=False)
class PluginToken:
    """A token from an exec plugin.

    * A run is a single flight: it serves all requests that wait, and it goes on when they give up.
    * A token is renewed shortly before it expires. It is used until it expires or the server refuses it, so a plugin
      that is slow or fails during the renewal does no harm.
    """

    plugin: ExecPlugin
    flights: SingleFlight
    clock: Callable[[], datetime] = attrs.field(default=lambda: datetime.now(UTC), kw_only=True)
    """The wall clock, for the expiry that the plugin prints."""
    run: Callable[[ExecPlugin], Awaitable[Credential]] = attrs.field(default=run_plugin, kw_only=True)
    _held: HeldToken = attrs.field(factory=HeldToken, init=False)
    _renewal: Flight[None] | None = attrs.field(default=None, init=False)
    """The last run."""
    _pause_until: float = attrs.field(default=float("-inf"), init=False)

    def __repr__(self) -> str:
        return f"<PluginToken {self.plugin.command}: {'has a token' if self._held.value else 'no token'}>"

    async def token(self, refused: str | None = None) -> str:
        """See `TokenSource`."""
        if refused is not None and refused == self._held.value:
            self._held = attrs.evolve(self._held, refused=True)
        if self._due():
            self._renewal = self.flights.begin(self._renew)
        if self._renewal is not None and not self._good_until(self._held.ends_at):
            await self._renewal.result()
        return self._held.value

    def _good_until(self, end: float) -> bool:
        return not self._held.refused and anyio.current_time() < end

    def _due(self) -> bool:
        if self._renewal is not None and not self._renewal.ended:
            return False
        return not self._good_until(self._held.renew_at) and anyio.current_time() >= self._pause_until

    async def _renew(self) -> None:
        """Run the plugin and hold its token.

        Raises:
            Unauthorized: the plugin failed.
        """
        try:
            credential = await self.run(self.plugin)
        except Unauthorized as error:
            if self._good_until(self._held.ends_at):
                log.warning("token not renewed", error=str(error))
            self._pause()
            raise
        if self._held.refused:
            self._pause()
        self._held = self._received(credential)  # the server may accept the same token now

    def _pause(self) -> None:
        self._pause_until = anyio.current_time() + PLUGIN_PAUSE

    def _received(self, credential: Credential) -> HeldToken:
        expires = credential.expires
        left = float("inf") if expires is None else (expires - self.clock()).total_seconds()
        ends_at = anyio.current_time() + left
        return HeldToken(credential.token, renew_at=ends_at - min(EARLY, left / 10), ends_at=ends_at)


def token_source(config: ClusterConfig, flights: SingleFlight) -> TokenSource:
    """The source of tokens for a configuration."""
    if config.exec_plugin is not None:
        return PluginToken(config.exec_plugin, flights)
    if config.token_file:
        return TokenFile(Path(config.token_file))
    return StaticToken(config.token)
