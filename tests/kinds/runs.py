"""Which runs of a job there were on workers, and when their pods ended: what the journeys of endings look at."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import attrs

from multikueue.core.model.labels import ATTEMPT_ANNOTATION, ORIGIN_LABEL
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, name_of, uid
from multikueue.sandbox.kinds.pods import POD_RESOURCE


@attrs.define(eq=False)
class Life:
    """One object on a worker, on the loop's clock."""

    resource: Resource
    first: Json
    last: Json
    began: float
    asked: float | None = None
    """When it was seen with a deletionTimestamp."""
    ended: float | None = None
    """When its pod was seen to have ended, or it was gone."""

    @property
    def is_copy(self) -> bool:
        """Whether it is a job copy of ours."""
        return ORIGIN_LABEL in labels_of(self.first)

    @property
    def runs(self) -> bool:
        """Whether it is a pod that runs, and shall."""
        return self.asked is None and dig(self.last, "status", "phase") == "Running"


@attrs.frozen
class Run:
    """One attempt of a job on one worker."""

    worker: str
    began: float
    pods: tuple[Life, ...]
    is_over: bool
    """Whether no copy of it is there any more."""

    @property
    def ended(self) -> float:
        """When the last of its pods was gone; never, while one is there."""
        ends = [float("inf") if pod.ended is None else pod.ended for pod in self.pods]
        return max(ends, default=self.began)


@attrs.define(eq=False)
class Runs:
    """Every job copy and pod that workers ever had."""

    lives: dict[tuple[str, str], Life] = attrs.field(factory=dict, init=False)
    """By worker and UID."""
    _owned: dict[tuple[str, str], list[str]] = attrs.field(factory=dict, init=False)
    """What each owns, by UID."""

    def observe(self, worker: str, resource: Resource, old: Json | None, new: Json | None) -> None:
        """Take note of a change."""
        obj, time = new or old, anyio.current_time()
        assert obj is not None
        if (worker, uid(obj)) not in self.lives:
            for owner in dig(obj, "metadata", "ownerReferences") or []:
                self._owned.setdefault((worker, owner["uid"]), []).append(uid(obj))
        life = self.lives.setdefault((worker, uid(obj)), Life(resource, obj, obj, time))
        life.last = obj
        over = new is None or (resource == POD_RESOURCE and dig(new, "status", "phase") in ("Succeeded", "Failed"))
        if life.asked is None and (over or is_terminating(obj)):
            life.asked = time
        if life.ended is None and over:
            life.ended = time

    def named(self, name: str) -> list[Life]:
        """All that ever bore this name, or one that begins so."""
        return [life for life in self.lives.values() if name_of(life.first).startswith(name)]

    def copies(self, name: str) -> list[Life]:
        """The job copies of ours among them."""
        return [life for life in self.named(name) if life.is_copy]

    def of(self, name: str) -> dict[str, list[Run]]:
        """The runs of what bears this name, or one that begins so, in the order they began; by the copy's name."""
        runs: dict[tuple[str, str, str], list[tuple[str, Life]]] = {}
        for (worker, own), life in self.lives.items():
            if life.is_copy and name_of(life.first).startswith(name):
                attempt = annotations_of(life.first).get(ATTEMPT_ANNOTATION, "")
                runs.setdefault((name_of(life.first), worker, attempt), []).append((own, life))
        by_copy: dict[str, list[Run]] = {}
        for (copy, worker, _), lives in sorted(runs.items(), key=lambda entry: entry[1][0][1].began):
            pods = tuple(pod for own, life in lives for pod in self._pods(worker, own, life))
            by_copy.setdefault(copy, []).append(
                Run(
                    worker, min(life.began for _, life in lives), pods, all(life.ended is not None for _, life in lives)
                )
            )
        return by_copy

    def _pods(self, worker: str, own: str, life: Life) -> Iterator[Life]:
        """The pods below an object; a pod is its own."""
        if life.resource == POD_RESOURCE:
            yield life
        for below in self._owned.get((worker, own), ()):
            yield from self._pods(worker, below, self.lives[worker, below])
