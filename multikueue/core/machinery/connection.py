"""One worker cluster's connection: what is known of it, and what its MultiKueueCluster says about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import attrs

from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.conditions import (
    condition,
    new_condition,
    says_the_same,
    timestamp,
    updated,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import Cause

CONNECTION_FAILED: Final = "ClientConnectionFailed"
"""Kueue's reason for a worker that cannot be reached."""
UNREADABLE: Final = "AnswersUnreadable"
"""Our reason for a worker that answers with more than may be read of it."""
BAD_NAMES: Final = "UnusableNames"
"""Our reason for a worker that is connected, and nobody knows how namespaces and queues may be called there."""
CREDENTIALS: Final = "multikueue.dev/CredentialsInUse"
"""Our condition on a MultiKueueCluster beside `Active`: which credentials its connection was opened with. The reason
says where they are from, the message is their digest."""
FROM_KUBECONFIG: Final = "Kubeconfig"
FROM_PROFILE: Final = "ClusterProfile"


@attrs.frozen
class OpeningWatch:
    """Its deciding watch is being opened."""


@attrs.frozen
class OpenWatch:
    """Its deciding watch is open."""


@attrs.frozen
class Failing:
    """Its deciding watch cannot be opened, so many times in a row.

    `retry_in`: seconds from when this is new. `silent_for`: seconds from the last answer to the first failure.
    """

    failures: int
    error: str
    retry_in: float
    silent_for: float = 0.0
    unreadable: bool = False
    """Whether it answers, but with what cannot be read: that is no loss."""
    cause: str = ""
    """What is wrong, as a `Cause`; empty: the error alone tells."""


Watch: TypeAlias = OpeningWatch | OpenWatch | Failing


@attrs.frozen
class Health:
    """How the deciding watch does, and whether the first answer is in for everything else that is read, too."""

    watch: Watch
    complete: bool


@attrs.frozen
class Connection:
    """A connection's state. A change is a new value."""

    connected: bool = False
    """Whether the worker's Workloads are being watched."""
    lost_since: datetime | None = None
    """Since when they are not, by the manager's clock; None while connected, while the worker answers with what cannot
    be read, and until the first answer or failure.

    The first failure sets it, to when the worker answered last, and the next ones keep it. An earlier process may have
    noted it, see `remembered_loss.py`.
    """
    failures: int = 0
    """Attempts that failed since it was last connected."""
    next_attempt: datetime | None = None
    """When the next one is made; None if none is."""
    reason: str = CONNECTION_FAILED
    """Kueue's reason for the Active condition while not connected."""
    error: str = ""
    """Why not, for people."""
    cause: str = ""
    """The same for programs, as a `Cause`; empty: the error alone tells."""

    @property
    def unheard(self) -> bool:
        """Whether the worker has neither answered nor failed to since this process began to ask it."""
        return not self.connected and not self.error

    @property
    def word(self) -> str:
        """The state in one word, for logs."""
        if self.connected:
            return "connected"
        return "connecting" if self.unheard else "unreadable" if self.unreadable else "lost"

    @property
    def unreadable(self) -> bool:
        """Whether the worker answers, but with what cannot be read."""
        return not self.connected and self.reason == UNREADABLE

    def shifted(self, step: timedelta) -> Connection:
        """The same with its times so much later: by a wall clock that has been set."""
        since, due = (None if at is None else at + step for at in (self.lost_since, self.next_attempt))
        return attrs.evolve(self, lost_since=since, next_attempt=due)

    def succeeded(self) -> Connection:
        """The worker answers."""
        return Connection(connected=True)

    def sighted(self) -> Connection:
        """Its Workloads were read, though not everything yet: an earlier loss is over. The next failure begins one."""
        return attrs.evolve(self, lost_since=None)

    def failed(
        self,
        error: str,
        now: datetime,
        *,
        failures: int = 0,
        retry_in: float = 0.0,
        reason: str = CONNECTION_FAILED,
        silent_for: float = 0.0,
        cause: str = "",
    ) -> Connection:
        """The worker does not answer, or may not be asked. The time of the first loss is kept.

        Args:
            error: why, for people.
            now: the manager's wall clock.
            failures: in a row; 0: it is not tried again before something changes.
            retry_in: seconds until the next attempt.
            reason: Kueue's.
            silent_for: seconds since it answered last.
            cause: why, as a `Cause`.
        """
        next_attempt = now + timedelta(seconds=retry_in) if failures else None
        since = self.lost_since or now - timedelta(seconds=silent_for)
        return Connection(False, since, failures, next_attempt, reason, error, cause)

    def unread(self, error: str, now: datetime, *, failures: int, retry_in: float) -> Connection:
        """The worker answers, but with what cannot be read. It is not connected, and not lost either.

        Args:
            error: why, for people.
            now: the manager's wall clock.
            failures: in a row.
            retry_in: seconds until the next attempt.
        """
        due, cause = now + timedelta(seconds=retry_in), Cause.ANSWERS_UNREADABLE
        return Connection(False, None, failures, due, UNREADABLE, error, cause)

    def facts(
        self, unusable: Mapping[str, str] | None = None, *, lost_after: timedelta | None = None
    ) -> ConnectionFacts:
        """What the MultiKueueCluster says of it for programs; see `active_condition`.

        Args:
            unusable: the kinds that cannot be used there, and why.
            lost_after: for how long a lost worker keeps its jobs; None: that is not said.
        """
        if self.connected:
            return ConnectionFacts(unusable=unusable or {})
        moves = None if self.lost_since is None or lost_after is None else self.lost_since + lost_after
        failures = self.failures if self.next_attempt else 0
        return ConnectionFacts(failures, self.next_attempt, self.error, moves_at=moves, cause=self.cause)

    def active_condition(
        self,
        now: datetime,
        generation: int | None,
        unusable: Mapping[str, str] | None = None,
        misnamed: str = "",
    ) -> Json:
        """The `Active` condition that tells this on the MultiKueueCluster.

        Args:
            now: the manager's wall clock.
            generation: of the MultiKueueCluster.
            unusable: the kinds that cannot be used there, and why.
            misnamed: why nobody knows how namespaces and queues are called there; empty: it is known.
        """
        if self.connected and misnamed:
            return new_condition("Active", False, BAD_NAMES, misnamed, now=now, generation=generation)
        if self.connected:
            flaws = ", ".join(f"{kind} ({why})" for kind, why in sorted((unusable or {}).items()))
            message = f"Connected; not usable for: {flaws}" if flaws else "Connected"
            return new_condition("Active", True, "Active", message, now=now, generation=generation)
        message = self.error
        if self.next_attempt is not None:
            due = timestamp(self.next_attempt)
            message += f"; connection attempts: {self.failures}, next connection attempt: {due}"
        told_lost = new_condition("Active", False, self.reason, message, now=now, generation=generation)
        if self.lost_since is not None:
            told_lost["lastTransitionTime"] = timestamp(self.lost_since)
        return told_lost


def active_status(
    cluster: Json,
    connection: Connection,
    now: datetime,
    unusable: Mapping[str, str] | None = None,
    misnamed: str = "",
) -> Json | None:
    """The Active condition to write, or None if the object says the same already.

    Every failed attempt is written, since its message says when the next one is made. At most one a minute is made
    once a worker has been away for a while. Before the first answer or failure only the time of an earlier loss may
    change: it must be on the object before another restart adds to it. See `Connection.active_condition`.
    """
    before = condition(cluster, "Active")
    if connection.unheard:
        return None if before is None or before.get("status") == "True" else _moved(before, connection.lost_since)
    wanted = connection.active_condition(now, dig(cluster, "metadata", "generation"), unusable, misnamed)
    if before is not None and says_the_same(before, wanted):
        return _moved(before, connection.lost_since)
    return wanted if connection.lost_since is not None else updated([before] if before else [], wanted)[0]


def _moved(active: Json, lost_since: datetime | None) -> Json | None:
    """The condition with another time of the loss; None if it has that, or the worker is not lost."""
    moved = {**active, "lastTransitionTime": timestamp(lost_since)} if lost_since is not None else active
    return moved if moved != active else None


def credentials_status(cluster: Json, digest: str, now: datetime) -> Json | None:
    """The condition that tells which credentials are in use, or None if the object says the same already.

    Credentials are changed without a lost connection, so nothing else shows when the earlier ones are not used any
    more and may be revoked.

    Args:
        cluster: the MultiKueueCluster.
        digest: of the address and credentials that the connection was opened with.
        now: the manager's wall clock.
    """
    by_profile = dig(cluster, "spec", "clusterSource", "clusterProfileRef")
    reason, generation = FROM_PROFILE if by_profile else FROM_KUBECONFIG, dig(cluster, "metadata", "generation")
    wanted = new_condition(CREDENTIALS, True, reason, digest, now=now, generation=generation)
    return None if says_the_same(condition(cluster, CREDENTIALS), wanted) else wanted


@attrs.frozen
class Notice:
    """An event on a MultiKueueCluster."""

    type: str
    reason: str
    note: str


def notice(before: Json | None, wanted: Json, facts: ConnectionFacts) -> Notice | None:
    """The event that goes with a condition about to be written; None if nothing happened but another attempt.

    Args:
        before: the Active condition so far.
        wanted: the one that takes its place.
        facts: what is known of the connection.
    """
    if wanted["status"] == "True":
        kind, reason = ("Warning", "KindsNotUsable") if facts.unusable else ("Normal", "ClusterConnected")
        return Notice(kind, reason, str(wanted["message"]))
    if before is not None and before.get("status") == "False" and before.get("reason") == wanted["reason"]:
        return None
    lost = wanted["reason"] == CONNECTION_FAILED
    return Notice("Warning", "ClusterLost" if lost else str(wanted["reason"]), facts.error)
