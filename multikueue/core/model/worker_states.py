"""How one worker stands with one Workload: declared states, each a value that says what holds in it and no more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, TypeAlias

import attrs

from multikueue.core.model.refusal_facts import RefusalFacts


@attrs.frozen
class Connecting:
    """This process has just begun to connect: no answer and no failure yet."""


@attrs.frozen
class Connected:
    """Its Workloads are being watched: only then is absence a fact."""


@attrs.frozen
class Lost:
    """It cannot be reached."""

    since: datetime | None = None
    """By the manager's clock; None if that is not known."""
    seen: bool = True
    """Whether this process has read its Workloads and jobs before it was lost: then it shows what was there."""


@attrs.frozen
class Opaque:
    """It answers, but with more than may be read of it: what is there is unknown, neither absent nor lost. Whoever may
    create objects there can bring this about, so no time runs out: it keeps what it runs, and gets no more."""

    seen: bool = True
    """Whether this process has read it before that."""


Reach: TypeAlias = Connecting | Connected | Lost | Opaque
"""Whether a worker can be reached."""


@attrs.frozen
class Syncing:
    """The first list of the kind is not complete yet."""


@attrs.frozen
class Served:
    """Jobs of the kind are being watched, or need not be."""


@attrs.frozen
class Unwatched(Served):
    """Nothing of the kind was there when its watch ended, and nothing was sent since: one is opened before that.

    Until that has listed the kind it does not show what was sent.
    """


@attrs.frozen
class Unserved:
    """Watching the kind fails."""

    failing_for: timedelta = timedelta(0)
    seen: bool = True
    """Whether this process has read its jobs before that."""


@attrs.frozen
class Unusable:
    """The kind is watched, but no job of it may be created there: its definition lacks a field that copies need."""

    why: str = ""


Kind: TypeAlias = Syncing | Served | Unserved | Unusable | Opaque
"""What a worker makes of the job's kind."""


def in_sight(reach: Reach, kind: Kind) -> bool:
    """Whether what is there is being watched."""
    return isinstance(reach, Connected) and isinstance(kind, Served | Unusable)


@attrs.frozen
class Idle:
    """Nothing is in flight."""


@attrs.frozen
class Creating:
    """The job is being created."""


@attrs.frozen
class Removing:
    """The Workload copy is being removed: it will be gone before that shows."""


@attrs.frozen
class WritingStatus:
    """Its copy's status is being written, or the copy is being created."""

    may_preempt: bool = True
    """Whether it may do so before that shows: not if a gated copy is being created."""


@attrs.frozen
class OutcomeUnknown:
    """Nothing is in flight. The last request failed a moment ago; the worker may have carried it out all the same."""


InFlight: TypeAlias = Idle | Creating | Removing | WritingStatus | OutcomeUnknown
"""What this process is doing there at this moment."""


@attrs.frozen
class Untracked:
    """An earlier process may have sent a creation."""


@attrs.frozen
class NothingSent:
    """Nobody has sent one: this process saw the attempt before a worker was recorded, and has sent none."""


@attrs.frozen
class Created:
    """The worker answered that the job was created."""


@attrs.frozen
class Unanswered:
    """A creation was sent, and there was no answer: the job may exist."""

    ago: timedelta
    namespace: str = ""
    """There, in which it was sent; empty: where the Workload says."""


Creation: TypeAlias = Untracked | NothingSent | Created | Unanswered
"""What this process knows of creating this attempt's job on a worker."""


@attrs.frozen
class Refusal:
    """The worker refuses an object of this Workload, or somebody else's object has its name."""

    why: str
    """In the worker's words."""
    left: timedelta
    """How long it is not asked again."""
    facts: RefusalFacts = attrs.field(factory=RefusalFacts)


@attrs.frozen
class ShareUsedUp(Refusal):
    """Not the worker refuses it: its namespace has so much there that we offer no more of it."""


NAME_TAKEN: Final = Refusal("an earlier job of that name is still ending there", timedelta(minutes=1))
"""A job that was deleted, and made again with the same name, cannot be there before the earlier one's copy is gone."""
