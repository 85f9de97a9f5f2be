"""What happens to the connections to a cluster, and what is to be done about it: the words of `cluster_state`."""

from __future__ import annotations

from typing import Generic, Protocol, TypeAlias, TypeVar

import attrs


class Configuration(Protocol):
    """How to reach a cluster; equal if nothing about that differs."""

    @property
    def server(self) -> str:
        """Its address."""
        ...


C = TypeVar("C", bound=Configuration)


@attrs.frozen
class Link(Generic[C]):
    """A connection with one configuration. No number is used twice."""

    number: int
    config: C = attrs.field(repr=False)


# How one connection does.


@attrs.frozen
class Reading:
    """Its deciding watch is being opened."""


@attrs.frozen
class Following:
    """Its deciding watch is open."""


@attrs.frozen
class Failing:
    """Its deciding watch cannot be opened, so many times in a row. `retry_in`: seconds from when this is new."""

    failures: int
    error: str
    retry_in: float


Watch: TypeAlias = Reading | Following | Failing


@attrs.frozen
class Health:
    """How the deciding watch does, and whether the first answer is in for everything else that is read, too."""

    watch: Watch
    complete: bool


# Phases: which connections there are.


@attrs.frozen
class Unconfigured:
    """No configuration may be used."""


@attrs.frozen
class Serving(Generic[C]):
    """One connection decides whether the cluster is connected."""

    line: Link[C]


@attrs.frozen
class Trying(Generic[C]):
    """One decides, and a newer configuration is tried beside it."""

    line: Link[C]
    trial: Link[C]


@attrs.frozen
class Ended(Generic[C]):
    """The connection with the wanted configuration ended with an error. It is opened again if there is a back-off."""

    link: Link[C]


Phase: TypeAlias = Unconfigured | Serving[C] | Trying[C] | Ended[C]


# Events.


@attrs.frozen
class Assigned(Generic[C]):
    """This configuration is wanted."""

    config: C = attrs.field(repr=False)


@attrs.frozen
class Refused:
    """No configuration may be used. `reason`: Kueue's, for the Active condition."""

    error: str
    reason: str


@attrs.frozen
class Opened:
    """There is a client for a connection, so it can be asked what it has read."""

    number: int


@attrs.frozen
class Reported:
    """The health of a connection, changed or not."""

    number: int
    health: Health


@attrs.frozen
class ClientFailed:
    """No client can be made for a connection."""

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


Event: TypeAlias = Assigned[C] | Refused | Opened | Reported | ClientFailed | Crashed | BackOffEnded


# Commands.


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
class Adopt:
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
    """Tell the user that the connection, or what it has read, may have changed."""


Command: TypeAlias = Open[C] | Retire | Stop | Adopt | Forget | BackOff | Notify
