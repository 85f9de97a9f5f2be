"""Everything one decision looks at: a Workload of the manager, its job, and its copies on every worker."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import TypeVar

import attrs
from attrs.validators import instance_of

from multikueue.core.dispatchers.dispatcher import Facts
from multikueue.core.model import worker_states as states
from multikueue.core.model.adapter import JobAdapter
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.placements import Placement
from multikueue.core.model.second_names import held_as_second
from multikueue.core.model.worker_kueue import WorkerKueue
from multikueue.core.model.worker_names import WorkerNames, cordon_of, record_counts
from multikueue.core.model.workload_facts import COPIES, NO_COPY, CopyFacts
from multikueue.core.model.workloads import cluster_name
from multikueue.core.workload.seen.graces import LONGEST_GRACE

State = TypeVar("State", bound=states.Reach | states.Kind)


@attrs.frozen
class PlanSettings:
    """What an operator can choose about the life of workloads."""

    controller_name: str = CONTROLLER_NAME
    """`spec.controllerName` of our AdmissionChecks, and what delegated jobs say in `managedBy`."""
    origin: str = "multikueue"
    """Value of the origin label: tells our copies from those of another manager on the same worker."""
    mark_key: bytes = attrs.field(default=b"", repr=False, validator=instance_of(bytes))
    """The secret by which copies are marked: whoever knows it can make a copy that is believed. The same for all that
    take turns; to lose it costs no job (`core.model.marks`). Empty only where nobody else can create objects."""
    worker_lost_timeout: timedelta = attrs.field(default=timedelta(minutes=15), validator=instance_of(timedelta))
    """How long a job stays assigned to a worker that cannot be reached. Kueue's default: enough to upgrade one."""
    pod_grace_limit: timedelta = attrs.field(default=LONGEST_GRACE, validator=instance_of(timedelta))
    """The longest grace period of pods for which an evicted Workload keeps its quota, plus a minute."""
    orchestrated_preemption: bool = False
    """Whether one worker at a time may preempt for a Workload. Off, as in Kueue, where it is an alpha feature."""
    pods_ready: bool = False
    """Whether the check of pods becomes Ready, where our scheduling gate holds every one of them on the manager."""
    finished_retention: timedelta = attrs.field(default=timedelta(0), validator=instance_of(timedelta))
    """How long the winner's copies stay after the end."""
    failed_retention: timedelta = attrs.field(default=timedelta(0), validator=instance_of(timedelta))
    """The same for jobs that have failed, if it is longer; see also `ending.MOST_FAILED`."""
    preemption_timeout: timedelta = attrs.field(default=timedelta(minutes=5), validator=instance_of(timedelta))
    """How long one worker may preempt before the next one may as well. Kueue's fixed value."""
    dependencies: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    """By MultiKueueConfig: the kinds of what jobs need that are copied, or looked for (`core.model.dependencies`)."""


@attrs.frozen
class JobCopy:
    """One job object of ours on a worker."""

    resource: Resource
    object: Json
    adopter: str = ""
    """Who controls it there, as `ReplicaSet "web-7d9f"`; empty while nobody does."""
    deleted_here: bool = False
    """Whether this process has deleted it: what is left of it then is held by somebody else's finalizer."""


@attrs.frozen
class Worker:
    """What is known of one worker, and what of this Workload is there.

    Copies are only ever objects that carry our origin label; objects of others are not in the snapshot.
    """

    name: ClusterName
    configured: bool = True
    """Whether the check's MultiKueueConfig lists it: only then is it offered new work."""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    """Of its MultiKueueCluster."""
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    """Of its MultiKueueCluster."""
    reach: states.Reach = attrs.field(default=states.Connected())
    kind: states.Kind = attrs.field(default=states.Served())
    in_flight: states.InFlight = attrs.field(default=states.Idle())
    creation: states.Creation = attrs.field(default=states.Untracked())
    refusal: states.Refusal | None = None
    """Why it refuses an object of this Workload, and for how long it is not asked again; None: it is asked."""
    namespace: str = ""
    """Where its copies are looked for; empty: in that of the same name."""
    namespace_proven: bool = False
    """Whether others of its job are seen to have a copy of ours there."""
    copy: Json | None = None
    """The Workload copy there."""
    supplied: tuple[str, ...] = ()
    """The UIDs of the copies there that own the job's dependencies, as far as this process knows."""
    jobs: tuple[JobCopy, ...] = ()
    """The job copies there that name this Workload."""
    shared: tuple[JobCopy, ...] = ()
    """Job copies there of the same owner that name another of its Workloads, or none: see `Snapshot.siblings`."""
    slices: tuple[Json, ...] = ()
    """The Workload copies there of other slices of its job that are Finished on the manager, and not there."""
    pods_left_ago: timedelta | None = None
    """How long ago a job copy was gone that may have left pods behind; None: none has."""
    pods: tuple[Json, ...] | None = ()
    """Of a kind with `KindTraits.pods_label`: the pods of an earlier attempt that were found there; None: nobody has
    looked for them yet."""
    unreadable: str = ""
    """Which object of it there cannot be read, and why; see `unreadable.hidden`."""
    removed: bool = False
    """Whether its MultiKueueCluster is gone, or going."""
    second_of: str = ""
    """The first of several workers that lead to the same cluster; empty: it is this one. See `second_names`."""
    identified: bool = True
    """Whether it is known which cluster it is: if not, another worker may be the same one."""
    is_manager: bool = False
    """Whether it is the manager's own cluster."""
    failed: int = 0
    """How many Workload copies of jobs that have failed are in the namespace there."""
    kueue: WorkerKueue = attrs.field(default=WorkerKueue())
    """What is known of its Kueue."""

    @cached_property
    def facts(self) -> CopyFacts:
        """What the Workload copy there says."""
        return COPIES.of(self.copy) if self.copy is not None else NO_COPY

    @property
    def all_jobs(self) -> tuple[JobCopy, ...]:
        """The job copies there, whichever of its Workloads each names."""
        return (*self.jobs, *self.shared)

    @property
    def copies(self) -> tuple[Json, ...]:
        """All objects there."""
        jobs = tuple(job.object for job in self.all_jobs)
        return jobs if self.copy is None else (self.copy, *jobs)

    @property
    def cordon(self) -> str:
        """Why it gets nothing new; see `cordon_of`."""
        return cordon_of(self.annotations) or (held_as_second(self.second_of) if self.second_of else "")

    def is_one_with(self, other: Worker) -> bool:
        """Whether the two are known to lead to one cluster, or are one."""
        return (self.second_of or self.name) == (other.second_of or other.name)

    @property
    def names(self) -> WorkerNames:
        """How namespaces and queues are called there."""
        return WorkerNames.of(self.annotations, of_manager=self.is_manager)

    @property
    def reachable(self) -> bool:
        """Whether its Workloads are being watched."""
        return isinstance(self.reach, states.Connected)

    @property
    def sight(self) -> states.Reach | states.Kind:
        """What keeps it out of sight; where nothing does, what it makes of the kind."""
        return self.kind if self.reachable else self.reach

    @property
    def in_sight(self) -> bool:
        """Whether its copies are being watched: what does not show is not there, or was made a moment ago."""
        return states.in_sight(self.reach, self.kind)

    @property
    def seen(self) -> bool:
        """Whether this process has read what is there, now or before the worker was lost."""
        match self.sight:
            case states.Lost(seen=seen) | states.Unserved(seen=seen) | states.Opaque(seen=seen):
                return seen
        return self.answered

    @property
    def answered(self) -> bool:
        """Whether the first lists of Workloads and of the kind were answered, or failed, since this process started."""
        return not isinstance(self.sight, states.Connecting | states.Syncing)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of this Workload is there, as far as can be seen."""
        return self.copy is None and not self.jobs

    @property
    def can_run(self) -> bool:
        """Whether it can be offered the job now."""
        return isinstance(self.sight, states.Served) and self.configured and self.refusal is None


def hidden(worker: Worker, why: str, *, jobs_only: bool = False) -> Worker:
    """The worker without what it shows of this Workload: that is unknown, which is neither absent nor lost.

    Whoever may create or change an object there can bring this about. So objects that cannot be read are not changed or
    deleted, and no Workload is sent back, finished or given to another worker because of them. Other Workloads go on
    there.

    Args:
        worker: one with an object of this Workload that cannot be read, or of which a decision cannot be made.
        why: what cannot be read.
        jobs_only: whether its Workload copy can be read, and its Kueue be told.
    """
    stays = jobs_only and isinstance(worker.reach, states.Connected)
    return attrs.evolve(
        worker,
        reach=worker.reach if stays else _unseen(worker.reach),
        kind=_unseen(worker.kind) if jobs_only else worker.kind,
        copy=worker.copy if jobs_only else None,
        jobs=(),
        shared=(),
        # That nobody has sent the job does not tell that there is none.
        creation=states.Untracked() if isinstance(worker.creation, states.NothingSent) else worker.creation,
        unreadable=why,
    )


def _unseen(state: State) -> State | states.Opaque:
    """The state of a worker that has shown nothing. How long it has not answered still counts."""
    match state:
        case states.Lost() | states.Unserved():
            return attrs.evolve(state, seen=False)
        case states.Connected() | states.Served() | states.Unusable() | states.Opaque():
            return states.Opaque(seen=False)
    return state


@attrs.frozen
class Snapshot:
    """One Workload and all that belongs to it, as the caches show it."""

    key: ObjectKey
    workload: Json | None
    """The manager's object; None when it is gone."""
    was_here: bool = attrs.field(default=False, kw_only=True)
    """Whether this process has seen the Workload before it was deleted. Read only where it is gone."""
    check: str | None = None
    """Which of its admission checks is ours; None if none is."""
    config: str = ""
    """The MultiKueueConfig of that check."""
    check_unknown: bool = False
    """Whether a check of it refers to an AdmissionCheck that cannot be seen: it may be ours."""
    adapter: JobAdapter | None = None
    """Of the owner's kind; None if that is not registered."""
    unreadable: str = ""
    """Which object that every decision needs cannot be read, and why: this Workload on the manager, or another one of
    the same job. `workload` has no more than metadata then. Empty: all can be read."""
    unreadable_job: str = ""
    """Which of the manager's jobs cannot be read, and why; empty: all can be. `jobs` is empty then."""
    missing_setting: str = ""
    """What to do so that jobs of the kind are dispatched; empty if they are."""
    jobs: Mapping[str, Json] = attrs.field(factory=dict)
    """The manager's jobs by name; empty while the cache does not show them."""
    in_vain: Mapping[str, Json] = attrs.field(factory=dict)
    """By the name of a job: the status patch that the manager's API server accepted, and that changed nothing. It drops
    fields that its CRD does not have, and fills in defaults."""
    refused_for: timedelta = timedelta(0)
    """For how long the manager's API server has refused every status of its jobs that was written."""
    last_worker: ClusterName | None = None
    """The worker that was recorded last, in this attempt or an earlier one, as far as this process has seen."""
    placement: Placement | None = None
    """Its current placement; without one, the last that this process has seen."""
    running_for: timedelta = timedelta.max
    """How long this process has been connecting to workers."""
    quiet_for: timedelta = timedelta(0)
    """How long nothing of it has changed, here or on a worker."""
    unchanged_here_for: timedelta = timedelta(0)
    """How long nothing of it has changed on the manager."""
    held_for: timedelta | None = None
    """How long this attempt has had its quota, as this process saw it begin; None: it did not."""
    siblings: tuple[Json, ...] = ()
    """The manager's other Workloads of the same job: slices of an elastic job, parts of a group."""
    dispatcher_facts: Facts = attrs.field(factory=Facts)
    """What the dispatcher knows of it while it waits."""
    workers: tuple[Worker, ...] = ()
    """All known workers, those of the config first and in its order."""

    @cached_property
    def recorded_workers(self) -> frozenset[str]:
        """The workers that have the Workload, or others of its job."""
        sharing = (self.workload or {}, *filter(record_counts, self.siblings))
        return frozenset(name for sharer in sharing if (name := cluster_name(sharer)) is not None)

    def namespace_for(self, worker: Worker) -> str:
        """The namespace on a worker for new copies: where copies are, or may be; else as it is called there now."""
        looked_at = worker.namespace or self.key.namespace
        if worker.copy is not None or worker.jobs or worker.shared:
            return looked_at
        if isinstance(worker.creation, states.Unanswered):
            return worker.creation.namespace or looked_at  # somebody may have removed what the Workload said
        proven = worker.namespace_proven or looked_at == self.key.namespace
        stays = (proven and worker.name in self.recorded_workers) or not isinstance(worker.in_flight, states.Idle)
        return looked_at if stays else worker.names.namespace(self.key.namespace) or looked_at

    def worker(self, name: str) -> Worker | None:
        """The worker of that name."""
        return next((worker for worker in self.workers if worker.name == name), None)

    def with_workers(self, change: Callable[[Worker], Worker]) -> Snapshot:
        """With each worker as `change` makes it; itself if that changes none."""
        workers = tuple(map(change, self.workers))
        return self if all(map(operator.is_, workers, self.workers)) else attrs.evolve(self, workers=workers)
