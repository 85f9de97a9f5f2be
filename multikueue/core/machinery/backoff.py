"""Exponential back-off. Randomness and time come in as arguments."""

from __future__ import annotations

import attrs


@attrs.frozen
class Backoff:
    """How long to wait after the n-th failure in a row."""

    base: float
    """Seconds after the first failure."""
    cap: float
    """Seconds that are never exceeded before jitter."""
    factor: float = 2.0
    """What each further failure multiplies the wait by."""
    jitter: float = 0.0
    """Up to this part of the wait is added, so that many who failed together do not return together."""
    steady_after: float = 0.0
    """Seconds a success must last to forget the failures before it: what dies young is one more failure."""

    def delay(self, failures: int, fraction: float = 0.0) -> float:
        """Seconds to wait after that many failures in a row; at most `cap * (1 + jitter)`.

        Args:
            failures: at least 1; 0 means no wait.
            fraction: a random number in [0, 1) for the jitter.
        """
        if failures < 1:
            return 0.0
        exponent = min(failures - 1, 64)  # beyond this the cap holds for any sensible base, and floats overflow
        plain = min(self.base * self.factor**exponent, self.cap)
        return plain * (1.0 + self.jitter * fraction)


ITEM_BACKOFF = Backoff(base=0.005, cap=60.0, jitter=0.2)
"""For one key of a controller: client-go's 5 ms, but at most a minute, since an hour helps nobody."""

WATCH_BACKOFF = Backoff(base=0.2, cap=30.0, jitter=0.5, steady_after=2.0)
"""For one watch: a dropped stream is usually a restarted proxy, so the first tries are quick."""

CONNECTION_BACKOFF = Backoff(base=5.0, cap=60.0, jitter=0.2, steady_after=5.0)
"""For the watch that decides whether a worker is connected. Kueue's first steps (5, 10, 20, 40 s), but at most a minute
instead of 320 s: an attempt is one request, and a worker that is back should have work a minute later. There is no wait
before the first try after a drop (see `core.machinery.watch`). A stream that ends within five seconds is a failure
like any other: a worker whose connections die young is shown as lost and asked ever more rarely."""

REFUSED_BACKOFF = Backoff(base=0.5, cap=300.0, jitter=0.2)
"""For a kind that is not served or may not be read: somebody has to install or grant something first. But the first
tries are quick: an API server that has just started says 403 and 404 too, until it has read its roles and CRDs."""
