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


Why = Cause
"""The machine reason, of the vocabulary of all: a label of a metric, so there are few."""


@attrs.frozen
class Reason:
    """Why one worker does not have a Workload: what it answers, or why it is not asked."""

    why: Why
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


_SAID: Final[Mapping[Why, str]] = {
    Why.CONNECTING: "connecting{detail}",
    Why.OUT_OF_REACH: "unreachable{detail}",
    Why.ANSWERS_UNREADABLE: "answers with more than may be read{detail}",
    Why.JOBS_UNREAD: "its jobs are being read{detail}",
    Why.NOT_SERVED: "does not serve the job's kind{detail}",
    Why.REFUSED: "refuses it, is asked again at {until}: {detail}",
    Why.SHARE_USED_UP: "has no room for it, is asked again at {until}: {detail}",
    Why.NOT_NOMINATED: "not nominated yet",
    Why.TURN_AWAITED: "{detail} there has no preemption gates: it is asked when its turn to preempt has come",
    Why.LEFT_OVER: "what an earlier attempt has left there is being removed",
    Why.GIVEN_UP: "gave it up: {detail}",
    Why.MAY_NOT_PREEMPT: "may not preempt there yet: {detail}",
    Why.UNLISTED: (
        "has no MultiKueueCluster any more: the job runs there to its end, "
        "and moves if the daemon is restarted and cannot reach it for workerLostTimeout"
    ),
}
"""Of a worker that is out of sight the detail is what follows from that."""
_WORDS: Final = {
    Why.OUT_OF_REACH: "it cannot be reached",
    Why.KIND_NOT_SERVED: "it does not serve the job's kind",
    Why.CORDONED: "it is cordoned",
    Why.SECOND_NAME: "it is another name of a worker",
    Why.BEING_MOVED: "the job is being moved away from it",
    Why.NO_LOCAL_QUEUE: "it has no LocalQueue of that name",
    Why.NO_NAMESPACE: "it has no such namespace",
    Why.QUEUE_INACTIVE: "its ClusterQueue is not Active",
    Why.QUEUE_UNFIT: "its ClusterQueue cannot hold copies",
    Why.NEVER_STARTS: "its ClusterQueue leads to workers, and no copy ever starts there",
    Why.NAME_TOO_LONG: "its Kueue has no room for the name of the Workload",
    Why.NOT_NAMED: "the job does not name it",
    Why.NOT_SELECTED: "the job does not select it",
    Why.NOT_TOLERATED: "the job does not tolerate its taints",
    Why.NOT_TOGETHER: "the job belongs to another that is elsewhere",
    Why.OTHER_FLAVOR: "the manager gave the job a flavor of other workers",
    Why.NEVER_FITS: "no flavor there could ever hold the job",
    Why.REFUSED: "its Kueue refused the job",
    Why.FAILED_BEFORE: "the job failed there, and others have not been tried",
    Why.ASKED_BEFORE: "it did not take the job in time, and others have not been asked",
    Why.NO_ROOM: "it has no room",
    Why.NO_NODES: "its nodes had no place for such pods, and nothing has ended there since",
    Why.CLAIMED: "its room goes to jobs that are ahead",
    Why.OTHERS_WAIT: "jobs of others wait there",
    Why.ON_TRIAL: "jobs have failed there, and it gets one at a time until one succeeds",
    Why.FIGURES_AWAITED: "its queues are being read",
    Why.UNREADABLE: "an annotation of the job cannot be read",
    Why.NOT_BEST: "another is better",
}


def summary(reasons: Mapping[ClusterName, Reason]) -> str:
    """Why nobody is offered the Workload, for its check: who has the same reason stands together."""
    together: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        together.setdefault(str(reason), []).append(name)
    text = "; ".join(f"{' '.join(names)}: {reason}" for reason, names in together.items())
    return text if len(text) <= LONGEST_SUMMARY else f"{text[: LONGEST_SUMMARY - 3]}..."
