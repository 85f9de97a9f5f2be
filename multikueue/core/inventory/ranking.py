"""The order of clusters: best first, which is the order in which the Incremental dispatcher asks them.

Scores move every minute and each rewrite of a config makes its readers look at all their Workloads, so the order is
rewritten for a real change only, and not too often.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

Coordinate: TypeAlias = tuple[str, str]
"""Of a score: the name of the AddOnPlacementScore, and that of the entry in it."""


@attrs.frozen
class Scores:
    """What is known of how good clusters are."""

    points: Mapping[str, float] = attrs.field(factory=dict)
    """By cluster; one that is not in here is worse than all that are."""
    unknown: tuple[str, ...] = ()
    """Clusters whose scores are missing or expired, while there are scores."""
    look_again: float | None = None
    """Seconds until a score expires."""


def weights(placement: Json) -> dict[Coordinate, int]:
    """How much each score of an addon counts for a Placement."""
    weights: dict[Coordinate, int] = {}
    for entry in dig(placement, "spec", "prioritizerPolicy", "configurations") or []:
        addon = dig(entry, "scoreCoordinate", "addOn") or {}
        weight = entry.get("weight", 1)
        if dig(entry, "scoreCoordinate", "type") == "AddOn" and addon.get("resourceName") and weight:
            weights[str(addon["resourceName"]), str(addon.get("scoreName"))] = int(weight)
    return weights


def score(
    names: Iterable[str],
    decided: Mapping[str, int],
    weighted: Mapping[Coordinate, int],
    reported: Mapping[Coordinate, Json],
    now: datetime,
) -> Scores:
    """What is known of how good clusters are.

    Args:
        names: the clusters.
        decided: the scores that the decision tells: they count if there are any.
        weighted: see `weights`.
        reported: the AddOnPlacementScores by cluster and name.
        now: the manager's wall clock.
    """
    listed = sorted(names)
    if any(name in decided for name in listed):
        points = {name: float(decided[name]) for name in listed if name in decided}
        return Scores(points, tuple(name for name in listed if name not in decided))
    if not weighted:
        return Scores()
    points, expiries = {}, list[datetime]()
    for name in listed:
        objects = {resource: reported.get((name, resource)) for resource, _ in weighted}
        ends = [
            end for obj in objects.values() if (end := parse_timestamp(dig(obj, "status", "validUntil"))) is not None
        ]
        values = {coordinate: _value(objects[coordinate[0]], coordinate[1]) for coordinate in weighted}
        if all(end > now for end in ends) and all(value is not None for value in values.values()):
            total = sum(weight * (values[coordinate] or 0) for coordinate, weight in weighted.items())
            points[name] = total / sum(map(abs, weighted.values()))
            expiries += ends
    left = min(((end - now).total_seconds() for end in expiries), default=None)
    return Scores(points, tuple(name for name in listed if name not in points), left)


def _value(reported: Json | None, name: str) -> int | None:
    entries = dig(reported, "status", "scores") or []
    return next((entry["value"] for entry in entries if entry.get("name") == name), None)


def rank(names: Iterable[str], scores: Scores) -> tuple[str, ...]:
    """The clusters, best first; those without a score last; equal ones by name."""
    return tuple(sorted(names, key=lambda name: (name not in scores.points, -scores.points.get(name, 0.0), name)))


def has_turned(order: Sequence[str], scores: Scores, hysteresis: float) -> bool:
    """Whether an order is wrong by so many points: somebody stands before one who is that much better.

    Without any scores the only right order is that of the names.
    """
    if not scores.points:
        return list(order) != sorted(order)
    lowest = float("-inf")
    points = [scores.points.get(name, lowest) for name in order]
    return any(
        later > earlier and later - earlier >= hysteresis for earlier, later in itertools.combinations(points, 2)
    )


def due_in(written_at: datetime | None, now: datetime, interval: timedelta) -> float:
    """Seconds until the order may be rewritten; 0: now. A time in the future counts as now: a clock was set back."""
    if written_at is None or written_at > now + interval:
        return 0.0
    return max(0.0, (written_at + interval - now).total_seconds())
