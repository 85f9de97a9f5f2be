"""The time series of one metric, of which there are never too many."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import attrs
from prometheus_client.metrics import MetricWrapperBase

M = TypeVar("M", bound=MetricWrapperBase)

OTHER: Final = "other"
"""The label value of everything beyond a metric's limit."""


@attrs.define(eq=False)
class Children(Generic[M]):
    """A metric's time series by label values, at most `limit` of them and one for all others."""

    metric: M
    limit: int
    last: tuple[str, ...] = ()
    """The values of its last labels: the same in all series, also in that of all others."""
    labels: tuple[str, ...] = ()
    """The names of its labels."""
    _known: dict[tuple[str, ...], M] = attrs.field(factory=dict, init=False)
    """Kept here because a lookup in the metric takes four times as long as counting."""

    def of(self, *values: str) -> M:
        """The series of these label values, or of all others."""
        return self.within(*values) or self.metric.labels(*[OTHER] * len(values), *self.last)

    def within(self, *values: str) -> M | None:
        """The series of these label values; None beyond the limit, for values that cannot be added up."""
        child = self._known.get(values)
        if child is None and len(self._known) < self.limit:
            child = self._known[values] = self.metric.labels(*values, *self.last)
        return child

    def remove(self, *values: str) -> None:
        """Forget one series, if there is one."""
        if self._known.pop(values, None) is not None:
            self.metric.remove(*values, *self.last)

    def remove_all(self, label: str, value: str) -> None:
        """Forget all series with this value of a label, where the metric has that label."""
        if label in self.labels:
            place = self.labels.index(label)
            for values in [values for values in self._known if values[place] == value]:
                self.remove(*values)

    def clear(self) -> None:
        """Forget all series."""
        self._known.clear()
        self.metric.clear()
