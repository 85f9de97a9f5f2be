"""List and watch, as a state machine: what to ask the server next, given how the last answer ended."""

from __future__ import annotations

from typing import TypeAlias

import attrs


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
class Steadied:
    """A stream has been open for so long that it counts as a success, whether or not it had anything to say."""


@attrs.frozen
class Ended:
    """A stream ended or broke. Servers end one every half hour or so, and proxies reset them."""


@attrs.frozen
class HistoryLost:
    """The server answered 410: what comes after our resourceVersion is not kept any more."""


@attrs.frozen
class Failed:
    """No list, no stream, or a stream that fell silent: nothing says that the server can be reached."""


Outcome: TypeAlias = Listed | Progressed | Steadied | Ended | HistoryLost | Failed


@attrs.frozen
class WatchState:
    """Where a cache is, and how well it is going.

    * From `Following` it resumes where it was; only a 410 makes it list again.
    * Only a steady stream forgives failures. A list does not: a server may answer lists and refuse to be watched.
    * The end of a steady stream is no failure: the next one is opened at once. So is the list after a first 410.
    * Everything else that ends is a failure, to be followed by a wait. So without a wait there are at most three
      requests per steady stream: no server can make a client ask in a tight loop.
    """

    position: Position = NeedsList()
    failures: int = 0
    """Failures in a row."""
    losses: int = 0
    """Answers of 410 since the last steady stream."""
    steady: bool = False
    """Whether the stream that is open is steady."""

    def step(self, outcome: Outcome) -> WatchState:
        """The state after `outcome`. If `failures` grew, wait before the next request."""
        match outcome:
            case Listed(version):
                return attrs.evolve(self, position=Following(version), steady=False)
            case Progressed(version):
                return attrs.evolve(self, position=Following(version)) if version else self
            case Steadied():
                return WatchState(self.position, steady=True)
            case Ended() if self.steady:
                return attrs.evolve(self, steady=False)
            case HistoryLost():
                again = 1 if self.losses else 0
                return WatchState(NeedsList(), self.failures + again, self.losses + 1)
            case _:
                return attrs.evolve(self, failures=self.failures + 1, steady=False)
