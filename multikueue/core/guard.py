"""A job kind whose rules may fail: what holds then, and what is told.

Rules written by users meet objects nobody thought of. One that fails must not stop what has nothing to do with it: the
copies of a Workload are removed, its quota is freed, the others are worked on as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import attrs

from multikueue.core.adapter import JobAdapter, Outcome, Stamp
from multikueue.core.names import Json, Resource
from multikueue.errors import RuleError

_T = TypeVar("_T")


@attrs.define(eq=False)
class Guard:
    """A `JobAdapter` that notes what fails. Where a rule fails the job has not ended and nothing is written.

    Only `copy` still raises: without a copy there is nothing to go on with.
    """

    adapter: JobAdapter
    problems: dict[str, None] = attrs.field(factory=dict, init=False)
    """What failed so far, in order, each once."""

    @property
    def resource(self) -> Resource:
        """See `JobAdapter`."""
        return self.adapter.resource

    @property
    def keeps_check_pending(self) -> bool:
        """See `JobAdapter`."""
        return self.adapter.keeps_check_pending

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
        return self.adapter.not_delegated(job, controller_name)

    def copy(self, job: Json, stamp: Stamp) -> Json:
        """See `JobAdapter`."""
        return self.adapter.copy(job, stamp)

    def status_patch(self, local: Json, remote: Json, now: datetime) -> Json | None:
        """See `JobAdapter`."""
        return self._tried(None, lambda: self.adapter.status_patch(local, remote, now))

    def expected_workloads(self, job: Json) -> int:
        """See `JobAdapter`."""
        return self._tried(1, lambda: self.adapter.expected_workloads(job))

    def forward_patch(self, local: Json, remote: Json, stamp: Stamp) -> Json | None:
        """See `JobAdapter`."""
        return self._tried(None, lambda: self.adapter.forward_patch(local, remote, stamp))

    def outcome(self, job: Json) -> Outcome | None:
        """See `JobAdapter`."""
        return self._tried(None, lambda: self.adapter.outcome(job))

    def outcome_of(self, jobs: Sequence[Json]) -> Outcome | None:
        """See `JobAdapter`."""
        return self._tried(None, lambda: self.adapter.outcome_of(jobs))

    def release_patch(self, local: Json) -> Json | None:
        """See `JobAdapter`."""
        return self._tried(None, lambda: self.adapter.release_patch(local))

    def _tried(self, otherwise: _T, attempt: Callable[[], _T]) -> _T:
        try:
            return attempt()
        except RuleError as error:
            self.problems[str(error)] = None
            return otherwise
