"""The credentials of a configuration: fixed, from a file that is rotated, or from an exec plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import attrs

from multikueue.errors import KubeconfigError, Unauthorized
from multikueue.kube.credentials.authenticator import Authenticator, Authenticators
from multikueue.kube.credentials.credential import Credential, CredentialSource
from multikueue.kube.http.single_flight import SingleFlight
from multikueue.kube.kubeconfigs.config import IN_CLEAR, REASON, ClusterConfig, TokenHook
from multikueue.kube.kubeconfigs.kubeconfig_document import is_token
from multikueue.kube.named_files import named_text

TOKEN_FILE_PERIOD: Final = 60.0
"""Seconds between reads of a token file. kubelet rotates it minutes before the old token expires."""


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
            text = (await anyio.to_thread.run_sync(named_text, self.path)).strip()
        except (OSError, UnicodeDecodeError):
            raise Unauthorized(f"token file {self.path} cannot be read") from None
        if not text or not is_token(text):
            raise Unauthorized(f"token file {self.path} does not hold a token")
        return text


@attrs.frozen
class HookedToken:
    """What a hook of the caller answers: it is asked for each request."""

    hook: TokenHook

    async def credential(self, refused: Credential | None = None) -> Credential:
        """See `CredentialSource`."""
        try:
            value = await self.hook.ask()
        except Exception as error:
            raise Unauthorized(f"refresh_api_key_hook failed: {type(error).__name__}") from error
        scheme, _, token = value.rpartition(" ")
        return Credential(token, scheme=scheme)


@attrs.define(eq=False, repr=False)
class PluginCredential:
    """A credential from an exec plugin, for one client."""

    authenticator: Authenticator
    flights: SingleFlight
    _refused: Credential | None = attrs.field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<PluginCredential of {self.authenticator}>"

    async def credential(self, refused: Credential | None = None) -> Credential:
        """See `CredentialSource`."""
        self._refused = refused or self._refused
        return await self.authenticator.credential(self.flights, self._refused)


def credential_source(config: ClusterConfig, flights: SingleFlight, plugins: Authenticators) -> CredentialSource:
    """The source of credentials for a configuration.

    Raises:
        KubeconfigError: others could read them on the way.
    """
    if config.tells_in_clear:
        raise KubeconfigError(REASON, f"{config.source}: {IN_CLEAR}" if config.source else IN_CLEAR)
    if config.exec_plugin is not None:
        return PluginCredential(plugins.get(config.exec_plugin), flights)
    if config.token_hook is not None:
        return HookedToken(config.token_hook)
    if config.token_file:
        return TokenFile(Path(config.token_file))
    return StaticToken(config.token)
