"""What a reconciler answers: nothing more to do, or look again after a while."""

from __future__ import annotations

import math
from datetime import timedelta

import attrs


def seconds_to_wait(given: object) -> float:
    """A time to wait that users give: one that has passed is no wait, one beyond all numbers is infinite.

    Raises:
        TypeError: it is no number.
        ValueError: it is not a number, as floats say.
    """
    if isinstance(given, bool) or not isinstance(given, int | float):
        advice = ": give its total_seconds()" if isinstance(given, timedelta) else ""
        raise TypeError(f"a time to wait is a number of seconds, not {given!r:.100}{advice}")
    try:
        wait = float(given)
    except OverflowError:  # an int may be beyond all floats
        wait = math.inf if given > 0 else 0.0
    if math.isnan(wait):
        raise ValueError("a time to wait is a number of seconds, not nan")
    return max(0.0, wait)


def _delay(given: float | None) -> float | None:
    wait = None if given is None else seconds_to_wait(given)
    return None if wait == math.inf else wait


@attrs.frozen
class Action:
    """The outcome of one reconcile. Build it with `done()` or `after()`; there is no way to say both."""

    delay: float | None = attrs.field(converter=_delay)
    """Seconds until the next look; None: only on a change."""

    @classmethod
    def done(cls) -> Action:
        """Wait for the next change."""
        return cls(None)

    @classmethod
    def after(cls, seconds: float) -> Action:
        """Look again after `seconds`, unless a change comes first. An infinite time waits for the change.

        Raises:
            TypeError: it is no number.
            ValueError: it is nan.
        """
        return cls(seconds_to_wait(seconds))

    @classmethod
    def earliest(cls, *delays: float | None) -> Action:
        """Look again at the earliest of several times; None stands for "no need"."""
        return cls(min((seconds_to_wait(delay) for delay in delays if delay is not None), default=None))
