"""How often Python looks for garbage while tests and seeds run."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """A fifth of the time went into looking for garbage among what is none yet: a seed leaves 10 MB when it is over."""
    gc.set_threshold(250_000, 4, 4)
