"""What becomes of each Job under load, drawn from a seed: pure."""

from __future__ import annotations

import random
from typing import Final, Literal

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from tests.kinds.ground import TEMPLATE
from tests.operators.playing.pods import Fate

PODS: Final = 4
ENDLESS: Final = 3600.0
"""Seconds that a pod runs which something else must end."""
Upset = Literal["", "worker", "manager", "node"]
"""Who takes something away: a worker or the manager evicts the Workload, or a node is drained of one pod."""
_UPSETS: Final[dict[Upset, int]] = {"": 76, "worker": 8, "manager": 8, "node": 8}
_DOOMED: Final = 0.1
_FAILURES: Final = {0: 8, 1: 1, 2: 1}
"""How many tries of an index fail, and how often that is drawn."""
_MOST_FAILURES: Final = 2
"""Of one Job: each doubles the seconds until the Job controller makes another pod, from ten on."""


@attrs.frozen(kw_only=True)
class Plan:
    """One Job of four indexes."""

    name: str
    seconds: float
    """How long each pod runs."""
    failures: tuple[int, ...]
    """By index, how many tries fail before one succeeds."""
    doomed: bool = False
    """Whether one failure is one too many."""
    upset: Upset = ""

    @property
    def attempts(self) -> int:
        """How often it starts from its beginning."""
        return 2 if self.upset in ("worker", "manager") else 1

    @property
    def most_attempts(self) -> int:
        """How often it may: a worker that evicts it may start the same copy again until we have taken that away."""
        return self.attempts + (self.upset == "worker")

    @property
    def counts(self) -> tuple[int, int] | None:
        """How many pods have succeeded and failed in the end; None where the Job controller ends some before."""
        return None if self.doomed else (PODS, sum(self.failures) + (self.upset == "node"))

    def job(self) -> Json:
        """What a user submits."""
        made = BATCH_JOB.example(self.name, TEMPLATE, queue=LOCAL_QUEUE_NAME)
        size = {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed"}
        made["spec"] |= {**size, "backoffLimit": 0 if self.doomed else 6}
        return made

    def fate(self, attempt: int, index: int, tried: int) -> Fate:
        """How a pod does.

        Args:
            attempt: of the Job, from 1.
            index: of the pod.
            tried: how many pods had that index before, in this attempt.
        """
        if attempt < self.attempts:
            return Fate(ENDLESS)
        if self.upset == "node" and index == 0:
            if tried == 0:
                return Fate(ENDLESS)
            tried -= 1
        if self.doomed:
            return Fate(self.seconds, 1) if index == PODS - 1 else Fate(ENDLESS)
        return Fate(self.seconds, int(tried < self.failures[index]))


def drawn(seed: int, jobs: int) -> list[Plan]:
    """Plans of so many Jobs: the same for the same seed."""
    dice = random.Random(seed)
    return [_drawn(dice, f"load-{number:03}") for number in range(jobs)]


def _drawn(dice: random.Random, name: str) -> Plan:
    doomed = dice.random() < _DOOMED
    upsets: list[Upset] = [*_UPSETS]
    (upset,) = dice.choices(upsets, [*_UPSETS.values()])
    left, failures = _MOST_FAILURES, []
    for count in dice.choices([*_FAILURES], [*_FAILURES.values()], k=PODS):
        failures.append(min(count, left))
        left -= failures[-1]
    if doomed:
        return Plan(name=name, seconds=dice.uniform(1.0, 4.0), failures=(0,) * PODS, doomed=True)
    return Plan(name=name, seconds=dice.uniform(1.0, 4.0), failures=tuple(failures), upset=upset)
