"""What each pod did, as the API servers showed it, and whether anything ran twice: pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import controller_of, dig, is_terminating, labels_of, uid

JOB_LABEL: Final = "batch.kubernetes.io/job-name"
_INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"


@attrs.define
class Life:
    """One pod."""

    job: str
    attempt: str
    """The UID of the Job that it was made for, and how often that had been stopped."""
    cluster: str
    index: int
    started: float | None = None
    """When it was first seen to run."""
    stopped: float | None = None
    """When it was first seen to be over, or about to go."""
    phase: str = ""

    def at_once_with(self, other: Life) -> bool:
        """Whether both ran at some time."""
        if self.started is None or other.started is None:
            return False
        first, second = sorted((self, other), key=lambda life: life.started or 0.0)
        return first.stopped is None or first.stopped > (second.started or 0.0)


@attrs.define(eq=False)
class Lives:
    """All pods of all Jobs there ever were, on all clusters."""

    by_uid: dict[str, Life] = attrs.field(factory=dict, init=False)
    of: dict[str, list[Life]] = attrs.field(factory=dict, init=False)
    """By Job."""
    attempts: dict[str, list[str]] = attrs.field(factory=dict, init=False)
    """By Job, the attempts that had pods, in order."""

    def see(self, cluster: str, pod: Json, now: float, stops: Callable[[str], int] = lambda _: 0) -> Life | None:
        """Note a version of a pod; return what is known of it if it is a Job's.

        Args:
            cluster: where it is.
            pod: as it is shown.
            now: seconds.
            stops: how often a Job has been evicted. Its worker's Kueue may start the same copy once more.
        """
        owner = controller_of(pod)
        if owner is None or JOB_LABEL not in labels_of(pod):
            return None
        job, labels = labels_of(pod)[JOB_LABEL], labels_of(pod)
        life = self.by_uid.get(uid(pod))
        if life is None:
            attempt = f"{owner['uid']} {stops(job)}"
            life = self.by_uid[uid(pod)] = Life(job, attempt, cluster, int(labels.get(_INDEX_LABEL, 0)))
            self.of.setdefault(job, []).append(life)
        if life.attempt not in self.attempts.setdefault(job, []):
            self.attempts[job].append(life.attempt)
        life.phase = dig(pod, "status", "phase") or ""
        if life.phase == "Running" and life.started is None:
            life.started = now
        if life.stopped is None and (life.phase in ("Succeeded", "Failed") or is_terminating(pod)):
            life.stopped = now
        return life

    def tried(self, life: Life) -> int:
        """How many pods had its index before, in the same attempt."""
        same = [other for other in self.of[life.job] if (other.attempt, other.index) == (life.attempt, life.index)]
        return next(number for number, other in enumerate(same) if other is life)

    def counts(self, job: str) -> tuple[int, int]:
        """How many pods of a Job's last attempt have succeeded, and how many have failed."""
        phases = [life.phase for life in self.of[job] if life.attempt == self.attempts[job][-1]]
        return phases.count("Succeeded"), phases.count("Failed")


def ran_twice(lives: Iterable[Life]) -> list[str]:
    """What of one Job ran twice: an attempt beside another, an index beside itself, or one that had succeeded."""
    attempts: dict[str, list[Life]] = {}
    for life in lives:
        attempts.setdefault(life.attempt, []).append(life)
    wrong = [
        f"{first[0].job} ran on {first[0].cluster} and {second[0].cluster} at the same time"
        for first, second in pairwise(attempts.values())
        if any(former.at_once_with(other) for former in first for other in second)
    ]
    for pods in attempts.values():
        for index, same in _by_index(pods).items():
            if any(former.at_once_with(other) for former, other in pairwise(same)):
                wrong.append(f"{pods[0].job} had two pods of index {index} at the same time")
            if [life.phase for life in same].count("Succeeded") > 1:
                wrong.append(f"index {index} of {pods[0].job} succeeded twice")
    return wrong


def _by_index(pods: Iterable[Life]) -> Mapping[int, list[Life]]:
    by_index: dict[int, list[Life]] = {}
    for life in pods:
        by_index.setdefault(life.index, []).append(life)
    return by_index
