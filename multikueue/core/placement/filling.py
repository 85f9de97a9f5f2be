"""Filling a config: from what is selected to the list that it should have, and the one write that brings it there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.model.conditions import condition, parse_timestamp, timestamp
from multikueue.core.model.kinds import MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of, resource_version
from multikueue.core.placement.belief import Belief, believe
from multikueue.core.placement.decisions import Decision, read
from multikueue.core.placement.dwelling import with_dwelling
from multikueue.core.placement.effects import Create, Effect, Patch
from multikueue.core.placement.figures import Figures
from multikueue.core.placement.members import Members, members
from multikueue.core.placement.names import HUB, WRITTEN_ANNOTATION
from multikueue.core.placement.ownership import new_config, owners
from multikueue.core.placement.ranking import Scores, due_in, has_turned, rank, score, weights
from multikueue.core.placement.snapshot import Labelled, Memory, Scheduled, Snapshot
from multikueue.core.placement.takeover import renamed, renamed_scores
from multikueue.core.placement.usage import Usage, dispatchers_of, lingering, seen_busy, usage

SETTLE: Final = timedelta(seconds=60)
"""How long a cluster stays listed beside another controller after the last Workload there: that controller removes the
copies of an evicted one afterwards, and only on clusters that the config lists."""


@attrs.frozen
class Filling:
    """What a config should list, and why."""

    name: str
    live: Json | None
    """The config as it is; None: there is none."""
    belief: Belief
    members: Members
    wanted: tuple[str, ...]
    """The list to have; that of `live` where a better order has to wait. Empty: nothing is selected, so nothing is
    written."""
    scores: Scores
    beside: bool
    """Whether another controller dispatches to it."""
    usage: Usage
    busy: dict[str, datetime]
    joined: Mapping[str, datetime]
    look_again: float | None
    put_off: tuple[str, ...]
    """A better order that has to wait; empty: none has."""

    @property
    def listed(self) -> tuple[str, ...]:
        """What it lists now."""
        return tuple(clusters(self.live)) if self.live is not None else ()

    @property
    def is_reached(self) -> bool:
        """Whether it lists what it should."""
        return bool(self.wanted) and self.listed == self.wanted


def decided(snapshot: Snapshot) -> Decision:
    """What selects clusters says now."""
    match snapshot.source:
        case Scheduled(placement, decisions):
            found = renamed(read(placement, decisions), placement, snapshot.clusters, snapshot.settings.adopt)
            others = found.names if HUB in snapshot.clusters else found.names - {HUB}
            return attrs.evolve(found, names=others)
        case Labelled(profiles):
            return Decision(profiles)
        case unknown:
            return Decision(frozenset(), problem=unknown.message)


def is_beside(name: str, snapshot: Snapshot) -> bool:
    """Whether anybody but this process dispatches to the clusters of a config. While no check tells, somebody may."""
    return dispatchers_of(name, snapshot.checks.values()) != {snapshot.settings.dispatched_as}


def fill(name: str, snapshot: Snapshot, decision: Decision, now: datetime) -> Filling:
    """What a config should list now.

    Args:
        name: the config's.
        snapshot: all that belongs to it.
        decision: what is selected.
        now: the manager's wall clock.
    """
    memory, settings = snapshot.memory, snapshot.settings
    live, beside = snapshot.configs.get(name), is_beside(name, snapshot)
    listed = tuple(clusters(live)) if live is not None else ()
    before = memory.believed if memory.believed is not None else _shown(snapshot, listed)
    belief = believe(decision, before, memory.doubt, now, settings.grace)
    used = usage(name, snapshot.checks.values(), snapshot.workloads)
    present = {*listed, *memory.listed}
    if live is None:
        present |= used.all()  # somebody has deleted it
    work = used.all() if beside else used.running
    if beside and used.undecided:
        work |= present
    busy = seen_busy(memory.busy, work & present if beside else work, present if beside else (), now)
    waits = lingering({one: at for one, at in busy.items() if one not in work}, now, SETTLE) if beside else {}
    chosen = with_dwelling(belief.names or frozenset(), memory.joined, now, settings.min_dwell)
    scores = _scores(snapshot, chosen.names, decision, now)
    found = members(rank(chosen.names, scores), present, work | waits.keys(), beside=beside, policy=settings.policy)
    wanted, order_waits, put_off = _in_order(found, live, listed, scores, snapshot, now)
    ends = [waits[one] for one in found.kept if one in waits]
    look_again = _earliest(belief.look_again, chosen.look_again, scores.look_again, order_waits, *ends)
    return Filling(name, live, belief, found, wanted, scores, beside, used, busy, chosen.joined, look_again, put_off)


def _shown(snapshot: Snapshot, listed: Iterable[str]) -> frozenset[str] | None:
    """What a process before this one believed, as far as objects show it; None: nothing shows it.

    A config stays as it was while nothing is selected; the check tells that.
    """
    told = condition(snapshot.check, "Active") if snapshot.check is not None else None
    if told is not None and told.get("reason") == "NoClustersAvailable":
        return frozenset()
    return frozenset(listed) or None


def _scores(snapshot: Snapshot, names: frozenset[str], decision: Decision, now: datetime) -> Scores:
    if not isinstance(snapshot.source, Scheduled):
        return Scores()
    source, adopt = snapshot.source, snapshot.settings.adopt
    reported = renamed_scores(source.scores, source.placement, snapshot.clusters, adopt)
    return score(names, decision.scores, weights(source.placement), reported, now)


def _in_order(
    found: Members, live: Json | None, listed: tuple[str, ...], scores: Scores, snapshot: Snapshot, now: datetime
) -> tuple[tuple[str, ...], float | None, tuple[str, ...]]:
    """The list to have now, the seconds until its order may be better, and the one that is put off."""
    if not found.target:
        return (), None, ()
    selected = listed[: len(found.target)]
    if live is None or set(selected) != set(found.target) or listed[len(selected) :] != found.kept:
        return found.wanted, None, ()
    if selected == found.target:
        return listed, None, ()
    if not has_turned(selected, scores, snapshot.settings.hysteresis):
        return listed, None, found.wanted
    written = parse_timestamp(annotations_of(live).get(WRITTEN_ANNOTATION))
    left = due_in(written, now, snapshot.settings.order_interval)
    return (found.wanted, None, ()) if left <= 0 else (listed, left, found.wanted)


def write(
    filling: Filling, snapshot: Snapshot, labels: Json, owned_by: list[Json], now: datetime
) -> tuple[Effect, ...]:
    """The write that makes the config what it should be; empty: it is.

    Args:
        filling: what it should list.
        snapshot: all that belongs to it.
        labels: by which it is known as ours.
        owned_by: its owner references.
        now: the manager's wall clock.
    """
    live, wanted = filling.live, list(filling.wanted)
    if live is None:
        if not wanted:
            return ()
        spec = {**snapshot.memory.spec, "clusters": wanted}
        made = new_config(filling.name, labels, {WRITTEN_ANNOTATION: timestamp(now)}, spec, owned_by)
        return (Create(MULTIKUEUE_CONFIG, made),)
    metadata: Json = {}
    patch: Json = {}
    if any(labels_of(live).get(key) != value for key, value in labels.items()):
        metadata["labels"] = labels
    if owned_by != owners(live):
        metadata["ownerReferences"] = owned_by
    if wanted and list(filling.listed) != wanted:
        metadata["annotations"] = {WRITTEN_ANNOTATION: timestamp(now)}
        patch["spec"] = {"clusters": wanted}
    if not metadata:
        return ()
    patch["metadata"] = {"resourceVersion": resource_version(live), **metadata}
    return (Patch(MULTIKUEUE_CONFIG, ObjectKey("", filling.name), patch),)


def difference(before: Iterable[str], after: Iterable[str]) -> str:
    """What a list gains and loses, as `+a -b`; empty: nothing."""
    old, new = set(before), set(after)
    return " ".join([*(f"+{one}" for one in sorted(new - old)), *(f"-{one}" for one in sorted(old - new))])


def remembered(snapshot: Snapshot, decision: Decision, filling: Filling, now: datetime) -> Snapshot:
    """The snapshot with what the next decision needs to know of this one in its memory."""
    memory, belief = snapshot.memory, filling.belief
    same = memory.decided == decision.names and memory.decided_at is not None
    spec = dig(filling.live, "spec") or memory.spec
    noted = attrs.evolve(
        memory,
        believed=belief.names,
        doubt=belief.doubt,
        decided=decision.names,
        decided_at=memory.decided_at if same else now,
        listed=filling.wanted or memory.listed,
        spec={key: value for key, value in spec.items() if key != "clusters"},
        busy=filling.busy,
        joined=filling.joined,
        put_off=filling.put_off,
    )
    return attrs.evolve(snapshot, memory=noted)


def is_put_off(filling: Filling, snapshot: Snapshot) -> bool:
    """Whether a better order is put off that was not put off the last time."""
    return bool(filling.put_off) and filling.put_off != snapshot.memory.put_off


def figures(filling: Filling, memory: Memory) -> Figures:
    """What the metrics show of it."""
    selected, listed = filling.belief.names or (), filling.wanted or filling.listed
    return Figures(len(selected), len(listed), len(filling.members.leaving), memory.decided_at)


def _earliest(*delays: float | None) -> float | None:
    return min((one for one in delays if one is not None), default=None)
