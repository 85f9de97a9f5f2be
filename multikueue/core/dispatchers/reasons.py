"""Why a worker is not offered a Workload: one machine reason, and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

from multikueue.core.model.names import ClusterName

LONGEST_SUMMARY: Final = 256
"""In characters."""


class Why(StrEnum):
    """The machine reason: a label of a metric, so there are few."""

    OUT_OF_REACH = "OutOfReach"
    KIND_NOT_SERVED = "KindNotServed"
    CORDONED = "Cordoned"
    SECOND_NAME = "SecondName"
    BEING_MOVED = "BeingMoved"
    NO_LOCAL_QUEUE = "NoLocalQueue"
    NO_NAMESPACE = "NoNamespace"
    QUEUE_INACTIVE = "QueueInactive"
    QUEUE_UNFIT = "QueueUnfit"
    NEVER_STARTS = "NeverStarts"
    NAME_TOO_LONG = "NameTooLong"
    NOT_NAMED = "NotNamed"
    NOT_SELECTED = "NotSelected"
    NOT_TOLERATED = "NotTolerated"
    NOT_TOGETHER = "NotTogether"
    OTHER_FLAVOR = "OtherFlavor"
    NEVER_FITS = "NeverFits"
    REFUSED = "Refused"
    FAILED_BEFORE = "FailedBefore"
    ASKED_BEFORE = "AskedBefore"
    NO_ROOM = "NoRoom"
    NO_NODES = "NoNodes"
    CLAIMED = "Claimed"
    OTHERS_WAIT = "OthersWait"
    ON_TRIAL = "OnTrial"
    FIGURES_AWAITED = "FiguresAwaited"
    UNREADABLE = "UnreadableAnnotation"
    NOT_BEST = "NotBest"


@attrs.frozen
class Reason:
    """Why one worker is not offered a Workload."""

    why: Why
    detail: str = ""
    """For people: `needs 8 nvidia.com/gpu of a100, 4 free`."""

    def __str__(self) -> str:
        return self.detail or _WORDS[self.why]


_WORDS = {
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
