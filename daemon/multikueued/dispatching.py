"""Which dispatcher the daemon uses: the settings for it, and what they come to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final, Literal, NewType

import attrs

from multikueue.core.dispatchers.dispatcher import ALL_AT_ONCE, AllAtOnce, Dispatcher
from multikueue.core.dispatchers.dispatcher import External
from multikueue.core.dispatchers.incremental import INCREMENTAL, Incremental, Order

DispatcherName = NewType("DispatcherName", str)
"""A domain and a path: one of Kueue's two dispatchers, or the name of somebody else's."""
StepSize = NewType("StepSize", int)
"""How many workers; at least 1."""
RoundLength = NewType("RoundLength", timedelta)
"""How long a round lasts; at least a second."""

BUILT_IN: Final = (ALL_AT_ONCE, INCREMENTAL)
_DEFAULTS: Final = Incremental()
_ROUND: Final = RoundLength(_DEFAULTS.round)


@attrs.frozen
class IncrementalSettings:
    """How the incremental dispatcher asks; see `multikueue.core.dispatchers.incremental.Incremental`."""

    step_size: StepSize = StepSize(_DEFAULTS.step)
    """How many more workers a round asks."""
    order: Literal["config", "alphabetical"] = "config"
    """Who is asked first: the first of the MultiKueueConfig's list, or of the alphabet."""
    round: RoundLength = _ROUND
    """How long those asked so far are left alone with a job before more are asked."""


@attrs.frozen
class DispatcherSettings:
    """Which workers a job is offered to."""

    name: DispatcherName | None = None
    """One of Kueue's; by default the one that asks all workers at once. Any other name says that another controller
    writes `status.nominatedClusterNames`."""
    incremental: IncrementalSettings | None = None
    """Only for the incremental dispatcher."""


@attrs.frozen
class Choice:
    """The settings for the dispatcher, in both ways of writing them."""

    own: DispatcherSettings
    kueues_name: DispatcherName | None
    kueues_incremental: IncrementalSettings | None

    def dispatcher(self) -> Dispatcher:
        """What they come to. They must have no `contradictions`."""
        name = self.own.name or self.kueues_name or ALL_AT_ONCE
        if name == INCREMENTAL:
            how = self.own.incremental or self.kueues_incremental or IncrementalSettings()
            return Incremental(step=how.step_size, order=Order(how.order), round=how.round)
        return AllAtOnce() if name == ALL_AT_ONCE else External()

    def contradictions(self) -> Iterator[str]:
        """What does not go together: the setting, why, and what to do."""
        own, incremental = self.own, self.own.incremental or self.kueues_incremental
        if own.name is not None and self.kueues_name is not None:
            yield "dispatcherName: dispatcher.name says it already: keep one of the two"
        elif incremental is not None and (chosen := own.name or self.kueues_name or ALL_AT_ONCE) != INCREMENTAL:
            where = "incrementalDispatcherConfig" if own.incremental is None else "dispatcher.incremental"
            name = "dispatcher.name" if self.kueues_name is None else "dispatcherName"
            yield f"{where}: {chosen} does not use it: remove it, or set {name} to {INCREMENTAL}"
        if own.incremental is not None and self.kueues_incremental is not None:
            yield "incrementalDispatcherConfig: dispatcher.incremental says it already: keep one of the two"
