"""What is written to the config that a Placement fills: what a whole decision said, not too often, never nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import anyio
import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, labels_of
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.ocm.kinds import DECISION, PLACEMENT, PLACEMENT_LABEL, SCORE
from multikueue.sandbox.ocm.placing import clusters_of
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.simulation.beside import THEIRS, busy
from tests.simulation.objects import find, objects
from tests.simulation.promises import BrokenPromise, Promises
from tests.simulation.reach import Reach
from tests.simulation.world import World

T = TypeVar("T")

GRACE: Final = 60.0
"""Seconds for which a decision must last that takes away more than half of the clusters."""
ORDERED_EVERY: Final = 300.0
"""Seconds between two writes that only change the order."""
POINTS: Final = 10
"""By which a cluster must be better than one before it until the order is changed."""
SEEN_FOR: Final = 240.0
"""Seconds for which what is seen may be old: watches hang for so long, and then are relisted."""
SCORED_FOR: Final = 10.0
"""The same of scores, if nothing is slow or hangs: changes of theirs are collected for five."""
ROUNDED: Final = 5.0
"""Seconds by which times in annotations differ from the true ones, clocks run on, and a slow write is on its way."""


@attrs.define(eq=False)
class Listing:
    """Follows the decisions, the scores and one config on the manager."""

    world: World
    reach: Reach
    promises: Promises
    name: str
    """Of the Placement and the config: ours, or the one of another controller."""
    _decided: list[tuple[float, frozenset[str]]] = attrs.field(factory=list)
    """Whole decisions, and since when."""
    _scored: dict[str, list[tuple[float, int]]] = attrs.field(factory=dict)
    """By cluster, its scores and since when."""
    _written: float = float("-inf")
    """When the order was written last."""
    _set_by: float = 0.0
    """By how much somebody had set the clock by which that was."""
    writes: int = 0
    """How often the set was changed."""

    def listen(self) -> None:
        """Begin to watch, where there is something to watch."""
        if self.world.inventory is not None:
            self._note_decision()
            self.world.manager.registry.cluster.listeners.append(self._changed)

    def check_the_end(self) -> None:
        """Hold the config against the last decision, and the number of its writes against that of the decisions.

        Raises:
            BrokenPromise: they do not go together.
        """
        listed, (_, decided) = self._listed(), self._decided[-1]
        if set(listed) != decided:
            raise BrokenPromise(f"{self.name} lists {listed} in the end, and {sorted(decided)} are decided")
        most = len(self._decided) * (2 if self.name == THEIRS else 1)  # with what still runs, and without
        if self.writes > most:
            raise BrokenPromise(f"{self.name} was written {self.writes} times for {len(self._decided)} decisions")

    def _changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        if row.plural in (DECISION.plural, PLACEMENT.plural):
            self._note_decision()
        elif row.plural == SCORE.plural and new is not None:
            for score in dig(new, "status", "scores") or []:
                scores = self._scored.setdefault(new["metadata"]["namespace"], [])
                scores.append((anyio.current_time(), score["value"]))
        elif row.plural == MULTIKUEUE_CONFIG.plural and (old or new or {})["metadata"]["name"] == self.name:
            self.promises.broken += self._faults(old, new)

    def _note_decision(self) -> None:
        """Remember what is decided, if it is whole: the status, once there is one, counts what the decisions name."""
        placement = find(self.world.manager, PLACEMENT, ObjectKey(KUEUE_NAMESPACE, self.name))
        parts = {
            decision["metadata"]["name"]: clusters_of(decision)
            for decision in objects(self.world.manager, DECISION)
            if labels_of(decision).get(PLACEMENT_LABEL) == self.name
        }
        groups = dig(placement, "status", "decisionGroups") or []
        named = {name for group in groups for name in group.get("decisions") or []}
        chosen = frozenset(name for clusters in parts.values() for name in clusters)
        count = dig(placement, "status", "numberOfSelectedClusters")
        whole = named <= set(parts) and count in ({len(chosen)} if count is not None or not chosen else {None})
        if whole and (not self._decided or self._decided[-1][1] != chosen):
            self._decided.append((anyio.current_time(), chosen))

    def _faults(self, old: Json | None, new: Json | None) -> Iterator[str]:
        """What is wrong with a write of the config."""
        before, after = _clusters(old), _clusters(new)
        if new is None:
            yield f"the config is deleted, which listed {before}"
        elif before != after and self._is_reordered(before, after):
            yield from self._faults_of_order(before, after)
        elif before != after:
            self.writes += set(before) != set(after)
            self.promises.note(f"{self.name} lists {', '.join(after)}")
            yield from self._faults_of_set(before, after)
        if before != after:
            self._written, self._set_by = anyio.current_time(), self.world.step_of("")()

    def _is_reordered(self, before: list[str], after: list[str]) -> bool:
        """Whether only the order differs. What stays listed without being selected goes to the end, and back."""
        return set(before) == set(after) and set(self._lately(GRACE)) == {frozenset(after)}

    def _faults_of_order(self, before: list[str], after: list[str]) -> Iterator[str]:
        past = anyio.current_time() - self._written
        # Somebody has set the clock by which it is written, or was; and the next leader's may be ahead of this one's.
        clocks = (0.0, self._set_by, self.world.step_of("")(), *self.world.replica_skews)
        if past < ORDERED_EVERY - ROUNDED - abs(self.world.daemon_skew) - (max(clocks) - min(clocks)):
            yield f"the order of the config is written again after {past:.0f} s: {after}"
        pairs = [(first, other) for number, first in enumerate(before) for other in before[number + 1 :]]
        placement = find(self.world.manager, PLACEMENT, ObjectKey(KUEUE_NAMESPACE, self.name))
        scored = dig(placement, "spec", "prioritizerPolicy", "configurations")
        by_name = after == sorted(after) and not (scored and any(self._scored.get(name) for name in after))
        if not by_name and not any(self._most(other) - self._least(first) >= POINTS for first, other in pairs):
            yield f"the order of the config is written for less than {POINTS} points: {before} to {after}"

    def _faults_of_set(self, before: list[str], after: list[str]) -> Iterator[str]:
        lost = {worker: what for worker, what in self._busy().items() if worker in before and worker not in after}
        for worker, what in lost.items():
            yield f"{worker} leaves the config of another controller, which runs {what} there"
        kept = set(before) if self.name == THEIRS else set[str]()
        if not any(chosen <= set(after) <= chosen | kept for chosen in self._lately(SEEN_FOR)):
            yield f"the config lists {after}, which no whole decision says: {list(map(sorted, self._lately(SEEN_FOR)))}"
        changes = [(former, since) for (_, former), (since, chosen) in pairwise(self._decided) if chosen == set(after)]
        for former, since in changes[-1:]:
            lasts = anyio.current_time() - since
            most = 2 * len(after) < min(len(former), len(before))  # what no watch has shown was never listed
            if most and lasts < GRACE - ROUNDED:
                yield f"the config loses most of {before} at once: {sorted(former)} were decided {lasts:.0f} s ago"

    def _busy(self) -> dict[str, str]:
        """The clusters that stay listed as long as something runs there: those of another controller."""
        hub = self.world.inventory
        return busy(hub) if hub is not None and self.name == THEIRS else {}

    def _lately(self, seconds: float) -> list[frozenset[str]]:
        """The whole decisions that held at some time since then."""
        return held_since(self._decided, anyio.current_time() - seconds)

    def _least(self, name: str) -> int:
        return min(self._scores(name), default=-1000)

    def _most(self, name: str) -> int:
        return max(self._scores(name), default=-1000)

    def _scores(self, name: str) -> list[int]:
        """The scores that a cluster had at some time that may still be seen."""
        calm = anyio.current_time() - self.reach.calm_since(self.world.manager.name) > SEEN_FOR
        return held_since(self._scored.get(name, []), anyio.current_time() - (SCORED_FOR if calm else SEEN_FOR))

    def _listed(self) -> list[str]:
        return _clusters(find(self.world.manager, MULTIKUEUE_CONFIG, ObjectKey("", self.name)))


def held_since(values: Sequence[tuple[float, T]], time: float) -> list[T]:
    """Of values with the times from which on they held, those that held at some time since then."""
    ends = [*(begin for begin, _ in values[1:]), float("inf")][: len(values)]
    return [value for (_, value), end in zip(values, ends, strict=True) if end >= time]


def _clusters(config: Json | None) -> list[str]:
    return list(dig(config, "spec", "clusters") or [])
