"""What `plan()` asks of a job kind; `multikueue.adapters.SafeAdapter` is the one implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

import attrs

from multikueue.core.model.names import Json, Resource


@attrs.frozen
class Outcome:
    """How a job ended, in the words of a Workload's Finished condition."""

    reason: str
    message: str


class OnHold(Enum):
    """Whether the status of the manager's job makes its Kueue put the Workload on hold: without quota, not evicted."""

    UNKNOWN = auto()
    """No status of the kind does that."""
    NO = auto()
    YES = auto()
    """The status was written for the job's current spec."""
    OUTDATED = auto()
    """The status puts it on hold, and the job's spec has been changed since."""


@attrs.frozen
class Stamp:
    """What every copy is marked with."""

    origin: str
    workload: str
    """Name of the Workload that carries the job."""
    attempt: str
    """The mark of the attempt on the worker that the copy is for (`core.model.marks`)."""
    job_mark: str = attrs.field(default="", kw_only=True)
    """The mark of any attempt's job there, which Workload copies do not have; empty: none."""
    copy_of: str = attrs.field(default="", kw_only=True)
    """The mark of the job's copies there, or of the Workload's name; empty: none, or that which is there stays."""
    counts: Mapping[str, int] = attrs.field(factory=dict)
    """How many pods an elastic job's Workload has quota for, by pod set; empty for other jobs."""
    pod_sets: tuple[Json, ...] = ()
    """Those of the Workload: what the job's templates were like before a Kueue started it."""
    namespace: str = ""
    """Where the copy is made; empty: in the namespace of the same name."""
    queues: Mapping[str, str] = attrs.field(factory=dict)
    """The LocalQueue there by the one here; others have the same name."""


@attrs.frozen(kw_only=True)
class KindTraits:
    """What holds for all jobs of a kind."""

    keeps_check_pending: bool = False
    """Whether Ready would start a job on the manager too, so that the check must stay Pending; see `why_free`."""
    keeps_status: bool = False
    """Whether the status of copies stays on the worker: the manager's job does not show when they have stopped."""
    resizable: bool = False
    """Whether they can be elastic."""
    ends: bool = True
    """Whether they tell how they ended; where they do not, the Workload alone tells."""
    serves: bool = False
    """Whether they run until somebody stops them."""
    workload_only: bool = False
    """Whether somebody else's controller moves them: we choose the worker, and never touch them."""
    status_subresource: bool = True
    """Whether the status is written through `/status`; otherwise with the object itself."""
    pods_label: str = ""
    """The label by which the pods of a job are found, whose value is the job's name, for kinds whose controllers do not
    set `blockOwnerDeletion`: a copy may be gone while its pods still end. Empty for all others."""
    draining: bool = False
    """Whether the settings do not name the kind any more: what a worker has is followed to its end, nothing is new."""


class JobAdapter(Protocol):
    """One job kind. Objects go in and out as JSON, and are not changed.

    Its rules may fail for an object. Then the job has not ended and nothing is to be written, and `problems_of` tells
    what is wrong; only `copy` and `not_delegated` raise.
    """

    @property
    def resource(self) -> Resource:
        """The kind, as the API servers serve it."""

    @property
    def traits(self) -> KindTraits:
        """What holds for all its jobs."""

    def problems_of(self, obj: Json) -> tuple[str, ...]:
        """Which rules have failed for an object as it is now, in words for its user, whenever they were asked."""

    def not_delegated(self, job: Json, controller_name: str) -> str | None:
        """Why the manager's own controllers would run this job; None if they leave it to us.

        Raises:
            RuleError: it cannot be told.
        """

    def acted_on(self, job: Json) -> str:
        """What shows that the manager's own controller acts on a job that is delegated, in words for its user; empty
        if nothing does. Such a controller would run it as soon as its check is Ready.
        """

    def refused(self, job: Json) -> str:
        """Why the job is not dispatched as it is, in words for its user; empty: it is."""

    def unheeded(self, job: Json) -> Sequence[str]:
        """What the job says that no controller heeds while it is delegated, as the time after which it is deleted."""

    def expires_at(self, job: Json, seen: datetime) -> datetime | None:
        """When the manager's job, which has ended, is to be deleted: by what it says itself, where we heed that.

        Args:
            job: the manager's.
            seen: when its end was seen here, by the manager's clock: it counts from then at the earliest.

        Returns:
            None: never, it is somebody else's to delete, or it does not show its end.
        """

    def why_free(self, job: Json) -> str:
        """Why nothing of ours keeps this job of the manager from running there once its check is Ready, in words for
        its user; empty if something does. Only for kinds with `keeps_check_pending`.
        """

    def copy(self, job: Json, stamp: Stamp) -> Json:
        """The object to create on a worker.

        Raises:
            RuleError: it cannot be made from this job.
        """

    def config_maps(self, job: Json) -> tuple[str, ...]:
        """The names of the ConfigMaps that a job names beside its pod templates."""

    def status_patch(self, local: Json, remote: Json, now: datetime) -> Json | None:
        """Merge patch of the local job's status; None if nothing should be written.

        Its API server takes it, whatever stands there already. Pods of the copy that still end are shown as active
        where the manager's Kueue would let go of the quota otherwise. An end that the local job shows, and the copy
        does not, stays; and while it is suspended, a copy that runs is not shown.
        """

    def waiting_patch(self, local: Json, now: datetime) -> Json | None:
        """Status patch that says of a suspended local job, of which nothing is shown to run, what its kind's own
        controller would; None if it says so already, or the kind has no such words.
        """

    def expected_workloads(self, job: Json) -> int:
        """How many Workloads the manager's Kueue makes of the job: more than one only for groups."""

    def forward_patch(self, local: Json, remote: Json, stamp: Stamp) -> Json | None:
        """Merge patch of the copy, for what may change after creation; None if nothing should be written.

        Args:
            local: the manager's job.
            remote: the copy.
            stamp: how a copy made now would be marked.
        """

    def outcome(self, job: Json) -> Outcome | None:
        """How the job ended; None while it has not."""

    def may_have_ended(self, job: Json) -> bool:
        """Whether it has ended, or the rule that says so fails for it: then another look tells no more."""

    def outcome_of(self, jobs: Sequence[Json]) -> Outcome | None:
        """How all the jobs of one Workload ended, of which there may be several; None while they have not."""

    def release_patch(self, local: Json) -> Json | None:
        """Status patch that says "nothing runs", for a job whose copy is gone; None if it says so already."""

    def settled_end(self, job: Json) -> Outcome | None:
        """How the job has ended, or can only end by what its status has already, whoever has put it there; None while
        that is open.

        Where the local job has it and its copy has not, it has run, or somebody asks that the run be stopped, and ended
        in this way.
        """

    def settled_patch(self, local: Json, now: datetime) -> Json | None:
        """Status patch that ends the local job as `settled_end` says, of which nothing runs any more; None if it has
        ended, or nothing is settled."""

    def is_stopped_here(self, local: Json) -> bool:
        """Whether the local job is suspended while its status says that it runs, or that its pods end.

        So while it is being evicted; otherwise its Kueue has stopped it without a word to its Workload. Before its
        first start it shows no run, unless the copy's worker has stopped that again. Always false for kinds that
        cannot be suspended, and for declared ones that do not say what is active.
        """

    def shows_former_run(self, local: Json) -> bool:
        """Whether the local job still shows a run though its Workload is gone: then no run of it is meant to be there.

        Of kinds that Kueue suspends, once it has; of declared ones that tell how they end, at once.
        """

    def on_hold_here(self, local: Json) -> OnHold:
        """Whether the status of the local job makes its Kueue put it on hold."""

    def pods_are_gone(self, job: Json) -> bool:
        """Whether the status of a copy that is still there says that no pod of it is left; False if that is not known.

        Of a group all must say so.
        """

    def is_counting(self, job: Json) -> bool:
        """Whether the controller of a copy has yet to count pods that have ended: then the job may prove to have ended.
        False if that is not known."""


def may_have_pods(adapter: JobAdapter, job: Json) -> bool:
    """Whether a job copy may have pods: it has not ended, and its status does not say that none is left."""
    return adapter.outcome(job) is None and not adapter.pods_are_gone(job)
