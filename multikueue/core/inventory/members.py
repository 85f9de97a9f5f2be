"""The list of a config: the selected clusters, best first, and those that must not leave it yet, for they have work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta

import attrs

from multikueue.core.config.admission_check import config_name
from multikueue.core.inventory.names import MAX_CLUSTERS
from multikueue.core.inventory.ownership import is_placement_check, name_or_empty
from multikueue.core.inventory.settings import Policy
from multikueue.core.inventory.snapshot import WorkloadUse
from multikueue.core.model.conditions import is_true
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.second_names import why_nothing_new
from multikueue.core.model.workloads import CheckState


@attrs.frozen
class Usage:
    """The work of a config, by cluster."""

    running: frozenset[str]
    """Clusters that an unfinished Workload names as its own."""
    offered: frozenset[str]
    """Clusters that a Workload is offered to which nobody has taken yet. Nobody offers it before our entry is Ready."""
    undecided: bool = False
    """Whether there is a Workload that may be offered to any listed cluster at this moment: our entry is Ready."""

    def all(self) -> frozenset[str]:
        """Both."""
        return self.running | self.offered


def checks_of(config: str, checks: Iterable[Json]) -> list[Json]:
    """The AdmissionChecks that stand for a config: MultiKueue's that name it, and those of its Placement."""
    return [
        check
        for check in checks
        if config in (name_or_empty(check) if is_placement_check(check) else config_name(check),)
    ]


def dispatchers_of(config: str, checks: Iterable[Json]) -> set[str]:
    """The controllers that dispatch to the clusters of a config."""
    standing = checks_of(config, checks)
    return {str(dig(check, "spec", "controllerName")) for check in standing if not is_placement_check(check)}


def usage(config: str, checks: Iterable[Json], known: Iterable[WorkloadUse]) -> Usage:
    """Which clusters have work of a config.

    Args:
        config: its name.
        checks: all AdmissionChecks.
        known: Workloads.
    """
    standing = checks_of(config, checks)
    mine = {str(check["metadata"]["name"]) for check in standing}
    placement = {str(check["metadata"]["name"]) for check in standing if is_placement_check(check)}
    running, offered, undecided = set[str](), set[str](), False
    for work in known:
        if work.finished or mine.isdisjoint(work.states):
            continue
        if work.cluster is not None:
            running.add(work.cluster)
        elif not _is_held(work, placement):
            offered.update(work.nominated)
            waits = work.open and not work.nominated
            undecided = undecided or (waits and any(work.states.get(check) == CheckState.READY for check in placement))
    return Usage(frozenset(running), frozenset(offered), undecided)


def _is_held(work: WorkloadUse, placement: Iterable[str]) -> bool:
    """Whether our entry keeps a Workload from being offered, whoever has nominated clusters for it already.

    Such a nomination keeps no cluster listed: the Workload waits until that cluster is listed no longer.
    """
    return work.open and any(work.states.get(check) == CheckState.PENDING for check in placement)


def seen_busy(
    before: Mapping[str, datetime], busy: Iterable[str], listed: Iterable[str], now: datetime
) -> dict[str, datetime]:
    """By cluster of a config, when a Workload was seen there last. One that is seen for the first time counts as busy:
    nobody has looked before.

    Args:
        before: the same, the last time.
        busy: clusters with work.
        listed: the clusters that matter.
        now: the manager's wall clock.
    """
    at_work = set(busy)
    return {name: now if name in at_work else before.get(name, now) for name in sorted({*listed, *at_work})}


def lingering(busy: Mapping[str, datetime], now: datetime, settle: timedelta) -> dict[str, float]:
    """Clusters that had work a moment ago: another controller may still be removing it. With the seconds left."""
    left = {name: (since + settle - now).total_seconds() for name, since in busy.items()}
    return {name: seconds for name, seconds in left.items() if seconds > 0}


def standing(worker: Json | None) -> int:
    """How far a cluster is from getting jobs: 0 if it gets them, 1 if it has a MultiKueueCluster, 2 without one.

    One that is cordoned, or another name of a cluster, gets nothing new though it is Active.
    """
    if worker is None:
        return 2
    return 0 if is_true(worker, "Active") and not why_nothing_new(worker) else 1


@attrs.frozen
class Members:
    """What a config should list."""

    target: tuple[str, ...]
    """The selected clusters that it lists, best first: those that get new work."""
    kept: tuple[str, ...] = ()
    """Clusters that are not selected any more and stay listed behind them: another controller has work there."""
    leaving: frozenset[str] = frozenset()
    """Clusters that are not selected any more and have work, listed or not."""
    left_out: int = 0
    """How many selected clusters find no place."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """The whole list."""
        return (*self.target, *self.kept)


def members(
    ranked: Sequence[str],
    listed: Iterable[str],
    running: Set[str],
    standing: Mapping[str, int],
    *,
    beside: bool,
    policy: Policy,
) -> Members:
    """What a config should list.

    A cluster that another controller has work on is never dropped: that controller would run the job again elsewhere,
    while it runs on there. Our own follows a job to its end on a cluster that the config does not list any more.

    Args:
        ranked: the selected clusters, best first.
        listed: what the config lists, or listed before somebody changed it.
        running: clusters with work of this config.
        standing: how far each is from being a worker; those that are nearer come first where not all find a place.
        beside: whether another controller dispatches.
        policy: what becomes of that work.
    """
    selected, present = set(ranked), set(listed)
    leaving = frozenset(running - selected)
    held = beside and policy is not Policy.IMMEDIATE
    kept = sorted(present & leaving)[:MAX_CLUSTERS] if held else []
    order = {name: (name not in present & running, name not in running, standing.get(name, 0)) for name in ranked}
    room = MAX_CLUSTERS - len(kept)
    chosen = set(sorted(ranked, key=order.__getitem__)[:room])  # sorting keeps the rank of equal ones
    target = tuple(name for name in ranked if name in chosen)
    return Members(target, tuple(kept), leaving, len(ranked) - len(target))
