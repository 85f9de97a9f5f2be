"""Why the scored dispatcher does not offer a job to each worker, by what a report reads of the manager."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.dispatchers.scored.job_annotations import NAMES, SELECTOR, TAINTS, TOGETHER
from multikueue.core.dispatchers.scored.state import QueueRefusal, State
from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.labels import CORDON_ANNOTATION, PLACEMENTS_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.placements import FAULT
from multikueue.core.model.worker_kueue import WorkerKueue
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME, cluster_queue
from multikueued.reports.explanation import explain
from multikueued.reports.published import Published, config_map, slim, written
from multikueued.reports.seen import Seen
from multikueued.reports.worker_facts import WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker
from tests.reports.objects import NOW, fleet, job, saying, stored, worker, workload

HELD = State(NOW)
SEEN_AT = f"(as the daemon saw it at {timestamp(NOW)})"


def waiting(
    state: State | None = HELD, cpu: str = "3", cluster: str = "", says: Mapping[str, str] | None = None
) -> Json:
    """A Workload with quota that no worker has."""
    of = job("train")
    of["metadata"]["annotations"] = dict(says or {})
    made = workload(stored(of), cluster=cluster, nominated=state.offered if state else ())
    (placed,) = made["status"]["admission"]["podSetAssignments"]
    placed |= {"count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": cpu}}
    made["metadata"]["annotations"] = dict(says or {})
    return saying(made, state.describe("words for people") if state else "Offered to worker1, worker2")


def queue(total: str, used: str = "0", *, active: bool = True, **spec: Any) -> Json:
    """A worker's ClusterQueue."""
    made = stored(cluster_queue({"cpu": total}))
    (flavor,) = made["spec"]["resourceGroups"][0]["flavors"]
    reserved = [{"name": flavor["name"], "resources": [{"name": "cpu", "total": used}]}]
    status = {"flavorsReservation": reserved, "conditions": [new_condition("Active", active, "Ready", "", now=NOW)]}
    return {**made, "spec": {**made["spec"], **spec}, "status": status}


def document(of: str, there: Json | None) -> str:
    """What the daemon publishes of a worker with that ClusterQueue, or with none."""
    local = {ObjectKey("default", LOCAL_QUEUE_NAME): CLUSTER_QUEUE_NAME} if there is not None else {}
    queues = slim(QueuesOnWorker(local, {CLUSTER_QUEUE_NAME: there} if there is not None else {}))
    return written(Published(WorkerFacts(of, queues=queues), NOW, (), NOW))


@pytest.mark.parametrize(("versions", "blocking"), [((17, 17), True), ((17, 18), False), ((18, 18), None)])
def test_a_name_for_which_a_kueue_has_no_room_is_told_with_its_way_out(
    versions: tuple[int, int], blocking: bool | None
) -> None:
    """The check said it in words of ours, and no finding what to do."""
    made = workload(stored(job("train")))
    made["metadata"]["name"] = "a" * 64
    kueues = {f"worker{number}": WorkerKueue((0, minor)) for number, minor in enumerate(versions, 1)}
    documents = {name: written(Published(WorkerFacts(name, kueue=kueue), NOW)) for name, kueue in kueues.items()}
    objects = attrs.evolve(fleet(made), findings=config_map("kueue-system", "findings", documents))
    told = explain(Seen(made, None, objects, (), NOW)).findings

    found = {finding.id: finding.blocking for finding in told}
    assert found.get("name-too-long") is blocking
    short = workload(stored(job("train")))
    assert explain(Seen(short, None, objects, (), NOW)).findings == ()


def reasons(
    made: Json,
    *others: Json,
    first: Json | None = None,
    seen: Mapping[str, str] | None = None,
) -> list[tuple[str, str]]:
    """Reason and words of both workers."""
    workers = (first or worker("worker1"), worker("worker2"))
    findings = config_map("kueue-system", "multikueue-findings", seen or {})
    objects = attrs.evolve(fleet(made, *others, workers=workers), findings=findings)
    explanation = explain(Seen(made, None, objects, (), NOW))
    return [(worker.reason, worker.told) for worker in explanation.workers]


def test_what_the_job_and_the_worker_say() -> None:
    narrow = {NAMES: "worker2"}
    assert reasons(waiting(says=narrow)) == [("NotNamed", "the job does not name it"), ("", "")]
    labelled = worker("worker1", labels={"spot": "true"})
    assert reasons(waiting(says={SELECTOR: "!spot"}), first=labelled)[0][0] == "NotSelected"
    tainted = worker("worker1", annotations={TAINTS: "spot:NoDispatch"})
    assert reasons(waiting(), first=tainted)[0] == ("NotTolerated", "its taint spot is not tolerated")


def test_where_it_cannot_go_whatever_dispatcher_chooses() -> None:
    assert reasons(waiting(), first=worker("worker1", "no route", reason="ClientConnectionFailed"))[0] == (
        "OutOfReach",
        "no route",
    )
    assert reasons(waiting(), first=worker("worker1", annotations={CORDON_ANNOTATION: "new disks"}))[0][0] == "Cordoned"


def test_where_the_job_is_that_it_goes_together_with() -> None:
    other = workload(stored(job("base")), cluster="worker2")
    together = waiting(says={TOGETHER: "job/base"})
    assert reasons(together, other) == [("NotTogether", "job/base is on worker2"), ("", "")]
    assert reasons(together)[1] == ("NotTogether", "job/base has no worker yet")


@pytest.mark.parametrize(
    ("there", "reason", "words"),
    [
        (None, "NoLocalQueue", f'LocalQueue "default/{LOCAL_QUEUE_NAME}" does not exist {SEEN_AT}'),
        (queue("2"), "NeverFits", f"insufficient quota for cpu (3 > 2) {SEEN_AT}"),
        (queue("4", "2"), "NoRoom", f"needs 3 cpu, 2 of default-flavor {SEEN_AT}"),
        (
            queue("4", active=False),
            "QueueInactive",
            f'ClusterQueue "{CLUSTER_QUEUE_NAME}" is not active (Ready) {SEEN_AT}',
        ),
        (queue("4", "1"), "", ""),
        (queue("4", "4", cohortName="shared"), "", ""),
    ],
    ids=["no queue", "never", "no room", "inactive", "room", "a cohort may lend"],
)
def test_what_the_daemon_saw_of_its_queues(there: Json | None, reason: str, words: str) -> None:
    assert reasons(waiting(), seen={"worker1": document("worker1", there)})[0] == (reason, words)


def test_what_a_daemon_before_this_one_saw_is_not_reckoned_with() -> None:
    published = json.loads(document("worker1", queue("2", "2")))
    del published["facts"]["queues"]["cluster"][CLUSTER_QUEUE_NAME]["status"]["conditions"]
    assert reasons(waiting(cpu="1"), seen={"worker1": json.dumps(published)})[0] == ("", "")


def test_what_has_been() -> None:
    failed = json.dumps([{"worker": "worker1", "until": timestamp(NOW), "fault": FAULT}])
    assert reasons(waiting(says={PLACEMENTS_ANNOTATION: failed}))[0][0] == "FailedBefore"
    assert reasons(waiting(State(NOW, asked=("worker1",))))[0][0] == "AskedBefore"
    refused = State(NOW, refused=(QueueRefusal("worker1", "1.1", NOW),))
    assert reasons(waiting(refused))[0][0] == "Refused"
    long_ago = State(NOW, refused=(QueueRefusal("worker1", "1.1", NOW - timedelta(hours=2)),))
    assert reasons(waiting(long_ago))[0][0] == ""


def test_one_that_it_is_offered_to_has_no_reason() -> None:
    full = {name: document(name, queue("4", "4")) for name in ("worker1", "worker2")}
    given = reasons(waiting(State(NOW, ("worker1",))), seen=full)
    assert [reason for reason, _ in given] == ["", "NoRoom"]


def test_nothing_is_reckoned_for_another_dispatcher_nor_once_a_worker_has_it() -> None:
    narrow = {NAMES: "worker2"}
    assert reasons(waiting(None, says=narrow)) == [("", ""), ("", "")]
    assert reasons(waiting(cluster="worker2", says=narrow))[0] == ("", "")


def test_that_no_worker_may_ever_take_it_needs_somebody() -> None:
    """Not while one may, or only has no room."""
    nobody, full = waiting(says={NAMES: "worker3"}), {"worker2": document("worker2", queue("4", "4"))}
    (finding,) = explain(Seen(nobody, None, fleet(nobody), (), NOW)).findings
    assert (finding.id, finding.blocking) == ("narrowed-out", True)
    assert finding.told == "worker1: the job does not name it; worker2: the job does not name it"
    made = waiting(says={NAMES: "worker2"})
    objects = attrs.evolve(fleet(made), findings=config_map("kueue-system", "multikueue-findings", full))
    assert explain(Seen(made, None, objects, (), NOW)).findings == ()
