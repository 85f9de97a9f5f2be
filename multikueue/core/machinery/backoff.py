"""Exponential back-off. Randomness and time come in as arguments."""

from __future__ import annotations

import math
from typing import Final

import attrs

LAST_ATTEMPT: Final = 10.0
"""Seconds before nobody waits for a server any more at which there is one more attempt: a watch must last for half of
that until the server counts as back, and its answers take time, too."""


@attrs.frozen
class Backoff:
    """How long to wait after the n-th failure in a row. All times are in seconds."""

    base: float
    """The wait after the first failure."""
    cap: float
    """The longest wait before jitter."""
    factor: float = 2.0
    """Each further failure multiplies the wait by this."""
    jitter: float = 0.0
    """Up to this part of the wait is added, so that clients that failed together do not retry together."""
    reset_after: float = 0.0
    """Seconds a watch must last to reset the failures before it. One that ends earlier is one more failure."""

    def delay(self, failures: int, fraction: float = 0.0, *, patience: float = math.inf) -> float:
        """Seconds to wait after that many failures in a row; at most `cap * (1 + jitter)`.

        Args:
            failures: at least 1; 0 means no wait.
            fraction: a random number in [0, 1) for the jitter.
            patience: seconds for which somebody still waits for the server. No wait is longer than half of them, so a
                server that returns has at least half of what was left for a long list; and none leads past the last
                attempt. One that failed up to a second earlier was it.
        """
        if failures < 1:
            return 0.0
        exponent = min(failures - 1, 64)  # beyond this the cap holds for any sensible base, and floats overflow
        plain = min(self.base * self.factor**exponent, self.cap)
        wait, last = plain * (1.0 + self.jitter * fraction), patience - LAST_ATTEMPT
        return min(wait, last, patience / 2) if last > 1.0 else wait

    def within(self, longest: float) -> Backoff:
        """The same, with no wait that is longer than so many seconds."""
        return attrs.evolve(self, cap=min(self.cap, longest / (1.0 + self.jitter)))


ITEM_BACKOFF = Backoff(base=0.005, cap=60.0, jitter=0.2)
"""For one key of a controller. The base is client-go's 5 ms. The cap is a minute; client-go waits up to 1000 s."""

WATCH_BACKOFF = Backoff(base=0.2, cap=30.0, jitter=0.5, reset_after=2.0)
"""For one watch. A watch usually breaks because a proxy restarts, so the first retries are quick."""

CONNECTION_BACKOFF = Backoff(base=5.0, cap=60.0, jitter=0.2, reset_after=5.0)
"""For the watch that decides whether a worker is connected. The first steps are Kueue's (5, 10, 20, 40 s). The cap is a
minute instead of 320 s: an attempt is one request, and a worker that is back should have work a minute later. There is
no wait before the first retry after a disconnect (see `core.machinery.watch`). A watch that ends within five seconds is
a failure: such a worker is shown as lost and retried ever more rarely."""

REFUSED_BACKOFF = Backoff(base=0.5, cap=300.0, jitter=0.2)
"""For a kind that the server does not serve or forbids: somebody must install or grant something first. The first
retries are quick, because an API server that has just started answers 403 and 404 until it has loaded its RBAC roles
and CRDs."""
