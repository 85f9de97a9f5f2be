"""Tables of a row: where a row of the plan's table has several ways out, the first way that applies decides.

Each way has a name, so the log says which one was taken: `recorded: moves`. When a way applies is asked before it
decides, so no decision can pass to the next way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import attrs

from multikueue.core.workload.effects import Plan
from multikueue.core.workload.seen.situation import Situation, certain, once

Answer = TypeVar("Answer")
Question: TypeAlias = Callable[[Situation], object]
"""When a row or a way applies: where the answer is true, or not empty."""
Decide: TypeAlias = Callable[[Situation], Plan]


def otherwise(_: object) -> bool:
    """The question of the last way."""
    return True


def wait(_: object) -> Plan:
    """Do nothing until the caches show something else."""
    return Plan()


def given(
    asks: Callable[[Situation], Answer | None], decide: Callable[[Situation, Answer], Plan]
) -> tuple[Question, Decide]:
    """Question and decision of a way whose decision takes the answer: it applies where the answer is not empty."""
    answer = once(asks)
    return answer, lambda seen: decide(seen, certain(answer(seen), "a way was taken that does not apply"))


@attrs.frozen
class Way:
    """One line: when it applies, and what is decided then."""

    name: str
    applies: Question
    decide: Decide


def first_of(*ways: Way) -> Decide:
    """Decide by the first way that applies; the last one always does."""

    def decide(seen: Situation) -> Plan:
        way = next(way for way in ways if way.applies(seen))
        return named(way.name, way.decide(seen))

    return decide


def named(name: str, decided: Plan) -> Plan:
    """The plan, with this name in front of the names of the ways that were taken below it."""
    return attrs.evolve(decided, row=": ".join(filter(None, (name, decided.row))))
