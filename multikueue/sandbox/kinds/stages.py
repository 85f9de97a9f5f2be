"""Statuses as a table: what a status says while a job is stopped, runs, has succeeded or has failed.

The job runner writes what is in the table, and the small Kueue reads by it how far a job has come.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from multikueue.core.model.conditions import conditions, find, new_condition, timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig, is_terminating
from multikueue.sandbox.kinds.course import Ending, Moment, Run, Turn


@attrs.frozen(kw_only=True)
class Stage:
    """What a status says at one point of a job's life."""

    fields: Mapping[str, Any] = attrs.field(factory=dict)
    """Fields of the status, with their values."""
    conditions: Mapping[str, str] = attrs.field(factory=dict)
    """Statuses of conditions, by type: `True`, `False` or `Unknown`. The last one is the latest in the list."""
    times: tuple[str, ...] = ()
    """Fields that say when this began."""
    dropped: tuple[str, ...] = ()
    """Fields that are not there any more."""
    counted: tuple[str, ...] = ()
    """The counters that hold the number of pods now; all others are 0."""
    reason: str = ""
    """Of the conditions, and of the event."""
    message: str = ""
    """`{job}` stands for the job's namespace and name, `{name}` for its name."""
    words: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)
    """Reason and message of single conditions, by type, where they differ from the stage's."""
    by_reason: bool = False
    """Whether the conditions' reason tells stages apart, too."""

    def shown(self, job: Json) -> bool:
        """Whether a job's status says so."""
        if not self.fields and not self.conditions:
            return False
        status, listed = job.get("status") or {}, conditions(job)
        # What is False may as well not be there, unless nothing else tells.
        telling = {kind: wanted for kind, wanted in self.conditions.items() if wanted != "False"}
        decisive = telling or ({} if self.fields else self.conditions)
        fits = all(status.get(field) == value for field, value in self.fields.items())
        return fits and all(self._says(find(listed, kind), wanted) for kind, wanted in decisive.items())

    def _says(self, condition: Json | None, wanted: str) -> bool:
        if condition is None or condition.get("status") != wanted:
            return False
        return not self.by_reason or condition.get("reason") == self.words.get(condition["type"], (self.reason, ""))[0]

    def written(self, listed: list[Json], now: datetime) -> list[Json]:
        """The list of conditions, with this stage's at its end."""
        for kind, value in self.conditions.items():
            if not self._says(find(listed, kind), value):
                reason, message = self.words.get(kind, (self.reason or kind, self.message))
                made = new_condition(kind, True, reason, message, now=now)
                listed = [*(entry for entry in listed if entry.get("type") != kind), {**made, "status": value}]
        return listed


@attrs.frozen
class Counters:
    """Numbers of pods in a status, one entry for each role."""

    field: str
    names: tuple[str, ...]
    """The counters of an entry."""
    listed: bool = True
    """Whether entries are a list, with names; else they are fields of an object."""

    def write(self, pods: Mapping[str, int], counted: tuple[str, ...]) -> Any:
        """The field's value."""
        entries = {role: {name: count if name in counted else 0 for name in self.names} for role, count in pods.items()}
        return [{"name": role, **entry} for role, entry in entries.items()] if self.listed else entries

    def any(self, job: Json, name: str) -> bool:
        """Whether this counter is above 0 for some role."""
        entries = dig(job, "status", self.field) or ()
        return any(entry.get(name) for entry in (entries.values() if isinstance(entries, dict) else entries))


@attrs.frozen(kw_only=True)
class Stages:
    """A course by table. Implements `Course`.

    Without `succeeded` and `failed` jobs serve until they are deleted. What is being deleted says nothing more.
    """

    running: Stage
    suspended: Stage = Stage()
    stopping: Stage | None = None
    """While pods of a suspended job end; None: its status does not tell."""
    starting: Stage | None = None
    """Until pods are ready; None: they are ready at once."""
    succeeded: Stage | None = None
    failed: Stage | None = None
    counters: Counters | None = None

    @property
    def ends(self) -> bool:
        """See `Course`."""
        return self.succeeded is not None

    def ending(self, job: Json) -> Ending | None:
        """See `Course`."""
        for stage, reason in ((self.succeeded, "Succeeded"), (self.failed, "Failed")):
            if stage is not None and stage.shown(job):
                return Ending(reason, _message_of(job, stage) or stage.message)
        return None

    def is_active(self, job: Json) -> bool:
        """See `Course`."""
        if self.counters is not None:
            return self.counters.any(job, "active")
        return self.running.shown(job) or (self.starting is not None and self.starting.shown(job))

    def pods_ready(self, job: Json) -> bool:
        """See `Course`."""
        if self.counters is not None and "ready" in self.counters.names:
            return self.counters.any(job, "ready")
        return self.running.shown(job)

    def turn(self, job: Json, run: Run | None, moment: Moment) -> Turn:
        """See `Course`."""
        if self.ending(job) is not None or moment.deleted or (moment.suspended and is_terminating(job)):
            return Turn()
        if moment.suspended:
            return self._turn(job, (moment.ending and self.stopping) or self.suspended, moment)
        run = run or moment.started()
        if self.starting is not None and moment.time < run.ready_at:
            return self._turn(job, self.starting, moment, run, at=run.ready_at)
        last = self.failed if run.fate.fails else self.succeeded
        if last is None:
            return self._turn(job, self.running, moment, run)
        if moment.time < run.ends_at:
            return self._turn(job, self.running, moment, run, at=run.ends_at)
        return self._turn(job, last, moment)

    def _turn(
        self, job: Json, stage: Stage, moment: Moment, run: Run | None = None, *, at: float | None = None
    ) -> Turn:
        status = self._status(job, stage, moment)
        if status == (job.get("status") or {}):
            return Turn(run=run, at=at)
        return Turn(status=status, run=run, at=at, event=(stage.reason, stage.message) if stage.reason else None)

    def _status(self, job: Json, stage: Stage, moment: Moment) -> Json:
        known = {field: value for field, value in (job.get("status") or {}).items() if field not in stage.dropped}
        status = {**known, **clone(dict(stage.fields))}
        shown = stage.shown(job)
        began = [field for field in stage.times if not shown or field not in status]
        status.update(dict.fromkeys(began, timestamp(moment.now)))
        if self.counters is not None:
            status[self.counters.field] = self.counters.write(moment.pods, stage.counted)
        listed = [_filled_in(entry, job) for entry in stage.written(status.get("conditions") or [], moment.now)]
        return {**status, "conditions": listed} if listed else status


def _filled_in(condition: Json, job: Json) -> Json:
    """The condition with the job's namespace and name where its message has `{job}`, and its name for `{name}`."""
    metadata = job["metadata"]
    own = f"{metadata.get('namespace', 'default')}/{metadata['name']}"
    message = condition.get("message", "").replace("{job}", own).replace("{name}", metadata["name"])
    return {**condition, "message": message}


def _message_of(job: Json, stage: Stage) -> str:
    """The message of the condition that says so, or of the status."""
    kinds = [kind for kind, value in stage.conditions.items() if value != "False"]
    source = find(conditions(job), kinds[-1]) if kinds else job.get("status")
    return str(dig(source, "message") or dig(job, "status", "message") or "")


BY_CONDITIONS = Stages(
    suspended=Stage(conditions={"Running": "False", "Suspended": "True"}, reason="Suspended", message="Suspended"),
    running=Stage(conditions={"Suspended": "False", "Running": "True"}, reason="Running", message="Running"),
    succeeded=Stage(conditions={"Running": "False", "Complete": "True"}, reason="Completed", message="Job completed"),
    failed=Stage(conditions={"Running": "False", "Failed": "True"}, reason="Failed", message="Job failed"),
)
"""How a kind goes that is nothing special: `Suspended`, `Running`, and then `Complete` or `Failed`."""
