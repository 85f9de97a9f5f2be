"""A job kind whose rules may fail: what holds then, and what is told.

Rules written by users meet objects nobody thought of. One that fails must not stop what has nothing to do with it: the
copies of a Workload are removed when it has ended or lost its quota, the others are worked on as if nothing had
happened. (While it cannot be told whether a job is delegated, its Workload keeps its quota and waits.) A rule may
say why it fails by a `RuleError`; whatever else it raises is told by its type only, since its text may hold what is in
the object. What is asked of a kind outside a decision is guarded by `multikueue.runtime.safe_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import attrs

from multikueue.core.model.adapter import JobAdapter, Outcome, Stamp
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import RuleError

_T = TypeVar("_T")


def complaint(adapter: JobAdapter, function: str, job: Json, error: Exception) -> str:
    """What to tell of a function of a row that raised.

    Args:
        adapter: the row.
        function: its name in the row.
        job: the object it was called with.
        error: what it raised.
    """
    if isinstance(error, RuleError):
        return str(error)
    where = f", from {adapter.source}" if adapter.source else ""
    return f'the row for {adapter.resource}{where}: {function} raises {type(error).__name__} for "{ObjectKey.of(job)}"'


@attrs.define(eq=False)
class Guard:
    """A `JobAdapter` that notes what fails. Where a rule fails the job has not ended and nothing is written.

    Two still raise, and only `RuleError`: `copy`, for without a copy there is nothing to go on with, and
    `not_delegated`, since either answer would be wrong: one runs the job twice, the other ends it.
    """

    adapter: JobAdapter
    problems: dict[str, None] = attrs.field(factory=dict, init=False)
    """What failed so far, in order, each once."""

    @property
    def resource(self) -> Resource:
        """See `JobAdapter`."""
        return self.adapter.resource

    @property
    def source(self) -> str:
        """See `JobAdapter`."""
        return self.adapter.source

    @property
    def keeps_check_pending(self) -> bool:
        """See `JobAdapter`."""
        return self.adapter.keeps_check_pending

    @property
    def keeps_status(self) -> bool:
        """See `JobAdapter`."""
        return self.adapter.keeps_status

    @property
    def resizable(self) -> bool:
        """See `JobAdapter`."""
        return self.adapter.resizable

    @property
    def ends(self) -> bool:
        """See `JobAdapter`."""
        return self.adapter.ends

    @property
    def workload_only(self) -> bool:
        """See `JobAdapter`."""
        return self.adapter.workload_only

    @property
    def status_subresource(self) -> bool:
        """See `JobAdapter`."""
        return self.adapter.status_subresource

    def not_delegated(self, job: Json, controller_name: str) -> str | None:
        """See `JobAdapter`."""
        try:
            return self.adapter.not_delegated(job, controller_name)
        except Exception as error:
            told = complaint(self.adapter, "managed_by", job, error)
            self.problems[told] = None
            raise RuleError(told) from error

    def copy(self, job: Json, stamp: Stamp) -> Json:
        """See `JobAdapter`."""
        try:
            return self.adapter.copy(job, stamp)
        except RuleError:
            raise
        except Exception as error:
            raise RuleError(complaint(self.adapter, "sanitised or prepared", job, error)) from error

    def status_patch(self, local: Json, remote: Json, now: datetime) -> Json | None:
        """See `JobAdapter`."""
        return self._tried("status", remote, None, lambda: self.adapter.status_patch(local, remote, now))

    def expected_workloads(self, job: Json) -> int:
        """See `JobAdapter`."""
        return self._tried("workloads", job, 1, lambda: self.adapter.expected_workloads(job))

    def forward_patch(self, local: Json, remote: Json, stamp: Stamp) -> Json | None:
        """See `JobAdapter`."""
        return self._tried("followed or resized", local, None, lambda: self.adapter.forward_patch(local, remote, stamp))

    def outcome(self, job: Json) -> Outcome | None:
        """See `JobAdapter`."""
        return self._tried("finished", job, None, lambda: self.adapter.outcome(job))

    def outcome_of(self, jobs: Sequence[Json]) -> Outcome | None:
        """See `JobAdapter`."""
        return self._tried("finished or all_finished", jobs[0], None, lambda: self.adapter.outcome_of(jobs))

    def release_patch(self, local: Json) -> Json | None:
        """See `JobAdapter`."""
        return self._tried("finished or stopped", local, None, lambda: self.adapter.release_patch(local))

    def _tried(self, function: str, job: Json, otherwise: _T, attempt: Callable[[], _T]) -> _T:
        try:
            return attempt()
        except Exception as error:  # another package's code may raise anything
            self.problems[complaint(self.adapter, function, job, error)] = None
            return otherwise
