"""The health of an informer, as a value: how each outcome of a list or watch changes it, and when to retry."""

from __future__ import annotations

import math
from typing import Final

import attrs

from multikueue.core.machinery.backoff import Backoff
from multikueue.errors import ApiError, Cause, Forbidden, NotFound, Unreadable

CERTAIN_REFUSAL: Final = 3
"""Failures in a row after which an answer such as 500 counts as a refusal. A 403 or 404 counts at once."""

UNREADABLE_AGAIN: Final = 5.0
"""The least seconds until a server is asked again whose answer was too much to read: each attempt may be a list of a
thousand pages, and nothing that passes by itself makes that smaller."""


@attrs.frozen
class InformerStatus:
    """The health of an informer. Each change is a new value."""

    synced: bool = False
    """Whether a list has been read completely once."""
    failures: int = 0
    """Failures in a row; 0 again once a watch has been open for `Backoff.reset_after`."""
    failing_since: float | None = None
    """When the first of them was, on the loop's clock; None when there are none. While the server answers with what
    cannot be read it is the last of them: such a server is not lost."""
    silent_for: float = 0.0
    """How many seconds before that the server answered last."""
    last_error: str = ""
    """Why the last request failed; empty when there are no failures."""
    cause: Cause | None = None
    """The same for programs; None: the server's words alone tell, or there are no failures."""
    retry_in: float | None = None
    """Seconds from this status to the next request; None while a request is under way."""
    lists: int = 0
    """How many lists have been read."""
    histories: int = 0
    """How often the resourceVersion went backwards: the server was replaced, or restored from a backup."""
    refused: bool = False
    """Whether the server answers but does not give this kind: it does not serve it, forbids it, or keeps failing."""
    unreadable: bool = False
    """Whether the server answers, but with more than may be read or with what cannot be read."""
    refusals: int = 0
    """Answers of 403 and 404 in a row."""

    def inherited(self, earlier: InformerStatus) -> InformerStatus:
        """After an earlier informer of the same server: failures count from when that one began to fail."""
        if self.failing_since is None or earlier.failing_since is None:
            return self
        return attrs.evolve(self, failing_since=min(self.failing_since, earlier.failing_since))

    def listed(self) -> InformerStatus:
        """A list was read completely. It does not end the failures: only an established watch does."""
        return attrs.evolve(self, synced=True, retry_in=None, lists=self.lists + 1)

    def went_backwards(self) -> InformerStatus:
        """The list has a lower resourceVersion than what was known."""
        return attrs.evolve(self, histories=self.histories + 1)

    def established(self) -> InformerStatus:
        """A watch has been open for `Backoff.reset_after`."""
        return InformerStatus(synced=self.synced, lists=self.lists, histories=self.histories)

    def failed(
        self,
        error: ApiError,
        failures: int,
        now: float,
        *,
        backoff: Backoff,
        refused: Backoff,
        fraction: float,
        silent_for: float = 0.0,
        patience: float = math.inf,
    ) -> InformerStatus:
        """A list or watch failed.

        Refusals count by themselves: an API server that was away for long refuses requests for a moment when it starts.

        Args:
            error: why.
            failures: how many there are in a row now.
            now: the loop's clock.
            backoff: for failures.
            refused: for refusals: answers of 403 and 404.
            fraction: a random number in [0, 1) for the jitter.
            silent_for: how many seconds before `now` the server answered last.
            patience: see `Backoff.delay`.
        """
        refusals = self.refusals + 1 if isinstance(error, NotFound | Forbidden) else 0
        unreadable = isinstance(error, Unreadable)
        begins = self.failing_since is None or self.unreadable or unreadable
        waits, count = (refused, refusals) if refusals else (backoff, failures)
        if unreadable:
            waits = attrs.evolve(waits, base=max(waits.base, UNREADABLE_AGAIN))
        delay = waits.delay(count, fraction, patience=patience)
        return attrs.evolve(
            self,
            failures=failures,
            failing_since=now if begins else self.failing_since,
            silent_for=silent_for if begins else self.silent_for,
            last_error=str(error),
            cause=Cause.NOT_SERVED if isinstance(error, NotFound) else error.cause,
            retry_in=max(delay, error.retry_after or 0.0),
            refused=error.status != 0 and (refusals > 0 or failures >= CERTAIN_REFUSAL),
            unreadable=unreadable,
            refusals=refusals,
        )
