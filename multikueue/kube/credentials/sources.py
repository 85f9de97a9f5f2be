"""The credentials of a configuration: fixed, from a file that is rotated, or from an exec plugin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import attrs

from multikueue.errors import Unauthorized
from multikueue.kube.config import ClusterConfig
from multikueue.kube.credentials.credential import Credential, CredentialSource
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.credentials.exec_run import run_plugin
from multikueue.kube.kubeconfig_document import is_token
from multikueue.kube.single_flight import Flight, SingleFlight
from multikueue.logs import get_logger

TOKEN_FILE_PERIOD: Final = 60.0
"""Seconds between reads of a token file. kubelet rotates it minutes before the old token expires."""
PLUGIN_PAUSE: Final = 5.0
"""Seconds between runs of a plugin that failed or whose token was refused: it may call a cloud's API."""
EARLY: Final = 60.0
"""A token is renewed this many seconds before it expires, but at most a tenth of its lifetime before."""

log = get_logger(__name__)


@attrs.frozen
class StaticToken:
    """A token that never changes; empty: none."""

    value: str = attrs.field(repr=False)
    _credential: Credential = attrs.field(init=False, repr=False, eq=False)

    @_credential.default
    def _sent(self) -> Credential:
        return Credential(self.value)

    async def credential(self, refused: Credential | None = None) -> Credential:
        """See `CredentialSource`."""
        return self._credential


@attrs.define(eq=False)
class TokenFile:
    """A token in a file that another process rotates."""

    path: Path
    _held: Credential = attrs.field(factory=Credential, init=False)
    _read_at: float = attrs.field(default=float("-inf"), init=False)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    def __repr__(self) -> str:
        return f"<TokenFile {self.path}: {'has a token' if self._held.token else 'no token'}>"

    async def credential(self, refused: Credential | None = None) -> Credential:
        """See `CredentialSource`."""
        if self._current(refused):
            return self._held
        async with self._lock:
            if not self._current(refused):
                await self._renew(refused)
        return self._held

    def _current(self, refused: Credential | None) -> bool:
        fresh = anyio.current_time() - self._read_at < TOKEN_FILE_PERIOD
        return fresh and (refused is None or refused != self._held)

    async def _renew(self, refused: Credential | None) -> None:
        try:
            self._held = Credential(await self._read())
        except Unauthorized:
            if not self._held.token or refused == self._held:
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
class Held:
    """What a plugin printed, and until when it is used. Times are on the loop's clock."""

    credential: Credential | None = None
    """None: the plugin has not printed one yet."""
    renew_at: float = float("-inf")
    ends_at: float = float("-inf")
    refused: bool = False
    """Whether the server has answered with 401 to it."""


@attrs.define(eq=False)
class PluginCredential:
    """A credential from an exec plugin.

    * A run is a single flight: it serves all requests that wait, and it goes on when they give up.
    * A credential is renewed shortly before it expires. It is used until it expires or the server refuses it, so a
      plugin that is slow or fails during the renewal does no harm.
    """

    plugin: ExecPlugin
    flights: SingleFlight
    clock: Callable[[], datetime] = attrs.field(default=lambda: datetime.now(UTC), kw_only=True)
    """The wall clock, for the expiry that the plugin prints."""
    run: Callable[[ExecPlugin], Awaitable[Credential]] = attrs.field(default=run_plugin, kw_only=True)
    _held: Held = attrs.field(factory=Held, init=False)
    _renewal: Flight[None] | None = attrs.field(default=None, init=False)
    """The last run."""
    _pause_until: float = attrs.field(default=float("-inf"), init=False)

    def __repr__(self) -> str:
        state = "has none yet" if self._held.credential is None else "has one"
        return f"<PluginCredential {self.plugin.command}: {state}>"

    async def credential(self, refused: Credential | None = None) -> Credential:
        """See `CredentialSource`."""
        if refused is not None and refused == self._held.credential:
            self._held = attrs.evolve(self._held, refused=True)
        if self._due():
            self._renewal = self.flights.begin(self._renew)
        if self._renewal is not None and not self._good_until(self._held.ends_at):
            await self._renewal.result()
        return self._held.credential or Credential()

    def _good_until(self, end: float) -> bool:
        return not self._held.refused and anyio.current_time() < end

    def _due(self) -> bool:
        if self._renewal is not None and not self._renewal.ended:
            return False
        return not self._good_until(self._held.renew_at) and anyio.current_time() >= self._pause_until

    async def _renew(self) -> None:
        """Run the plugin and hold what it prints.

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
        self._held = self._received(credential)  # the server may accept the same one now

    def _pause(self) -> None:
        self._pause_until = anyio.current_time() + PLUGIN_PAUSE

    def _received(self, credential: Credential) -> Held:
        expires = credential.expires
        left = float("inf") if expires is None else (expires - self.clock()).total_seconds()
        ends_at = anyio.current_time() + left
        return Held(credential, renew_at=ends_at - min(EARLY, left / 10), ends_at=ends_at)


def credential_source(config: ClusterConfig, flights: SingleFlight) -> CredentialSource:
    """The source of credentials for a configuration."""
    if config.holder is not None:
        return config.holder
    if config.exec_plugin is not None:
        return PluginCredential(config.exec_plugin, flights)
    if config.token_file:
        return TokenFile(Path(config.token_file))
    return StaticToken(config.token)
