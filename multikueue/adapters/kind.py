"""`JobKind`: one row per job kind, and the behaviour all kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import attrs

from multikueue.adapters.declaration import Declaration
from multikueue.adapters.paths import FieldPath
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.copies import bare_metadata, prebuilt_workload, stamped_metadata, without_labels
from multikueue.core.model.labels import CONTROLLER_NAME, STARTED_LABELS
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import (
    clone,
    dig,
    merge_patch,
    overlaid,
    resource_version,
    uid,
    with_value,
    without,
    without_nulls,
)
from multikueue.core.model.workloads import is_elastic

StatusRule: TypeAlias = Callable[[Json, Json, datetime], Json | None]
"""(manager's job, worker's job, now) -> the status the manager's job should have; None: leave it as it is."""

FollowRule: TypeAlias = Callable[[Json, Json, Stamp], Json | None]
"""(manager's job, worker's job, marks) -> merge patch of the worker's; None if it is right, or not ours to change."""

CopyRule: TypeAlias = Callable[[Json, Json, Stamp], Json]
"""(manager's job, copy without marks, marks) -> the copy; may change the copy it is given."""


def whole_status(local: Json, remote: Json, now: datetime) -> Json | None:
    """The plain rule: the manager's job shows what the worker's shows."""
    del local, now
    return dig(remote, "status") or {}


def finished_by_conditions(*, succeeded: str, failed: str) -> Callable[[Json], Outcome | None]:
    """How most kinds end: by a condition of one type or the other."""

    def outcome(job: Json) -> Outcome | None:
        for kind, reason, message in (
            (succeeded, "Succeeded", "Job finished successfully"),
            (failed, "Failed", "Job failed"),
        ):
            if is_true(job, kind):
                told = (condition(job, kind) or {}).get("message")
                return Outcome(reason, told or message)
        return None

    return outcome


def counters_at_zero(*paths: tuple[str, ...]) -> Callable[[Json], Json]:
    """For kinds whose status counts running pods; `*` in a path stands for every entry of a list or mapping."""

    def stopped(status: Json) -> Json:
        for path in paths:
            for parent in _parents(status, path[:-1]):
                if parent.get(path[-1]):
                    parent[path[-1]] = 0
        return status

    return stopped


def _parents(value: Any, path: tuple[str, ...]) -> Iterator[Json]:
    if not path:
        if isinstance(value, dict):
            yield value
    elif path[0] == "*":
        entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for entry in entries:
            yield from _parents(entry, path[1:])
    else:
        yield from _parents(dig(value, path[0]), path[1:])


def unchanged(status: Json) -> Json:
    """For kinds of whose status nobody knows what says that something runs."""
    return status


def never_finished(job: Json) -> Outcome | None:
    """For kinds that serve and do not end."""
    del job
    return None


@attrs.frozen(kw_only=True)
class JobKind:
    """One job kind. Implements `multikueue.core.model.adapter.JobAdapter`."""

    resource: Resource
    framework: str = ""
    """The kind's name under Kueue's `integrations.frameworks`; empty for kinds that are not built into Kueue."""
    managed_by: tuple[str, ...] | None = ("spec", "managedBy")
    """Where the job says who runs it; None for kinds without such a field, which are always taken as delegated."""
    own_controller: str = ""
    """What the job says there when the kind's own controller runs it; empty where that is said by saying nothing."""
    managed_by_value: str = ""
    """What a job that is delegated says there; empty for kinds that say the controller's name."""
    left_out: tuple[tuple[str, ...], ...] = ()
    """What a copy does not have, beside `managed_by`: what the manager's API server or Kueue filled in."""
    unread: tuple[tuple[str, ...], ...] = ()
    """What nobody reads of a copy on a worker, so that it need not be kept in memory."""
    suspend: tuple[str, ...] | None = ("spec", "suspend")
    """Where the job says that it should not run; None for kinds that Kueue holds by scheduling gates."""
    selector: str = ""
    """Label selector of the manager's jobs of this kind that matter; empty: all of them."""
    group: Callable[[Json], str] | None = None
    """The Workload that a job shares with others of its kind, empty for one on its own; None: none ever does."""
    carriers: Callable[[Json], Sequence[str]] | None = None
    """The Workloads that carry a copy, where Kueue derives their names; None: a copy names its Workload."""
    status: StatusRule | None = whole_status
    """When and how status comes home; None for kinds whose status must stay the manager's own."""
    finished: Callable[[Json], Outcome | None] = never_finished
    """How the job ended."""
    all_finished: Callable[[Sequence[Json]], Outcome | None] | None = None
    """How the jobs of one Workload ended, for kinds of which there may be several."""
    stopped: Callable[[Json], Json] = unchanged
    """The status of a job of which nothing runs any more, made from the last one seen; see `counters_at_zero`."""
    sanitised: Callable[[Json], Json] = lambda spec: spec
    """Changes the spec of a copy where leaving fields out is not enough; may change its argument."""
    prepared: CopyRule | None = None
    """Changes the copy where more than its spec must change; the marks that make it ours are set after it."""
    forwarded: tuple[tuple[str, ...], ...] = ()
    """Fields that follow the manager's job after the copy was made."""
    followed: FollowRule | None = None
    """What else of the copy follows the manager's job, where `forwarded` is not enough."""
    resized: FollowRule | None = None
    """How the copy of an elastic job follows the size of the manager's; None for kinds that cannot be elastic."""
    workloads: Callable[[Json], int] = lambda job: 1
    """How many Workloads the manager's Kueue makes of a job."""
    keeps_check_pending: bool = False
    """Whether Ready would start the job on the manager as well."""
    status_subresource: bool = True
    """Whether the status is written through `/status`; otherwise with the object itself."""
    workload_only: bool = False
    """Whether somebody else's controller moves the jobs: the worker is chosen, and the jobs are left alone."""
    source: str = attrs.field(default="", eq=False)
    """Where the row comes from, for messages: a setting, or a package."""
    declaration: Declaration | None = attrs.field(default=None, eq=False, repr=False)
    """What the row was compiled from, with what its profile filled in; None for rows written in Python."""

    @property
    def keeps_status(self) -> bool:
        """See `JobAdapter`."""
        return self.status is None

    @property
    def resizable(self) -> bool:
        """See `JobAdapter`."""
        return self.resized is not None

    @property
    def ends(self) -> bool:
        """See `JobAdapter`."""
        return self.finished is not never_finished

    def not_delegated(self, job: Json, controller_name: str) -> str | None:
        """See `JobAdapter`. The words are Kueue's, with the field's true path."""
        if self.managed_by is None:
            return None
        found = dig(job, *self.managed_by) or ""
        expected = self.managed_by_value or controller_name
        if found in (expected, self.managed_by_value or CONTROLLER_NAME):
            return None  # Kueue's own name will do for any controller: many kinds take no other
        field = str(FieldPath(self.managed_by)).lstrip(".")
        return f'Expecting {field} to be "{expected}" not "{found}"'

    def copy(self, job: Json, stamp: Stamp) -> Json:
        """See `JobAdapter`. Only metadata and spec are copied: status and other top-level fields are the worker's."""
        paths = self.left_out if self.managed_by is None else (self.managed_by, *self.left_out)
        bare = without({"metadata": bare_metadata(job, {}, {}), "spec": job.get("spec") or {}}, paths)
        made = {
            "apiVersion": self.resource.gvk.api_version,
            "kind": self.resource.gvk.kind,
            "metadata": bare["metadata"],
            "spec": self.sanitised(bare["spec"]),
        }
        if self.resizable and is_elastic(job):
            made = self._as_if_never_started(made)
        if self.prepared is not None:
            made = self.prepared(job, made, stamp)
        return {**made, "metadata": stamped_metadata(made, stamp, named=self.carriers is None)}

    def _as_if_never_started(self, copied: Json) -> Json:
        """Kueue neither stops an elastic job that it lets grow, nor takes its marks off once it has stopped it."""
        never = without_labels(copied, STARTED_LABELS)
        return never if self.suspend is None else with_value(never, self.suspend, True)

    def workload_names(self, copied: Json) -> Sequence[str]:
        """The names of the Workloads that carry a copy."""
        if self.carriers is not None:
            return self.carriers(copied)
        named = prebuilt_workload(copied)
        return (named,) if named else ()

    def status_patch(self, local: Json, remote: Json, now: datetime) -> Json | None:
        """See `JobAdapter`. Carries the resourceVersion, so that it never lands on a job that has changed."""
        wanted = self.status(local, remote, now) if self.status is not None else None
        return None if wanted is None else self._status_change(local, wanted)

    def expected_workloads(self, job: Json) -> int:
        """See `JobAdapter`."""
        return self.workloads(job)

    def forward_patch(self, local: Json, remote: Json, stamp: Stamp) -> Json | None:
        """See `JobAdapter`."""
        patch: Json = {}
        if self.resized is not None and is_elastic(local):
            patch = self.resized(local, remote, stamp) or {}
        for path in self.forwarded:
            wanted = dig(local, *path)
            if wanted != dig(remote, *path):
                patch = with_value(patch, path, wanted)
        if self.followed is not None:
            patch = overlaid(patch, self.followed(local, remote, stamp) or {})
        return with_value(patch, ("metadata", "uid"), uid(remote)) if patch else None

    def outcome(self, job: Json) -> Outcome | None:
        """See `JobAdapter`."""
        return self.finished(job)

    def outcome_of(self, jobs: Sequence[Json]) -> Outcome | None:
        """See `JobAdapter`."""
        return self.finished(jobs[0]) if self.all_finished is None else self.all_finished(jobs)

    def release_patch(self, local: Json) -> Json | None:
        """See `JobAdapter`. Of a job that has ended nothing runs, and what it says of its end stays."""
        if self.finished(local) is not None:
            return None
        return self._status_change(local, self.stopped(clone(dig(local, "status") or {})))

    def _status_change(self, local: Json, wanted: Json) -> Json | None:
        wanted = without_nulls(wanted)
        patch = merge_patch(without_nulls(dig(local, "status") or {}), wanted)
        if not patch:
            return None
        # None of it: a schema may want an empty one to have something in it, and takes its absence.
        return {"metadata": {"resourceVersion": resource_version(local)}, "status": patch if wanted else None}
