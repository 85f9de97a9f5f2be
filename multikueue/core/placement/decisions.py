"""What a Placement has decided: the union of its PlacementDecisions, and whether that is a whole answer.

OCM replaces PlacementDecisions one by one and writes the Placement's status after them, so for moments they do not
belong together. On an error of its scheduler, or for a Placement that it cannot read, it empties them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import PLACEMENT
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, name_of, uid
from multikueue.core.placement.names import PLACEMENT_LABEL, SCHEDULING_DISABLED


@attrs.frozen
class Decision:
    """The clusters that are selected now."""

    names: frozenset[str]
    scores: Mapping[str, int] = attrs.field(factory=dict)
    """By cluster, where the decision tells one."""
    problem: str = ""
    """Why it is no whole answer; empty: it is one, and names belong together."""


def belongs(decision: Json, placement: Json) -> bool:
    """Whether a PlacementDecision is one of a Placement: by its label or its owner, and not of an earlier Placement."""
    owners = [
        one for one in dig(decision, "metadata", "ownerReferences") or [] if one.get("kind") == PLACEMENT.gvk.kind
    ]
    if owners and all(one.get("uid") != uid(placement) for one in owners):
        return False
    return bool(owners) or labels_of(decision).get(PLACEMENT_LABEL) == name_of(placement)


def placements_of(decision: Json) -> Iterator[str]:
    """The names of the Placements that a PlacementDecision may belong to."""
    if (labelled := labels_of(decision).get(PLACEMENT_LABEL)) is not None:
        yield labelled
    for owner in dig(decision, "metadata", "ownerReferences") or []:
        if owner.get("kind") == PLACEMENT.gvk.kind and owner.get("name") != labelled:
            yield str(owner.get("name"))


def read(placement: Json, decisions: Iterable[Json]) -> Decision:
    """What a Placement has decided.

    Groups mean nothing here: all are used at once, and a decision without a group counts. A decision without a name is
    one that is not made yet.

    Args:
        placement: the Placement.
        decisions: the PlacementDecisions of its namespace.
    """
    mine = [one for one in decisions if belongs(one, placement) and not is_terminating(one)]
    entries = {name_of(one): _entries(one) for one in mine}
    listed = [entry for part in entries.values() for entry in part]
    scores = {str(entry["clusterName"]): entry["score"] for entry in listed if isinstance(entry.get("score"), int)}
    names = frozenset(str(entry["clusterName"]) for entry in listed)
    sizes = {name: len(part) for name, part in entries.items()}
    return Decision(names, scores, next(_problems(placement, names, sizes), ""))


def _entries(decision: Json) -> list[Json]:
    """What a PlacementDecision names: an entry per cluster."""
    return [entry for entry in dig(decision, "status", "decisions") or [] if entry.get("clusterName")]


def _problems(placement: Json, names: frozenset[str], sizes: Mapping[str, int]) -> Iterator[str]:
    """Why the decisions are no whole answer.

    A cluster that moves from one PlacementDecision to another is in both or in none for a moment.

    Args:
        placement: the Placement.
        names: the clusters that the decisions name.
        sizes: by PlacementDecision, how many clusters it names.
    """
    if is_true(placement, "PlacementMisconfigured"):
        told = (condition(placement, "PlacementMisconfigured") or {}).get("message") or "without a message"
        yield f"Placement {name_of(placement)} is misconfigured: {told}"
    if annotations_of(placement).get(SCHEDULING_DISABLED) == "true":
        return
    status = placement.get("status") or {}
    groups = [group for group in status.get("decisionGroups") or [] if isinstance(group, dict)]
    parts = [sorted(map(str, group.get("decisions") or [])) for group in groups]
    told = {name for part in parts for name in part}
    if missing := sorted(told - set(sizes)):
        yield f"PlacementDecision {missing[0]} is not there"
    if groups and (more := sorted(set(sizes) - told)):
        yield f"the status of Placement {name_of(placement)} does not tell of PlacementDecision {more[0]} yet"
    count = status.get("numberOfSelectedClusters")
    if count is None and not names and not condition(placement, "PlacementSatisfied"):
        yield f"Placement {name_of(placement)} is not scheduled yet"
    if count is not None and count != len(names):
        yield f"Placement {name_of(placement)} has selected {count} clusters, and its decisions name {len(names)}"
    if count is not None and count != sum(sizes.values()):
        yield f"the decisions of Placement {name_of(placement)} name a cluster twice"
    for group, part in zip(groups, parts, strict=True):
        size, named = group.get("clusterCount"), sum(sizes.get(name, 0) for name in part)
        if size is not None and size != named:
            yield f"a group of Placement {name_of(placement)} has {size} clusters, but its decisions name {named}"
