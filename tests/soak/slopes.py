"""Whether something grows: a straight line through the second half of what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

LIMIT: Final = 0.01
"""How much anything may grow over the second half, as a part of its mean there."""


@attrs.frozen
class Growth:
    """How one series develops over the second half of a run."""

    name: str
    first: float
    """The first value of that half; `last`, `least` and `most` as well."""
    last: float
    least: float
    most: float
    mean: float
    grown: float
    """What the line of least squares rises by over that half, as a part of the mean. Below 0: it falls."""

    def exceeds(self, limit: float = LIMIT) -> bool:
        """Whether it grows by more than a part of its mean."""
        return self.grown > limit


def slope(values: Sequence[float]) -> float:
    """What the line of least squares rises by from one value to the next; 0 for fewer than two."""
    count = len(values)
    if count < 2:
        return 0.0
    middle, mean = (count - 1) / 2, sum(values) / count
    across = sum((place - middle) * (value - mean) for place, value in enumerate(values))
    return across / sum((place - middle) ** 2 for place in range(count))


def growth(name: str, values: Sequence[float]) -> Growth:
    """How a series develops over its second half.

    Args:
        name: of the series.
        values: at equal distances; at least two.
    """
    half = values[len(values) // 2 :]
    mean = sum(half) / len(half)
    grown = slope(half) * (len(half) - 1) / mean if mean else 0.0
    return Growth(name, half[0], half[-1], min(half), max(half), mean, grown)


def growths(samples: Sequence[Mapping[str, float]], measures: Iterable[str]) -> list[Growth]:
    """How each measure develops over the second half of the samples."""
    return [growth(name, [sample[name] for sample in samples]) for name in measures]
