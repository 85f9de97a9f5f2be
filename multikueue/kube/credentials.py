"""Bearer tokens: given, read from a file that is rotated, or printed by a plugin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
import attrs

from multikueue.errors import Unauthorized
from multikueue.kube.config import ClusterConfig, ExecPlugin

TOKEN_FILE_PERIOD: Final = 60.0
"""Seconds between looks at a token file: kubelet rotates it minutes before the old one expires."""
PLUGIN_DEADLINE: Final = 60.0
"""Seconds a plugin may take: it may ask a person's identity provider, but never block a cluster for good."""


class TokenSource(Protocol):
    """Where bearer tokens come from."""

    async def token(self, refused: str | None = None) -> str:
        """The token to use; empty for none.

        Args:
            refused: a token the server has just answered 401 to: get another one if there is one.
        """
        ...


@attrs.frozen
class StaticToken:
    """A token that never changes."""

    value: str = attrs.field(repr=False)

    async def token(self, refused: str | None = None) -> str:
        """See `TokenSource`."""
        del refused
        return self.value


@attrs.define(eq=False)
class TokenFile:
    """A token in a file that somebody else rotates."""

    path: Path
    _value: str = attrs.field(default="", init=False, repr=False)
    _read_at: float = attrs.field(default=float("-inf"), init=False)

    async def token(self, refused: str | None = None) -> str:
        """See `TokenSource`.

        Raises:
            Unauthorized: the file cannot be read.
        """
        now = anyio.current_time()
        if now - self._read_at >= TOKEN_FILE_PERIOD or (refused is not None and refused == self._value):
            try:
                text = await anyio.to_thread.run_sync(self.path.read_text)
            except (OSError, UnicodeDecodeError) as error:
                raise Unauthorized(f"token file {self.path} cannot be read") from error
            self._value, self._read_at = text.strip(), now
        return self._value


@attrs.define(eq=False)
class PluginToken:
    """A token from an exec plugin (or a legacy auth provider), loaded by kubernetes-asyncio.

    However many requests need a new one at once, the plugin runs once.
    """

    plugin: ExecPlugin
    _loader: Any = attrs.field(default=None, init=False, repr=False)
    _value: str = attrs.field(default="", init=False, repr=False)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    async def token(self, refused: str | None = None) -> str:
        """See `TokenSource`.

        Raises:
            Unauthorized: the plugin failed or took too long.
        """
        async with self._lock:
            if refused is not None and refused == self._value and self._loader is not None:
                self._loader = None  # forget what it cached: the server no longer takes it
            try:
                with anyio.fail_after(PLUGIN_DEADLINE):
                    self._value = await self._load()
            except TimeoutError as error:
                raise Unauthorized(f"the credential plugin did not answer within {PLUGIN_DEADLINE:.0f} s") from error
            except Exception as error:  # the loader raises whatever the plugin and its parsing raise
                kind = type(error).__name__
                raise Unauthorized(f"the credential plugin of context {self.plugin.context} failed ({kind})") from error
            return self._value

    async def _load(self) -> str:
        # Imported late: it costs a third of a second, and only plugins need it.
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader

        if self._loader is None:
            document = json.loads(self.plugin.kubeconfig)
            self._loader = KubeConfigLoader(config_dict=document, active_context=self.plugin.context)
        await self._loader.load_from_exec_plugin()
        return str(getattr(self._loader, "token", "") or "").removeprefix("Bearer ").strip()


def token_source(config: ClusterConfig) -> TokenSource:
    """The source a configuration asks for."""
    if config.exec_plugin is not None:
        return PluginToken(config.exec_plugin)
    if config.token_file and not config.token:
        return TokenFile(Path(config.token_file))
    return StaticToken(config.token)
