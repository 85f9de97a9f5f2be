"""One worker cluster's connection: what is known of it, and what its MultiKueueCluster says about it."""

from __future__ import annotations

from datetime import datetime

import attrs

from multikueue.core.conditions import condition, new_condition, parse_timestamp, timestamp
from multikueue.core.names import Json
from multikueue.core.objects import dig


@attrs.frozen
class Connection:
    """A connection's state. A change is a new value."""

    connected: bool = False
    """Whether the worker's Workloads are being watched."""
    lost_since: datetime | None = None
    """Since when they are not, by the manager's clock; None while connected and before the first word."""
    failures: int = 0
    """Attempts that failed since it was last connected."""
    next_attempt: datetime | None = None
    """When the next one is made."""
    reason: str = "ClientConnectionFailed"
    """Kueue's reason for the Active condition while not connected."""
    error: str = ""
    """Why not, for people."""

    def succeeded(self) -> Connection:
        """The worker answers."""
        return Connection(connected=True)

    def failed(
        self,
        error: str,
        now: datetime,
        *,
        failures: int,
        next_attempt: datetime | None,
        reason: str = "ClientConnectionFailed",
    ) -> Connection:
        """The worker does not answer, or may not be asked. The time of the first loss is kept."""
        return Connection(False, self.lost_since or now, failures, next_attempt, reason, error)

    def active_condition(self, now: datetime, generation: int | None) -> Json:
        """The `Active` condition that tells this on the MultiKueueCluster."""
        if self.connected:
            return new_condition("Active", True, "Active", "Connected", now=now, generation=generation)
        message = self.error
        if self.failures and self.next_attempt is not None:
            message += (
                f"; connection attempts: {self.failures}, next connection attempt: {timestamp(self.next_attempt)}"
            )
        told = new_condition("Active", False, self.reason, message, now=now, generation=generation)
        if self.lost_since is not None:
            told["lastTransitionTime"] = timestamp(self.lost_since)
        return told


def remembered_loss(cluster: Json) -> datetime | None:
    """Since when the object says that the worker is lost: this is how the time survives a restart."""
    active = condition(cluster, "Active")
    if active is None or active.get("status") == "True":
        return None
    return parse_timestamp(active.get("lastTransitionTime"))


def active_status(cluster: Json, connection: Connection, now: datetime) -> Json | None:
    """The Active condition to write, or None if the object says the same already.

    While an attempt follows the other only the first failure and then every new error are written: the count in the
    message alone is not worth a write.
    """
    wanted = connection.active_condition(now, dig(cluster, "metadata", "generation"))
    found = condition(cluster, "Active")
    if found is None:
        return wanted
    same = all(_essence(found).get(field) == _essence(wanted).get(field) for field in ("status", "reason", "message"))
    if same:
        return None
    if found.get("status") == wanted["status"]:
        wanted["lastTransitionTime"] = found.get("lastTransitionTime") or wanted["lastTransitionTime"]
    return wanted


def _essence(told: Json) -> Json:
    return {**told, "message": str(told.get("message", "")).partition("; connection attempts: ")[0]}
