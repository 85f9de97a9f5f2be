"""What one decision about a config looks at, what it remembers, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

import attrs

from multikueue.core.effects import ConfigStatistics, Effect
from multikueue.core.inventory.ownership import Takeover
from multikueue.core.inventory.ranking import Coordinate
from multikueue.core.inventory.selection import Unconfirmed
from multikueue.core.inventory.settings import PlacementSettings
from multikueue.core.inventory.telling import Told
from multikueue.core.model import workloads
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.core.model.workloads import CheckState


@attrs.frozen(eq=False)
class WorkloadUse:
    """One Workload of the manager."""

    object: Json
    key: ObjectKey
    states: Mapping[str, str]
    """The state of each of its checks."""
    finished: bool
    cluster: ClusterName | None
    """The worker that has it."""
    nominated: tuple[str, ...]
    """The workers that it is offered to."""
    open: bool
    """Whether Kueue listens to its checks."""

    @classmethod
    def of(cls, workload: Json) -> WorkloadUse:
        """Read a Workload."""
        ended = is_terminating(workload) or workloads.is_finished(workload) or workloads.is_evicted(workload)
        return cls(
            workload,
            ObjectKey.of(workload),
            {
                str(entry.get("name")): str(entry.get("state") or CheckState.PENDING)
                for entry in workloads.checks(workload)
            },
            workloads.is_finished(workload),
            workloads.cluster_name(workload),
            workloads.nominated(workload),
            not ended and workloads.is_active(workload) and workloads.has_quota(workload),
        )


@attrs.frozen
class Memory:
    """What one decision leaves for the next. A new process begins without it: waits begin anew, nothing is lost."""

    config: str = ""
    """The config that this is about: a check may come to name another Placement."""
    accepted: frozenset[str] | None = None
    unconfirmed: Unconfirmed | None = None
    decided_at: datetime | None = None
    """Since when the decision is as it is."""
    decided: frozenset[str] | None = None
    listed: tuple[str, ...] = ()
    """What the config should have listed the last time: somebody may have changed or deleted it meanwhile."""
    spec: Json = attrs.field(factory=dict)
    """The rest of the config's spec as last seen: a config that is made again has it, too."""
    busy: Mapping[str, datetime] = attrs.field(factory=dict)
    """By cluster, when a Workload was seen there last."""
    joined: Mapping[str, datetime] = attrs.field(factory=dict)
    """By selected cluster, since when."""
    put_off: tuple[str, ...] = ()
    """A better order that was not written."""
    warned: Told = attrs.field(factory=Told)
    """The last warning that has no place in a condition."""
    takeover: Takeover = attrs.field(factory=Takeover)
    """From OCM's addon."""


@attrs.frozen
class Scheduled:
    """A Placement, and what OCM has decided for it."""

    placement: Json
    decisions: tuple[Json, ...] = ()
    """The PlacementDecisions of its namespace, of other Placements too."""
    scores: Mapping[Coordinate, Json] = attrs.field(factory=dict)
    """The AddOnPlacementScores, by cluster and name."""


@attrs.frozen
class Labelled:
    """The ClusterProfiles with certain labels."""

    profiles: frozenset[str]


@attrs.frozen
class Unknown:
    """What decides cannot be seen."""

    reason: str
    """For the condition, as `PlacementNotFound`."""
    message: str


Source: TypeAlias = Scheduled | Labelled | Unknown
"""What selects clusters."""


@attrs.frozen
class ConfigSnapshot:
    """One config that is to be filled, and all that belongs to it, as the caches show it."""

    source: Source
    settings: PlacementSettings
    check: Json | None = None
    """The AdmissionCheck; None for an inventory."""
    name: str = ""
    """The name of the config of an inventory."""
    checks: Mapping[str, Json] = attrs.field(factory=dict)
    """All AdmissionChecks by name, whoever handles them."""
    configs: Mapping[str, Json] = attrs.field(factory=dict)
    """All MultiKueueConfigs by name."""
    clusters: Mapping[str, Json] = attrs.field(factory=dict)
    """All MultiKueueClusters by name."""
    workloads: tuple[WorkloadUse, ...] = ()
    """Those that have one of the checks which stand for the config."""
    placed: frozenset[str] = frozenset()
    """Clusters of an inventory that any unfinished Workload of the manager names as its own."""
    memory: Memory = attrs.field(factory=Memory)

    def own(self) -> Json:
        """The AdmissionCheck. Only what decides about checks may ask."""
        assert self.check is not None, "an inventory has no check"
        return self.check


def check_key(check: Json) -> tuple[str, str]:
    """Orders the checks of one Placement by age: the eldest writes their config."""
    return str(check["metadata"].get("creationTimestamp") or ""), name_of(check)


@attrs.frozen
class ConfigPlan:
    """The outcome of one decision."""

    effects: tuple[Effect, ...] = ()
    """In this order: the first that fails ends it."""
    look_again: float | None = None
    """Seconds after which time alone may change the decision; None: only a change can."""
    memory: Memory = attrs.field(factory=Memory)
    statistics: ConfigStatistics | None = None
    """None: nothing is filled."""
    skipped: bool = False
    """Whether a better order is put off from now on, because it is too little better, or too early."""
