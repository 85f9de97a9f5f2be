"""Where a job has run before, and what has happened between two versions of its Workload."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import orjson
import pytest

from multikueue.core.changes import JobEnded, Offered, Placed, WorkerFailed, milestones
from multikueue.core.model import placements as reading
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.copies import workload_copy
from multikueue.core.model.labels import LAST_WORKER_ANNOTATION, PLACEMENTS_ANNOTATION, RETRY_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.placements import FAULT, KEPT, Placement, is_fault, last_place, placement_of, placements
from tests.core.building import RESERVED_AT, condition, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import MANAGER, NOW, ApplyStatus, Lost, PatchWorkload, Snapshot, decide, only
from tests.simulation.decision_mutations import questions_about_unseen_runs

SINCE, UNTIL = timestamp(NOW - timedelta(minutes=20)), timestamp(NOW - timedelta(minutes=1))
RAN = Placement(ClusterName("w1"), SINCE)


def evicted(*noted: Json, over: bool = False, **facts: Any) -> Json:
    """A Workload that was evicted; `over`: it has quota again."""
    local = workload(evictions=1, **facts)
    message = "Preempted to accommodate another"
    entry = condition("Evicted", "Preempted", message=f"Previously: {message}" if over else message, status=not over)
    local["status"]["conditions"].append(entry | {"lastTransitionTime": UNTIL})
    if noted:
        local["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: json.dumps(noted)}
    return local


def noted(seen: Snapshot) -> list[Json]:
    """The placements that a decision notes; none if it writes none."""
    for effect in decide(seen).effects:
        if isinstance(effect, PatchWorkload) and effect.cluster == MANAGER:
            written = effect.patch["metadata"]["annotations"].get(PLACEMENTS_ANNOTATION)
            return list(json.loads(written)) if written else []
    return []


@pytest.mark.parametrize("facts", [{}, {"quota": False}, {"over": True}], ids=["evicted", "no quota", "pending again"])
def test_the_end_of_a_placement_is_noted_in_whichever_state_it_is_seen(facts: Json) -> None:
    (entry,) = noted(snapshot(evicted(**facts), worker("w1"), placement=RAN))
    until = timestamp(NOW) if facts.get("over") else UNTIL
    assert entry == {"worker": "w1", "since": SINCE, "until": until, "why": "Preempted to accommodate another"}


@pytest.mark.parametrize("there", ["PodsReadyTimeout", "AdmissionCheck", "Preempted", "lost"])
def test_the_workers_fault_is_noted_before_it_is_sent_back(there: str) -> None:
    """Its copy was gone before it was noted, as the write in front of that met a conflict: the job went there again."""
    local = workload(cluster="w1", check="Ready")
    copy = copy_of(local, admitted=True)
    copy["status"]["conditions"].append(condition("Evicted", there))
    at = (
        worker("w1", reach=Lost(NOW - timedelta(hours=1)))
        if there == "lost"
        else worker("w1", copy, job_copy_of(local))
    )
    seen = snapshot(local, at, placement=placement_of(local))
    if there != "Preempted":
        (entry,) = noted(seen)
        assert (entry["fault"], entry["worker"], entry["until"]) == (FAULT, "w1", timestamp(NOW))
        noting, back = only(PatchWorkload, decide(seen).effects), only(ApplyStatus, decide(seen).effects)
        assert (noting.optional, "Retry" in str(back)) == (True, True), "also where the first write is refused"
        local["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: json.dumps([entry])}
    assert noted(seen) == []
    assert "Retry" in str(only(ApplyStatus, decide(seen).effects))


@pytest.mark.parametrize("reason", [{}, [], 3, None])
def test_a_reason_that_is_no_text_is_no_fault(reason: Any) -> None:
    assert not is_fault({"status": {"conditions": [condition("Evicted") | {"reason": reason}]}})


@pytest.mark.parametrize("name", ["w1", "10.0.0.5", "gpu.example.com"])
def test_it_is_noted_once(name: str) -> None:
    """A worker that is called as an address was noted again with each look, and kept the job."""
    entry = {"worker": name, "since": SINCE, "until": UNTIL, "why": "x"}
    ran = Placement(ClusterName(name), SINCE)
    assert noted(snapshot(evicted(entry), worker(name), placement=ran)) == []


def test_the_placement_that_lasts_is_not_noted() -> None:
    """It costs no write: the status tells it."""
    local = workload(cluster="w1", check="Ready")
    assert noted(snapshot(local, worker("w1"), placement=placement_of(local))) == []


def test_the_last_five_are_kept() -> None:
    earlier = [{"worker": f"w{number}", "since": "", "until": "", "why": ""} for number in range(KEPT)]
    entries = noted(snapshot(evicted(*earlier), worker("w1"), placement=RAN))
    assert [entry["worker"] for entry in entries] == ["w1", "w2", "w3", "w4", "w1"]


def test_the_last_place_is_that_of_the_newest_entry() -> None:
    entries = [{"worker": name, "since": SINCE, "until": UNTIL, "why": ""} for name in ("w1", "w2", "w3")]
    assert (last_place(evicted(*entries)), last_place(evicted())) == ("w3", None)


def test_one_write_has_both_annotations() -> None:
    """A worker that is lost may still run the job: its name is kept as well."""
    lost = worker("w1", reach=Lost(NOW, seen=False))
    seen = snapshot(evicted(), lost, placement=RAN, last_worker=ClusterName("w1"))
    write = only(PatchWorkload, decide(seen).effects)
    assert set(write.patch["metadata"]["annotations"]) == {LAST_WORKER_ANNOTATION, PLACEMENTS_ANNOTATION}


@pytest.mark.parametrize("text", ["", "no JSON", "{}", "[1, 2]", '[{"worker": 3}]', "null"])
def test_an_annotation_that_cannot_be_read_is_begun_anew(text: str) -> None:
    local = evicted()
    local["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: text}
    assert last_place(local) is None
    assert noted(snapshot(local, worker("w1"), placement=RAN))[-1]["worker"] == "w1"


@pytest.mark.parametrize(
    "text", ["[" * 1100, '[{"worker":"\\ud800","why":"' + "x" * 200_000 + '"}]'], ids=["nested", "odd and long"]
)
def test_what_somebody_writes_there_stops_nothing_and_is_not_written_back(text: str) -> None:
    local = workload(evictions=1)
    local["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: text}
    assert len(placements(local)) <= 1
    seen = snapshot(local, worker("w1"), placement=Placement(ClusterName("w1"), "2026-11-21T11:00:00Z"))
    patch = only(PatchWorkload, decide(seen).effects)
    assert len(orjson.dumps(patch.patch)) < 2_000


def test_copies_do_not_have_it() -> None:
    local = evicted()
    names = (LAST_WORKER_ANNOTATION, PLACEMENTS_ANNOTATION, RETRY_ANNOTATION, "mine")
    local["metadata"]["annotations"] = dict.fromkeys(names, "x")
    copied = annotations_of(workload_copy(local, Stamp("o", "wl", "a")))
    assert [name for name in names if name in copied] == ["mine"]


def test_where_nothing_is_in_doubt_nobody_asks_where_it_may_run_unseen() -> None:
    """Most Workloads have run nowhere yet: each worker would be asked for nothing, with each decision on each."""
    asked: list[object] = []
    with questions_about_unseen_runs(asked):
        assert decide(snapshot(workload(), worker("w1"), worker("w2"))).row == "pending: offer"
    assert not asked


class TestMilestones:
    def test_a_placement_counts_from_the_quota(self) -> None:
        (milestone,) = milestones(workload(nominated=("w1",)), workload(cluster="w1"), NOW)
        assert milestone == Placed(ClusterName("w1"), 1_800.0)

    def test_a_move_names_the_worker_before(self) -> None:
        entry = {"worker": "w1", "since": SINCE, "until": UNTIL, "why": "x"}
        (milestone,) = milestones(evicted(entry, over=True), evicted(entry, over=True, cluster="w2"), NOW)
        assert milestone == Placed(ClusterName("w2"), 1_800.0, ClusterName("w1"))
        (again,) = milestones(evicted(entry, over=True), evicted(entry, over=True, cluster="w1"), NOW)
        assert again == Placed(ClusterName("w1"), 1_800.0)

    def test_an_end_counts_from_the_placement(self) -> None:
        ran = workload(cluster="w1", check="Ready")
        ran["status"]["conditions"].append(condition("Admitted", at=timestamp(NOW - timedelta(minutes=3))))
        ended = {**ran, "status": {**ran["status"], "conditions": [*ran["status"]["conditions"]]}}
        ended["status"]["conditions"].append(condition("Finished", "Succeeded"))
        assert list(milestones(ran, ended, NOW)) == [JobEnded(ClusterName("w1"), 180.0, "Succeeded")]

    def test_a_placement_that_failed_is_told_when_it_is_noted_and_only_then(self) -> None:
        at_fault, not_at_fault = {"worker": "w1", "fault": FAULT, "since": SINCE}, {"worker": "w1", "since": UNTIL}
        (milestone,) = milestones(evicted(), evicted(at_fault), NOW)
        assert milestone == WorkerFailed(ClusterName("w1"))
        (next_one,) = milestones(evicted(at_fault), evicted(at_fault, {**at_fault, "worker": "w2"}), NOW)
        assert next_one == WorkerFailed(ClusterName("w2"), again=True)
        assert list(milestones(evicted(at_fault), evicted(at_fault, over=True), NOW)) == []
        assert list(milestones(evicted(at_fault), evicted(at_fault, not_at_fault), NOW)) == []

    def test_each_round_is_one(self) -> None:
        (milestone,) = milestones(workload(nominated=("w1",)), workload(nominated=("w1", "w2")), NOW)
        assert milestone == Offered(("w2",))
        assert list(milestones(workload(nominated=("w1", "w2")), workload(nominated=("w1",)), NOW)) == []

    @pytest.mark.parametrize("pair", [(None, workload(cluster="w1")), (workload(cluster="w1"), None)])
    def test_what_is_seen_first_or_gone_is_no_news(self, pair: tuple[Json | None, Json | None]) -> None:
        """A restart would tell every placement again."""
        assert list(milestones(*pair, NOW)) == []

    def test_since_when_it_runs_is_what_kueue_says(self) -> None:
        assert placement_of(workload(cluster="w1")) == Placement(ClusterName("w1"), RESERVED_AT)
        assert placement_of(workload()) is None


def test_of_many_placements_only_those_that_are_kept_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each decision about the Workload reads them."""
    looked_at: list[str] = []
    monkeypatch.setattr(reading, "plain", looked_at.append)
    local = workload()
    local["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: json.dumps([{"why": "w1"}] * 10_000)}
    assert len(placements(local)) == len(looked_at) == KEPT
