"""A Workload with all that was read around it. Its line and the answers of workers are made of that once."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.workloads import reserved_at
from multikueued.reports.events import EventReport
from multikueued.reports.jobs import JobReport, JobState, job_report
from multikueued.reports.objects import Chain, ManagerObjects
from multikueued.reports.places import Waiting
from multikueued.reports.remedies.audience import Audience
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.worker_answers import WorkerAnswer, ask_workers
from multikueued.reports.worker_reasons import with_reasons


@attrs.frozen(slots=False)  # what is looked up often is kept
class Seen:
    """What an explanation is made of."""

    workload: Json
    job: Json | None
    """The job behind it, as far as it could be read."""
    objects: ManagerObjects
    events: tuple[EventReport, ...]
    """Of both, in the order of time."""
    now: datetime
    not_checked: tuple[str, ...] = ()
    """What could not be read."""
    others: tuple[str, ...] = ()
    """The other Workloads of the job that have not ended, as `workload/NAME`."""
    waiting: Waiting | None = None
    """How it waits, where that is known."""
    audience: Audience = Audience.OPERATOR
    """Whom the remedies are for."""
    others_named: bool | None = True
    """Whether other jobs may be named, since `objects` were read with the rights of who is told; None: nobody asks for
    what they hold up."""
    fleet: tuple[Finding, ...] = ()
    """What is wrong with the fleet: what concerns the job on the workers that have it, or may get it, is told."""

    chain: Chain = attrs.field(init=False)
    """What the Workload leads to."""

    @chain.default
    def _looked_up(self) -> Chain:
        return self.objects.chain(self.workload)

    @cached_property
    def line(self) -> JobReport:
        """Where the job is, in a line."""
        line = job_report(self.chain)
        return self.waiting.on(line, reserved_at(self.workload)) if self.waiting is not None else line

    @cached_property
    def answers(self) -> tuple[WorkerAnswer, ...]:
        """What each worker of the config says; while it waits for one, with why it is not offered there."""
        answers = ask_workers(self.chain, self.line, self.events, self.now)
        waits = self.line.state in (JobState.WAITING, JobState.OFFERED)
        return with_reasons(answers, self.chain, self.job, self.now) if waits else answers
