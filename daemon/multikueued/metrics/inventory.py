"""Metrics of MultiKueueConfigs that are filled from an inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from prometheus_client import Counter, Gauge

from multikueue.core.effects import ConfigStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from multikueued.metrics.bounded import Children

MAX_CONFIGS: Final = 40
"""Configs with series of their own; those beyond are not shown: their figures cannot be added up."""


class PlacementMetrics:
    """What is shown of each config. Implements `multikueue.protocols.PlacementHook`.

    Args:
        new: makes a metric with at most so many series.
    """

    def __init__(self, new: Callable[..., Children[Any]]) -> None:
        def gauge(name: str, about: str) -> Children[Gauge]:
            return new(Gauge, f"placement_{name}", about, ("config",), MAX_CONFIGS)

        self._selected = gauge("selected_clusters", "Clusters that a Placement, or labels, select for a config.")
        self._listed = gauge("listed_clusters", "Clusters that a config lists.")
        self._draining = gauge("draining_clusters", "Clusters that are not selected any more and still have work.")
        self._since = gauge("decision_timestamp_seconds", "When the selection changed last, as far as was seen.")
        about = "Better orders of a config that were not written."
        self._put_off: Children[Counter] = new(Counter, "placement_skipped_writes", about, ("config",), MAX_CONFIGS)

    def filled(self, config: str, figures: ConfigStatistics) -> None:
        """See `PlacementHook`."""
        since = figures.since.timestamp() if figures.since is not None else None
        values = (
            (self._selected, figures.selected),
            (self._listed, figures.listed),
            (self._draining, figures.draining),
            (self._since, since),
        )
        for metric, value in values:
            if value is not None and (series := metric.within(config)) is not None:
                series.set(value)

    def put_off(self, config: str) -> None:
        """See `PlacementHook`."""
        if (series := self._put_off.within(config)) is not None:
            series.inc()

    def released(self, config: str) -> None:
        """See `PlacementHook`."""
        for gauge in (self._selected, self._listed, self._draining, self._since):
            gauge.remove(config)
        self._put_off.remove(config)

    def clear(self) -> None:
        """Forget what was seen: another process looks now."""
        for gauge in (self._selected, self._listed, self._draining, self._since):
            gauge.clear()
