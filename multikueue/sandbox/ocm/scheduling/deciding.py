"""A Placement's decision: the clusters that it gets, and what its conditions say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import new_condition
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating, labels_of, name_of
from multikueue.sandbox.ocm.kinds import GLOBAL_SET, SET_LABEL
from multikueue.sandbox.ocm.scheduling.scoring import Surroundings, totals
from multikueue.sandbox.ocm.scheduling.selecting import MisconfiguredError, check_tolerations, is_selected, tolerance
from multikueue.sandbox.ocm.scheduling.slicing import Slice, group_statuses, slices

SATISFIED: Final = "PlacementSatisfied"
MISCONFIGURED: Final = "PlacementMisconfigured"
_NO_MEMBER: Final = "have no member ManagedCluster"
_NO_BINDING: Final = "No valid ManagedClusterSetBindings found in placement namespace"


@attrs.frozen
class Inventory:
    """What a Placement can choose from."""

    clusters: Sequence[Json]
    """All ManagedClusters."""
    bound: frozenset[str]
    """The sets bound to the Placement's namespace."""
    chosen: frozenset[str] = frozenset()
    """The clusters of its last decision."""
    taken: Counter[str] = attrs.field(factory=Counter)
    """How many other Placements have chosen each cluster."""
    scores: Mapping[tuple[str, str], Json] = attrs.field(factory=dict)
    """The AddOnPlacementScores, by cluster and name."""


@attrs.frozen
class Decided:
    """A decision."""

    slices: Sequence[Slice]
    """Its PlacementDecisions."""
    conditions: Sequence[Json]
    until: datetime | None = None
    """When time alone may change it."""

    @property
    def clusters(self) -> list[str]:
        """All names."""
        return [name for part in self.slices for name in part.clusters]

    def status(self) -> Json:
        """What the Placement's status says, without the conditions."""
        return {"numberOfSelectedClusters": len(self.clusters), "decisionGroups": group_statuses(self.slices)}


def decide(placement: Json, inventory: Inventory, now: datetime) -> Decided:
    """Choose clusters. A Placement that cannot be meant gets none."""
    spec = placement.get("spec") or {}
    asked = spec.get("clusterSets") or []
    sets = sorted(inventory.bound.intersection(asked) if asked else inventory.bound)
    available = [cluster for cluster in inventory.clusters if in_sets(cluster, sets) and not is_terminating(cluster)]
    try:
        feasible, until = _filtered(spec, available, inventory.chosen, now)
        around = Surroundings(inventory.chosen, inventory.taken, inventory.scores, now)
        total = totals(feasible, spec.get("prioritizerPolicy") or {}, around)
        ranked = sorted(feasible, key=lambda cluster: (-total[name_of(cluster)], name_of(cluster)))
        wanted = spec.get("numberOfClusters", len(ranked))
        parts = slices(placement, ranked[:wanted])
    except MisconfiguredError as error:
        return Decided(slices(_plain(placement), ()), (_configured(str(error), now), _refused(str(error), now)))
    satisfied = _satisfied(
        (len(inventory.bound), asked, sets), len(available), len(feasible), wanted - len(ranked[:wanted]), now
    )
    return Decided(parts, (_configured("", now), satisfied), until)


def _plain(placement: Json) -> Json:
    """The Placement without groups."""
    return {"metadata": placement["metadata"]}


def _satisfied(
    sets: tuple[int, Sequence[str], Sequence[str]], available: int, feasible: int, missing: int, now: datetime
) -> Json:
    """The condition of that name.

    Args:
        sets: how many are bound, which the Placement asks for, and which it gets.
        available: clusters in these sets.
        feasible: those of them that may be selected.
        missing: how many are selected too few.
        now: the time.
    """
    bound, asked, usable = sets
    if not bound:
        said = ("NoManagedClusterSetBindings", _NO_BINDING)
    elif not usable:
        said = ("NoIntersection", f"None of ManagedClusterSets [{','.join(asked)}] is bound to placement namespace")
    elif not available:
        said = ("AllManagedClusterSetsEmpty", f"All ManagedClusterSets [{','.join(usable)}] {_NO_MEMBER}")
    elif not feasible:
        said = ("NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate")
    elif missing > 0:
        said = ("NotAllDecisionsScheduled", f"{missing} cluster decisions unscheduled")
    else:
        said = ("AllDecisionsScheduled", "All cluster decisions scheduled")
    return new_condition(SATISFIED, said[0] == "AllDecisionsScheduled", *said, now=now)


def in_sets(cluster: Json, sets: Iterable[str]) -> bool:
    """Whether a cluster is in one of these sets."""
    return any(name in (GLOBAL_SET, labels_of(cluster).get(SET_LABEL)) for name in sets)


def _filtered(
    spec: Json, clusters: Sequence[Json], chosen: frozenset[str], now: datetime
) -> tuple[list[Json], datetime | None]:
    """The clusters that the predicates select and whose taints are tolerated, and when that may end."""
    tolerations = spec.get("tolerations") or []
    check_tolerations(tolerations)
    predicates = spec.get("predicates") or []
    is_selected({"metadata": {}}, predicates)  # a selector is wrong whether or not there are clusters
    selected = [cluster for cluster in clusters if is_selected(cluster, predicates)]
    tolerances = [
        (cluster, tolerance(cluster, tolerations, now, chosen=name_of(cluster) in chosen)) for cluster in selected
    ]
    ends = [how.until for _, how in tolerances if how.tolerated and how.until is not None]
    return [cluster for cluster, how in tolerances if how.tolerated], min(ends, default=None)


def _configured(message: str, now: datetime) -> Json:
    if message:
        return new_condition(MISCONFIGURED, True, "Misconfigured", message, now=now)
    return new_condition(MISCONFIGURED, False, "Succeedconfigured", "Placement configurations check pass", now=now)


def _refused(message: str, now: datetime) -> Json:
    return new_condition(SATISFIED, False, "NotAllDecisionsScheduled", message, now=now)


def bound_sets(bindings: Iterable[Json]) -> frozenset[str]:
    """The sets that valid bindings name."""
    return frozenset(
        dig(binding, "spec", "clusterSet") or ""
        for binding in bindings
        if any(
            condition["type"] == "Bound" and condition["status"] == "True"
            for condition in dig(binding, "status", "conditions") or []
        )
    )
