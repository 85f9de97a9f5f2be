"""List and watch, as a state machine: what to ask the server next, given how the last answer ended."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from multikueue.core.backoff import Backoff


@attrs.frozen
class NeedsList:
    """Nothing is known, or the server has forgotten what came after what is known."""


@attrs.frozen
class Following:
    """Everything up to `resource_version` is known."""

    resource_version: str


Position: TypeAlias = NeedsList | Following


@attrs.frozen
class Listed:
    """A list was read completely."""

    resource_version: str


@attrs.frozen
class Progressed:
    """An event or a bookmark arrived."""

    resource_version: str


@attrs.frozen
class Ended:
    """The server ended the stream, as it does every half hour or so."""

    lasted: float
    """Seconds since the stream was opened."""


@attrs.frozen
class HistoryLost:
    """The server answered 410: what comes after our resourceVersion is not kept any more."""


@attrs.frozen
class Failed:
    """No list, or a stream that broke."""

    lasted: float = 0.0
    """Seconds since the stream was opened; 0 if none was."""


Outcome: TypeAlias = Listed | Progressed | Ended | HistoryLost | Failed


@attrs.frozen
class WatchState:
    """Where a cache is, and how well it is going.

    * From `Following` it resumes where it was; only a 410 makes it list again.
    * A stream that ends or breaks before it is `steady_after` seconds old is a failure: a server that accepts and drops
      connections is not asked in a tight loop.
    """

    position: Position = NeedsList()
    failures: int = 0

    def step(self, outcome: Outcome, backoff: Backoff) -> WatchState:
        """The state after `outcome`."""
        match outcome:
            case Listed(version) | Progressed(version):
                return attrs.evolve(self, position=Following(version))
            case HistoryLost():
                return WatchState(NeedsList(), self.failures)
            case Ended(lasted) if backoff.survived(lasted):
                return WatchState(self.position)
            case Failed(lasted) if lasted > 0 and backoff.survived(lasted):
                return WatchState(self.position, 1)
            case _:
                return WatchState(self.position, self.failures + 1)

    def healthy(self) -> WatchState:
        """The state once a stream has lasted long enough."""
        return self if not self.failures else WatchState(self.position)
