"""The connections to one cluster, as a state machine: what to do when a configuration, a report or an error comes in.

A configuration for another server takes effect at once, and what was known is forgotten. One for the same server is
tried beside the connection in use, and takes its place once everything has been read with it, or once it has failed.
So nothing ever looks gone that was only not read again yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import attrs

from multikueue.core.machinery.connection import Connection, Failing, Health, OpeningWatch, OpenWatch, Watch

TRIAL_FAILURES: Final = 3
"""Failures in a row after which a new configuration takes the place of one that works: one may be chance, and whoever
changed it must see that it does not work."""
REPAIR: Final = 60.0
"""Seconds until a cluster is connected to again whose connection an unexpected exception has ended."""
CRASHED: Final = "internal error: see the log of multikueue"
"""What users are told of that."""


class Configuration(Protocol):
    """How to reach a cluster; equal if nothing about that differs."""

    @property
    def server(self) -> str:
        """Its address."""


C = TypeVar("C", bound=Configuration)


@attrs.frozen
class Link(Generic[C]):
    """A connection with one configuration. No number is used twice."""

    number: int
    config: C = attrs.field(repr=False)


@attrs.frozen
class Unconfigured:
    """No configuration may be used."""


@attrs.frozen
class Serving(Generic[C]):
    """One connection decides whether the cluster is connected. A newer configuration may be tried beside it."""

    current: Link[C]
    trial: Link[C] | None = None


@attrs.frozen
class ConnectionEnded(Generic[C]):
    """The connection with the wanted configuration ended with an error. It is opened again if there is a back-off."""

    link: Link[C]


Phase: TypeAlias = Unconfigured | Serving[C] | ConnectionEnded[C]


@attrs.frozen
class Assigned(Generic[C]):
    """This configuration is wanted."""

    config: C = attrs.field(repr=False)


@attrs.frozen
class Refused:
    """No configuration may be used. `reason`: Kueue's, for the Active condition. `cause`: a `Cause`, or empty."""

    error: str
    reason: str
    cause: str = ""


@attrs.frozen
class Reported:
    """The health of a connection, changed or not."""

    number: int
    health: Health


@attrs.frozen
class ClientFailed:
    """No client can be made for a connection. That is no chance failure, so all connections are closed at once."""

    number: int
    error: str


@attrs.frozen
class Crashed:
    """An unexpected exception ended a connection."""

    number: int


@attrs.frozen
class BackOffEnded:
    """The time is over for which to leave a cluster alone after this connection."""

    number: int


Event: TypeAlias = Assigned[C] | Refused | Reported | ClientFailed | Crashed | BackOffEnded


@attrs.frozen
class Open(Generic[C]):
    """Open a connection."""

    link: Link[C]


@attrs.frozen
class Retire:
    """Stop watching through a connection, but let calls under way end."""

    number: int


@attrs.frozen
class Stop:
    """Close a connection at once."""

    number: int


@attrs.frozen
class AdoptKnowledge:
    """What this connection has read is what is known from now on."""

    number: int


@attrs.frozen
class Forget:
    """Nothing is known from now on."""


@attrs.frozen
class BackOff:
    """Report `BackOffEnded` for this connection after some seconds."""

    number: int
    seconds: float


@attrs.frozen
class Notify:
    """Tell the user that the connection, or what it has read, may have changed.

    Always the last command: the user may send the next event before the call returns.
    """


Command: TypeAlias = Open[C] | Retire | Stop | AdoptKnowledge | Forget | BackOff | Notify


@attrs.frozen
class ClusterState(Generic[C]):
    """How one cluster is reached, and which connection has read what is known of it."""

    connection: Connection = attrs.field(factory=Connection)
    phase: Phase[C] = attrs.field(factory=Unconfigured)
    known: Link[C] | None = None
    """Which connection has read what is known. It may be closed by now."""
    heard: Watch = attrs.field(factory=OpeningWatch)
    """What the deciding connection reported last."""
    opened: int = 0
    """How many connections there have been."""

    def step(self, event: Event[C], now: datetime) -> Transition[C]:
        """The state after an event, and what to do, in this order.

        Args:
            event: what happened; that of a connection that has been replaced changes nothing.
            now: by the wall clock.
        """
        match event, self.phase:
            case Assigned(config), _ if config != self.wanted:
                return self._assigned(config)
            case Refused(error, reason, cause), _:
                return self._failed(Unconfigured(), self.connection.failed(error, now, reason=reason, cause=cause))
            case Reported(number, health), Serving(current, Link(tried) as trial) if number == tried:
                return self._tried(current, trial, health, now)
            case Reported(number, health), Serving(current) if number == current.number:
                return self._heard(current, health, now)
            case ClientFailed(number, error), _ if number in self._numbers:
                return self._failed(ConnectionEnded(self.links[-1]), self.connection.failed(error, now))
            case Crashed(number), _ if number in self._numbers:
                lost = self.connection.failed(CRASHED, now, failures=1, retry_in=REPAIR)
                state, commands = self._failed(ConnectionEnded(self.links[-1]), lost)
                return state, [BackOff(self.links[-1].number, REPAIR), *commands]
            case BackOffEnded(number), ConnectionEnded(link) if number == link.number:
                return self._open(link.config)
            case _:
                return self, []

    @property
    def links(self) -> list[Link[C]]:
        """The connections that are open: the deciding one, and the one that is tried."""
        if not isinstance(self.phase, Serving):
            return []
        return [link for link in (self.phase.current, self.phase.trial) if link is not None]

    @property
    def wanted(self) -> C | None:
        """The configuration that is wanted; None if none may be used."""
        links = [self.phase.link] if isinstance(self.phase, ConnectionEnded) else self.links
        return links[-1].config if links else None

    @property
    def usable(self) -> bool:
        """Whether what is known was read through the deciding connection: requests can be sent through that."""
        return self.known in self.links[:1]

    @property
    def _numbers(self) -> list[int]:
        return [link.number for link in self.links]

    def _assigned(self, config: C) -> Transition[C]:
        stops = [*map(Stop, self._numbers)]
        match self.phase:
            case Serving(current) if config == current.config:  # a trial was going on
                return attrs.evolve(self, phase=Serving(current)), stops[1:]
            case _ if self.known is not None and config.server != self.known.config.server:
                unheard = Connection(lost_since=self.connection.lost_since)
                state, commands = attrs.evolve(self, connection=unheard, known=None)._open(config)
                return state, [*stops, *commands, Forget(), Notify()]
            case Serving(current) if self.known is not None:
                trial = Link(self.opened + 1, config)
                state = attrs.evolve(self, phase=Serving(current, trial), opened=trial.number)
                return state, [*stops[1:], Open(trial)]
            case _:
                state, commands = self._open(config)
                return state, [*stops, *commands]

    def _tried(self, current: Link[C], trial: Link[C], health: Health, now: datetime) -> Transition[C]:
        limit = TRIAL_FAILURES if self.connection.connected else 1
        if not health.complete and not (isinstance(health.watch, Failing) and health.watch.failures >= limit):
            seen = attrs.evolve(self, connection=self.connection.sighted())
            return (seen, [Notify()]) if isinstance(health.watch, OpenWatch) and seen != self else (self, [])
        state, commands = attrs.evolve(self, phase=Serving(trial), heard=OpeningWatch())._heard(trial, health, now)
        return state, [Retire(current.number), *commands]

    def _heard(self, current: Link[C], health: Health, now: datetime) -> Transition[C]:
        known = current if health.complete or self.known is None else self.known
        connection = self.connection
        match health.watch:
            case Failing() as failing if failing != self.heard:
                connection = _after_failure(connection, failing, now)
            case OpenWatch():
                connection = connection.succeeded() if known == current else connection.sighted()
        adopted = [AdoptKnowledge(current.number)] if known != self.known else []
        state = attrs.evolve(self, connection=connection, known=known, heard=health.watch)
        return state, [*adopted, Notify()]

    def _failed(self, phase: Phase[C], lost: Connection) -> Transition[C]:
        """Without another configuration, or for a while, nothing can be done. What is known stays."""
        state = attrs.evolve(self, phase=phase, connection=lost)
        return state, [] if state == self else [*map(Stop, self._numbers), Notify()]

    def _open(self, config: C) -> Transition[C]:
        link = Link(self.opened + 1, config)
        return attrs.evolve(self, phase=Serving(link), heard=OpeningWatch(), opened=link.number), [Open(link)]


def _after_failure(connection: Connection, failing: Failing, now: datetime) -> Connection:
    failures, retry_in = failing.failures, failing.retry_in
    if failing.unreadable:
        return connection.unread(failing.error, now, failures=failures, retry_in=retry_in)
    return connection.failed(
        failing.error,
        now,
        failures=failures,
        retry_in=retry_in,
        silent_for=failing.silent_for,
        cause=failing.cause,
    )


Transition: TypeAlias = tuple[ClusterState[C], Sequence[Command[C]]]
