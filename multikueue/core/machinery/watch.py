"""List and watch as a state machine: which request comes next, given how the last one ended.

It is the pure part of a reflector. `kube.informers.reflector` sends the requests, `informer` waits between them.
"""

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
    Unreadable,
)


@attrs.frozen
class Listing:
    """The next request is a list: nothing is known, or a watch cannot continue from what is known."""

    def __str__(self) -> str:
        return "listing"


@attrs.frozen
class Probing:
    """The next request asks the server for its current resourceVersion.

    A server that was restored from a backup, or replaced by another one, may be behind `resource_version`. It would
    accept a watch from there and send nothing until it has caught up. So an informer asks before it watches again. One
    that does not answer is listed once it does: what has happened meanwhile may come late by a watch.
    """

    resource_version: str
    """Everything up to here is known."""
    silent: bool = False
    """Whether the last watch timed out. A proxy may hold back the events of a watch, so a relist follows the probe."""

    def __str__(self) -> str:
        return f"probing from {self.resource_version}"


@attrs.frozen
class Watching:
    """The next request, or the current one, is a watch from `resource_version`."""

    resource_version: str
    """Everything up to here is known."""
    established: bool = False
    """Whether the watch has been open for so long that it counts as a success."""

    def __str__(self) -> str:
        return f"watching from {self.resource_version}"


Phase: TypeAlias = Listing | Probing | Watching


@attrs.frozen
class Listed:
    """A list was read completely."""

    resource_version: str


@attrs.frozen
class Probed:
    """The server answered with its current resourceVersion."""

    resource_version: str


@attrs.frozen
class EventReceived:
    """The watch sent an event or a bookmark."""

    resource_version: str


@attrs.frozen
class Established:
    """The watch has been open for `Backoff.reset_after`, with or without events."""


@attrs.frozen
class WatchEnded:
    """The server closed the watch in order. API servers do so after 30 to 60 minutes."""


@attrs.frozen
class Disconnected:
    """The connection of the watch broke: a proxy reset it, or the server is gone."""


@attrs.frozen
class TimedOut:
    """The watch sent nothing for its idle time.

    API servers send bookmarks every minute, except for a kind that has not changed since they started. So the silence
    of an established watch is no failure until the server leaves the probe unanswered, too.
    """


@attrs.frozen
class VersionExpired:
    """The server answered 410: it no longer keeps the history after our resourceVersion."""


@attrs.frozen
class EventUnreadable:
    """The watch sent an event that is too long, or not JSON; or it has ended, and there are objects of odd shape.

    A watch from the same resourceVersion would send it again, or nothing. So the next request is a list.
    """


@attrs.frozen
class Failed:
    """The request failed: no list, no watch, or no answer to the probe."""


@attrs.frozen
class ProbeRefused:
    """The server has answered the probe, and listed nothing: it has too much to do, or wants other credentials."""


Outcome: TypeAlias = (
    Listed
    | Probed
    | ProbeRefused
    | EventReceived
    | Established
    | WatchEnded
    | Disconnected
    | TimedOut
    | VersionExpired
    | EventUnreadable
    | Failed
)


@attrs.frozen
class WatchState:
    """What the reflector does next, and the failures so far.

    * A watch resumes from the last resourceVersion. Only a 410, a server that went backwards, silence, a probe without
      an answer, or an event that cannot be read cause a relist.
    * The resourceVersion never decreases, except by a list.
    * Only an established watch resets the failures. A list does not: a server may answer lists and refuse watches.
    * The end of an established watch is no failure. Neither is the first relist after it: that starts at once.
    * Every other end is a failure, and a wait follows it. So there are at most four requests without a wait after an
      established watch (probe, watch, list, watch): no server can cause a tight loop.
    """

    phase: Phase = Listing()
    failures: int = 0
    """Failures in a row."""
    relisted: bool = False
    """Whether a relist has started since the last established watch. The next one is a failure."""

    def step(self, outcome: Outcome) -> WatchState:
        """The state after `outcome`. If `failures` grew, wait before the next request."""
        match self.phase, outcome:
            case _, VersionExpired() | EventUnreadable():
                return self._relist()
            case Watching() as watching, _:
                return self._after_watch(watching, outcome)
            case Probing(known, silent), Probed(version):
                behind = version_number(version) < version_number(known)
                return self._relist() if silent or behind else attrs.evolve(self, phase=Watching(known))
            case Probing(), ProbeRefused():
                return self._failed(self.phase)
            case Listing(), Listed(version):
                return attrs.evolve(self, phase=Watching(version))
            case _:
                return self._failed(Listing())

    def _after_watch(self, watching: Watching, outcome: Outcome) -> WatchState:
        known = watching.resource_version
        match outcome:
            case EventReceived(version):
                if version_number(version) <= version_number(known):
                    return self
                # Not `evolve`, which takes four times as long: this happens with every event.
                return WatchState(Watching(version, watching.established), self.failures, self.relisted)
            case Established():
                return WatchState(Watching(known, established=True))
            case WatchEnded() if watching.established:
                return attrs.evolve(self, phase=Watching(known))
            case Disconnected() | TimedOut() if watching.established:
                return attrs.evolve(self, phase=Probing(known, silent=isinstance(outcome, TimedOut)))
            case _:
                return self._failed(Probing(known))

    def _failed(self, phase: Phase) -> WatchState:
        return attrs.evolve(self, phase=phase, failures=self.failures + 1)

    def _relist(self) -> WatchState:
        return WatchState(Listing(), self.failures + (1 if self.relisted else 0), relisted=True)


def outcome_of(error: ApiError | None) -> Outcome:
    """What the end of a watch means, given the error that ended it; None: the server closed it in order."""
    match error:
        case None:
            return WatchEnded()
        case Expired():
            return VersionExpired()
        case DeadlineExceeded():
            return TimedOut()
        case Unreadable():
            return EventUnreadable()
        case NotFound() | Forbidden() | Unauthorized() | TooManyRequests():
            return Failed()  # a refusal: that the earlier watch was established says nothing about now
        case _:
            return Disconnected()
