"""What this process knows of mirrors beside what can be read: how many there are, and what was refused. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import inf

import attrs

from multikueue.core.model.names import ObjectKey
from multikueued.reports.worker_facts import ShownPods


@attrs.define(eq=False)
class Places:
    """How many mirrors there are, in all and of each job; with those that no watch has shown yet."""

    most: int
    most_of_job: int
    _jobs: dict[ObjectKey, str] = attrs.field(factory=dict, init=False)
    _counts: Counter[str] = attrs.field(factory=Counter, init=False)

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, mirror: ObjectKey, job_uid: str) -> None:
        """There is a mirror."""
        self.remove(mirror)
        self._jobs[mirror] = job_uid
        self._counts[job_uid] += 1

    def remove(self, mirror: ObjectKey) -> None:
        """A mirror is gone."""
        if (job_uid := self._jobs.pop(mirror, None)) is not None:
            self._counts[job_uid] -= 1
            if not self._counts[job_uid]:
                del self._counts[job_uid]

    def lack(self, job_uid: str) -> str:
        """Why there is no room for one more of a job; empty: there is."""
        if len(self) >= self.most:
            return f"mirrorPods.maxPods: {self.most} pods are shown in all"
        if self._counts[job_uid] >= self.most_of_job:
            return f"mirrorPods.maxPodsPerJob: {self.most_of_job} pods of this job are shown"
        return ""


@attrs.define(eq=False)
class Held:
    """Pods whose mirror was refused, or removed by somebody, as they were then: the next status is tried again."""

    _as_it_was: dict[str, tuple[str, float]] = attrs.field(factory=dict, init=False)
    """By the UID of the worker's pod, the digest of its status, and until when it counts."""

    def __len__(self) -> int:
        return len(self._as_it_was)

    def hold(self, pod_uid: str, status: str, until: float = inf) -> None:
        """Do not try again while the status is this one, until then."""
        self._as_it_was[pod_uid] = status, until

    def holds(self, pod_uid: str, status: Callable[[], str], now: float) -> bool:
        """Whether it is not to be tried now; of most pods nobody needs the digest of their status."""
        known = self._as_it_was.get(pod_uid)
        return known is not None and now < known[1] and known[0] == status()

    def forget(self, pod_uid: str) -> None:
        """The pod is gone, or its mirror was taken."""
        self._as_it_was.pop(pod_uid, None)


@attrs.define(eq=False)
class Refusals:
    """Pods that are not shown, or not as they are now."""

    _reasons: dict[str, tuple[str, str]] = attrs.field(factory=dict, init=False)
    """By UID of the worker's pod: the worker, and a word for machines."""

    def add(self, pod_uid: str, worker: str, reason: str) -> bool:
        """A pod was refused; return whether it was not for this reason before."""
        before = self._reasons.get(pod_uid)
        self._reasons[pod_uid] = worker, reason
        return before != (worker, reason)

    def forget(self, pod_uid: str) -> None:
        """It is shown as it is, or gone."""
        self._reasons.pop(pod_uid, None)

    def counted(self, shown: Iterable[str]) -> dict[str, ShownPods]:
        """By worker, how many pods are shown, and were refused; `shown` has the worker of each mirror."""
        mirrors, refused = Counter(shown), Counter(worker for worker, _ in self._reasons.values())
        return {worker: ShownPods(mirrors[worker], refused[worker]) for worker in mirrors.keys() | refused.keys()}


@attrs.define(eq=False)
class Pace:
    """Turns, so many a second."""

    spacing: float
    """Seconds between two turns."""
    _next: float = attrs.field(default=float("-inf"), init=False)

    def wait(self, now: float, times: int = 1) -> float:
        """Take the next turn: in so many seconds it comes. The one after it is so many times the spacing later."""
        turn = max(now, self._next)
        self._next = turn + self.spacing * times
        return turn - now
