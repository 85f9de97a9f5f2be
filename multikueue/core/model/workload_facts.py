"""What one version of a Workload says, read once: every row of the plan asks for it, and many rows ask again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.adapter import Outcome
from multikueue.core.model.conditions import changed_at, condition, conditions, parse_timestamp
from multikueue.core.model.grace import pod_grace
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION, PREEMPTION_GATE
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import ByIdentity, annotations_of, dig, is_terminating
from multikueue.core.model.workloads import (
    ENDS,
    Owner,
    attempt,
    attempts,
    cluster_name,
    cluster_queue,
    component_index,
    has_had_owner,
    has_members,
    is_active,
    is_elastic,
    is_on_hold,
    is_replaced,
    nominated,
    noted_worker,
    owner,
    reserved_at,
)


@attrs.frozen(eq=False, kw_only=True)
class CommonFacts:
    """What is read of every Workload, the manager's or a copy. See `workloads` for what each of these means."""

    has_quota: bool
    is_admitted: bool
    is_evicted: bool
    is_finished: bool
    is_active: bool
    is_terminating: bool

    @property
    def gives_quota_back(self) -> bool:
        """Whether its eviction is under way: it keeps its quota until its job shows that nothing runs."""
        return self.is_evicted and self.has_quota


@attrs.frozen(eq=False, kw_only=True)
class CopyFacts(CommonFacts):
    """A worker's copy of a Workload, as the plan asks about it; of none where there is none."""

    outcome: Outcome
    """How its job ended, as its condition `Finished` tells; empty where there is none."""
    is_on_hold: bool
    """Whether its Kueue has taken its quota, or given it none, and has not evicted it."""
    is_told_to_stop: bool
    """Whether somebody has asked its Kueue to deactivate it."""
    stops_since: datetime | None
    """Since when its Kueue is to stop the run, or has stopped it by itself; None: it is not."""
    is_blocked: bool
    """Whether its Kueue would have to preempt for it, and may not."""
    has_had_owner: bool
    has_gate: bool
    """Whether it was made with our preemption gate."""
    opened_at: datetime | None
    """When we have opened that, by our clock; None: it is closed."""
    created_at: datetime | None
    """By its worker's clock."""

    @property
    def finish_reason(self) -> str:
        """Why it is Finished; empty: it is not."""
        return self.outcome.reason

    @property
    def is_spent(self) -> bool:
        """Whether the worker will never run it: Finished without a run to its end, or deactivated there."""
        return not self.has_ended if self.is_finished else not self.is_active

    @property
    def is_finished_as_ended(self) -> bool:
        """Whether it is Finished for a reason in `ENDS`: not because its job is missing there, or another one."""
        return self.is_finished and self.finish_reason in ENDS

    @property
    def has_ended(self) -> bool:
        """Whether its job has run there to its end. An evicted copy does not tell: pods that are being stopped may exit
        with success, and its Kueue then reports that. There the job itself tells."""
        return self.is_finished_as_ended and not self.is_evicted

    @property
    def is_stopping(self) -> bool:
        """Whether its Kueue suspends the job, or keeps it suspended: evicted or not admitted, and not Finished. True of
        no copy."""
        return not self.is_finished and (self.is_evicted or not self.is_admitted)

    @property
    def goes_on(self) -> bool:
        """Whether its Kueue goes on with it: it is admitted or on hold, and neither Finished, evicted nor deleted."""
        return (self.is_admitted or self.is_on_hold) and not (self.is_finished or self.is_leaving)

    @property
    def runs(self) -> bool:
        """Whether it is admitted, and neither Finished nor evicted."""
        return self.is_admitted and not (self.is_finished or self.is_evicted)

    @property
    def can_be_asked(self) -> bool:
        """Whether its Kueue can be asked to stop it: it is active, not Finished, not being deleted, not asked yet."""
        return self.is_active and not (self.is_finished or self.is_terminating or self.is_told_to_stop)

    @property
    def is_leaving(self) -> bool:
        """Whether it is being deleted, or evicted."""
        return self.is_terminating or self.is_evicted

    @property
    def waits_for_quota(self) -> bool:
        """Whether its Kueue may still give it quota: for the first time, or again after an eviction."""
        return self.is_active and self.is_stopping and not self.is_terminating


@attrs.frozen(eq=False, kw_only=True)
class WorkloadFacts(CommonFacts):
    """A Workload of the manager, as the plan asks about it."""

    is_on_hold: bool
    is_replaced: bool
    is_elastic: bool
    has_members: bool
    component_index: int | None
    cluster_queue: str
    cluster_name: ClusterName | None
    noted_worker: ClusterName | None
    nominated: tuple[str, ...]
    owner: Owner | None
    attempt: str
    """The one that new copies are made for."""
    attempts: tuple[str, ...]
    """That one and, while it is being evicted, what copies of the attempt that ends may be marked with."""
    reserved_at: datetime | None
    pod_grace: timedelta
    """The longest time that pods of it may take to end once they are told to."""
    leaves: ClusterName | None
    """The worker that somebody asked to move it away from; None: nobody asked."""

    @property
    def is_live(self) -> bool:
        """Whether it has quota, has not ended, and nobody has deleted it."""
        return self.has_quota and not self.is_finished and not self.is_terminating

    @property
    def is_finished_slice(self) -> bool:
        """Whether it is a Finished slice of an elastic job, replaced (`is_replaced`) or not: another slice may run the
        job on."""
        return self.is_elastic and self.is_finished

    @property
    def goes_on(self) -> bool:
        """Whether it is live, and its Kueue is not evicting it."""
        return self.is_live and not self.is_evicted


def _true_ones(workload: Json) -> dict[str, Json]:
    """The conditions with status True, by type; of several of one type the first counts."""
    listed = {str(entry.get("type")): entry for entry in reversed(conditions(workload))}
    return {kind: entry for kind, entry in listed.items() if entry.get("status") == "True"}


def _named_gate(listed: list[Json] | None) -> Json | None:
    return next((gate for gate in listed or [] if gate.get("name") == PREEMPTION_GATE), None)


def _copy_facts(copy: Json) -> CopyFacts:
    true = _true_ones(copy)
    stops = (changed_at(copy, kind) for kind in ("DeactivationTarget", "Evicted") if kind in true)
    gate = _named_gate(dig(copy, "status", "preemptionGates")) or {}
    return CopyFacts(
        has_quota="QuotaReserved" in true,
        is_admitted="Admitted" in true,
        is_evicted="Evicted" in true,
        is_finished="Finished" in true,
        is_active=is_active(copy),
        is_terminating=is_terminating(copy),
        outcome=Outcome(*(str(dig(true, "Finished", part) or "") for part in ("reason", "message"))),
        is_on_hold="Evicted" not in true and dig(condition(copy, "QuotaReserved"), "status") == "False",
        is_told_to_stop="DeactivationTarget" in true,
        stops_since=max(filter(None, stops), default=None),
        is_blocked="BlockedOnPreemptionGates" in true,
        has_had_owner=has_had_owner(copy),
        has_gate=_named_gate(dig(copy, "spec", "preemptionGates")) is not None,
        opened_at=parse_timestamp(gate.get("lastTransitionTime")) if gate.get("position") == "Open" else None,
        created_at=parse_timestamp(dig(copy, "metadata", "creationTimestamp")),
    )


def _workload_facts(workload: Json) -> WorkloadFacts:
    true = _true_ones(workload)
    return WorkloadFacts(
        has_quota="QuotaReserved" in true,
        is_admitted="Admitted" in true,
        is_evicted="Evicted" in true,
        is_finished="Finished" in true,
        is_on_hold=is_on_hold(workload),
        is_replaced=is_replaced(workload),
        is_active=is_active(workload),
        is_terminating=is_terminating(workload),
        is_elastic=is_elastic(workload),
        has_members=has_members(workload),
        component_index=component_index(workload),
        cluster_queue=cluster_queue(workload),
        cluster_name=cluster_name(workload),
        noted_worker=noted_worker(workload),
        nominated=nominated(workload),
        owner=owner(workload),
        attempt=attempt(workload),
        attempts=attempts(workload),
        reserved_at=reserved_at(workload),
        pod_grace=pod_grace(workload),
        leaves=ClusterName(annotations_of(workload).get(MOVE_FROM_ANNOTATION) or "") or None,
    )


NO_COPY: Final = _copy_facts({})
COPIES: Final = ByIdentity(_copy_facts, size=1_024)
WORKLOADS: Final = ByIdentity(_workload_facts, size=2_048)
"""Each version is read once: a decision asks the same up to thirty times, and many decide on one version."""


def may_have_siblings(workload: Json) -> bool:
    """Whether other Workloads may stand for the same job: slices of an elastic job, parts of a group."""
    facts = WORKLOADS.of(workload)
    return facts.is_elastic or facts.component_index is not None
