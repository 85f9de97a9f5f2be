"""Which dispatcher the daemon uses: the settings for it, and what they come to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final, Literal, NewType

import attrs

from multikueue.core.dispatchers.dispatcher import ALL_AT_ONCE, AllAtOnce, Dispatcher, External
from multikueue.core.dispatchers.incremental import INCREMENTAL, Incremental, Order
from multikueue.runtime.plugins import installed_dispatchers, load_dispatcher

DispatcherName = NewType("DispatcherName", str)
"""One of Kueue's two dispatchers, one of an installed package's, or another controller's domain and path."""
StepSize = NewType("StepSize", int)
"""How many workers; at least 1."""
RoundLength = NewType("RoundLength", timedelta)
"""How long a round lasts; at least a second."""

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
    """One of Kueue's, by default the one that asks all workers at once; or one that an installed package brings, see
    `multikueue.runtime.plugins`. Any other name says that another controller writes `status.nominatedClusterNames`."""
    incremental: IncrementalSettings | None = None
    """Only for the incremental dispatcher."""


@attrs.frozen
class Choice:
    """The settings for the dispatcher, in both ways of writing them."""

    own: DispatcherSettings
    kueues_name: DispatcherName | None
    kueues_incremental: IncrementalSettings | None

    @property
    def name(self) -> str:
        """The dispatcher's name."""
        return self.own.name or self.kueues_name or ALL_AT_ONCE

    def dispatcher(self) -> Dispatcher:
        """What they come to. They must have no `contradictions`.

        Raises:
            SettingsError: an installed package's dispatcher cannot be used.
        """
        installed = installed_dispatchers()
        if self.name == ALL_AT_ONCE:
            return AllAtOnce()
        if self.name == INCREMENTAL:
            how = self.own.incremental or self.kueues_incremental or IncrementalSettings()
            return Incremental(step=how.step_size, order=Order(how.order), round=how.round)
        return load_dispatcher(installed[self.name]) if self.name in installed else External()

    def contradictions(self) -> Iterator[str]:
        """What does not go together: the setting, why, and what to do."""
        own, incremental = self.own, self.own.incremental or self.kueues_incremental
        if own.name is not None and self.kueues_name is not None:
            yield "dispatcherName: dispatcher.name says it already: keep one of the two"
        elif incremental is not None and self.name != INCREMENTAL:
            where = "incrementalDispatcherConfig" if own.incremental is None else "dispatcher.incremental"
            name = "dispatcher.name" if self.kueues_name is None else "dispatcherName"
            yield f"{where}: {self.name} does not use it: remove it, or set {name} to {INCREMENTAL}"
        if own.incremental is not None and self.kueues_incremental is not None:
            yield "incrementalDispatcherConfig: dispatcher.incremental says it already: keep one of the two"
