"""What the metrics show of a config."""

from __future__ import annotations

from datetime import datetime

import attrs


@attrs.frozen
class Figures:
    """How many clusters there are in each role."""

    selected: int = 0
    listed: int = 0
    draining: int = 0
    since: datetime | None = None
    """Since when the decision is as it is, as far as this process has seen; None: there is none."""
