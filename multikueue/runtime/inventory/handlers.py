"""Event handlers: which change has which checks and inventories decided about again. They must not wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters, config_name
from multikueue.core.inventory.members import standing
from multikueue.core.inventory.names import MAX_CLUSTERS
from multikueue.core.inventory.ownership import is_placement_check, name_or_empty, owners
from multikueue.core.inventory.selection import placements_of
from multikueue.core.model import workloads
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import ADMISSION_CHECK
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.workloads import CheckState
from multikueue.runtime.caches.workload_indexes import check_names
from multikueue.runtime.controller import KeyQueue
from multikueue.runtime.inventory.caches import HubCaches, OcmCaches

BATCH: Final = 0.2
"""Seconds changes of Workloads and workers are collected for: each decision looks at all Workloads of a config."""
SCORES: Final = 5.0
"""Seconds changes of scores are collected for: all clusters report theirs every minute."""


@attrs.define(eq=False)
class PlacementHandlers:
    """The event handlers. An inventory is known by the name of its config."""

    hub: HubCaches
    checks: KeyQueue[ObjectKey]
    inventories: KeyQueue[ObjectKey]
    filled: frozenset[str] = frozenset()
    """The configs of inventories."""

    def listen(self, ocm: OcmCaches | None) -> None:
        """Follow the caches, before they run."""
        self.hub.checks.subscribe(self.check_changed)
        self.hub.configs.subscribe(self.config_changed)
        self.hub.clusters.subscribe(self.cluster_changed)
        self.hub.workloads.subscribe(self.workload_changed)
        if ocm is not None:
            ocm.placements.subscribe(self.placement_changed)
            ocm.decisions.subscribe(self.decision_changed)
            ocm.scores.subscribe(lambda _key, _old, _new: self.all_checks(SCORES))

    def all_checks(self, after: float = 0.0) -> None:
        """Decide about all placement checks again."""
        for check in self._placement_checks():
            self.checks.enqueue(ObjectKey.of(check), after)

    def check_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """An AdmissionCheck came, went or changed."""
        if is_placement_check(old) or is_placement_check(new):
            self.checks.enqueue(key)
        for check in (version for version in (old, new) if version is not None):
            self._enqueue(name_or_empty(check) if is_placement_check(check) else config_name(check))

    def placement_changed(self, key: ObjectKey, _old: Json | None, _new: Json | None) -> None:
        """A Placement came, went or changed."""
        self._enqueue(key.name)

    def decision_changed(self, _key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """A PlacementDecision came, went or changed."""
        for name in {name for decision in (old, new) if decision is not None for name in placements_of(decision)}:
            self._enqueue(name)

    def config_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """A MultiKueueConfig came, went or changed."""
        self._enqueue(key.name)
        for owner in (owner for config in (old, new) if config is not None for owner in owners(config)):
            if owner.get("kind") == ADMISSION_CHECK.gvk.kind:
                self.checks.enqueue(ObjectKey("", str(owner.get("name"))))

    def cluster_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """A MultiKueueCluster came, went or changed."""
        if old is not None and new is not None and _of_cluster(old) == _of_cluster(new):
            return
        for check in self._placement_checks():
            config = self.hub.configs.get(ObjectKey("", name_or_empty(check)))
            listed = clusters(config) if config is not None else []
            # One that comes or goes may give a selected cluster another name. A full list may have its place for it.
            if old is None or new is None or key.name in listed or len(listed) >= MAX_CLUSTERS:
                self.checks.enqueue(ObjectKey.of(check), BATCH)
        for name in self.filled:
            self.inventories.enqueue(ObjectKey("", name), BATCH)

    def workload_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """A Workload came, went or changed."""
        self.hub.forget(key)
        if old is not None and new is not None and _of_workload(old) == _of_workload(new) and not self._waits(new):
            return
        names = {name for workload in (old, new) if workload is not None for name in check_names(workload)}
        for name in sorted(names):
            check = self.hub.checks.get(ObjectKey("", name))
            if check is not None:
                self._enqueue(name_or_empty(check) if is_placement_check(check) else config_name(check), BATCH)

    def _waits(self, workload: Json) -> bool:
        """Whether our entry is to be written: a write of another may have come before ours, which was refused then."""
        pending = [
            entry.get("name") for entry in workloads.checks(workload) if entry.get("state") == CheckState.PENDING
        ]
        checks = (self.hub.checks.get(ObjectKey("", str(name))) for name in pending)
        return workloads.has_quota(workload) and any(map(is_placement_check, checks))

    def _enqueue(self, config: str, after: float = 0.0) -> None:
        """Decide again about all that fills a config."""
        if not config:
            return
        for check in self._placement_checks():
            owned = self.hub.configs.get(ObjectKey("", config))
            named = owned is not None and any(owner.get("name") == name_of(check) for owner in owners(owned))
            if named or name_or_empty(check) == config:
                self.checks.enqueue(ObjectKey.of(check), after)
        if config in self.filled:
            self.inventories.enqueue(ObjectKey("", config), after)

    def _placement_checks(self) -> Iterator[Json]:
        return (check for check in self.hub.checks.values() if is_placement_check(check))


def _of_cluster(cluster: Json) -> object:
    return standing(cluster), is_true(cluster, "Active"), cluster.get("spec"), dig(cluster, "metadata", "labels")


def _of_workload(workload: Json) -> object:
    """What decisions go by. `BATCH` keeps the rest from mattering."""
    return (
        [(entry.get("name"), entry.get("state")) for entry in workloads.checks(workload)],
        workloads.cluster_name(workload),
        workloads.nominated(workload),
        workloads.has_quota(workload),
        workloads.is_finished(workload),
        workloads.is_evicted(workload),
        workloads.is_admitted(workload),
        workloads.is_active(workload),
        dig(workload, "metadata", "deletionTimestamp"),
    )
