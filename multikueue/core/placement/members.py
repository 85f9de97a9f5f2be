"""The list of a config: the selected clusters, best first, and those that must not leave it yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import attrs

from multikueue.core.placement.names import MAX_CLUSTERS
from multikueue.core.placement.settings import Policy


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
    ranked: Sequence[str], listed: Iterable[str], running: Set[str], *, beside: bool, policy: Policy
) -> Members:
    """What a config should list.

    A cluster that another controller has work on is never dropped: that controller would run the job again elsewhere,
    while it runs on there. Our own follows a job to its end on a cluster that the config does not list any more.

    Args:
        ranked: the selected clusters, best first.
        listed: what the config lists, or listed before somebody changed it.
        running: clusters with work of this config.
        beside: whether another controller dispatches.
        policy: what becomes of that work.
    """
    selected, present = set(ranked), set(listed)
    leaving = frozenset(running - selected)
    held = beside and policy is not Policy.IMMEDIATE
    kept = sorted(present & leaving)[:MAX_CLUSTERS] if held else []
    order = {name: (name not in present & running, name not in running) for name in ranked}
    room = MAX_CLUSTERS - len(kept)
    chosen = set(sorted(ranked, key=order.__getitem__)[:room])  # sorting keeps the rank of equal ones
    target = tuple(name for name in ranked if name in chosen)
    return Members(target, tuple(kept), leaving, len(ranked) - len(target))
