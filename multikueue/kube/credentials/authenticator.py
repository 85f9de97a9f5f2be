"""What exec plugins have printed, kept for as long as it is good and shared by all connections with that plugin."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import anyio
import attrs

from multikueue.errors import NotSent, Unauthorized
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.credentials.exec_run import no_credentials, run_plugin
from multikueue.kube.http.single_flight import Flight, SingleFlight
from multikueue.logs import get_logger

PAUSE: Final = 5.0
"""Seconds between runs of a plugin that failed, or whose credential was refused: it may call a cloud's API. The pause
doubles with each failure, up to `LONGEST_PAUSE`."""
LONGEST_PAUSE: Final = 60.0
EARLY: Final = 60.0
"""A credential is renewed so many seconds before it expires, or a tenth of its life before if that is more. Of one that
lives for less than two minutes half the life is used."""
PATIENCE: Final = 25.0
"""Seconds that a request waits for a run. Less than a call's deadline, so that its error can name the plugin."""
RUNS: Final = 16
"""Plugins that run at the same time."""
KEPT: Final = 900.0
"""Seconds for which a credential is kept that no connection asks for: a worker may be out of reach for a while."""

log = get_logger(__name__)


@attrs.frozen
class PrintedCredential:
    """What a plugin printed, and until when it is used. Times are on the loop's clock."""

    credential: Credential | None = None
    """None: the plugin has not printed one yet."""
    renew_at: float = float("-inf")
    ends_at: float = float("-inf")
    refused: bool = False
    """Whether a server has answered with 401 to it."""


def held(credential: Credential, now: float, left: float, max_age: float, fraction: float) -> PrintedCredential:
    """When to renew a credential, and until when to use it.

    Args:
        credential: what the plugin printed.
        now: on the loop's clock.
        left: seconds until it expires; infinity: it does not say.
        max_age: seconds after which one that does not say is renewed.
        fraction: between 0 and 1, drawn: how many tenths of the margin earlier, so that not all are renewed at once.
    """
    if left == float("inf"):
        return PrintedCredential(credential, now + max_age, float("inf"))
    margin = min(max(EARLY, left / 10) * (1 + fraction / 10), left / 2)
    return PrintedCredential(credential, now + left - margin, now + left)


@attrs.define(eq=False)
class Authenticators:
    """The authenticators of the exec plugins of a process: one for each value. Share one of these between clients.

    It has no tasks of its own: each run belongs to the client that needs it first. Another client that waits for that
    run starts its own when the first is closed.
    """

    max_age: float = float("inf")
    """Seconds after which a credential that does not say when it expires is renewed; infinity: once it is refused."""
    run: Callable[[ExecPlugin], Awaitable[Credential]] = attrs.field(default=run_plugin, kw_only=True)
    clock: Callable[[], datetime] = attrs.field(default=lambda: datetime.now(UTC), kw_only=True)
    """The wall clock, for the expiry that plugins print."""
    fraction: Callable[[], float] = attrs.field(default=random.random, kw_only=True)
    places: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(RUNS), kw_only=True)
    _known: dict[ExecPlugin, Authenticator] = attrs.field(factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<Authenticators: {len(self._known)} plugins>"

    def get(self, plugin: ExecPlugin) -> Authenticator:
        """The authenticator of a plugin. Those that nobody has asked for `KEPT` seconds are forgotten."""
        old = anyio.current_time() - KEPT
        for unused in [plugin for plugin, known in self._known.items() if known.asked_at < old]:
            del self._known[unused]
        if plugin not in self._known:
            self._known[plugin] = Authenticator(plugin, self)
        return self._known[plugin]


@attrs.define(eq=False)
class Authenticator:
    """The credential of one exec plugin.

    * A run is a single flight: it serves all requests that wait, and it goes on when they are cancelled.
    * A credential is renewed shortly before it expires. It is used until it expires or the server refuses it, so a
      plugin that is slow or fails during the renewal does no harm.
    """

    plugin: ExecPlugin
    shared: Authenticators
    asked_at: float = attrs.field(factory=anyio.current_time, init=False)
    _held: PrintedCredential = attrs.field(factory=PrintedCredential, init=False)
    _renewal: Flight[None] | None = attrs.field(default=None, init=False)
    """The last run."""
    _running: bool = attrs.field(default=False, init=False)
    _failures: int = attrs.field(default=0, init=False)
    """Since the last run that printed a credential."""
    _pause_until: float = attrs.field(default=float("-inf"), init=False)

    def __repr__(self) -> str:
        state = "has none yet" if self._held.credential is None else "has one"
        return f"<Authenticator {self.plugin.command}: {state}>"

    async def credential(self, flights: SingleFlight, refused: Credential | None = None) -> Credential:
        """See `CredentialSource`.

        A server that refuses what is good elsewhere delays its own client alone.

        Args:
            flights: of the client, for a run that is needed.
            refused: the credential, of those that this has returned, that the client's server answered with 401 last.
        """
        self.asked_at = anyio.current_time()
        if refused is not None and refused is self._held.credential:
            self._held = attrs.evolve(self._held, refused=True)
        with anyio.move_on_after(PATIENCE):
            while True:
                if self._due():
                    self._renewal = flights.begin(self._renew)
                try:
                    if self._renewal is not None and not self._usable(refused):
                        await self._renewal.result()
                    return self._held.credential or Credential()
                except NotSent:  # the client is closed whose run it was: this one runs the plugin, or is closed, too
                    self._renewal, self._pause_until = None, float("-inf")
        raise no_credentials(f"exec: executable {self.plugin.command} {self._why_waiting()}")

    def _why_waiting(self) -> str:
        if self._running:
            return f"has not answered for {PATIENCE:.0f} s"
        return f"waits for its turn: {self.shared.places.borrowed_tokens} others are running"

    def _usable(self, refused: Credential | None = None) -> bool:
        return self._held.credential is not refused and anyio.current_time() < self._held.ends_at

    def _due(self) -> bool:
        now = anyio.current_time()
        if (self._renewal is not None and not self._renewal.ended) or now < self._pause_until:
            return False
        return self._held.refused or now >= self._held.renew_at

    async def _renew(self) -> None:
        """Run the plugin and hold what it prints.

        Raises:
            Unauthorized: the plugin failed.
        """
        try:
            credential = await self._run()
        except Unauthorized as error:
            if self._usable():
                log.warning("credential not renewed", error=str(error))
            self._pause(min(PAUSE * 2**self._failures, LONGEST_PAUSE))
            self._failures = min(self._failures + 1, 10)
            raise
        expires, now = credential.expires, anyio.current_time()
        left = float("inf") if expires is None else (expires - self.shared.clock()).total_seconds()
        if self._held.refused or left <= 0:
            self._pause(PAUSE)
        self._failures = 0
        # The server may accept the same one now that it has refused before.
        self._held = held(credential, now, left, self.shared.max_age, self.shared.fraction())

    async def _run(self) -> Credential:
        async with self.shared.places:
            self._running = True
            try:
                return await self.shared.run(self.plugin)
            finally:
                self._running = False

    def _pause(self, seconds: float) -> None:
        self._pause_until = anyio.current_time() + seconds
