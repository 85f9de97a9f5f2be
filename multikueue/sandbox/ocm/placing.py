"""The Placement controller: decides, writes PlacementDecisions one by one, and tells of it in the status last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, name_of
from multikueue.protocols import ApiClient, read
from multikueue.sandbox.objects import built, owned_by
from multikueue.sandbox.ocm.kinds import (
    DECISION,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_LABEL,
    SCORE,
    SET_BINDING,
    UNSCHEDULED_ANNOTATION,
)
from multikueue.sandbox.ocm.scheduling.deciding import Inventory, bound_sets, decide
from multikueue.sandbox.ocm.scheduling.slicing import Slice
from multikueue.sandbox.ocm.writing import ensure, is_owned_by, remove, write_status

REASON: Final = ""
"""What a decision says of why; OCM leaves it empty."""


@attrs.define(eq=False)
class PlacementReconciler:
    """Schedules the Placements of a hub. Keys are those of Placements.

    Between two of its writes others see what is not yet whole: a decision that has moved from one PlacementDecision to
    the next is in both or in none, and the Placement's status tells of the decision before.
    """

    client: ApiClient
    clock: Callable[[], datetime]
    pause: float = 0.0
    """Seconds between two writes, so that others see what is between them."""

    async def reconcile(self, key: ObjectKey) -> Action:
        """Bring the decisions of one Placement up to date."""
        placement = await read(self.client, PLACEMENT, key)
        if placement is None or is_terminating(placement):
            return Action.done()
        if annotations_of(placement).get(UNSCHEDULED_ANNOTATION) == "true":
            return Action.done()
        decisions = await self._decisions(key.namespace)
        own = [decision for decision in decisions if is_owned_by(decision, placement)]
        others = [decision for decision in decisions if decision not in own]
        now = self.clock()
        decided = decide(placement, await self._inventory(key.namespace, own, others), now)
        for part in decided.slices:
            await self._write(placement, part)
        names = {part.name for part in decided.slices}
        for decision in own:
            if name_of(decision) not in names:
                await remove(self.client, DECISION, decision)
                await anyio.sleep(self.pause)
        status = {**decided.status(), "conditions": list(decided.conditions)}
        await write_status(self.client, PLACEMENT, placement, status)
        return Action.done() if decided.until is None else Action.after((decided.until - now).total_seconds())

    async def _decisions(self, namespace: str) -> list[Json]:
        return (await self.client.list(DECISION, namespace=namespace, label_selector=PLACEMENT_LABEL)).items

    async def _inventory(self, namespace: str, own: list[Json], others: list[Json]) -> Inventory:
        clusters = (await self.client.list(MANAGED_CLUSTER)).items
        bindings = (await self.client.list(SET_BINDING, namespace=namespace)).items
        scores = (await self.client.list(SCORE)).items
        taken = {(labels_of(decision)[PLACEMENT_LABEL], name) for decision in others for name in clusters_of(decision)}
        return Inventory(
            clusters,
            bound_sets(bindings),
            frozenset(name for decision in own for name in clusters_of(decision)),
            Counter(name for _, name in taken),
            {(score["metadata"]["namespace"], name_of(score)): score for score in scores},
        )

    async def _write(self, placement: Json, part: Slice) -> None:
        """Create or change a PlacementDecision: its status first, then its labels."""
        namespace, labels = placement["metadata"]["namespace"], part.labels(name_of(placement))
        wanted = built(DECISION, part.name, namespace, labels=labels)
        wanted["metadata"]["ownerReferences"] = [owned_by(PLACEMENT, placement)]
        old = await read(self.client, DECISION, ObjectKey(namespace, part.name))
        if old is None:
            old = await self.client.create(DECISION, wanted)
            await anyio.sleep(self.pause)
        if old.get("status") is None or clusters_of(old) != list(part.clusters):
            listed = [{"clusterName": name, "reason": REASON} for name in part.clusters]
            await self.client.replace(DECISION, {**old, "status": {"decisions": listed}}, subresource="status")
            await anyio.sleep(self.pause)
        await ensure(self.client, DECISION, wanted)


def clusters_of(decision: Json) -> list[str]:
    """The clusters that a PlacementDecision names."""
    return [entry["clusterName"] for entry in dig(decision, "status", "decisions") or []]
