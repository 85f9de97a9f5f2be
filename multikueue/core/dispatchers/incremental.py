"""The dispatcher that asks a few workers at a time.

A Workload that is offered everywhere holds a place in every worker's queue, and may preempt what runs there, to use one
of them. Asking in rounds costs a wait instead.
"""

from __future__ import annotations

import itertools
import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import attrs
from attrs.validators import ge

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, Candidates, Nomination, message_time
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json

INCREMENTAL: Final = "kueue.x-k8s.io/multikueue-dispatcher-incremental"
"""What Kueue's settings call `Incremental`."""

_MESSAGE: Final = re.compile(
    r"The workload is offered to \[[^]]*\], round (?P<number>[1-9]\d{0,3}) since (?P<since>\S+)"
)


class Order(StrEnum):
    """Who is asked first."""

    CONFIG = "config"
    """The first of the MultiKueueConfig's list: the cheapest, or the nearest."""
    ALPHABETICAL = "alphabetical"
    """By name: what Kueue did before its lists were in order."""


@attrs.frozen
class Round:
    """One round of asking, as the check's message tells it."""

    number: int
    """1 is the first of an attempt."""
    since: datetime

    @classmethod
    def parse(cls, message: str) -> Round | None:
        """Read it; None if the message is somebody else's, or damaged."""
        match = _MESSAGE.fullmatch(message)
        since = parse_timestamp(match["since"]) if match else None
        return cls(int(match["number"]), since) if match and since else None

    def describe(self, names: tuple[str, ...]) -> str:
        """The message. Its time is of the manager's clock, and read by nobody but us."""
        return f"The workload is offered to [{' '.join(names)}], round {self.number} since {message_time(self.since)}"


@attrs.frozen
class Incremental:
    """In round *n* of an attempt, offer to `step` times *n* workers that can be reached; they stay nominated.

    For a worker that was lost a minute ago, the next in order is asked: no round waits for a worker that cannot answer,
    and a short loss rewrites nothing. Once all have been asked there are no more rounds. A worker that reconnects after
    that starts a new one.

    A worker that has not answered since the manager was started keeps its place: those after it in the order are not
    asked before it. It answers, or is lost, within a request's deadline.

    The number of the round is stored on the Workload, in the message of our check. A restart, or another replica, goes
    on with it. An eviction empties the nominations; then the first round begins, whatever the message says.
    """

    step: int = attrs.field(default=3, validator=ge(1))
    """How many workers a round adds, at least 1. Kueue's default."""
    order: Order = attrs.field(default=Order.CONFIG, converter=Order)
    """`config`, or `alphabetical`: by name."""
    round: timedelta = timedelta(minutes=5)
    """How long a round lasts: long enough to admit a job that has to preempt, or whose nodes are started first. Kueue
    has this built in."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload
        kept, waiting = candidates.kept, self._waiting(candidates)
        if not waiting:
            noted = Round.parse(candidates.message)
            return Nomination(kept, message=noted.describe(kept) if noted and kept else None)
        asked = sum(name in kept for name in (*candidates.available, *candidates.awaited))
        current = self._current(candidates, asked, now)
        due = waiting[: max(0, current.number * self.step - asked)]
        names = (*kept, *itertools.takewhile(lambda name: name in candidates.available, due))
        if not names:
            return Nomination(())
        return Nomination(
            names,
            look_again=self._remaining(current, now) if len(names) < len(kept) + len(waiting) else None,
            message=current.describe(names),
        )

    def remembers(self, message: str) -> bool:
        """See `Remembering`."""
        return Round.parse(message) is not None

    def _waiting(self, candidates: Candidates) -> list[str]:
        """The workers that have not been asked and are available, or have not answered yet; the next one first."""
        present = {*candidates.available, *candidates.awaited}.difference(candidates.kept)
        waiting = [str(name) for name in candidates.configured if name in present]
        if self.order is Order.ALPHABETICAL:
            waiting.sort()
        return waiting[: MAX_NOMINATIONS - len(candidates.kept)]

    def _current(self, candidates: Candidates, asked: int, now: datetime) -> Round:
        """The round it is in at `now`, while there are workers left to ask."""
        if not candidates.nominated:
            return Round(1, now)
        noted = Round.parse(candidates.message)
        if noted is None or noted.since > now:  # not ours, damaged, or the clock was set back: it begins now
            return Round(noted.number if noted else -(-len(candidates.nominated) // self.step), now)
        if self._remaining(noted, now) > 0:
            return noted
        return Round(max(noted.number, asked // self.step) + 1, now)  # a new round always adds a worker

    def _remaining(self, current: Round, now: datetime) -> float:
        return (current.since + self.round - now).total_seconds()
