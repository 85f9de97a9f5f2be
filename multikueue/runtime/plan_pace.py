"""Which writes of a plan wait: those that only change words, and those that answer what others change too often."""

from __future__ import annotations

import attrs

from multikueue.core.machinery.message_rate import Budget, MessageRate
from multikueue.core.model.names import ObjectKey
from multikueue.core.workload.effects import (
    MANAGER,
    AnnounceWorkload,
    ApplyStatus,
    Effect,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
    Plan,
)


@attrs.define(eq=False)
class PlanPace:
    """By Workload: when it may be written for the sake of words, and when again for what somebody changes."""

    _words: MessageRate[ObjectKey] = attrs.field(factory=MessageRate, init=False)
    _answers: Budget[ObjectKey] = attrs.field(factory=Budget, init=False)

    def due(self, key: ObjectKey, decided: Plan, now: float) -> Plan:
        """The plan with the effects that are executed now. What waits is decided anew when it looks again."""
        effects, waits = decided.effects, list[float]()
        if any(map(_is_answer, effects)):
            left = 0.0 if any(map(_is_own_write, effects)) else self._answers.wait(key, now)
            if left > 0:
                waits.append(left)
                effects = tuple(effect for effect in effects if not _is_answer(effect))
            else:
                self._answers.spent(key, now)
        if any(isinstance(effect, ApplyStatus) and effect.cluster == MANAGER for effect in effects):
            self._words.touched(key, now)
        elif decided.telling:
            urgent = any(isinstance(effect, AnnounceWorkload) for effect in decided.telling)
            if (left := self._words.wait(key, now, urgent=urgent)) > 0:
                waits.append(left)
            else:
                self._words.wrote(key, now)
                effects = (*effects, *decided.telling)
        due = decided if effects is decided.effects else attrs.evolve(decided, effects=effects)
        return due.within(*waits)

    def forget(self, key: ObjectKey) -> None:
        """The Workload is gone."""
        self._words.forget(key)
        self._answers.forget(key)


def _is_answer(effect: Effect) -> bool:
    """Whether it makes one side as the other: the status of the manager's job, or a copy that differs."""
    on_worker = isinstance(effect, PatchWorkload | PatchJob) and effect.cluster != MANAGER
    return on_worker or isinstance(effect, PatchJobStatus)


def _is_own_write(effect: Effect) -> bool:
    """Whether it is another write on the manager: what goes with it does not wait."""
    return effect.cluster == MANAGER and not isinstance(effect, AnnounceWorkload | PatchJobStatus)
