"""Cordons and moves: a worker that gets nothing new, and a job that leaves its worker."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest

from multikueue.adapters.pod import KINDS as PODS
from multikueue.core.dispatchers.dispatcher import AllAtOnce, Candidates, Dispatcher, External, Nomination
from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import (
    CORDON_ANNOTATION,
    MOVE_FROM_ANNOTATION,
    NAMESPACES_ANNOTATION,
    POD_GROUP_SERVING_ANNOTATION,
)
from multikueue.core.model.names import Json
from multikueue.core.model.worker_names import cordon_of
from tests.core.building import CHECK, EARLIER, copy_of, job, job_copy_of, snapshot, workload
from tests.core.building import worker as plain_worker
from tests.core.door import (
    NOW,
    AnnounceWorkload,
    ApplyStatus,
    CreateJob,
    CreateWorkload,
    DeleteWorkload,
    Effect,
    Lost,
    PatchWorkload,
    Plan,
    Refusal,
    ShareUsedUp,
    Snapshot,
    Syncing,
    Unanswered,
    Unserved,
    Unusable,
    Worker,
    decide,
    only,
    those,
)
from tests.core.wording import words


def worker(name: str, *there: Any, cordon: str = "", **facts: Any) -> Worker:
    """A worker; `cordon` is the value of its annotation."""
    annotations = {CORDON_ANNOTATION: cordon} if cordon else {}
    return plain_worker(name, *there, annotations=annotations, **facts)


def to_move(**facts: Any) -> Json:
    """A Workload that shall leave w1."""
    local = workload(**facts)
    local["metadata"].setdefault("annotations", {})[MOVE_FROM_ANNOTATION] = "w1"
    return local


def on(name: str, effects: tuple[Effect, ...]) -> list[str]:
    """What is done on a worker."""
    return [type(effect).__name__ for effect in effects if effect.cluster == name]


def states(plan: Plan) -> list[tuple[str, str]]:
    """The states and messages of our check that are written."""
    written = [effect.object["status"].get("admissionChecks", []) for effect in those(ApplyStatus, plan.effects)]
    return [(entry["state"], entry["message"]) for entries in written for entry in entries if entry["name"] == CHECK]


def recorded(plan: Plan) -> list[str]:
    """The workers that are recorded."""
    written = [effect.object["status"] for effect in those(ApplyStatus, plan.effects)]
    return [status["clusterName"] for status in written if status.get("clusterName")]


def events_in(plan: Plan) -> list[tuple[str, str]]:
    return [(effect.type, effect.note) for effect in those(AnnounceWorkload, plan.effects)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", ""),
        ("false", ""),
        ("False", ""),
        ("true", "cordoned"),
        ("new\x00 racks\n", "cordoned: new racks"),
        ("x" * 300, "cordoned: " + "x" * 200),
    ],
)
def test_the_annotation_is_a_yes_or_the_reason(value: str, shown: str) -> None:
    assert cordon_of({CORDON_ANNOTATION: value}) == shown


class TestNothingNew:
    def test_nothing_is_offered_to_a_cordoned_worker_and_the_check_says_so(self) -> None:
        local = workload(nominated=("w1", "w2"))
        local["status"]["admissionChecks"][0]["message"] = ""
        plan = decide(snapshot(local, worker("w1", cordon="new racks"), worker("w2")))
        assert on("w1", plan.effects) == []
        assert on("w2", plan.effects) == ["CreateWorkload"]
        assert states(plan) == [("Pending", "Offered to w2 — w1: cordoned: new racks")]

    def test_a_new_workload_is_not_even_nominated_there(self) -> None:
        plan = decide(snapshot(workload(), worker("w1", cordon="true"), worker("w2")))
        write = only(ApplyStatus, plan.effects)
        assert write.object["status"]["nominatedClusterNames"] == ["w2"]

    @pytest.mark.parametrize("dispatcher", [AllAtOnce(), Incremental(step=2), External()])
    def test_a_copy_without_a_recorded_worker_is_withdrawn_whoever_nominates(self, dispatcher: Dispatcher) -> None:
        local = workload(nominated=("w1", "w2"))
        seen = snapshot(local, worker("w1", copy_of(local), cordon="true"), worker("w2", copy_of(local)))
        plan = decide(seen, dispatcher)
        assert on("w1", plan.effects) == ["DeleteWorkload"]
        assert on("w2", plan.effects) == []

    def test_a_cordoned_worker_that_admitted_it_is_not_recorded(self) -> None:
        local = workload(nominated=("w1", "w2"))
        plan = decide(snapshot(local, worker("w1", copy_of(local, admitted=True), cordon="true"), worker("w2")))
        assert recorded(plan) == []
        assert on("w1", plan.effects) == ["DeleteWorkload"]

    def test_the_next_one_is_asked_in_its_place_at_once(self) -> None:
        """A round does not wait for a worker that may not answer."""
        local = workload(nominated=("w1",))
        plan = decide(snapshot(local, worker("w1", cordon="true"), worker("w2")), Incremental(step=1))
        write = only(ApplyStatus, plan.effects)
        assert write.object["status"]["nominatedClusterNames"] == ["w1", "w2"]

    def test_it_is_offered_again_once_the_cordon_is_gone(self) -> None:
        plan = decide(snapshot(workload(nominated=("w1", "w2")), worker("w1"), worker("w2")))
        assert on("w1", plan.effects) == ["CreateWorkload"]

    def test_where_all_are_cordoned_the_check_says_why(self) -> None:
        local = workload()
        local["status"]["admissionChecks"][0]["message"] = ""
        plan = decide(snapshot(local, worker("w1", cordon="true"), worker("w2", cordon="sold")))
        assert states(plan) == [("Pending", "Offered to no worker cluster — w1: cordoned · w2: cordoned: sold")]

    def test_where_the_others_refuse_both_are_told(self) -> None:
        refusal = Refusal("no such namespace", timedelta(minutes=5))
        asked = f"refuses it, is asked again at {timestamp(NOW + timedelta(minutes=5))}"
        plan = decide(snapshot(workload(), worker("w1", cordon="true"), worker("w2", refusal=refusal)))
        assert states(plan) == [
            ("Pending", f"No worker cluster takes it — w1: cordoned · w2: {asked}: no such namespace")
        ]


class TestWhatRunsThereStays:
    def test_a_job_whose_record_was_erased_is_recorded_before_it_may_leave(self) -> None:
        local = workload(nominated=("w1", "w2"))
        local["metadata"]["annotations"] = {MOVE_FROM_ANNOTATION: "w1"}
        has_it = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local))
        seen = snapshot(local, has_it, worker("w2", copy_of(local, admitted=True)))
        assert words(seen)[0] == "admit on w1 as Ready"

    def test_a_job_of_somebody_else_under_its_name_does_not_lift_a_cordon(self) -> None:
        local = workload(nominated=("w1",))
        stale = worker("w1", shared=job_copy_of(local, attempt=EARLIER), cordon="true")
        assert on("w1", decide(snapshot(local, stale)).effects) == ["DeleteJob"]

    def test_a_recorded_worker_keeps_its_job(self) -> None:
        local = workload(cluster="w1", check="Ready")
        copy = copy_of(local, admitted=True, owned=True)
        seen = snapshot(local, worker("w1", copy, job_copy_of(local), cordon="true"), worker("w2"))
        assert not [effect for effect in decide(seen).effects if effect.cluster in ("w1", "w2")]

    def test_a_recorded_worker_still_gets_the_job_itself(self) -> None:
        local = workload(cluster="w1")
        plan = decide(snapshot(local, worker("w1", copy_of(local, admitted=True), cordon="true")))
        assert [type(effect) for effect in plan.effects if effect.cluster == "w1"] == [CreateJob]

    def test_a_job_that_runs_there_unrecorded_is_recorded(self) -> None:
        """Kueue's own controller creates the job before it records the worker."""
        local = workload(nominated=("w1", "w2"))
        copy = copy_of(local, admitted=True, owned=True)
        plan = decide(snapshot(local, worker("w1", copy, job_copy_of(local), cordon="true"), worker("w2")))
        assert recorded(plan) == ["w1"]

    def test_a_slice_goes_where_its_job_runs(self) -> None:
        before = workload(name="slice-1", elastic=True, cluster="w1", finished="WorkloadSliceReplaced")
        local = workload(name="slice-2", elastic=True, replaces="slice-1", cluster="w1")
        running = job_copy_of(before, of=job(elastic=True))
        seen = snapshot(
            local, worker("w1", None, cordon="true", shared=running), job=job(elastic=True), siblings=(before,)
        )
        plan = decide(seen)
        assert plan.row == "slice replacement: create copy"
        assert [type(effect) for effect in plan.effects if effect.cluster == "w1"] == [CreateWorkload]

    def test_a_slice_without_a_worker_goes_there_too(self) -> None:
        before = workload(name="slice-1", elastic=True, cluster="w1", check="Ready")
        local = workload(name="slice-2", elastic=True, nominated=("w1",))
        running = job_copy_of(before, of=job(elastic=True))
        seen = snapshot(
            local, worker("w1", None, cordon="true", shared=running), job=job(elastic=True), siblings=(before,)
        )
        assert not those(DeleteWorkload, decide(seen).effects)

    def test_a_part_of_a_group_follows_the_others(self) -> None:
        first = workload(name="part-0", index="0", cluster="w1", check="Ready")
        local = workload(name="part-1", index="1", nominated=("w1",))
        seen = snapshot(local, worker("w1", cordon="true"), worker("w2"), siblings=(first,))
        assert [effect.cluster for effect in those(CreateWorkload, decide(seen).effects)] == ["w1"]


class TestMoving:
    def running(self, *others: Worker, local: Json | None = None, **facts: Any) -> Snapshot:
        local = to_move(cluster="w1", check="Ready") if local is None else local
        copy = copy_of(local, admitted=True, owned=True)
        return snapshot(local, worker("w1", copy, job_copy_of(local), cordon="true"), *others, **facts)

    def test_the_check_becomes_retry_so_kueue_evicts_it(self) -> None:
        plan = decide(self.running(worker("w2")))
        ((state, message),) = states(plan)
        assert state == "Retry"
        assert message.startswith('Moving away from worker cluster "w1"')
        assert events_in(plan)[0][0] == "Normal"
        assert on("w1", plan.effects) == []

    @pytest.mark.parametrize(
        "facts", [{"reach": Lost()}, {"kind": Unserved()}, {"configured": False}, {"cordon": "true"}]
    )
    def test_not_where_nobody_else_could_take_it(self, facts: Json) -> None:
        plan = decide(self.running(worker("w2", **facts)))
        assert states(plan) == []
        assert any("no other worker can be offered it now" in note for _, note in events_in(plan))

    def test_not_before_its_worker_is_in_sight(self) -> None:
        local = to_move(cluster="w1", check="Ready")
        lost = worker("w1", copy_of(local, admitted=True), job_copy_of(local), reach=Lost(NOW - timedelta(minutes=1)))
        assert states(decide(snapshot(local, lost, worker("w2")))) == []

    def test_a_job_that_has_ended_is_not_moved(self) -> None:
        local = to_move(cluster="w1", check="Ready")
        ended = job_copy_of(local, status={"conditions": [{"type": "Complete", "status": "True"}]})
        seen = snapshot(local, worker("w1", copy_of(local, finished="Succeeded"), ended), worker("w2"))
        assert "Retry" not in [state for state, _ in states(decide(seen))]

    def test_pods_that_kueue_would_delete_stay(self) -> None:
        """An eviction of Admitted pods deletes them; behind a Pending check they stay and are dispatched again."""
        local = to_move(cluster="w1", check="Ready")
        seen = self.running(worker("w2"), local=local, adapter=PODS[0])
        assert "Retry" not in [state for state, _ in states(decide(seen))]

    def test_a_group_and_what_serves_stay(self) -> None:
        part, plain = to_move(cluster="w1", check="Ready", index="0"), to_move(cluster="w1", check="Ready")
        serving = job()
        serving["metadata"]["annotations"] = {POD_GROUP_SERVING_ANNOTATION: "true"}
        assert states(decide(self.running(worker("w2"), local=part))) == []
        assert states(decide(self.running(worker("w2"), local=plain, job=serving))) == []

    def test_after_the_eviction_it_is_not_offered_to_the_worker_it_left(self) -> None:
        """Even without a cordon: it would come back at once."""
        local = to_move(nominated=("w1", "w2"), evictions=1)
        plan = decide(snapshot(local, worker("w1"), worker("w2")))
        assert on("w1", plan.effects) == []
        assert on("w2", plan.effects) == ["CreateWorkload"]

    @pytest.mark.parametrize("left", ["workload", "job"])
    def test_nobody_else_is_recorded_while_anything_of_it_is_there(self, left: str) -> None:
        local = to_move(nominated=("w1", "w2"), evictions=1)
        copy = copy_of(local, attempt=EARLIER, deleting=True) if left == "workload" else None
        jobs = [job_copy_of(local, attempt=EARLIER, deleting=True)] if left == "job" else []
        admitted = worker("w2", copy_of(local, admitted=True))
        plan = decide(snapshot(local, worker("w1", copy, *jobs, cordon="true"), admitted))
        assert recorded(plan) == []
        assert any('Waiting for worker cluster "w1"' in said for _, said in states(plan))
        assert recorded(decide(snapshot(local, worker("w1", cordon="true"), admitted))) == ["w2"]

    def test_nobody_else_is_recorded_while_the_worker_it_left_cannot_be_seen(self) -> None:
        """As after any eviction: the job may run there until it counts as lost."""
        local = to_move(nominated=("w1", "w2"), evictions=1)
        lost = worker("w1", reach=Lost(NOW - timedelta(minutes=1), seen=False))
        admitted = worker("w2", copy_of(local, admitted=True))
        assert recorded(decide(snapshot(local, lost, admitted, last_worker="w1"))) == []

    def test_nor_while_a_creation_there_was_not_answered(self) -> None:
        local = to_move(nominated=("w1", "w2"), evictions=1)
        unsure = worker("w1", creation=Unanswered(timedelta(seconds=3)))
        assert recorded(decide(snapshot(local, unsure, worker("w2", copy_of(local, admitted=True))))) == []

    def test_the_request_is_taken_off_once_another_worker_has_it(self) -> None:
        local = to_move(cluster="w2", check="Ready")
        running = worker("w2", copy_of(local, admitted=True, owned=True), job_copy_of(local))
        effects = decide(snapshot(local, worker("w1"), running)).effects
        patch = only(PatchWorkload, effects)
        assert patch.cluster == ""
        assert patch.patch["metadata"]["annotations"] == {MOVE_FROM_ANNOTATION: None}


class Noting(AllAtOnce):
    """Notes why it is told that each worker cannot get the Workload."""

    obstacles: ClassVar[dict[str, str]] = {}

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        known = (candidate for candidate in candidates.workers if candidate.obstacle is not None)
        self.obstacles.clear()
        self.obstacles.update({candidate.name: candidate.obstacle.why for candidate in known if candidate.obstacle})
        return super().nominate(workload, candidates, now)


@pytest.mark.parametrize(
    ("local", "there", "why"),
    [
        (workload(), worker("w1", cordon="maintenance"), "Cordoned"),
        (workload(), worker("w1", cordon="maintenance", second_of="w2"), "SecondName"),
        (workload(), worker("w1", second_of="w2"), "SecondName"),
        (workload(), plain_worker("w1", annotations={NAMESPACES_ANNOTATION: "{}"}), "NamespaceUnnamed"),
        (to_move(), worker("w1"), "BeingMoved"),
    ],
)
def test_a_dispatcher_hears_why_a_worker_is_withheld(local: Json, there: Worker, why: str) -> None:
    """So its metric counts that: all of these were called cordoned."""
    noting = Noting()
    decide(snapshot(local, there, worker("w2")), noting)
    assert noting.obstacles == {"w1": why}


@pytest.mark.parametrize(
    ("stands", "why"),
    [
        ({"kind": Syncing()}, "JobsUnread"),
        ({"kind": Unserved()}, "NotServed"),
        ({"kind": Unserved(), "cordon": "maintenance"}, "Cordoned"),
        ({"kind": Unusable("no field")}, "FieldMissing"),
        ({"refusal": Refusal("no", timedelta(minutes=1))}, "Refused"),
        ({"refusal": ShareUsedUp("enough is there", timedelta(minutes=1))}, "ShareUsedUp"),
    ],
)
def test_a_dispatcher_hears_what_the_check_says(stands: dict[str, Any], why: str) -> None:
    """So its metric counts that: most of these were called refusals, or a kind that is not served."""
    noting = Noting()
    decide(snapshot(workload(), worker("w1", **stands), worker("w2")), noting)
    assert noting.obstacles == {"w1": why}
