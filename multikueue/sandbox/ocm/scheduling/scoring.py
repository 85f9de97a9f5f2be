"""What each cluster is worth to a Placement: the weighted sum of its prioritizers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.quantities import thousandths
from multikueue.sandbox.ocm.scheduling.selecting import MisconfiguredError

MOST: Final = 100
"""The best score of a prioritizer; the worst is -100."""
_ADDITIVE: Final[Mapping[tuple[str, ...], int]] = MappingProxyType({("Balance",): 1, ("Steady",): 1})
"""What counts if the Placement says nothing else."""


@attrs.frozen
class Surroundings:
    """What scores depend on besides the clusters."""

    chosen: frozenset[str]
    """The clusters of the last decision."""
    taken: Counter[str]
    """How many other Placements have chosen each cluster."""
    scores: Mapping[tuple[str, str], Json]
    """The AddOnPlacementScores, by cluster and name."""
    now: datetime


def weights(policy: Json) -> dict[tuple[str, ...], int]:
    """The prioritizers that count, by name; one of an addon has the names of the resource and of the score.

    Raises:
        MisconfiguredError: one is not known.
    """
    weight_of = {} if policy.get("mode") == "Exact" else dict(_ADDITIVE)
    for entry in policy.get("configurations") or []:
        coordinate = entry["scoreCoordinate"]
        if coordinate.get("type") == "AddOn":
            addon = coordinate.get("addOn") or {}
            name: tuple[str, ...] = (addon.get("resourceName", ""), addon.get("scoreName", ""))
        else:
            name = (coordinate.get("builtIn") or "",)
            if name[0] not in _BUILT_IN:
                raise MisconfiguredError("Prioritizer", f"incorrect builtin prioritizer: {name[0]}")
        weight_of[name] = entry.get("weight", 1)
    return {name: weight for name, weight in weight_of.items() if weight}


def totals(clusters: Sequence[Json], policy: Json, around: Surroundings) -> dict[str, int]:
    """The score of each cluster.

    Raises:
        MisconfiguredError: a prioritizer is not known.
    """
    total = dict.fromkeys(map(name_of, clusters), 0)
    for name, weight in weights(policy).items():
        scores = _of_addon(clusters, *name, around) if len(name) == 2 else _BUILT_IN[name[0]](clusters, around)
        for cluster, score in scores.items():
            total[cluster] += weight * score
    return total


def _of_addon(clusters: Sequence[Json], resource: str, entry: str, around: Surroundings) -> dict[str, int]:
    """What somebody reports of each cluster. What is missing or over counts 0, which is better than a true -70."""
    scores = {}
    for name in map(name_of, clusters):
        score = around.scores.get((name, resource)) or {}
        until = parse_timestamp(dig(score, "status", "validUntil"))
        listed = dig(score, "status", "scores") or []
        if until is not None and until <= around.now:
            listed = []
        scores[name] = next((int(item["value"]) for item in listed if item["name"] == entry), 0)
    return scores


def _balance(clusters: Sequence[Json], around: Surroundings) -> dict[str, int]:
    most = max(around.taken.values(), default=0)
    return {
        name: MOST if not around.taken[name] else int(2 * MOST * (0.5 - around.taken[name] / most))
        for name in map(name_of, clusters)
    }


def _steady(clusters: Sequence[Json], around: Surroundings) -> dict[str, int]:
    return {name: MOST * (name in around.chosen) for name in map(name_of, clusters)}


def _allocatable(resource: str) -> Callable[[Sequence[Json], Surroundings], dict[str, int]]:
    def score(clusters: Sequence[Json], _around: Surroundings) -> dict[str, int]:
        amounts = {
            name_of(cluster): thousandths(dig(cluster, "status", "allocatable", resource) or "0")
            for cluster in clusters
        }
        least, most = min(amounts.values(), default=0), max(amounts.values(), default=0)
        return {
            name: MOST if most == least else int(2 * MOST * ((amount - least) / (most - least) - 0.5))
            for name, amount in amounts.items()
        }

    return score


_BUILT_IN: Final[Mapping[str, Callable[[Sequence[Json], Surroundings], dict[str, int]]]] = MappingProxyType(
    {
        "Balance": _balance,
        "Steady": _steady,
        "ResourceAllocatableCPU": _allocatable("cpu"),
        "ResourceAllocatableMemory": _allocatable("memory"),
    }
)
