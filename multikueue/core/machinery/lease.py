"""Leader election: one candidate's view of a `coordination.k8s.io/v1` Lease, and what it may do.

The rules:

* A candidate uses only its own monotonic clock. The times inside the Lease decide nothing here, because the clocks of
  machines may differ by any amount. Only the speed of the clocks must agree, within
  `LeaseSettings.duration / LeaseSettings.renew_deadline`.
* Another holder's Lease is free once the candidate has *observed* it unchanged for its whole duration.
* A leader counts from the moment it *began* its last successful write. It stops leading `renew_deadline` later, which
  is before a candidate that observed the write may take the Lease.
* Every write has the resourceVersion it was decided from as a precondition. Of two candidates, one gets a conflict.
* An identity belongs to one process. A Lease with this identity is this candidate's.
* A write that acquires says until when somebody led before: it may take effect without an answer, again and again,
  and then its `renewTime` goes on while nobody leads.

This is client-go's algorithm with two differences: it respects the holder's own `leaseDurationSeconds`, so replicas
with different settings do not overlap; and a deleted Lease stays taken until its last observed record has expired.
It does not fence: a leader whose process is frozen for longer than the duration may act once more when it wakes.
"""

from __future__ import annotations

import enum
import math
from datetime import UTC, datetime
from typing import Final

import attrs

from multikueue.core.machinery.action import seconds_to_wait
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import LEASE
from multikueue.core.model.labels import LED_UNTIL_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, resource_version
from multikueue.errors import SettingsError

JITTER: Final = 0.5
"""A candidate waits up to this fraction longer between attempts, so that replicas do not retry together."""


@attrs.frozen
class LeaseSettings:
    """The times of a leader election in seconds. The defaults are client-go's, which clusters are sized for.

    Raises:
        SettingsError: the times contradict each other.
        TypeError: one is no number of seconds.
    """

    duration: float = 15.0
    """How long candidates wait for a leader that died. It must outlast a restart of the API server. The Lease holds
    whole seconds: it is rounded up there."""
    renew_deadline: float = 10.0
    """How long a leader leads without a successful renewal. The rest of `duration`, 5 s, is the time for its work to
    stop."""
    retry_period: float = 2.0
    """Between renewals, and between a candidate's attempts. Several attempts fit into the deadline, at one small write
    each."""

    def __attrs_post_init__(self) -> None:
        for given in (self.duration, self.renew_deadline, self.retry_period):
            seconds_to_wait(given)
        if not self.duration > self.renew_deadline:
            raise SettingsError("leaseDuration must be longer than renewDeadline: a leader stops before others start")
        if not self.renew_deadline > self.retry_period * (1 + JITTER):
            raise SettingsError(f"renewDeadline must be longer than {1 + JITTER} x retryPeriod, to allow a second try")
        if not self.retry_period > 0:
            raise SettingsError("retryPeriod must be longer than 0s")


class LeaseAction(enum.Enum):
    """What a candidate may do next."""

    ACQUIRE = "acquire"
    """The Lease is free: write it."""
    RENEW = "renew"
    """This candidate holds the Lease: write it again."""
    WAIT = "wait"
    """Another candidate holds the Lease."""


@attrs.define(eq=False)
class LeaseCandidate:
    """One candidate's view of the Lease. It decides; its driver reads, writes and waits.

    * The driver calls `observe` after each read, then `decide`. It writes `next_lease`, then calls `wrote`.
    * Between `wrote` and `leads_until` this candidate leads, and no other.

    Raises:
        SettingsError: it has no identity.
    """

    key: ObjectKey
    identity: str
    """Unique to this process."""
    settings: LeaseSettings = attrs.field(factory=LeaseSettings)
    _lease: Json | None = attrs.field(default=None, init=False)
    """The Lease as last read or written; None: there is none."""
    _record: Json = attrs.field(factory=dict, init=False)
    """The spec of the last Lease there was."""
    _led_until: str | None = attrs.field(default=None, init=False)
    """What that says beside its renewTime; None: nothing."""
    _changed_at: float = attrs.field(default=-math.inf, init=False)
    """When this candidate observed the last change of the record, on its own clock."""
    _written_at: float = attrs.field(default=-math.inf, init=False)
    """When this candidate began its last successful write, on its own clock."""

    def __attrs_post_init__(self) -> None:
        if not self.identity:
            raise SettingsError("identity: a leader must have one: a Lease without a holder is free")

    def __repr__(self) -> str:
        return f"<Candidate {self.identity}: Lease {self.key}, held by {self.holder or 'nobody'}>"

    def observe(self, lease: Json | None, now: float) -> None:
        """Note the Lease that was just read; None: there is none."""
        self._lease = lease
        if lease is None:
            return
        self._led_until = annotations_of(lease).get(LED_UNTIL_ANNOTATION)
        record = lease.get("spec") or {}
        if record != self._record:
            self._record = record
            self._changed_at = now
        if self.holder != self.identity:
            self._written_at = -math.inf

    def decide(self, now: float) -> LeaseAction:
        """What the candidate may do, given what it has observed."""
        if not self.holder:
            return LeaseAction.ACQUIRE
        if self.holder == self.identity:
            return LeaseAction.RENEW if self._lease is not None else LeaseAction.ACQUIRE
        return LeaseAction.ACQUIRE if now >= self._changed_at + self._holders_duration() else LeaseAction.WAIT

    def wrote(self, lease: Json, began: float) -> None:
        """Note a successful write of `next_lease`.

        Args:
            lease: the server's answer.
            began: when the request began, not when it was answered: other candidates count from any moment in between.
        """
        self.observe(lease, began)
        self._written_at = began

    def next_lease(self, wall: datetime, *, leading: bool = True) -> Json:
        """The Lease to write in order to acquire or renew. If it has no resourceVersion, create it.

        Args:
            wall: the wall clock, for people who read the Lease.
            leading: whether this candidate leads.
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
            },
            None if leading else _written(self.led_until),
        )

    def released_lease(self, wall: datetime, stopped: datetime | None = None) -> Json:
        """The Lease to write in order to release it, so that another candidate can lead at once.

        Args:
            wall: the wall clock.
            stopped: when this candidate led last; None: it has not led.
        """
        released = {**self._record, "holderIdentity": "", "renewTime": micro_time(wall)}
        return self._with_spec(released, _written(self.led_until if self._led_until is not None else stopped))

    def retry_delay(self, fraction: float) -> float:
        """Seconds until a candidate that may not lead reads the Lease again.

        Args:
            fraction: of the jitter, in [0, 1).
        """
        return self.settings.retry_period * (1 + JITTER * fraction)

    @property
    def holder(self) -> str:
        """The holder of the Lease as last observed; empty: nobody."""
        return self._record.get("holderIdentity") or ""

    @property
    def led_until(self) -> datetime | None:
        """When a leader renewed the Lease last, by its own wall clock; None: nobody did, as far as the Lease says."""
        return parse_timestamp(self._record.get("renewTime") if self._led_until is None else self._led_until)

    @property
    def leads_until(self) -> float:
        """Until when this candidate leads, on its own clock; minus infinity if it does not."""
        return self._written_at + self.settings.renew_deadline

    def _holders_duration(self) -> float:
        declared = self._record.get("leaseDurationSeconds")
        return float(declared) if isinstance(declared, int) and declared > 0 else self.settings.duration

    def _with_spec(self, spec: Json, led_until: str | None) -> Json:
        metadata: Json = {"namespace": self.key.namespace, "name": self.key.name}
        if self._lease is not None:
            metadata = {**(dig(self._lease, "metadata") or {}), "resourceVersion": resource_version(self._lease)}
            spec = {**self._record, **spec}
        noted = {key: value for key, value in annotations_of(self._lease or {}).items() if key != LED_UNTIL_ANNOTATION}
        noted |= {LED_UNTIL_ANNOTATION: led_until} if led_until is not None else {}
        metadata = {key: value for key, value in metadata.items() if key != "annotations"}
        metadata |= {"annotations": noted} if noted else {}
        return {"apiVersion": LEASE.gvk.api_version, "kind": LEASE.gvk.kind, "metadata": metadata, "spec": spec}


def _written(moment: datetime | None) -> str:
    return micro_time(moment) if moment is not None else ""


def micro_time(moment: datetime) -> str:
    """A time as a Kubernetes MicroTime: RFC 3339 in UTC with six decimals."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
