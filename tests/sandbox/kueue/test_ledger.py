"""What the small Kueue remembers: the newest version of each object, who waits, who holds quota."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.kueue.scheduling.ledger import Ledger
from multikueue.sandbox.kueue.scheduling.newest import Newest

QUEUE = ObjectKey("default", "lq")


def obj(name: str = "a", *, version: int = 1, uid: str = "u", **more: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}, **more}


def workload(name: str, *, version: int = 1, reserved: bool = False, **conditions: str) -> Json:
    shown = {"QuotaReserved": "True", **conditions} if reserved else conditions
    listed = [
        {"type": kind, "status": status, "reason": "R", "lastTransitionTime": "2026-01-02T00:00:00Z"}
        for kind, status in shown.items()
    ]
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    status: Json = {"conditions": listed}
    if reserved:
        assignment = {"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}
        status["admission"] = {"clusterQueue": "cq", "podSetAssignments": [assignment]}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    waiting = obj(name, version=version, uid=name, spec={"queueName": "lq", "podSets": [pod_set]}, status=status)
    waiting["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return waiting


def waiting(ledger: Ledger) -> list[str]:
    return [candidate.key.name for candidate in ledger.waiting([QUEUE])]


def holding(ledger: Ledger) -> list[str]:
    return [holder.key.name for holder in ledger.holders("cq")]


def test_an_older_version_is_no_news() -> None:
    """The answer to a write comes before the watch has caught up; what the watch then tells is old."""
    newest = Newest()
    assert newest.observe(obj(version=5))
    assert not newest.observe(obj(version=4))
    assert not newest.observe(obj(version=5))
    assert newest.observe(obj(version=6))


def test_an_object_seen_deleted_does_not_come_back_with_a_late_answer() -> None:
    newest = Newest()
    newest.observe(obj(version=5))
    assert newest.remove(obj(version=5))
    assert not newest.observe(obj(version=6))
    assert newest.get(ObjectKey("default", "a")) is None
    assert newest.observe(obj(version=7, uid="another")), "one of the same name is another object"


def test_the_end_of_an_older_object_does_not_remove_its_successor() -> None:
    newest = Newest()
    newest.observe(obj(version=9, uid="new"))
    assert not newest.remove(obj(version=3, uid="old"))
    assert len(newest) == 1


def test_objects_are_found_by_their_places_as_they_are_now() -> None:
    newest = Newest(lambda entry: [entry["where"]])
    newest.observe(obj(where="here"))
    newest.observe(obj(version=2, where="there"))
    assert newest.by("here") == []
    assert [entry["where"] for entry in newest.by("there")] == ["there"]
    newest.remove(obj(version=2, where="there"))
    assert newest.by("there") == []


def test_a_workload_goes_from_waiting_to_holding_to_nothing() -> None:
    ledger = Ledger(Newest())
    assert ledger.observe(workload("a")).moved
    assert (waiting(ledger), holding(ledger)) == (["a"], [])
    assert ledger.observe(workload("a", version=2, reserved=True)).moved
    assert (waiting(ledger), holding(ledger)) == ([], ["a"])
    assert ledger.observe(workload("a", version=3, reserved=True, Finished="True")).moved
    assert (waiting(ledger), holding(ledger)) == ([], [])


def test_a_deactivated_workload_gives_its_quota_back_before_its_job_is_stopped() -> None:
    """Its status still shows the reservation; activated again meanwhile, it counts again and does not queue."""
    ledger = Ledger(Newest())
    ledger.observe(workload("a", reserved=True))
    off = workload("a", version=2, reserved=True)
    off["spec"]["active"] = False
    assert ledger.observe(off).moved
    assert (waiting(ledger), holding(ledger)) == ([], [])
    ledger.observe(workload("a", version=3, reserved=True, Evicted="True"))
    assert (waiting(ledger), holding(ledger)) == ([], ["a"])


def test_a_change_that_concerns_nobody_else_is_told_apart() -> None:
    """A status update of a running workload must not cost a pass of the scheduler."""
    ledger = Ledger(Newest())
    ledger.observe(workload("a", reserved=True))
    news = ledger.observe(workload("a", version=2, reserved=True, PodsReady="True"))
    assert (news.fresh, news.moved) == (True, False)
    assert not ledger.observe(workload("a", version=2, reserved=True)).fresh


def test_being_evicted_concerns_others() -> None:
    ledger = Ledger(Newest())
    ledger.observe(workload("a", reserved=True))
    assert ledger.observe(workload("a", version=2, reserved=True, Evicted="True")).moved


def test_a_deleted_workload_gives_its_place_up() -> None:
    ledger = Ledger(Newest())
    ledger.observe(workload("a"))
    ledger.observe(workload("b", reserved=True))
    assert ledger.remove(workload("a")).moved
    assert ledger.remove(workload("b", reserved=True)).moved
    assert not ledger.remove(workload("b", reserved=True)).fresh
    assert (waiting(ledger), holding(ledger)) == ([], [])


def test_one_on_the_bench_does_not_wait() -> None:
    """Requeued False: evicted and in back-off, or deactivated."""
    ledger = Ledger(Newest())
    ledger.observe(workload("a", Requeued="False"))
    assert waiting(ledger) == []
    ledger.observe(workload("a", version=2, Requeued="True"))
    assert waiting(ledger) == ["a"]


def test_an_inactive_or_refused_one_does_not_wait() -> None:
    ledger = Ledger(Newest())
    inactive = workload("a")
    inactive["spec"]["active"] = False
    refused = workload("b")
    refused["status"]["admissionChecks"] = [{"name": "mk", "state": "Rejected"}]
    leaving = workload("c")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    for not_waiting in (inactive, refused, leaving):
        ledger.observe(not_waiting)
    assert waiting(ledger) == []


def test_candidates_of_several_queues_come_in_one_order_and_shapes_are_counted() -> None:
    ledger = Ledger(Newest())
    other = workload("a")
    other["spec"]["queueName"] = "other"
    for waiting in (workload("c"), other, workload("b")):
        ledger.observe(waiting)
    both = [QUEUE, ObjectKey("default", "other")]
    assert [candidate.key.name for candidate in ledger.waiting(both)] == ["a", "b", "c"]
    assert (ledger.waiting_count(both), ledger.shapes(both), ledger.shapes([])) == (3, 1, 0)


def test_one_that_was_told_why_it_waits_is_known() -> None:
    ledger = Ledger(Newest())
    ledger.observe(workload("a"))
    waiting = workload("b", QuotaReserved="False")
    waiting["status"]["conditions"][0]["reason"] = "Pending"
    ledger.observe(waiting)
    assert [candidate.key.name for candidate in ledger.unexplained([QUEUE])] == ["a"]


def test_one_sent_back_by_a_check_queues_from_its_eviction() -> None:
    ledger = Ledger(Newest())
    back = workload("a", Evicted="True")
    back["status"]["conditions"][0]["reason"] = "AdmissionCheck"
    ledger.observe(back)
    ledger.observe(workload("b"))
    assert waiting(ledger) == ["b", "a"]
