"""PlacementDecisions: the clusters of a decision in groups, and each group in slices of 100."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.sandbox.ocm.kinds import GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PLACEMENT_LABEL
from multikueue.sandbox.ocm.scheduling.selecting import matches

SLICE: Final = 100
"""Clusters in one PlacementDecision."""


@attrs.frozen
class Slice:
    """One PlacementDecision."""

    name: str
    group: str
    index: int
    """Of the group."""
    clusters: tuple[str, ...]
    """By name: nothing tells which one is better."""

    def labels(self, placement: str) -> Json:
        """Its three labels."""
        return {
            PLACEMENT_LABEL: placement,
            GROUP_INDEX_LABEL: str(self.index),
            GROUP_NAME_LABEL: self.group,
        }


def slices(placement: Json, selected: Sequence[Json]) -> list[Slice]:
    """What PlacementDecisions there shall be: one at least, which is empty if nothing is selected.

    Raises:
        MisconfiguredError: a group's selector is none.
    """
    name = name_of(placement)
    parts: list[Slice] = []
    strategy = dig(placement, "spec", "decisionStrategy", "groupStrategy") or {}
    for index, (group, clusters) in enumerate(_groups(strategy, selected)):
        names = sorted(map(name_of, clusters))
        for first in range(0, max(1, len(names)), SLICE):
            part = tuple(names[first : first + SLICE])
            parts.append(Slice(f"{name}-decision-{len(parts) + 1}", group, index, part))
    return parts


def group_statuses(parts: Sequence[Slice]) -> list[Json]:
    """`status.decisionGroups` of the Placement."""
    groups: dict[int, Json] = {}
    for part in parts:
        empty = {"decisionGroupIndex": part.index, "decisionGroupName": part.group, "decisions": [], "clusterCount": 0}
        group = groups.setdefault(part.index, empty)
        group["decisions"].append(part.name)
        group["clusterCount"] += len(part.clusters)
    return list(groups.values())


def _groups(strategy: Json, selected: Sequence[Json]) -> Iterator[tuple[str, Sequence[Json]]]:
    """Those that a selector names, in their order; then the rest; each in parts of `clustersPerDecisionGroup`."""
    most = _most(strategy.get("clustersPerDecisionGroup", "100%"), len(selected))
    rest, count = list(selected), 0
    for group in strategy.get("decisionGroups") or []:
        members = [cluster for cluster in rest if matches(cluster, group.get("groupClusterSelector") or {})]
        rest = [cluster for cluster in rest if cluster not in members]
        for part in _parts(members, most):
            count += 1
            yield group.get("groupName", ""), part
    for part in _parts(rest, most):
        count += 1
        yield "", part
    if not count:
        yield "", ()


def _parts(clusters: Sequence[Json], most: int) -> Iterator[Sequence[Json]]:
    for first in range(0, len(clusters), most):
        yield clusters[first : first + most]


def _most(size: int | str, total: int) -> int:
    text = str(size)
    number = ceil(int(text[:-1]) * total / 100) if text.endswith("%") else int(text)
    return max(1, number)
