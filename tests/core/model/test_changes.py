"""Which changes of a Workload and of its copies ask for a decision, and when."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from multikueue.core.model.changes import NOW, SOON, copy_due_after, due_after, removal_due_after
from multikueue.core.model.names import Json
from multikueue.core.model.objects import merge_patch

Condition = tuple[str, bool]
QUOTA, WAITS, READY_PODS = ("QuotaReserved", True), ("QuotaReserved", False), ("PodsReady", True)
ADMITTED, FINISHED, EVICTED = ("Admitted", True), ("Finished", True), ("Evicted", True)


def workload(*conditions: Condition, metadata: Json | None = None, priority: int = 0, **status: Any) -> Json:
    """A Workload, or a copy of one."""
    listed = [{"type": kind, "status": "True" if holds else "False"} for kind, holds in conditions]
    return {
        "metadata": {"name": "wl", "namespace": "ns", "uid": "u", **(metadata or {})},
        "spec": {"priority": priority},
        "status": {"conditions": listed, **status},
    }


def checked(state: str, message: str = "", **status: Any) -> functools.partial[Json]:
    """A Workload with quota and our check."""
    entries = [{"name": "multikueue", "state": state, "message": message}]
    return functools.partial(workload, QUOTA, admissionChecks=entries, **status)


NEW, PENDING, READY = workload(), checked("Pending"), checked("Ready", clusterName="worker1")
OUTLINE: Json = {"metadata": NEW["metadata"]}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def without_quota(state: str | None = None) -> Json:
    return workload(WAITS, admissionChecks=[{"name": "multikueue", "state": state}] if state else [])


def test_what_decisions_are_made_of_asks_for_one_at_once() -> None:
    """Quota, checks, evictions, ends, another spec, another worker, deletion; and whatever is not known here."""
    for old, new in [
        (without_quota("Pending"), PENDING()),
        (PENDING(), checked("Pending", "said by somebody else")()),
        (PENDING(), PENDING(nominatedClusterNames=["worker1"])),
        (PENDING(), PENDING(clusterName="worker1")),
        (PENDING(), READY()),
        (READY(), READY(EVICTED)),
        (READY(), READY(FINISHED)),
        (READY(), READY(("Invented", True))),
        (READY(), READY(priority=1)),
        (READY(), READY(metadata={"labels": {"a": "b"}})),
        (READY(), READY(metadata=DELETED)),
        (READY(metadata={**DELETED, "finalizers": ["a"]}), READY(metadata=DELETED)),
        (READY(), READY(reclaimablePods=[{"name": "main", "count": 1}])),
        (READY(), None),
        (None, PENDING()),
        (None, without_quota("Pending")),
        (None, workload(metadata=DELETED)),
        (without_quota("Ready"), without_quota("Rejected")),
    ]:
        assert due_after(old, new) == NOW, merge_patch(old, new)


def test_what_cannot_be_read_asks_for_one_at_once() -> None:
    """Why it cannot be read may have changed, and that shows nowhere in it."""
    assert due_after(OUTLINE, OUTLINE) == due_after(NEW, OUTLINE) == due_after(OUTLINE, NEW) == NOW
    assert copy_due_after(None, OUTLINE, PENDING(), "worker1") == NOW
    assert copy_due_after(OUTLINE, OUTLINE, PENDING(), "worker1") == NOW


def test_a_workload_without_quota_is_looked_at_soon() -> None:
    """Kueue writes its checks, its conditions and its quota one after the other."""
    assert due_after(None, NEW) == SOON
    assert due_after(NEW, without_quota("Pending")) == SOON
    assert due_after(without_quota(), without_quota("Pending")) == SOON
    assert due_after(NEW, workload(metadata={"finalizers": ["kueue"]})) == SOON
    assert due_after(NEW, NEW) == SOON  # somebody has written it, without a change that shows here


def test_what_follows_from_our_own_decisions_is_looked_at_soon() -> None:
    """Kueue admits what is Ready, and notes in the status what it needs itself."""
    assert due_after(READY(), READY(ADMITTED)) == SOON
    assert due_after(READY(), READY(resourceRequests=[])) == SOON


def test_what_no_row_reads_asks_for_nothing() -> None:
    assert due_after(READY(), READY(READY_PODS)) is None
    assert due_after(READY(READY_PODS), READY(("PodsReady", False), ADMITTED)) == SOON
    assert copy_due_after(READY(), READY(READY_PODS), READY(), "worker1") is None


def test_an_offer_of_our_own_is_no_news_but_a_record_and_a_verdict_are() -> None:
    """The copies are made by the decision that wrote the offer; the job is made by the one after the record."""
    offer = checked("Pending", "Offered to worker1", nominatedClusterNames=["worker1"])()
    assert due_after(PENDING(), offer, is_own=True) == SOON
    assert due_after(PENDING(), offer) == NOW
    assert due_after(offer, checked("Pending", clusterName="worker1")(), is_own=True) == NOW
    assert due_after(offer, checked("Retry")(), is_own=True) == NOW


@pytest.mark.parametrize("decided", [QUOTA, ADMITTED, FINISHED, EVICTED])
def test_a_copy_that_its_worker_has_decided_on_is_looked_at_at_once(decided: Condition) -> None:
    copy, decided_on = workload(), workload(decided)
    assert copy_due_after(None, copy, PENDING(), "worker1") == SOON
    assert copy_due_after(None, decided_on, PENDING(), "worker1") == NOW
    assert copy_due_after(copy, decided_on, PENDING(), "worker1") == NOW
    assert copy_due_after(decided_on, copy, PENDING(), "worker1") == NOW


def test_other_words_of_a_worker_that_has_no_room_are_looked_at_soon() -> None:
    assert copy_due_after(workload(), workload(WAITS), PENDING(), "worker1") == SOON
    assert copy_due_after(workload(), workload(("BlockedOnPreemptionGates", True)), PENDING(), "worker1") == NOW


def test_whatever_happens_to_copies_of_what_has_gone_or_is_being_stopped_is_looked_at_at_once() -> None:
    for stopped in (None, PENDING(EVICTED), PENDING(metadata=DELETED)):
        assert copy_due_after(None, workload(), stopped, "worker1") == NOW
        assert copy_due_after(workload(), workload(READY_PODS), stopped, "worker1") == NOW
        assert copy_due_after(workload(), None, stopped, "worker1") == NOW
    assert copy_due_after(None, workload(), READY(), "worker2") == NOW  # nobody has offered it there


def test_what_is_removed_where_nothing_comes_in_its_place_is_looked_at_soon() -> None:
    """The losers' copies once a worker is recorded, and all of them once it has finished."""
    assert removal_due_after(PENDING(), "worker1") == removal_due_after(READY(), "worker1") == NOW
    assert removal_due_after(READY(), "worker2") == SOON
    assert removal_due_after(READY(FINISHED), "worker1") == SOON
    assert removal_due_after(READY(EVICTED), "worker2") == removal_due_after(None, "worker2") == NOW
    assert copy_due_after(workload(), None, READY(), "worker2") == SOON


def test_the_end_of_a_copy_waits_for_the_managers_kueue_where_that_ends_the_workload() -> None:
    """It goes by the job, whose end is synced at once. Not for kinds that do not end, nor before the check is Ready."""
    ended = workload(QUOTA, ADMITTED, FINISHED)
    copy = workload(QUOTA, ADMITTED)
    assert copy_due_after(copy, ended, READY(), "worker1", ends=True) == SOON
    assert copy_due_after(copy, ended, READY(), "worker1") == NOW
    assert copy_due_after(copy, ended, READY(), "worker2", ends=True) == NOW
    assert copy_due_after(copy, ended, PENDING(clusterName="worker1"), "worker1", ends=True) == NOW
    given_up = workload(QUOTA, ADMITTED)
    given_up["status"]["conditions"].append({"type": "Finished", "status": "True", "reason": "OutOfSync"})
    assert copy_due_after(copy, given_up, READY(), "worker1", ends=True) == NOW
