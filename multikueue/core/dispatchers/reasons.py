"""What each worker answers to a Workload, and why it is not asked: one machine reason, and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import ClusterName
from multikueue.errors import Cause

LONGEST_SUMMARY: Final = 256
"""In characters."""


@attrs.frozen
class Reason:
    """Why one worker does not have a Workload: what it answers, or why it is not asked."""

    why: Cause
    """For programs, and a label of a metric."""
    detail: str = ""
    """For people: `needs 8 nvidia.com/gpu of a100, 4 free`; of what a worker says, its own words."""
    until: datetime | None = None
    """When it is asked again; None: that is not known."""
    about: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    """What it is about there, as `kind` and `name`: remedies fill it in."""

    def __str__(self) -> str:
        return self.detail or _WORDS.get(self.why, self.why)

    @property
    def said(self) -> str:
        """The same as our check says it behind the worker's name; empty: there is nothing to say."""
        if (sentence := _SAID.get(self.why)) is None:
            return self.detail or _WORDS.get(self.why, "")
        return sentence.format(detail=self.detail, until=timestamp(self.until) if self.until is not None else "")


_SAID: Final[Mapping[Cause, str]] = {
    Cause.CONNECTING: "connecting{detail}",
    Cause.OUT_OF_REACH: "unreachable{detail}",
    Cause.ANSWERS_UNREADABLE: "answers with more than may be read{detail}",
    Cause.JOBS_UNREAD: "its jobs are being read{detail}",
    Cause.NOT_SERVED: "does not serve the job's kind{detail}",
    Cause.REFUSED: "refuses it, is asked again at {until}: {detail}",
    Cause.SHARE_USED_UP: "has no room for it, is asked again at {until}: {detail}",
    Cause.NOT_NOMINATED: "not nominated yet",
    Cause.TURN_AWAITED: "{detail} there has no preemption gates: it is asked when its turn to preempt has come",
    Cause.LEFT_OVER: "what an earlier attempt has left there is being removed",
    Cause.COPY_ENDED: "has ended its copy: {detail}",
    Cause.MAY_NOT_PREEMPT: "may not preempt there yet: {detail}",
    Cause.UNLISTED: (
        "has no MultiKueueCluster any more: the job runs there to its end, "
        "and moves if the daemon is restarted and cannot reach it for workerLostTimeout"
    ),
}
"""Of a worker that is out of sight the detail is what follows from that."""
_WORDS: Final = {
    Cause.OUT_OF_REACH: "it cannot be reached",
    Cause.ANSWERS_UNREADABLE: "it answers with more than may be read",
    Cause.OBJECT_UNREADABLE: "what is there of the job cannot be read",
    Cause.JOBS_UNREAD: "its jobs are being read",
    Cause.NOT_SERVED: "it does not serve the job's kind",
    Cause.FIELD_MISSING: "its definition of the job's kind lacks a field",
    Cause.CORDONED: "it is cordoned",
    Cause.SECOND_NAME: "it is another name of a worker",
    Cause.BEING_MOVED: "the job is being moved away from it",
    Cause.NO_LOCAL_QUEUE: "it has no LocalQueue of that name",
    Cause.NAMESPACE_UNNAMED: "it has no such namespace",
    Cause.QUEUE_INACTIVE: "its ClusterQueue is not Active",
    Cause.QUEUE_UNFIT: "its ClusterQueue cannot hold copies",
    Cause.NEVER_STARTS: "its ClusterQueue leads to workers, and no copy ever starts there",
    Cause.NAME_TOO_LONG: "its Kueue has no room for the name of the Workload",
    Cause.NOT_NAMED: "the job does not name it",
    Cause.NOT_SELECTED: "the job does not select it",
    Cause.NOT_TOLERATED: "the job does not tolerate its taints",
    Cause.NOT_TOGETHER: "the job belongs to another that is elsewhere",
    Cause.OTHER_FLAVOR: "the manager gave the job a flavor of other workers",
    Cause.NEVER_FITS: "no flavor there could ever hold the job",
    Cause.REFUSED: "its Kueue refused the job",
    Cause.FAILED_BEFORE: "the job failed there, and others have not been tried",
    Cause.ASKED_BEFORE: "it did not take the job in time, and others have not been asked",
    Cause.NO_ROOM: "it has no room",
    Cause.NO_NODES: "its nodes had no place for such pods, and nothing has ended there since",
    Cause.CLAIMED: "its room goes to jobs that are ahead",
    Cause.OTHERS_WAIT: "jobs of others wait there",
    Cause.ON_TRIAL: "jobs have failed there, and it gets one at a time until one succeeds",
    Cause.FIGURES_AWAITED: "its queues are being read",
    Cause.UNREADABLE: "an annotation of the job cannot be read",
    Cause.NOT_BEST: "another is better",
}


def summary(reasons: Mapping[ClusterName, Reason]) -> str:
    """Why nobody is offered the Workload, for its check: who has the same reason stands together."""
    together: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        together.setdefault(str(reason), []).append(name)
    text = "; ".join(f"{' '.join(names)}: {reason}" for reason, names in together.items())
    return text if len(text) <= LONGEST_SUMMARY else f"{text[: LONGEST_SUMMARY - 3]}..."
