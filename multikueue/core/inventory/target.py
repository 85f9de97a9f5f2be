"""What a config should list: from what is selected to the list, and the one write that brings it there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.effects import ConfigStatistics, Create, Effect, Patch
from multikueue.core.inventory.members import (
    Members,
    Usage,
    dispatchers_of,
    lingering,
    members,
    seen_busy,
    standing,
    usage,
)
from multikueue.core.inventory.names import HUB, WRITTEN_ANNOTATION
from multikueue.core.inventory.ownership import new_config, owners, renamed, renamed_scores
from multikueue.core.inventory.ranking import Scores, due_in, has_turned, rank, score, weights
from multikueue.core.inventory.selection import Accepted, Decision, accept, read_decision, with_min_dwell
from multikueue.core.inventory.snapshot import ConfigSnapshot, Labelled, Memory, Scheduled
from multikueue.core.model.conditions import condition, parse_timestamp, timestamp
from multikueue.core.model.kinds import MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, labels_of

SETTLE: Final = timedelta(seconds=60)
"""How long a cluster stays listed beside another controller after the last Workload there: that controller removes the
copies of an evicted one afterwards, and only on clusters that the config lists."""


@attrs.frozen
class ConfigTarget:
    """What a config should list, and why."""

    name: str
    live: Json | None
    """The config as it is; None: there is none."""
    accepted: Accepted
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
    dwelling: Mapping[str, datetime]
    """See `SelectedClusters`."""
    without_hub: bool = False
    """See `Decision`."""

    @property
    def listed(self) -> tuple[str, ...]:
        """What it lists now."""
        return tuple(clusters(self.live)) if self.live is not None else ()

    @property
    def is_reached(self) -> bool:
        """Whether it lists what it should."""
        return bool(self.wanted) and self.listed == self.wanted


def decided(snapshot: ConfigSnapshot) -> Decision:
    """What selects clusters says now."""
    match snapshot.source:
        case Scheduled(placement, decisions):
            decision = renamed(
                read_decision(placement, decisions), placement, snapshot.clusters, snapshot.settings.adopt
            )
            others = decision.names if HUB in snapshot.clusters else decision.names - {HUB}
            return attrs.evolve(decision, names=others, without_hub=others != decision.names)
        case Labelled(profiles):
            return Decision(profiles)
        case unknown:
            return Decision(frozenset(), problem=unknown.message)


def is_beside(name: str, snapshot: ConfigSnapshot) -> bool:
    """Whether anybody but this process dispatches to the clusters of a config. While no check tells, somebody may."""
    return dispatchers_of(name, snapshot.checks.values()) != {snapshot.settings.dispatched_as}


def config_target(name: str, snapshot: ConfigSnapshot, decision: Decision, now: datetime) -> ConfigTarget:
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
    before = memory.accepted if memory.accepted is not None else _shown(snapshot, listed)
    accepted = accept(decision, before, memory.unconfirmed, now, settings.grace)
    used = usage(name, snapshot.checks.values(), snapshot.workloads)
    present = {*listed, *memory.listed}
    if live is None:
        present |= used.all()  # somebody has deleted it
    work = used.all() if beside else used.running
    if beside and used.undecided:
        work |= present
    busy = seen_busy(memory.busy, work & present if beside else work, present if beside else (), now)
    waits = lingering({name: at for name, at in busy.items() if name not in work}, now, SETTLE) if beside else {}
    # A process that has just begun does not know since when: the span is never shorter for a restart.
    joined = memory.joined if memory.accepted is not None else dict.fromkeys(before or (), now)
    chosen = with_min_dwell(accepted.names or frozenset(), joined, snapshot.clusters, now, settings.min_dwell)
    scores = _scores(snapshot, chosen.names, decision, now)
    ranked = rank(chosen.names, scores)
    nearness = {name: standing(snapshot.clusters.get(name)) for name in chosen.names}
    listing = members(ranked, present, work | waits.keys(), nearness, beside=beside, policy=settings.policy)
    wanted, order_waits, put_off = _in_order(listing, live, listed, scores, snapshot, now)
    ends = [waits[name] for name in listing.kept if name in waits]
    look_again = earliest(accepted.look_again, chosen.look_again, scores.look_again, order_waits, *ends)
    return ConfigTarget(
        name,
        live,
        accepted,
        listing,
        wanted,
        scores,
        beside,
        used,
        busy,
        chosen.joined,
        look_again,
        put_off,
        chosen.dwelling,
        without_hub=decision.without_hub,
    )


def _shown(snapshot: ConfigSnapshot, listed: Iterable[str]) -> frozenset[str] | None:
    """What a process before this one accepted, as far as objects show it; None: nothing shows it.

    A config stays as it was while nothing is selected; the check tells that.
    """
    active = condition(snapshot.check, "Active") if snapshot.check is not None else None
    if active is not None and active.get("reason") == "NoClustersAvailable":
        return frozenset()
    return frozenset(listed) or None


def _scores(snapshot: ConfigSnapshot, names: frozenset[str], decision: Decision, now: datetime) -> Scores:
    if not isinstance(snapshot.source, Scheduled):
        return Scores()
    source, adopt = snapshot.source, snapshot.settings.adopt
    reported = renamed_scores(source.scores, source.placement, snapshot.clusters, adopt)
    return score(names, decision.scores, weights(source.placement), reported, now)


def _in_order(
    listing: Members,
    live: Json | None,
    listed: tuple[str, ...],
    scores: Scores,
    snapshot: ConfigSnapshot,
    now: datetime,
) -> tuple[tuple[str, ...], float | None, tuple[str, ...]]:
    """The list to have now, the seconds until its order may be better, and the one that is put off."""
    if not listing.target:
        return (), None, ()
    selected = listed[: len(listing.target)]
    if live is None or set(selected) != set(listing.target) or listed[len(selected) :] != listing.kept:
        return listing.wanted, None, ()
    if selected == listing.target:
        return listed, None, ()
    if not has_turned(selected, scores, snapshot.settings.hysteresis):
        return listed, None, listing.wanted
    written = parse_timestamp(annotations_of(live).get(WRITTEN_ANNOTATION))
    left = due_in(written, now, snapshot.settings.order_interval)
    return (listing.wanted, None, ()) if left <= 0 else (listed, left, listing.wanted)


def write(
    target: ConfigTarget, snapshot: ConfigSnapshot, labels: Json, owned_by: list[Json], now: datetime
) -> tuple[Effect, ...]:
    """The write that makes the config what it should be; empty: it is.

    Args:
        target: what it should list.
        snapshot: all that belongs to it.
        labels: by which it is known as ours.
        owned_by: its owner references.
        now: the manager's wall clock.
    """
    live, wanted = target.live, list(target.wanted)
    if live is None:
        if not wanted:
            return ()
        spec = {**snapshot.memory.spec, "clusters": wanted}
        made = new_config(target.name, labels, {WRITTEN_ANNOTATION: timestamp(now)}, spec, owned_by)
        return (Create(MULTIKUEUE_CONFIG, made),)
    metadata: Json = {}
    patch: Json = {}
    if any(labels_of(live).get(key) != value for key, value in labels.items()):
        metadata["labels"] = labels
    if owned_by != owners(live):
        metadata["ownerReferences"] = owned_by
    if wanted and list(target.listed) != wanted:
        metadata["annotations"] = {WRITTEN_ANNOTATION: timestamp(now)}
        patch["spec"] = {"clusters": wanted}
    if not metadata:
        return ()
    return (Patch(MULTIKUEUE_CONFIG, live, {**patch, "metadata": metadata}),)


def difference(before: Iterable[str], after: Iterable[str]) -> str:
    """What a list gains and loses, as `+a -b`; empty: nothing."""
    old, new = set(before), set(after)
    return " ".join([*(f"+{name}" for name in sorted(new - old)), *(f"-{name}" for name in sorted(old - new))])


def remembered(snapshot: ConfigSnapshot, decision: Decision, target: ConfigTarget, now: datetime) -> ConfigSnapshot:
    """The snapshot with what the next decision needs to know of this one in its memory."""
    memory, accepted = snapshot.memory, target.accepted
    same = memory.decided == decision.names and memory.decided_at is not None
    spec = dig(target.live, "spec") or memory.spec
    noted = attrs.evolve(
        memory,
        accepted=accepted.names,
        unconfirmed=accepted.unconfirmed,
        decided=decision.names,
        decided_at=memory.decided_at if same else now,
        listed=target.wanted or memory.listed,
        spec={key: value for key, value in spec.items() if key != "clusters"},
        busy=target.busy,
        joined=target.joined,
        put_off=target.put_off,
    )
    return attrs.evolve(snapshot, memory=noted)


def is_put_off(target: ConfigTarget, snapshot: ConfigSnapshot) -> bool:
    """Whether a better order is put off that was not put off the last time."""
    return bool(target.put_off) and target.put_off != snapshot.memory.put_off


def statistics(target: ConfigTarget, memory: Memory) -> ConfigStatistics:
    """What the metrics show of it."""
    selected, listed = target.accepted.names or (), target.wanted or target.listed
    return ConfigStatistics(len(selected), len(listed), len(target.members.leaving), memory.decided_at)


def earliest(*delays: float | None) -> float | None:
    """The shortest of several delays; None: there is none."""
    return min((delay for delay in delays if delay is not None), default=None)
