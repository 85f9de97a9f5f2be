"""The message of our admission check: for people, and made nowhere else; and how texts of others become a part of ours.

It has a head, which is the dispatcher's or ours, and behind ` — ` the parts, joined by ` · `: what each worker says,
and what else its user should know. Nothing follows from its words. A dispatcher alone reads its own head back.

Texts of others are cut, on one line, without addresses.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.outside_text import BEFORE_PARTS, BETWEEN_PARTS, begin_of, plain

SAME_TIME: Final = 5.0
"""Seconds by which two times in texts may differ that mean the same: they are computed anew with each look."""
_TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")

NOBODY_TAKES_IT: Final = "No worker cluster takes it"
"""The head while all workers refuse."""
OTHER_CHECKS: Final = "Waiting for the other admission checks"
GROUP: Final = "Waiting for the other parts of its group"


@attrs.frozen
class Message:
    """What the check says."""

    head: str
    parts: tuple[str, ...] = ()

    def render(self) -> str:
        """The text. `read` finds the head in it whatever that is."""
        tail = BETWEEN_PARTS.join(filter(None, self.parts))
        return f"{self.head}{BEFORE_PARTS}{tail}" if tail or BEFORE_PARTS in self.head else self.head

    @classmethod
    def read(cls, text: str) -> Message:
        """Take a text apart by what stands between its parts."""
        head, separator, tail = text.rpartition(BEFORE_PARTS)
        return cls(head, tuple(tail.split(BETWEEN_PARTS)) if tail else ()) if separator else cls(text)

    def by_worker(self, names: Collection[str]) -> dict[str, str]:
        """What the workers of these names say."""
        words = (part.partition(": ") for part in self.parts)
        return {name: why for name, _, why in words if name in names}

    def without(self, names: Collection[str]) -> Message:
        """The same without what the workers of these names say."""
        return Message(self.head, tuple(part for part in self.parts if part.partition(": ")[0] not in names))


def part(worker: str, why: str) -> str:
    """What one worker says."""
    return f"{worker}: {plain(why)}"


def offered_to(names: Iterable[str], *, configured: bool) -> str:
    """The head while it is offered to workers.

    Args:
        names: of these.
        configured: whether the MultiKueueConfig lists any worker.
    """
    none = "no worker cluster" if configured else "no worker cluster: the MultiKueueConfig lists none that is known"
    return f"Offered to {', '.join(names) or none}"


def admitted_on(worker: str) -> str:
    """The head once a worker has it."""
    return f'The workload was admitted on "{worker}"'


def means_the_same(first: str, second: str) -> bool:
    """Whether two messages differ in nothing but times that are a few seconds apart."""
    if first == second:
        return True
    times = zip(_TIME.findall(first), _TIME.findall(second), strict=False)
    return _TIME.sub("", first) == _TIME.sub("", second) and all(_are_near(*pair) for pair in times)


def _are_near(first: str, second: str) -> bool:
    first_time, second_time = parse_timestamp(first), parse_timestamp(second)
    return (
        first_time is not None
        and second_time is not None
        and abs((first_time - second_time).total_seconds()) <= SAME_TIME
    )


_CAPACITY: Final = re.compile(
    r", previously considered podsets requests \(0\) \+ current podset request \((?P<wanted>[^()]+)\)"
    r" > maximum capacity \((?P<most>[^()]+)\)"
)
_POD_SET: Final = re.compile(r"couldn't assign flavors to pod set \S+: (?!.*couldn't assign flavors)")


def condensed(text: str) -> str:
    """What a worker's Kueue says about quota, in its words and without those that do not help."""
    return _condensed(begin_of(text))


@functools.lru_cache(maxsize=1024)
def _condensed(text: str) -> str:
    return _POD_SET.sub("", _CAPACITY.sub(r" (\g<wanted> > \g<most>)", text))
