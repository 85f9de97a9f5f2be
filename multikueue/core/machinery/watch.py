"""List and watch, as a state machine: what to ask the server next, given how the last answer ended."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from multikueue.core.model.objects import version_number
from multikueue.errors import (
    ApiError,
    DeadlineExceeded,
    Expired,
    Forbidden,
    NotFound,
    TooManyRequests,
    Unauthorized,
)


@attrs.frozen
class NeedsList:
    """Nothing is known, or the server has forgotten what came after what is known."""


@attrs.frozen
class Resuming:
    """Everything up to `resource_version` is known, if the server's history is still the one it was read from.

    A server that was restored from a backup, or that another one took the place of, may be behind what is known. It
    would accept a watch from there and keep silent: about everything that happens until it has come that far. So it is
    asked where it is before a watch goes on after a break.
    """

    resource_version: str
    silent: bool = False
    """Whether the watch had nothing to say. One whose events are held up on the way says nothing either, so what is
    there is read again once the server has answered."""


@attrs.frozen
class Following:
    """Everything up to `resource_version` is known, and a watch can go on from there."""

    resource_version: str


Position: TypeAlias = NeedsList | Resuming | Following


@attrs.frozen
class Listed:
    """A list was read completely."""

    resource_version: str


@attrs.frozen
class Confirmed:
    """The server said where its history is now."""

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
    """A stream ended in order. Servers end one every half hour or so."""


@attrs.frozen
class Broke:
    """A stream was reset: by a proxy, or because the server is gone."""


@attrs.frozen
class FellSilent:
    """A stream said nothing for so long that it may be dead.

    API servers send bookmarks every minute, but for no kind of which nothing has changed since they started. So a
    steady stream's silence is no failure before the server has been asked, and has not answered either.
    """


@attrs.frozen
class HistoryLost:
    """The server answered 410: what comes after our resourceVersion is not kept any more."""


@attrs.frozen
class Failed:
    """No list, no stream, or no answer: nothing says that the server can be reached."""


Outcome: TypeAlias = Listed | Confirmed | Progressed | Steadied | Ended | Broke | FellSilent | HistoryLost | Failed


@attrs.frozen
class WatchState:
    """Where a cache is, and how well it is going.

    * It resumes where it was; only a 410, a server that is behind what is known, or silence makes it list again.
    * What is followed never goes back, but by a list.
    * Only a steady stream forgives failures. A list does not: a server may answer lists and refuse to be watched.
    * The end of a steady stream is no failure: the next one is opened at once. So is the list after a first 410.
    * Everything else that ends is a failure, to be followed by a wait. So without a wait there are at most four
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
            case Confirmed(version):
                return self._confirmed(version)
            case Progressed(version):
                # Not `evolve`, which takes four times as long: this happens with every event.
                return WatchState(self._progressed(version), self.failures, self.losses, self.steady)
            case Steadied():
                return WatchState(self.position, steady=True)
            case Ended() if self.steady:
                return attrs.evolve(self, steady=False)
            case Broke() if self.steady:
                return attrs.evolve(self, position=self._in_doubt(), steady=False)
            case FellSilent() if self.steady:
                return attrs.evolve(self, position=self._in_doubt(silent=True), steady=False)
            case HistoryLost():
                again = 1 if self.losses else 0
                return WatchState(NeedsList(), self.failures + again, self.losses + 1)
            case _:
                return attrs.evolve(self, position=self._in_doubt(), failures=self.failures + 1, steady=False)

    def _confirmed(self, present: str) -> WatchState:
        match self.position:
            case Resuming(known) if version_number(present) < version_number(known):
                return self.step(HistoryLost())
            case Resuming(known, silent):
                return attrs.evolve(self, position=NeedsList() if silent else Following(known))
            case _:
                return self

    def _in_doubt(self, *, silent: bool = False) -> Position:
        match self.position:
            case Following(known):
                return Resuming(known, silent)
            case position:
                return position

    def _progressed(self, version: str) -> Position:
        match self.position:
            case Following(known) if version_number(version) > version_number(known):
                return Following(version)
            case position:
                return position


def ending(failure: ApiError | None, *, steady: bool) -> Outcome:
    """What the end of a watch means."""
    match failure:
        case None:
            return Ended()
        case Expired():
            return HistoryLost()
        case DeadlineExceeded():
            return FellSilent()
        case NotFound() | Forbidden() | Unauthorized() | TooManyRequests():
            return Failed()  # a "no": that an earlier stream was steady says nothing about now
        case _:
            return Broke() if steady else Failed()
