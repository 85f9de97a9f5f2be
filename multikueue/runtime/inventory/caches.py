"""What decisions about configs read: the hub's objects of Kueue, and those of OCM or ClusterProfiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import anyio.abc
import attrs

from multikueue.core.inventory.members import checks_of
from multikueue.core.inventory.ownership import name_or_empty
from multikueue.core.inventory.ranking import Coordinate
from multikueue.core.inventory.snapshot import Labelled, Scheduled, Source, Unknown, WorkloadUse
from multikueue.core.model.kinds import (
    ADDON_PLACEMENT_SCORE,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import identity, is_terminating, name_of
from multikueue.core.model.shape import workload_flaw
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.kube.informers.indexer import Index
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.workload_indexes import check_names

HELD: Final = "held by check"
"""The index of Workloads that matter: those that have quota or a worker, and have not ended, by check."""
PLACED: Final = "placed on cluster"
"""The index of Workloads that have a worker, and have not ended, by cluster."""


def _held_entries(workload: Json) -> list[str]:
    facts = WORKLOADS.of(workload)
    held = facts.has_quota or facts.cluster_name is not None
    return check_names(workload) if held and not facts.is_finished else []


def _placed_entries(workload: Json) -> list[str]:
    facts = WORKLOADS.of(workload)
    return [str(facts.cluster_name)] if facts.cluster_name is not None and not facts.is_finished else []


HUB_INDEXES: Final[dict[str, Index]] = {HELD: _held_entries, PLACED: _placed_entries}


@attrs.define(eq=False)
class HubCaches:
    """The informers of Kueue's kinds on the manager cluster."""

    workloads: Informer
    checks: Informer
    configs: Informer
    clusters: Informer
    occupied: Callable[[str], bool] = attrs.field(default=lambda _: False, kw_only=True)
    """Whether a worker has Workloads, or copies are still there: who dispatches from here knows them."""
    _read: dict[ObjectKey, WorkloadUse] = attrs.field(factory=dict, init=False, repr=False)
    _latest: MutationCache = attrs.field(
        default=attrs.Factory(lambda self: MutationCache(self.workloads), takes_self=True), kw_only=True, repr=False
    )
    """The Workloads with what we have written of them, and the informer may not show yet."""

    @classmethod
    def build(cls, client: ApiClient, fraction: Callable[[], float]) -> HubCaches:
        """Informers of their own, for those who run no manager beside; `run` fills them."""
        informer = partial(Informer, client, fraction=fraction)
        return cls(
            informer(WORKLOAD, flaw=workload_flaw, keeps_unreadable=True, indexes=HUB_INDEXES, transform=without_spec),
            informer(ADMISSION_CHECK),
            informer(MULTIKUEUE_CONFIG),
            informer(MULTIKUEUE_CLUSTER),
        )

    @classmethod
    def shared(
        cls,
        workloads: MutationCache,
        checks: Informer,
        configs: Informer,
        clusters: Informer,
        occupied: Callable[[str], bool],
    ) -> HubCaches:
        """Those that a manager has; before they run."""
        workloads.informer.add_indexes(HUB_INDEXES)
        return cls(workloads.informer, checks, configs, clusters, occupied=occupied, latest=workloads)

    def all(self) -> Sequence[Informer]:
        """All of them."""
        return self.workloads, self.checks, self.configs, self.clusters

    def work_of(self, config: str) -> dict[ObjectKey, WorkloadUse]:
        """The Workloads that matter for a config."""
        names = [name_of(check) for check in checks_of(config, self.checks.values())] if config else []
        return {key: self._work(key) for name in names for key in self.workloads.keys_by(HELD, name)}

    def held_by(self, check: str) -> dict[ObjectKey, WorkloadUse]:
        """The Workloads that matter for a check."""
        return {key: self._work(key) for key in self.workloads.keys_by(HELD, check)}

    def placed(self) -> frozenset[str]:
        """The clusters that any unfinished Workload names as its own."""
        return frozenset(self.workloads.entries(PLACED))

    def forget(self, key: ObjectKey) -> None:
        """A Workload has changed, or is gone."""
        self._read.pop(key, None)

    def wrote(self, workload: Json) -> None:
        """The server has answered a write with this: whoever listens to it may act on it before a watch shows it."""
        self._latest.wrote(workload)
        self._read.pop(ObjectKey.of(workload), None)

    def _work(self, key: ObjectKey) -> WorkloadUse:
        known = self._read.get(key)
        if known is None:
            workload = self._latest.get(key)
            assert workload is not None, "an index leads to what is not there"
            known = self._read[key] = WorkloadUse.of(workload)
        return known


def without_spec(workload: Json) -> Json:
    """What decisions about configs read of a Workload."""
    spec = {"active": (workload.get("spec") or {}).get("active")}
    slim: Json = {field: workload[field] for field in ("apiVersion", "kind") if field in workload}
    slim |= identity(workload)
    if is_terminating(workload):
        slim["metadata"]["deletionTimestamp"] = workload["metadata"]["deletionTimestamp"]
    return {**slim, "spec": spec, "status": workload.get("status") or {}}


@attrs.define(eq=False)
class OcmCaches:
    """The informers of OCM's kinds. OCM need not be installed: what is not served is reported, and asked for again."""

    placements: Informer
    decisions: Informer
    scores: Informer
    namespace: str

    @classmethod
    def build(
        cls, client: ApiClient, namespace: str, on_change: Callable[[], None], fraction: Callable[[], float]
    ) -> OcmCaches:
        """Build the informers; `run` fills them.

        Args:
            client: of the manager cluster.
            namespace: where Placements are.
            on_change: called when one of them can be read from now on, or not any more.
            fraction: the source of jitter.
        """
        informer = partial(Informer, client, fraction=fraction, on_status=lambda _: on_change())
        return cls(
            informer(PLACEMENT, namespace=namespace),
            informer(PLACEMENT_DECISION, namespace=namespace),
            informer(ADDON_PLACEMENT_SCORE),
            namespace,
        )

    async def run(self) -> None:
        """Follow them until cancelled."""
        async with anyio.create_task_group() as tasks:
            for informer in (self.placements, self.decisions, self.scores):
                tasks.start_soon(informer.run)

    def source(self, check: Json) -> Source | None:
        """What selects the clusters of a check; None: that is being read."""
        name = name_or_empty(check)
        unread = [informer for informer in (self.placements, self.decisions, self.scores) if not informer.status.synced]
        if any(not informer.status.failures for informer in unread):
            return None
        if not self.placements.status.synced:
            return Unknown("PlacementError", f"Failed to get placement {name}: {self.placements.status.last_error}")
        placement = self.placements.get(ObjectKey(self.namespace, name))
        if placement is None or is_terminating(placement):
            return Unknown("PlacementNotFound", f"Placement {name} not found; looked for in namespace {self.namespace}")
        if not self.decisions.status.synced:
            why = self.decisions.status.last_error
            return Unknown("PlacementDecisionError", f"Failed to refresh placement decision tracker: {why}")
        return Scheduled(placement, tuple(self.decisions.values()), dict(self._scores()))

    def _scores(self) -> Iterator[tuple[Coordinate, Json]]:
        for score in self.scores.values():
            key = ObjectKey.of(score)
            yield (key.namespace, key.name), score


def profile_informer(
    client: ApiClient, namespace: str, selector: str, on_change: Callable[[], None], fraction: Callable[[], float]
) -> Informer:
    """The ClusterProfiles with certain labels. The server selects them.

    Args:
        client: of the manager cluster.
        namespace: where ClusterProfiles are.
        selector: a label selector.
        on_change: called after each change.
        fraction: the source of jitter.
    """
    return Informer(
        client,
        CLUSTER_PROFILE,
        namespace=namespace,
        label_selector=selector,
        transform=lambda profile: None if is_terminating(profile) else identity(profile),
        on_change=lambda _key, _old, _new: on_change(),
        on_status=lambda _: on_change(),
        fraction=fraction,
    )


def labelled(profiles: Informer) -> Source | None:
    """What selects the clusters of an inventory; None: that is being read."""
    if profiles.status.synced:
        return Labelled(frozenset(map(name_of, profiles.values())))
    if not profiles.status.failures:
        return None
    return Unknown("ClusterProfileError", f"ClusterProfiles cannot be read: {profiles.status.last_error}")


async def start_hub(hub: HubCaches, tasks: anyio.abc.TaskGroup) -> None:
    """Run the informers of Kueue's kinds; return once they are complete."""
    await start_informers(hub.all(), tasks)


def when_readable(call: Callable[[], None]) -> Callable[[InformerStatus], None]:
    """Calls it when a kind is read for the first time, begins to fail, or does not fail any more."""
    before = False, False

    def changed(status: InformerStatus) -> None:
        nonlocal before
        if (now := (status.synced, bool(status.failures))) != before:
            before = now
            call()

    return changed
