"""Which earlier runs a Workload waits for, for programs: JSON in a condition, of the same write as our check's message.

The message is for people, and nobody reads it back. The condition counts beside the message that it was written with.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import attrs
import orjson

from multikueue.core.model.check_message import Message
from multikueue.core.model.conditions import condition, json_message, new_condition, parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import digest

WAITS: Final = "multikueue.dev/Waits"
"""The type of the condition."""
FOR_EARLIER_RUN: Final = "EarlierRun"
"""Its reason."""
_MOST: Final = 2048
"""Characters of its message."""


@attrs.frozen
class EarlierRun:
    """A job copy of an earlier attempt: while it is seen, nobody gets the job."""

    worker: str
    kind: str
    name: str
    uid: str
    deleted: datetime | None = None
    """By the worker's clock; None: nobody has deleted it, and it may still run."""
    due: datetime | None = None
    """When its pods should have ended, and a minute; None: that is not known."""
    finalizers: tuple[str, ...] = ()
    """Those that hold it, but for Kubernetes' own."""

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}" (UID {self.uid}) of an earlier attempt'

    def is_overdue(self, now: datetime) -> bool:
        """Whether somebody should look why it has not ended."""
        return self.due is not None and self.due <= now


def earlier_run_condition(runs: Sequence[EarlierRun], message: str, now: datetime) -> Json:
    """The condition to write beside a message of our check.

    Args:
        runs: what is waited for. Those for which there is no more room are left out.
        message: the check's, as it is written.
        now: the manager's wall clock.
    """
    kept = len(runs)
    while len(text := _text(runs[:kept], message)) > _MOST and kept > 1:
        kept -= 1
    return new_condition(WAITS, True, FOR_EARLIER_RUN, text, now=now)


def earlier_runs_in(workload: Json, message: str) -> tuple[EarlierRun, ...]:
    """What a Workload waits for; empty: for no earlier run, or that is not known.

    Args:
        workload: the manager's.
        message: of our check on it.
    """
    facts = json_message(workload, WAITS)
    if facts.get("message") != _digest(message) or (condition(workload, WAITS) or {}).get("reason") != FOR_EARLIER_RUN:
        return ()
    runs = facts.get("runs")
    return tuple(_read(run) for run in runs if isinstance(run, dict)) if isinstance(runs, list) else ()


def _read(run: Json) -> EarlierRun:
    worker, kind, name, uid = (str(run.get(field) or "") for field in ("worker", "kind", "name", "uid"))
    listed = run.get("finalizers")
    finalizers = tuple(map(str, listed)) if isinstance(listed, list) else ()
    deleted, due = (parse_timestamp(run.get(field)) for field in ("deleted", "due"))
    return EarlierRun(worker, kind, name, uid, deleted, due, finalizers)


def _digest(message: str) -> str:
    """Of its head: what stands behind that is of other things, and changes by itself."""
    return digest(Message.read(message).head)


def _text(runs: Sequence[EarlierRun], message: str) -> str:
    known = [attrs.asdict(run, filter=lambda _, value: value not in (None, ())) for run in runs]
    facts = {"message": _digest(message), "runs": known}
    return orjson.dumps(facts, option=orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS).decode()
