"""Which clusters are selected: what a Placement has decided, whether that counts yet, and how long a cluster stays.

OCM replaces PlacementDecisions one by one and writes the Placement's status after them, so for moments they do not
belong together. On an error of its scheduler, or for a Placement that it cannot read, it empties them.

Removing clusters stops new jobs there and may move running ones, so a decision that takes most of them away has to
last. Adding clusters, or replacing some by others, harms nobody. Where a score decides who is selected, the choice can
change with every report of a score, and each change moves all new jobs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import attrs

from multikueue.core.inventory.names import PLACEMENT_LABEL, SCHEDULING_DISABLED
from multikueue.core.model.conditions import condition, is_true, timestamp
from multikueue.core.model.kinds import PLACEMENT
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, name_of, uid


@attrs.frozen
class Decision:
    """The clusters that are selected now."""

    names: frozenset[str]
    scores: Mapping[str, int] = attrs.field(factory=dict)
    """By cluster, where the decision tells one."""
    problem: str = ""
    """Why it is no whole answer; empty: it is one, and names belong together."""
    without_hub: bool = False
    """Whether the hub is selected, too, and is left out: it is no worker."""


def belongs(decision: Json, placement: Json) -> bool:
    """Whether a PlacementDecision is one of a Placement: by its label or its owner, and not of an earlier Placement."""
    owners = [
        owner for owner in dig(decision, "metadata", "ownerReferences") or [] if owner.get("kind") == PLACEMENT.gvk.kind
    ]
    if owners and all(owner.get("uid") != uid(placement) for owner in owners):
        return False
    return bool(owners) or labels_of(decision).get(PLACEMENT_LABEL) == name_of(placement)


def placements_of(decision: Json) -> Iterator[str]:
    """The names of the Placements that a PlacementDecision may belong to."""
    if (labelled := labels_of(decision).get(PLACEMENT_LABEL)) is not None:
        yield labelled
    for owner in dig(decision, "metadata", "ownerReferences") or []:
        if owner.get("kind") == PLACEMENT.gvk.kind and owner.get("name") != labelled:
            yield str(owner.get("name"))


def read_decision(placement: Json, decisions: Iterable[Json]) -> Decision:
    """What a Placement has decided.

    Groups mean nothing here: all are used at once, and a decision without a group counts. A decision without a name is
    one that is not made yet.

    Args:
        placement: the Placement.
        decisions: the PlacementDecisions of its namespace.
    """
    mine = [decision for decision in decisions if belongs(decision, placement) and not is_terminating(decision)]
    entries = {name_of(decision): _entries(decision) for decision in mine}
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
        message = (condition(placement, "PlacementMisconfigured") or {}).get("message") or "without a message"
        yield f"Placement {name_of(placement)} is misconfigured: {message}"
    if annotations_of(placement).get(SCHEDULING_DISABLED) == "true":
        return
    status = placement.get("status") or {}
    groups = [group for group in status.get("decisionGroups") or [] if isinstance(group, dict)]
    parts = [sorted(map(str, group.get("decisions") or [])) for group in groups]
    named = {name for part in parts for name in part}
    if missing := sorted(named - set(sizes)):
        yield f"PlacementDecision {missing[0]} is not there"
    if groups and (more := sorted(set(sizes) - named)):
        yield f"the status of Placement {name_of(placement)} does not tell of PlacementDecision {more[0]} yet"
    count = status.get("numberOfSelectedClusters")
    if count is None and not names and not condition(placement, "PlacementSatisfied"):
        yield f"Placement {name_of(placement)} is not scheduled yet"
    if count is not None and count != len(names):
        yield f"Placement {name_of(placement)} has selected {count} clusters, and its decisions name {len(names)}"
    if count is not None and count != sum(sizes.values()):
        yield f"the decisions of Placement {name_of(placement)} name a cluster twice"
    for group, part in zip(groups, parts, strict=True):
        size, total = group.get("clusterCount"), sum(sizes.get(name, 0) for name in part)
        if size is not None and size != total:
            yield f"a group of Placement {name_of(placement)} has {size} clusters, but its decisions name {total}"


@attrs.frozen
class Unconfirmed:
    """A whole decision that is not accepted yet."""

    names: frozenset[str]
    since: datetime


@attrs.frozen
class Accepted:
    """What to go by."""

    names: frozenset[str] | None
    """The clusters that are selected; None: nothing has ever been accepted."""
    unconfirmed: Unconfirmed | None = None
    why: str = ""
    """Why this is not what the decision says now; empty: it is."""
    look_again: float | None = None
    """Seconds until the decision is accepted if it lasts."""


def accept(
    decision: Decision, before: frozenset[str] | None, unconfirmed: Unconfirmed | None, now: datetime, grace: timedelta
) -> Accepted:
    """What to go by now.

    Args:
        decision: as it is.
        before: what was gone by until now; None: nothing.
        unconfirmed: the decision that was not accepted the last time.
        now: the manager's wall clock.
        grace: how long a doubtful decision must hold.
    """
    if decision.problem:
        return Accepted(before, None, decision.problem)
    if not is_doubtful(decision.names, before):
        return Accepted(decision.names)
    if unconfirmed is None or unconfirmed.names != decision.names or unconfirmed.since > now:
        unconfirmed = Unconfirmed(decision.names, now)
    left = (unconfirmed.since + grace - now).total_seconds()
    if left <= 0:
        return Accepted(decision.names, unconfirmed)
    count = f"names {len(decision.names)} of {len(before or ())} clusters" if decision.names else "is empty"
    since, seconds = timestamp(unconfirmed.since), f"{grace.total_seconds():g} s"
    why = f"the decision {count} since {since}, and is followed if it lasts {seconds}"
    return Accepted(before, unconfirmed, why, left)


def is_doubtful(names: frozenset[str], before: frozenset[str] | None) -> bool:
    """Whether a decision takes away everything, or names fewer than half as many clusters as there were."""
    if before is None:
        return not names
    return bool(before) and (not names or 2 * len(names) < len(before))


@attrs.frozen
class SelectedClusters:
    """The selected clusters, and those that were selected a moment ago."""

    names: frozenset[str]
    joined: Mapping[str, datetime]
    """Since when each of them has been selected, as far as this process has seen."""
    dwelling: Mapping[str, datetime] = attrs.field(factory=dict)
    """Those that are not selected any more, and until when they stay."""
    look_again: float | None = None
    """Seconds until the first of those may go."""


def with_min_dwell(
    names: frozenset[str], joined: Mapping[str, datetime], there: Container[str], now: datetime, least: timedelta
) -> SelectedClusters:
    """The clusters to go by: those that have just been selected stay for a while. An empty selection stays empty.

    Args:
        names: the selected clusters.
        joined: since when clusters have been selected, the last time.
        there: the clusters that have a MultiKueueCluster: no other stays, as one that was detached.
        now: the manager's wall clock.
        least: how long a cluster stays at least.
    """
    dwelling = {
        name: since + least
        for name, since in sorted(joined.items())
        if names and name in there and name not in names and since <= now < since + least
    }
    kept = names | dwelling.keys()
    since = {name: joined.get(name, now) for name in sorted(kept)}
    left = min(((until - now).total_seconds() for until in dwelling.values()), default=None)
    return SelectedClusters(frozenset(kept), since, dwelling, left)
