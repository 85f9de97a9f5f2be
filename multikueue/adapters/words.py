"""What a kind's own controller says of a job that waits: on the manager `managedBy` turns that controller off.

Programs read it. A Job without its condition `Suspended` is taken for one that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeAlias

import attrs

from multikueue.core.model.conditions import conditions, find, new_condition, replaced
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of, namespace_of

Word: TypeAlias = tuple[str, str, str, str]
"""Type, status, reason and message of a condition, with `{name}` and `{job}` (namespace/name) in the message."""

SUSPENDED: Final = "Suspended"


@attrs.frozen(kw_only=True)
class Words:
    """The words of one kind."""

    waiting: tuple[Word, ...] = ()
    """Conditions of a suspended job."""
    from_the_first: bool = False
    """Whether what is `False` is said of a job that has never run, too: else only where such a condition is there."""
    fields: Mapping[str, str] = attrs.field(factory=dict)
    """What its status says beside them."""
    resumed: tuple[str, str] | None = None
    """Reason and message of the condition `Suspended` of a job that is suspended no more; None: it has none."""
    written: str = ""
    """The field of a condition, beside `lastTransitionTime`, that tells when it was written; empty: none does."""

    def of_waiting(self, job: Json, now: datetime) -> Json:
        """The status of a suspended job of which nothing runs, made from the one that it has."""
        name, listed = name_of(job), list(conditions(job))
        for kind, status, reason, message in self.waiting:
            old = find(listed, kind) or {"status": "" if self.from_the_first else "False"}
            if old["status"] != status:
                text = message.format(name=name, job=f"{namespace_of(job)}/{name}")
                new = {**new_condition(kind, True, reason, text, now=now), "status": status}
                times = {self.written: new["lastTransitionTime"]} if self.written else {}
                listed = replaced(listed, {**new, **times})
        return {**(dig(job, "status") or {}), **self.fields} | ({"conditions": listed} if listed else {})

    def of_started(self, status: Json) -> Json:
        """A copy's status for a job that is suspended no more, while the copy still is, or is again."""
        listed = status.get("conditions") or []
        old = find(listed, SUSPENDED) if self.resumed is not None else None
        if old is None or old.get("status") != "True" or self.resumed is None:
            return status
        reason, message = self.resumed
        return {
            **status,
            "conditions": replaced(listed, {**old, "status": "False", "reason": reason, "message": message}),
        }
