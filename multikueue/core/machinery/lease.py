"""Who leads: one candidate's view of a `coordination.k8s.io/v1` Lease, and what it may do about it.

The rules, in one place:

* A candidate acts only on times of its own monotonic clock. The times inside the Lease are for people: clocks of
  different machines may disagree by any amount. What must agree is their speed, within
  `LeaseSettings.duration / LeaseSettings.renew_deadline`.
* Somebody else's Lease is free once it has been *seen* unchanged for its whole duration.
* A leader counts from the moment it *began* its last successful write. It stops `renew_deadline` after that, so before
  anybody who saw the write may count the Lease as free.
* Every write carries the resourceVersion it was decided from; of two candidates one gets a conflict.
* An identity belongs to one process only. A Lease that bears it is this candidate's own.

This is client-go's algorithm with two differences: the holder's own `leaseDurationSeconds` is respected, so replicas
with different settings do not overlap, and a deleted Lease stays taken until its last sight has expired.
It does not fence: a leader whose process is frozen for longer than the duration may act once more when it wakes.
"""

from __future__ import annotations

import enum
import math
from datetime import UTC, datetime
from typing import Final

import attrs

from multikueue.core.model.kinds import LEASE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, resource_version
from multikueue.errors import SettingsError

JITTER: Final = 0.5
"""A candidate waits up to this fraction longer between attempts, so that replicas do not ask in step."""


@attrs.frozen
class LeaseSettings:
    """How long leadership lasts, in seconds: client-go's defaults, which clusters are sized for.

    Raises:
        SettingsError: the times do not leave room for each other.
    """

    duration: float = 15.0
    """How long a leader that died keeps others waiting. Long enough for a leader to survive a restart of the API
    server, short enough that nobody misses it. The server keeps whole seconds: it is rounded up there."""
    renew_deadline: float = 10.0
    """How long a leader may go on without a successful renewal. The rest of `duration`, 5 s, is what its work has to
    end in after it is told to stop."""
    retry_period: float = 2.0
    """Between renewals, and between a candidate's attempts: several attempts fit into the deadline, at one small write
    per period."""

    def __attrs_post_init__(self) -> None:
        if not self.duration > self.renew_deadline:
            raise SettingsError("leaseDuration must be longer than renewDeadline: a leader stops before others start")
        if not self.renew_deadline > self.retry_period * (1 + JITTER):
            raise SettingsError(f"renewDeadline must be longer than {1 + JITTER} x retryPeriod, to allow a second try")
        if not self.retry_period > 0:
            raise SettingsError("retryPeriod must be longer than 0s")


class Step(enum.Enum):
    """What a candidate may do now."""

    ACQUIRE = "acquire"
    """The Lease is free: write it."""
    RENEW = "renew"
    """It is this candidate's: write it again."""
    WAIT = "wait"
    """It is somebody else's."""


@attrs.define(eq=False)
class Candidate:
    """One candidate's view of the Lease. It decides; its driver reads, writes and waits.

    * `observe` what was read, then `decide`; write `next_lease`, and tell `wrote` if that succeeded.
    * Between `wrote` and `leads_until` the candidate leads, and nobody else does.
    """

    key: ObjectKey
    identity: str
    """Unique to this process."""
    settings: LeaseSettings = attrs.field(factory=LeaseSettings)
    _lease: Json | None = attrs.field(default=None, init=False)
    """The Lease as read or written last; None: there is none."""
    _record: Json = attrs.field(factory=dict, init=False)
    """Its spec when there was one last."""
    _changed_at: float = attrs.field(default=-math.inf, init=False)
    """When this candidate saw the record change, by its own clock."""
    _written_at: float = attrs.field(default=-math.inf, init=False)
    """When the last successful write was begun, by its own clock."""

    def observe(self, lease: Json | None, now: float) -> None:
        """Take note of the Lease just read; None if there is none."""
        self._lease = lease
        if lease is None:
            return
        record = lease.get("spec") or {}
        if record != self._record:
            self._record = record
            self._changed_at = now
        if self.holder != self.identity:
            self._written_at = -math.inf

    def decide(self, now: float) -> Step:
        """What may be done about what was observed."""
        if not self.holder:
            return Step.ACQUIRE
        if self.holder == self.identity:
            return Step.RENEW if self._lease is not None else Step.ACQUIRE
        return Step.ACQUIRE if now >= self._changed_at + self._holders_duration() else Step.WAIT

    def wrote(self, lease: Json, began: float) -> None:
        """Take note of a successful write of `next_lease`.

        Args:
            lease: the server's answer.
            began: when the request was begun. Not when it was answered: others may count from any moment in between.
        """
        self.observe(lease, began)
        self._written_at = began

    def next_lease(self, wall: datetime) -> Json:
        """The Lease to write to acquire or renew; without a resourceVersion it is to be created.

        Args:
            wall: the wall clock, for people who look at the Lease.
        """
        mine = self.holder == self.identity
        transitions = self._record.get("leaseTransitions") or 0
        return self._with_spec(
            {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": math.ceil(self.settings.duration),
                "acquireTime": self._record.get("acquireTime") or micro_time(wall) if mine else micro_time(wall),
                "renewTime": micro_time(wall),
                "leaseTransitions": transitions if mine or not self._record else transitions + 1,
            }
        )

    def released_lease(self, wall: datetime) -> Json:
        """The Lease to write to let somebody else lead at once."""
        return self._with_spec({**self._record, "holderIdentity": "", "renewTime": micro_time(wall)})

    def retry_delay(self, fraction: float) -> float:
        """Seconds until a candidate that may not lead asks again.

        Args:
            fraction: of the jitter, in [0, 1).
        """
        return self.settings.retry_period * (1 + JITTER * fraction)

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last seen; empty if nobody did."""
        return self._record.get("holderIdentity") or ""

    @property
    def leads_until(self) -> float:
        """Until when this candidate leads, by its own clock; minus infinity if it does not."""
        return self._written_at + self.settings.renew_deadline

    def _holders_duration(self) -> float:
        declared = self._record.get("leaseDurationSeconds")
        return float(declared) if isinstance(declared, int) and declared > 0 else self.settings.duration

    def _with_spec(self, spec: Json) -> Json:
        metadata: Json = {"namespace": self.key.namespace, "name": self.key.name}
        if self._lease is not None:
            metadata = {**(dig(self._lease, "metadata") or {}), "resourceVersion": resource_version(self._lease)}
            spec = {**self._record, **spec}
        return {"apiVersion": LEASE.gvk.api_version, "kind": LEASE.gvk.kind, "metadata": metadata, "spec": spec}


def micro_time(moment: datetime) -> str:
    """The moment as Kubernetes writes a MicroTime: RFC 3339, UTC, always six decimals."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
