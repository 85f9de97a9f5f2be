"""The ways out of one row of the plan's table, as a table again: the first that applies decides, and has a name.

So a row's function is as long as its own idea, and the log says which way was taken: `recorded: moves`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from multikueue.core.workload.effects import Plan
from multikueue.core.workload.seen.situation import Situation

Decide: TypeAlias = Callable[[Situation], Plan | None]
"""What is decided; None: it does not apply after all."""


def always(_: object) -> bool:
    """The question of a way whose decision says by None that it does not apply, and of the last one."""
    return True


def wait(_: object) -> Plan:
    """Do nothing until the caches show something else."""
    return Plan()


@attrs.frozen
class Way:
    """One line: when it applies, and what is decided then."""

    name: str
    applies: Callable[[Situation], bool]
    decide: Decide


def first_of(*ways: Way) -> Decide:
    """Decide by the first way that applies; None: none does."""

    def decide(seen: Situation) -> Plan | None:
        for way in ways:
            if way.applies(seen) and (decided := way.decide(seen)) is not None:
                return named(way.name, decided)
        return None

    return decide


def named(name: str, decided: Plan) -> Plan:
    """The plan, with the name of what led to it in front of those of its own ways."""
    return attrs.evolve(decided, row=": ".join(filter(None, (name, decided.row))))
