"""Profiles: how the scored dispatcher chooses, by name; a MultiKueueConfig names the one of its Workloads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

import attrs

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS
from multikueue.core.dispatchers.scored.job_annotations import PREFERENCE, read
from multikueue.core.model.written_values import parse_duration

SHORTEST_RETRY: Final = timedelta(seconds=15)
"""Each offer and each taking back is a write on the manager."""
SHORTEST_GIVE_UP: Final = timedelta(minutes=1)
"""What nobody takes goes round once in so long: it is evicted, and may have quota again at once."""
LONGEST_ROUND: Final = timedelta(minutes=10)


Chosen = TypeVar("Chosen", bound=StrEnum)


class Hold(StrEnum):
    """Whether a Workload waits on the manager while no worker has room."""

    AUTO = "auto"
    NEVER = "never"


class Then(StrEnum):
    """What becomes of a Workload that no worker takes in time."""

    REQUEUE = "Requeue"
    DEACTIVATE = "Deactivate"


@attrs.frozen
class Weights:
    """How much each score counts; each is 0 to 1 for a worker, and weights are 0 to 1,000."""

    quota: float | None = None
    """Counts no more: it is accepted, and told of, for a release."""
    preference: float = 65
    """`multikueue.dev/cluster-preference` of the job, or what its profile prefers."""
    finish: float = 60
    """How soon it would end: `multikueue.dev/speed` of the worker, and what stands before it."""
    cost: float = 90
    """`multikueue.dev/cost` of the worker: the cheapest is best."""
    health: float = 100
    """Whether jobs have failed there."""
    sticky: float = 20
    """Whether the job has run there before."""


@attrs.frozen
class Profile:
    """One way to choose."""

    candidates: int = 1
    """How many are offered a Workload at a time."""
    retry: timedelta = timedelta(seconds=15)
    """After so long without an answer the next ones are asked."""
    most: int = 3
    """How many at a time where quota says nothing."""
    hold: Hold = Hold.AUTO
    weights: Weights = Weights()
    preference: str = ""
    """What jobs prefer that say nothing themselves, as in their annotation."""
    give_up_after: timedelta | None = None
    """Since the Workload got its quota; None: never."""
    then: Then = Then.REQUEUE

    def patience(self, rounds: int) -> timedelta:
        """How long an offer lasts, or the pause between two that need preemption, after so many rounds."""
        seconds = self.retry.total_seconds() * 2 ** max(0, min(rounds, 10))
        return max(min(timedelta(seconds=seconds), LONGEST_ROUND), self.retry)


def parse_profiles(value: Any, path: str = "profiles") -> dict[str, Profile]:
    """The profiles of the settings, by name; `default` is always among them.

    Raises:
        ValueError: what is wrong, and where.
    """
    entries = _object(value, path)
    return {"default": Profile()} | {
        str(name): parse_profile(profile, f"{path}.{name}") for name, profile in entries.items()
    }


def parse_profile(value: Any, path: str) -> Profile:
    """One profile.

    Raises:
        ValueError: what is wrong, and where.
    """
    entry = _object(value, path, {"offer", "hold", "scores", "preference", "giveUp"})
    offer = _object(entry.get("offer"), f"{path}.offer", {"candidates", "retry", "most"})
    scores = _object(entry.get("scores"), f"{path}.scores", set(attrs.fields_dict(Weights)))
    give_up = _object(entry.get("giveUp"), f"{path}.giveUp", {"after", "then"})
    usual = Profile()
    profile = Profile(
        candidates=_number(offer.get("candidates", usual.candidates), f"{path}.offer.candidates"),
        retry=_duration(offer.get("retry"), f"{path}.offer.retry", SHORTEST_RETRY) or usual.retry,
        most=_number(offer.get("most", usual.most), f"{path}.offer.most"),
        hold=_choice(Hold, entry.get("hold", usual.hold), f"{path}.hold"),
        weights=Weights(**{name: _weight(weight, f"{path}.scores.{name}") for name, weight in scores.items()}),
        preference=_preference(entry.get("preference"), f"{path}.preference"),
        give_up_after=_duration(give_up.get("after"), f"{path}.giveUp.after", SHORTEST_GIVE_UP),
        then=_choice(Then, give_up.get("then", usual.then), f"{path}.giveUp.then"),
    )
    if profile.candidates > profile.most:
        raise ValueError(f"{path}.offer.candidates is {profile.candidates}: no more than most, {profile.most}")
    return profile


def _object(value: Any, path: str, known: set[str] | None = None) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{path} is not an object")
    if known is not None and (strange := sorted(set(map(str, value)) - known)):
        raise ValueError(f"{path}.{strange[0]} is not known: {', '.join(sorted(known))} are")
    return value


def _number(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_NOMINATIONS:
        raise ValueError(f"{path} is {value!r}: it must be a number from 1 to {MAX_NOMINATIONS}")
    return value


def _weight(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1000:
        raise ValueError(f"{path} is {value!r}: it must be a number from 0 to 1000")
    return float(value)


def _preference(value: Any, path: str) -> str:
    """Points by label: `{place=local: 100}`."""
    entries = _object(value, path)
    for label, points in entries.items():
        if read({PREFERENCE: f"{label}:{points}"}).ignored:
            raise ValueError(f"{path} has {label!r}: {points!r}: it must be LABEL=VALUE and points from 0 to 100")
    return ",".join(f"{label}:{points}" for label, points in entries.items())


def _choice(kind: type[Chosen], value: Any, path: str) -> Chosen:
    if value not in [*kind]:
        raise ValueError(f"{path} is {value!r}: it must be one of {', '.join(kind)}")
    return kind(value)


def _duration(value: Any, path: str, shortest: timedelta) -> timedelta | None:
    """`90s`, `15m`, `1h30m`; None if there is none."""
    if value is None:
        return None
    try:
        length = parse_duration(value) if isinstance(value, str) else timedelta(0)
    except ValueError:
        length = timedelta(0)
    if not length:
        raise ValueError(f"{path} is {value!r}: it must be a duration, as 90s or 1h30m")
    if length < shortest:
        raise ValueError(f"{path} is {value}: at least {shortest.total_seconds():.0f}s")
    return length
