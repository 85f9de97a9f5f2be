"""What is remembered of a Workload's attempt, in the message of our check. Kueue may reset it with an eviction."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.dispatchers.dispatcher import message_time
from multikueue.core.model.conditions import parse_timestamp

_MESSAGE: Final = re.compile(
    r"The workload is (?:offered to \[(?P<offered>[^]]*)\]|held) since (?P<since>[0-9T:.Z-]+)"
    r"(?:, round (?P<round>\d{1,4}))?"
    r"(?:, asked before: \[(?P<asked>[^]]*)\])?"
    r"(?:, refused by: \[(?P<refused>[^]]*)\])?"
    r"(?:: .*)?",
    re.DOTALL,
)


@attrs.frozen
class QueueRefusal:
    """A worker's Kueue has said that it will not take the Workload."""

    worker: str
    generation: str
    """Of the ClusterQueue that it was refused by."""
    at: datetime


@attrs.frozen
class State:
    """How the asking stands."""

    since: datetime
    """When the offers, or the hold, began."""
    offered: tuple[str, ...] = ()
    """Empty: it is held."""
    round: int = 0
    """How often an offer without room was taken back: each makes the wait for the next one longer."""
    asked: tuple[str, ...] = ()
    """Those that did not take it in time, while there are others to ask."""
    refused: tuple[QueueRefusal, ...] = ()

    @classmethod
    def parse(cls, message: str) -> State | None:
        """Read it; None if the message is somebody else's, or damaged."""
        match = _MESSAGE.fullmatch(message)
        since = parse_timestamp(match["since"]) if match else None
        if match is None or since is None:
            return None
        parts = [part.split(" ") for part in (match["refused"] or "").split(", ") if part]
        refusals = [(fields, parse_timestamp(fields[2])) for fields in parts if len(fields) == 3]
        refused = tuple(QueueRefusal(fields[0], fields[1], at) for fields, at in refusals if at is not None)
        offered, asked = ((match[name] or "").split() for name in ("offered", "asked"))
        return cls(since, tuple(offered), int(match["round"] or 0), tuple(asked), refused)

    def describe(self, why: str = "") -> str:
        """The message. Its times are of the manager's clock, and read by nobody but us.

        Args:
            why: what a person wants to know beside.
        """
        offer = f"offered to [{' '.join(self.offered)}]" if self.offered else "held"
        asked = f", asked before: [{' '.join(self.asked)}]" if self.asked else ""
        listed = ", ".join(
            f"{refusal.worker} {refusal.generation} {message_time(refusal.at)}" for refusal in self.refused
        )
        refused = f", refused by: [{listed}]" if listed else ""
        number = f", round {self.round}" if self.round else ""
        return f"The workload is {offer} since {message_time(self.since)}{number}{asked}{refused}" + (
            f": {why}" if why else ""
        )
