"""Everything one decision looks at: a Workload of the manager, its job, and its copies on every worker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import attrs

from multikueue.core.model.adapter import JobAdapter
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource


@attrs.frozen
class PlanSettings:
    """What an operator can choose about the life of workloads."""

    controller_name: str = CONTROLLER_NAME
    """`spec.controllerName` of our AdmissionChecks, and what delegated jobs say in `managedBy`."""
    origin: str = "multikueue"
    """Value of the origin label: tells our copies from those of another manager on the same worker."""
    worker_lost_timeout: timedelta = timedelta(minutes=15)
    """How long a job stays assigned to a worker that cannot be reached. Kueue's default: long enough for a
    worker's API server to be upgraded, short enough that a dead worker's jobs run elsewhere the same hour."""
    orchestrated_preemption: bool = False
    """Whether one worker at a time may preempt for a Workload. Off, as in Kueue, where it is an alpha feature."""
    preemption_timeout: timedelta = timedelta(minutes=5)
    """How long one worker may preempt before the next one may as well. Kueue's fixed value."""


@attrs.frozen
class JobCopy:
    """One job object of ours on a worker."""

    resource: Resource
    object: Json


@attrs.frozen
class Worker:
    """What is known of one worker, and what of this Workload lies there.

    Copies are only ever objects that carry our origin label; objects of others are not in the snapshot.
    """

    name: ClusterName
    reachable: bool = True
    """Whether its Workloads are being watched right now: only then is absence a fact."""
    configured: bool = True
    """Whether the check's MultiKueueConfig lists it: only then is it offered new work."""
    serves_kind: bool = True
    """Whether the job's kind is being watched there."""
    unserved_for: timedelta | None = None
    """For how long that has failed; None while it does not."""
    known: bool = True
    """Whether this process has ever seen what lies there."""
    awaited: bool = False
    """Whether it has yet to say anything for the first time: it is neither lost, nor known to be there."""
    blocked: bool = False
    """Whether somebody else's object has the name of one of ours there, or it refuses ours."""
    blocked_for: timedelta | None = None
    """For how long it is left alone because of that; None if only a change there can end it."""
    starting: bool = False
    """Whether the job is being created there just now."""
    removing: bool = False
    """Whether what lies there is being removed just now."""
    unsure_for: timedelta | None = None
    """How long ago the job was to be created there, if it cannot be told whether it was: there was no answer."""
    lost_since: datetime | None = None
    """Since when it cannot be reached, by the manager's clock."""
    workload: Json | None = None
    jobs: tuple[JobCopy, ...] = ()
    """Its jobs there: those that name it."""
    shared: tuple[JobCopy, ...] = ()
    """The owner's job there, where it names another Workload of the same owner or none: see `siblings`."""

    @property
    def in_sight(self) -> bool:
        """Whether its copies are being watched: what does not show is not there, or was made a moment ago."""
        return self.reachable and self.serves_kind

    @property
    def is_empty(self) -> bool:
        """Whether nothing of this Workload is there, as far as can be seen."""
        return self.workload is None and not self.jobs

    @property
    def can_run(self) -> bool:
        """Whether it can be offered the job now."""
        return self.in_sight and self.configured and not self.blocked


@attrs.frozen
class Snapshot:
    """One Workload and all that belongs to it, as the caches show it."""

    key: ObjectKey
    workload: Json | None
    """The manager's object; None when it is gone."""
    check: str | None = None
    """Which of its admission checks is ours; None if none is."""
    check_unknown: bool = False
    """Whether a check of it refers to an AdmissionCheck that cannot be seen: it may be ours."""
    adapter: JobAdapter | None = None
    """How to handle the owner's kind; None if the kind is not registered."""
    jobs: Mapping[str, Json] = attrs.field(factory=dict)
    """The manager's jobs by name; empty while the cache does not show them."""
    in_vain: Mapping[str, Json] = attrs.field(factory=dict)
    """By the name of a job: the patch of its status that the manager answered without changing anything. Its API server
    drops what its definition of the kind does not know, and fills in what it does."""
    running_for: timedelta = timedelta.max
    """How long this process has been listening to workers."""
    quiet_for: timedelta = timedelta(0)
    """How long nothing of it has changed, here or on a worker, as far as this process has seen."""
    siblings: tuple[Json, ...] = ()
    """The manager's other Workloads of the same job: slices of an elastic job, parts of a group."""
    workers: tuple[Worker, ...] = ()
    """All known workers, those of the config first and in its order."""

    def worker(self, name: str) -> Worker | None:
        """The worker of that name."""
        return next((worker for worker in self.workers if worker.name == name), None)
