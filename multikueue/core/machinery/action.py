"""What a reconciler answers: nothing more to do, or look again after a while."""

from __future__ import annotations

import attrs


@attrs.frozen
class Action:
    """The outcome of one reconcile. Build it with `done()` or `after()`; there is no way to say both."""

    delay: float | None = attrs.field(validator=attrs.validators.instance_of((int, float, type(None))))
    """Seconds until the next look; None: only on a change."""

    @classmethod
    def done(cls) -> Action:
        """Wait for the next change."""
        return cls(None)

    @classmethod
    def after(cls, seconds: float) -> Action:
        """Look again after `seconds`, unless a change comes first."""
        return cls(max(0.0, seconds))

    @classmethod
    def earliest(cls, *delays: float | None) -> Action:
        """Look again at the earliest of several times; None stands for "no need"."""
        known = [delay for delay in delays if delay is not None]
        return cls.after(min(known)) if known else cls.done()
