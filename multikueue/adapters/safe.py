"""A job kind as all others use it: whatever its functions raise for one object holds up nothing else.

Rules written by users, and rows of other packages, may raise for objects that they do not expect. That must not stop
anything else: the copies of a Workload are removed when it has ended or lost its quota, the others are
reconciled as usual, and no watch ends, since it would end at the same object again and again. So each function has an
answer that does no harm, and what was raised is noted by object. A rule may say why it fails
by a `RuleError`; whatever else it raises is told by its type only, since its text may hold what is in the object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

import attrs

from multikueue.adapters.kind import JobKind
from multikueue.core.model.adapter import KindTraits, OnHold, Outcome, Stamp
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import (
    dig,
    identity,
    name_of,
    namespace_of,
    resource_version,
    stripped,
    uid,
    with_value,
)
from multikueue.core.model.shape import any_job_flaw, job_flaw
from multikueue.core.model.worker_names import origin_namespace
from multikueue.core.model.workload_names import LONG, SHORT, workload_name
from multikueue.errors import RuleError

_T = TypeVar("_T")

MAX_NOTED: Final = 10_000
"""Objects of which problems are kept; of the others, those noted longest ago are forgotten."""


@attrs.define(eq=False)
class Problems:
    """What the functions of rows raised, by the UID of the object: one name may exist on several clusters."""

    _noted: dict[str, dict[str, tuple[str, str]]] = attrs.field(factory=dict, init=False)
    """By UID and function, the resourceVersion that the object had, and what is to be told."""
    _unlogged: deque[tuple[ObjectKey, str]] = attrs.field(factory=lambda: deque(maxlen=MAX_NOTED), init=False)

    def of(self, obj: Json) -> tuple[str, ...]:
        """What is wrong for an object as it is now, each once."""
        if not self._noted:
            return ()
        noted = self._noted.get(_id(obj), {})
        return tuple(dict.fromkeys(problem for version, problem in noted.values() if version == resource_version(obj)))

    def unlogged(self) -> list[tuple[ObjectKey, str]]:
        """The problems that are new since the last call, for the log. One that a later version of the object still has
        is not new. An object that is not stored yet has no versions: each of its problems is new."""
        problems = list(self._unlogged)
        self._unlogged.clear()
        return problems

    def note(self, obj: Json, function: str, problem: str) -> None:
        """A function raised for the object as it is now."""
        noted = self._noted.pop(_id(obj), {})
        if problem not in (known for _, known in noted.values()):
            self._unlogged.append((ObjectKey.of(obj), problem))
        noted[function] = (resource_version(obj), problem)
        if _id(obj):
            self._noted[_id(obj)] = noted
        if len(self._noted) > MAX_NOTED:
            del self._noted[next(iter(self._noted))]

    def clear(self, obj: Json, function: str) -> None:
        """The function works for the object as it is now."""
        if not self._noted:
            return
        noted = self._noted.get(_id(obj), {})
        if noted.pop(function, None) and not noted:
            self.forget(obj)

    def forget(self, obj: Json) -> None:
        """The object is gone."""
        self._noted.pop(_id(obj), None)


@attrs.define(eq=False)
class SafeAdapter:
    """A row that may be asked about any object. Implements `multikueue.core.model.adapter.JobAdapter`.

    Where a rule fails the job has not ended and nothing is written. Two functions still raise, and only `RuleError`:
    `copy`, for without a copy there is nothing to go on with, and `not_delegated`, since either answer would be wrong:
    one runs the job twice, the other ends it.
    """

    row: JobKind
    problems: Problems = attrs.field(factory=Problems, repr=False)

    @property
    def resource(self) -> Resource:
        """See `JobAdapter`."""
        return self.row.resource

    @property
    def traits(self) -> KindTraits:
        """See `JobAdapter`."""
        return self.row.traits

    def flaw(self, obj: Json) -> str:
        """What is wrong with the shape of a job. What a row from elsewhere reads of a status only that row knows."""
        return any_job_flaw(obj) if self.row.source else job_flaw(obj)

    def problems_of(self, obj: Json) -> tuple[str, ...]:
        """See `JobAdapter`. Those of its copies of other kinds in the same registry are told, too."""
        return self.problems.of(obj)

    def not_delegated(self, job: Json, controller_name: str) -> str | None:
        """See `JobAdapter`."""
        return self._asked("delegation", job, lambda: self.row.not_delegated(job, controller_name))

    def acted_on(self, job: Json) -> str:
        """See `JobAdapter`."""
        return self._tried("acted_on", job, "", lambda: self.row.acted_on(job))

    def refused(self, job: Json) -> str:
        """See `JobAdapter`."""
        return self._tried("refused", job, "", lambda: self.row.refused(job))

    def unheeded(self, job: Json) -> Sequence[str]:
        """See `JobAdapter`."""
        return self._tried("unheeded", job, (), lambda: self.row.unheeded(job))

    def expires_at(self, job: Json, seen: datetime) -> datetime | None:
        """See `JobAdapter`."""
        return self._tried("time_to_live", job, None, lambda: self.row.expires_at(job, seen))

    def why_free(self, job: Json) -> str:
        """See `JobAdapter`."""
        return self._tried("why_free", job, "that cannot be told", lambda: self.row.why_free(job))

    def hold(self, job: Json) -> Json | None:
        """What makes a new job of the manager one that we hold there; None: nothing is to be done, or nothing can."""
        rules = self.row.holding
        return None if rules is None else self._tried("hold", job, None, lambda: rules.hold(job))

    def copy(self, job: Json, stamp: Stamp) -> Json:
        """See `JobAdapter`. What it raises is not noted: the job is rejected, in these words."""
        return self._asked("sanitised or prepared", job, lambda: self.row.copy(job, stamp), noted=False)

    def config_maps(self, job: Json) -> tuple[str, ...]:
        """See `JobAdapter`."""
        return self._tried("config_maps", job, (), lambda: self.row.config_maps(job))

    def status_patch(self, local: Json, remote: Json, now: datetime) -> Json | None:
        """See `JobAdapter`."""
        return self._tried("status", remote, None, lambda: self.row.status_patch(local, remote, now))

    def waiting_patch(self, local: Json, now: datetime) -> Json | None:
        """See `JobAdapter`."""
        return self._tried("words", local, None, lambda: self.row.waiting_patch(local, now))

    def expected_workloads(self, job: Json) -> int:
        """See `JobAdapter`."""
        return self._tried("workloads", job, 1, lambda: self.row.membership.workloads(job))

    def forward_patch(self, local: Json, remote: Json, stamp: Stamp) -> Json | None:
        """See `JobAdapter`."""
        return self._tried("followed or resized", local, None, lambda: self.row.forward_patch(local, remote, stamp))

    def outcome(self, job: Json) -> Outcome | None:
        """See `JobAdapter`."""
        return self._tried("finished", job, None, lambda: self.row.outcome(job))

    def may_have_ended(self, job: Json) -> bool:
        """See `JobAdapter`. A change of a copy of which this is true is acted on at once."""
        return self._tried("finished", job, True, lambda: self.row.outcome(job) is not None)

    def outcome_of(self, jobs: Sequence[Json]) -> Outcome | None:
        """See `JobAdapter`."""
        return self._tried("finished or all_finished", jobs[0], None, lambda: self.row.outcome_of(jobs))

    def release_patch(self, local: Json) -> Json | None:
        """See `JobAdapter`."""
        return self._tried("finished, active or stopped", local, None, lambda: self.row.release_patch(local))

    def settled_end(self, job: Json) -> Outcome | None:
        """See `JobAdapter`."""
        return self._tried("finished", job, None, lambda: self.row.settled_end(job))

    def settled_patch(self, local: Json, now: datetime) -> Json | None:
        """See `JobAdapter`."""
        return self._tried("at_settled_end", local, None, lambda: self.row.settled_patch(local, now))

    def is_stopped_here(self, local: Json) -> bool:
        """See `JobAdapter`."""
        return self._tried("active or stopped", local, False, lambda: self.row.is_stopped_here(local))

    def shows_former_run(self, local: Json) -> bool:
        """See `JobAdapter`."""
        return self._tried("active or stopped", local, False, lambda: self.row.shows_former_run(local))

    def on_hold_here(self, local: Json) -> OnHold:
        """See `JobAdapter`."""
        return self._tried("on_hold", local, OnHold.UNKNOWN, lambda: self.row.on_hold_here(local))

    def pods_are_gone(self, job: Json) -> bool:
        """See `JobAdapter`."""
        return self._tried("pods_are_gone", job, False, lambda: self.row.pods_are_gone(job))

    def is_counting(self, job: Json) -> bool:
        """See `JobAdapter`."""
        return self._tried("counting", job, False, lambda: self.row.is_counting(job))

    def copy_entries(self, copy: Json, *, noted: bool = False) -> list[str] | None:
        """The keys of the Workloads that carry a copy, as an index has them; None: that cannot be told.

        Nobody may take None for "none": the copy would look gone, and be made again, or what belongs to it be removed.
        An index keeps the entries it has; see `MutationCache.entries` and `job_event_handlers.copy_handler` for how its
        Workload is found then. A copy of which it never could be told is not removed with its Workload.

        Args:
            copy: on a worker.
            noted: whether a failure is noted: for the index of the cache, which asks about each version once.
        """
        namespace = origin_namespace(copy)
        return self._tried("carriers", copy, None, lambda: _entries(namespace, self.row.carriers_of(copy)), noted=noted)

    def job_entries(self, job: Json, *, noted: bool = False) -> list[str] | None:
        """The key of the Workload that a manager's job shares with others, as `copy_entries`; see `jobs_of` of
        `ManagerCluster` for how the members are found of which it cannot be told."""
        return self._tried(
            "group", job, None, lambda: _entries(namespace_of(job), self.row.groups_of(job)), noted=noted
        )

    def stopped_entries(self, job: Json) -> list[str]:
        """The keys that the Workload may have had of a manager's job that would show a run without it, as an index has
        them; none of other jobs."""
        gvk, named = self.resource.gvk, (name_of(job), uid(job))
        if self.traits.keeps_check_pending or not self.shows_former_run(job):
            return []
        return _entries(namespace_of(job), [workload_name(gvk, *named, limit=limit) for limit in (LONG, SHORT)])

    @property
    def job_indexes(self) -> dict[str, Callable[[Json], Iterable[str] | None]]:
        """The indexes of the manager's jobs."""
        return {"workload": partial(self.job_entries, noted=True), "stopped": self.stopped_entries}

    def slim_copy(self, copy: Json) -> Json:
        """A copy without what nobody reads; if that cannot be told, all of it. May change its argument."""
        return self._tried("unread", copy, copy, lambda: stripped(copy, self.row.copies.unread))

    def slim_job(self, job: Json, controller_name: str) -> Json:
        """A job that a copy may be made of, whole; of one that is not ours, what is needed to say so."""
        return self._tried("delegation", job, job, lambda: self._slim(job, controller_name))

    def _slim(self, job: Json, controller_name: str) -> Json:
        if self.row.not_delegated(job, controller_name) is None:
            return job
        path, slim = self.row.delegation.path, identity(job)
        return slim if path is None else with_value(slim, path, dig(job, *path))

    def _tried(self, function: str, obj: Json, otherwise: _T, attempt: Callable[[], _T], *, noted: bool = True) -> _T:
        try:
            return self._asked(function, obj, attempt, noted=noted)
        except RuleError:
            return otherwise

    def _asked(self, function: str, obj: Json, attempt: Callable[[], _T], *, noted: bool = True) -> _T:
        try:
            answer = attempt()
        except Exception as error:  # another package's code may raise anything
            problem = self._told(function, obj, error)
            if noted:
                self.problems.note(obj, function, problem)
            raise RuleError(problem) from error
        if noted:
            self.problems.clear(obj, function)
        return answer

    def _told(self, function: str, obj: Json, error: Exception) -> str:
        if isinstance(error, RuleError):
            return str(error)
        where = f", from {self.row.source}" if self.row.source else ""
        what = f'{function} raises {type(error).__name__} for "{ObjectKey.of(obj)}"'
        return f"the row for {self.resource}{where}: {what}"


def _id(obj: Json) -> str:
    return str(uid(obj))  # an object that is not stored yet may have anything there


def _entries(namespace: str, names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError("one name where several belong")
    listed = list(names)
    if not all(isinstance(name, str) for name in listed):
        raise TypeError("a name that is not text")
    return [str(ObjectKey(namespace, name)) for name in listed]
