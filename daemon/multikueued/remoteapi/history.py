"""How many jobs there were, step by step: in memory, bounded, and lost when the process ends."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json

SERIES: Final = ("running", "waiting", "held", "failed")
"""What is counted at each step."""
STEPS: Final = 360
"""Steps that are kept: of a minute they are six hours."""
NAMESPACES: Final = 500
"""Namespaces that have a line of their own, 6 KiB each; what is in others counts in the sum of all alone."""
ALL: Final = ""
"""The line of all namespaces together."""

Counts = tuple[int, int, int, int]
"""In the order of `SERIES`."""


@attrs.define(eq=False)
class History:
    """A ring for each namespace, and one for all together."""

    step: float = 60.0
    """Seconds."""
    began: datetime | None = None
    """When the first step was noted; None: none has been."""
    latest: datetime | None = None
    noted: int = 0
    """Steps since then."""
    _rings: dict[str, array[int]] = attrs.field(factory=dict)

    def note(self, at: datetime, counts: Mapping[str, Counts]) -> None:
        """Note a step.

        Args:
            at: the wall clock.
            counts: by namespace; `ALL` is among them. A namespace that is missing has none.
        """
        self.began, self.latest = self.began or at, at
        place = self.noted % STEPS * len(SERIES)
        self.noted += 1
        for name in [name for name, ring in self._rings.items() if name not in counts and not any(ring)]:
            del self._rings[name]
        for name in [ALL, *counts]:
            if name not in self._rings and (name == ALL or len(self._rings) <= NAMESPACES):
                self._rings[name] = array("I", bytes(4 * STEPS * len(SERIES)))
        for name, ring in self._rings.items():
            ring[place : place + len(SERIES)] = array("I", counts.get(name, (0,) * len(SERIES)))

    def of(self, namespace: str) -> Json:
        """The steps of a namespace, the oldest first, as the API shows them; of one without a line there are none.

        Args:
            namespace: `ALL` for all together.
        """
        ring = self._rings.get(namespace)
        if ring is None or self.began is None or self.latest is None:
            return {"step": self.step}
        kept = min(self.noted, STEPS)
        steps = [(number % STEPS) * len(SERIES) for number in range(self.noted - kept, self.noted)]
        lines = {name: [ring[place + at] for place in steps] for at, name in enumerate(SERIES)}
        return {"step": self.step, "since": timestamp(self.began), "latest": timestamp(self.latest), **lines}
