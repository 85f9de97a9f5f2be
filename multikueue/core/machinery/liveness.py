"""Whether a server that says nothing is still there: when to probe it, and when it counts as lost.

A server that hangs accepts connections, keeps its watches open and answers nothing. Its liveness endpoints may answer
all the same, because they do not ask its storage. So the probe is a small list. Per server:

* While something is heard, nothing is sent: an answer to any request, or an event of any watch.
* After `PROBE_EVERY` seconds of silence it is probed, and then as often until something is heard. Several probes may be
  under way, so a server whose answers take ten seconds is heard every five.
* It is lost when `PROBES` probes in a row have led to nothing: `LOST_AFTER` seconds after it was heard last.
* Time in which this process stood still counts for nobody: the answers may be there, and nobody has read them.

It is pure: `runtime.workers.probe` sends the probes and waits.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

PROBE_EVERY: Final = 5.0
"""Seconds of silence after which a probe is sent. A quiet server gets one small request as often."""
LOST_AFTER: Final = 20.0
"""Seconds of silence after which a server is lost: twice what a very slow answer takes."""
PROBES: Final = round(LOST_AFTER / PROBE_EVERY) - 1
"""Probes without a word that lose a server: the first is sent after `PROBE_EVERY`."""
PROBE_DEADLINE: Final = LOST_AFTER - PROBE_EVERY
"""Seconds after which an answer to a probe would come too late."""


@attrs.frozen
class Heard:
    """The server answered, or sent an event."""


@attrs.frozen
class Due:
    """The time to look has come. `following`: whether it is to be there; one that is not is tried with back-off."""

    following: bool = True


Event: TypeAlias = Heard | Due


@attrs.frozen
class Probe:
    """Send a probe. It has `PROBE_DEADLINE` seconds; an answer is `Heard`."""


@attrs.frozen
class Lose:
    """The server is lost. `silent_for`: seconds since it was heard last."""

    silent_for: float


Command: TypeAlias = Probe | Lose


@attrs.frozen
class Liveness:
    """What is known of one server. All times are on a monotonic clock, in seconds."""

    heard_at: float
    """When it was heard last; at first, when this began."""
    due_at: float
    """When to look next: send `Due` then."""
    unanswered: int = 0
    """Probes sent since it was heard last."""

    @classmethod
    def beginning(cls, now: float) -> Liveness:
        """Of a server that has just been heard."""
        return cls(now, now + PROBE_EVERY)

    def step(self, event: Event, now: float) -> tuple[Liveness, Command | None]:
        """The state after an event, and what to do."""
        match event:
            case Heard():
                return Liveness(now, self.due_at), None  # not `evolve`: this happens with every answer and event
            case Due(following=False):
                return Liveness(self.heard_at, now + PROBE_EVERY), None
            case Due():
                return self._awake(now)._look(now)

    def _awake(self, now: float) -> Liveness:
        """Without the time in which this process stood still."""
        late = now - self.due_at
        return Liveness(min(self.heard_at + late, now), now) if late > PROBE_EVERY else self

    def _look(self, now: float) -> tuple[Liveness, Command | None]:
        silence_ends = self.heard_at + PROBE_EVERY
        if silence_ends > max(now, self.due_at):  # something was heard meanwhile
            return attrs.evolve(self, due_at=silence_ends), None
        if self.unanswered == PROBES:
            return Liveness(self.heard_at, now + PROBE_EVERY), Lose(now - self.heard_at)
        return Liveness(self.heard_at, now + PROBE_EVERY, self.unanswered + 1), Probe()
