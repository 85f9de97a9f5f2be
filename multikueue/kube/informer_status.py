"""How a cache is going, as a value."""

from __future__ import annotations

import attrs


@attrs.frozen
class InformerStatus:
    """How well a cache follows its server."""

    synced: bool = False
    """Whether it has been complete once."""
    failures: int = 0
    """Failures in a row; 0 again once a watch has been open for `Backoff.steady_after`."""
    failing_since: float | None = None
    """When the first of them was, on the loop's clock; None when there are none."""
    last_error: str = ""
    """Why the last attempt failed; empty when there are no failures."""
    retry_in: float | None = None
    """Seconds until the next attempt, counted from when this state was told; None while one is under way."""
    lists: int = 0
    """How often everything had to be read."""
    histories: int = 0
    """How often the server turned out to be another one, or an earlier state of it: it was behind what was known."""
    refused: bool = False
    """Whether the server can be reached but does not give this kind: it is not served, may not be read, or goes on
    failing."""
