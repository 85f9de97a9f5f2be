"""What only an event says, because no condition has a place for it, is said again while it lasts.

API servers keep Events for an hour: a cluster that had no credentials since yesterday would be without a word why.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

AGAIN: Final = timedelta(minutes=45)
"""How long after it was said something that lasts is said again."""


@attrs.frozen
class Told:
    """What was said last, and when."""

    words: str = ""
    """Empty: nothing is wrong."""
    at: datetime | None = None

    def then(self, words: str, now: datetime) -> Told:
        """What was said last once these words hold, at this time by the wall clock; the same: nothing is to be said."""
        if words == self.words and self.due_in(now) != 0:
            return self
        return Told(words, now if words else None)

    def due_in(self, now: datetime) -> float | None:
        """Seconds until it is to be said again; None: nothing is wrong."""
        if self.at is None:
            return None
        return max(0.0, (self.at + AGAIN - now).total_seconds()) if self.at <= now else 0.0
