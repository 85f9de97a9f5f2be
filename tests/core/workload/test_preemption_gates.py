"""Orchestrated preemption: one worker at a time may evict somebody for a Workload."""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs
import pytest

from multikueue.core.dispatchers.dispatcher import AllAtOnce, Candidates, Nomination
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import ADMISSION_MANAGER, PREEMPTION_GATE
from multikueue.core.model.names import Json
from multikueue.core.model.worker_kueue import GATES, WorkerKueue
from tests.core.building import RESERVED_AT, condition, copy_of, snapshot, worker, workload
from tests.core.door import (
    NOW,
    SETTINGS,
    ApplyStatus,
    Connecting,
    CreateWorkload,
    Lost,
    OutcomeUnknown,
    Plan,
    Snapshot,
    Worker,
    WritingStatus,
    decide,
    sole,
    those,
)
from tests.core.wording import in_words, words

ON = attrs.evolve(SETTINGS, orchestrated_preemption=True)
OFFERED = workload(nominated=("w1", "w2"))


def closed(name: str, *, blocked: bool = True) -> Worker:
    return worker(name, copy_of(OFFERED, gate="Closed", blocked=blocked, uid=f"uid-{name}"))


def opened(name: str, *, ago: timedelta) -> Worker:
    at = timestamp(NOW - ago)
    return worker(name, copy_of(OFFERED, gate="Open", opened_at=at, blocked=True, uid=f"uid-{name}"))


def with_gates(seen: Snapshot) -> Plan:
    return decide(seen, settings=ON)


def test_copies_carry_our_gate_and_no_other() -> None:
    """The manager's own gates mean nothing to a worker, which would never open them."""
    local = workload(nominated=("w1",), spec={"preemptionGates": [{"name": "of-the-manager"}]})
    made = sole(CreateWorkload, with_gates(snapshot(local, worker("w1"))).effects)
    assert made.object["spec"]["preemptionGates"] == [{"name": PREEMPTION_GATE}]


def test_without_the_setting_the_spec_is_copied_as_it_is() -> None:
    """Our gate is not on it."""
    local = workload(nominated=("w1",), spec={"preemptionGates": [{"name": "of-the-manager"}]})
    made = sole(CreateWorkload, decide(snapshot(local, worker("w1"))).effects)
    assert made.object["spec"]["preemptionGates"] == [{"name": "of-the-manager"}]


def test_gates_that_were_made_before_the_setting_was_turned_off_are_opened() -> None:
    """Nobody else would, and the Workload would never preempt anywhere."""
    seen = snapshot(OFFERED, closed("w1"), closed("w2", blocked=False), opened("w3", ago=timedelta(minutes=1)))
    assert words(seen)[:2] == ["open gate on w1", "open gate on w2"]
    done = snapshot(OFFERED, opened("w1", ago=timedelta(minutes=1)))
    assert "open gate on w1" not in words(done)


def test_the_first_worker_that_is_blocked_may_preempt() -> None:
    """In the config's order; the others wait, or two workers would evict somebody for one job."""
    seen = snapshot(OFFERED, closed("w1", blocked=False), closed("w2"), worker("w3"))
    decided = with_gates(seen)
    assert in_words(seen, decided)[0] == "open gate on w2"
    assert decided.look_again == 300.0


def test_while_a_gate_is_being_opened_no_other_is() -> None:
    """Both workers say within a moment that they are blocked: the second of them before the first's gate shows."""
    opening = attrs.evolve(closed("w2"), in_flight=WritingStatus())
    assert with_gates(snapshot(OFFERED, closed("w1"), opening)).effects == ()


def test_a_gate_that_may_have_been_opened_is_opened_again_before_any_other() -> None:
    """The request was sent twice, and the second one found what the first had done (simulation, seed 22929)."""
    doubtful = attrs.evolve(closed("w2"), in_flight=OutcomeUnknown())
    seen = snapshot(OFFERED, closed("w1"), doubtful)
    assert in_words(seen, with_gates(seen)) == ["open gate on w2"]


def test_the_gate_is_opened_as_kueue_keeps_it() -> None:
    """Under Kueue's field manager with all it owns, so that its next write neither undoes nor inherits anything."""
    copy = copy_of(OFFERED, gate="Closed", blocked=True)
    copy["status"]["preemptionGates"].append({"name": "other", "position": "Closed", "lastTransitionTime": "x"})
    write = sole(ApplyStatus, with_gates(snapshot(workload(nominated=("w1",)), worker("w1", copy))).effects)
    assert (write.cluster, write.field_manager) == ("w1", ADMISSION_MANAGER)
    assert write.object["metadata"]["resourceVersion"] == "rv-uid-copy"
    assert write.object["status"]["preemptionGates"] == [
        {"name": "other", "position": "Closed", "lastTransitionTime": "x"},
        {"name": PREEMPTION_GATE, "position": "Open", "lastTransitionTime": timestamp(NOW)},
    ]
    assert [entry["type"] for entry in write.object["status"]["conditions"]] == ["BlockedOnPreemptionGates"]


def test_a_gate_the_workers_kueue_has_not_listed_yet_can_be_opened() -> None:
    """Its status may lag behind its spec."""
    copy = copy_of(OFFERED, gate="Closed", blocked=True)
    del copy["status"]["preemptionGates"]
    seen = snapshot(workload(nominated=("w1",)), worker("w1", copy))
    assert in_words(seen, with_gates(seen)) == ["open gate on w1"]


@pytest.mark.parametrize(
    ("ago", "words", "look_again"),
    [(timedelta(minutes=2), [], 180.0), (timedelta(minutes=5), ["open gate on w2"], 300.0)],
    ids=["two minutes", "five minutes"],
)
def test_the_next_one_may_after_a_while(ago: timedelta, words: list[str], look_again: float) -> None:
    """Preempting takes time: pods have their grace period."""
    seen = snapshot(OFFERED, opened("w1", ago=ago), closed("w2"))
    decided = with_gates(seen)
    assert (in_words(seen, decided), decided.look_again) == (words, look_again)


def test_the_timeout_is_the_operators() -> None:
    """Clusters with long grace periods need more of it."""
    seen = snapshot(OFFERED, opened("w1", ago=timedelta(minutes=2)), closed("w2"))
    settings = attrs.evolve(ON, preemption_timeout=timedelta(minutes=1))
    assert words(seen, settings=settings) == ["open gate on w2"]


@pytest.mark.parametrize(
    "where",
    [
        worker("w1", copy_of(OFFERED, blocked=True)),
        worker("w1", copy_of(OFFERED, gate="Closed", blocked=True, deleting=True)),
        worker("w1", copy_of(OFFERED, gate="Open")),
        worker("w1", copy_of(OFFERED, gate="Closed", blocked=True), reach=Lost()),
    ],
    ids=["made without a gate", "being deleted", "open already", "out of reach"],
)
def test_nothing_is_opened_where_that_would_do_nothing(where: Worker) -> None:
    """Its gate would be opened for nothing, and the next one's only after the timeout."""
    seen = snapshot(workload(nominated=("w1",)), where)
    assert with_gates(seen).effects == ()


def test_a_follower_of_a_group_gets_no_gate() -> None:
    """Only one worker can be nominated, so no order is needed."""
    local, other = (
        workload(name=name, index=index, nominated=nominated, cluster=cluster)
        for name, index, nominated, cluster in (("b", "1", ("w1",), None), ("a", "0", (), "w1"))
    )
    made = sole(CreateWorkload, with_gates(snapshot(local, worker("w1"), siblings=(other,))).effects)
    assert "preemptionGates" not in made.object["spec"]


def test_the_gate_is_no_drift() -> None:
    """A copy with a gate is still a copy of a Workload without."""
    seen = snapshot(OFFERED, closed("w1", blocked=False), closed("w2", blocked=False))
    assert with_gates(seen).effects == ()


OLD = WorkerKueue((0, 16), frozenset({GATES}), read=True)
AHEAD = timedelta(days=-365)
JUST_NOW = timestamp(NOW - timedelta(seconds=10))


def older(name: str, copy: Json | None = None) -> Worker:
    """A worker whose API drops gates."""
    return attrs.evolve(worker(name, copy), kueue=OLD)


def ungated(*, ago: timedelta) -> Json:
    made = copy_of(OFFERED, uid="uid-ungated")
    made["metadata"]["creationTimestamp"] = timestamp(NOW - ago)
    return made


def full(name: str, local: Json) -> Worker:
    """A worker that has no room, and nobody to preempt."""
    copy = copy_of(local, gate="Closed", uid=f"uid-{name}")
    copy["status"]["conditions"] = [condition("QuotaReserved", "Pending", status=False, at=RESERVED_AT)]
    return worker(name, copy)


def test_a_worker_that_drops_gates_is_asked_when_those_with_gates_have_no_room() -> None:
    """It preempts as soon as it has a copy: nobody may be evicted there while another worker has room."""
    local = workload(nominated=("w1", "w2"), reserved_at=JUST_NOW)
    first = with_gates(snapshot(local, older("w1"), worker("w2")))
    assert [effect.cluster for effect in those(CreateWorkload, first.effects)] == ["w2"]
    assert first.look_again == 290.0, "a worker whose Kueue never answers keeps it from nobody for ever"

    then = with_gates(snapshot(local, older("w1"), full("w2", local)))
    made = sole(CreateWorkload, then.effects)
    assert (made.cluster, made.object["spec"].get("preemptionGates")) == ("w1", None)


def test_a_worker_that_drops_gates_is_asked_in_the_end_though_another_says_nothing() -> None:
    """Its quota was reserved half an hour ago."""
    decided = with_gates(snapshot(OFFERED, older("w1"), worker("w2", copy_of(OFFERED, gate="Closed"))))
    assert [effect.cluster for effect in those(CreateWorkload, decided.effects)] == ["w1"]


@attrs.frozen
class Listening(AllAtOnce):
    """It offers to all, and keeps what it is shown."""

    heard: list[Candidates] = attrs.field(factory=list)

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        self.heard.append(candidates)
        return super().nominate(workload, candidates, now)


@pytest.mark.parametrize(
    ("where", "opened_there"),
    [
        (opened("w1", ago=timedelta(minutes=1)), True),
        (closed("w1"), False),
        (worker("w1"), False),
        (worker("w1", copy_of(OFFERED, blocked=True)), False),
    ],
    ids=["opened", "closed", "no copy", "no gate"],
)
def test_a_dispatcher_is_told_whose_gate_is_open(where: Worker, opened_there: bool) -> None:
    asked = Listening()
    decide(snapshot(OFFERED, where), asked, ON)
    assert [worker.gate_open for candidates in asked.heard for worker in candidates.workers] == [opened_there]


def test_a_copy_without_a_gate_takes_the_one_place() -> None:
    """It may preempt since it was made; for as long no gate is opened, and no other such copy made."""
    at_work = older("w1", ungated(ago=timedelta(minutes=2)))
    offered = workload(nominated=("w1", "w2", "w3"))
    decided = with_gates(snapshot(offered, at_work, closed("w2"), older("w3")))
    assert (decided.effects, decided.look_again) == ((), 180.0)
    done = older("w1", ungated(ago=timedelta(minutes=5)))
    seen = snapshot(offered, done, closed("w2"), older("w3"))
    assert in_words(seen, with_gates(seen)) == ["open gate on w2"]


def test_of_two_that_drop_gates_one_is_asked() -> None:
    """Both would evict somebody for one job."""
    decided = with_gates(snapshot(OFFERED, older("w1"), older("w2")))
    assert [effect.cluster for effect in those(CreateWorkload, decided.effects)] == ["w1"]


def test_while_a_copy_without_a_gate_is_being_made_no_gate_is_opened() -> None:
    """It does not show yet."""
    making = attrs.evolve(older("w1"), in_flight=WritingStatus())
    assert with_gates(snapshot(OFFERED, making, closed("w2"))).effects == ()


@pytest.mark.parametrize("at_work", [older("w1", ungated(ago=AHEAD)), opened("w1", ago=AHEAD)], ids=["made", "opened"])
def test_a_clock_that_is_far_ahead_keeps_nobody_from_preempting(at_work: Worker) -> None:
    """What a worker says of time is its own."""
    seen = snapshot(OFFERED, at_work, closed("w2"))
    assert in_words(seen, with_gates(seen)) == ["open gate on w2"]


def test_without_the_setting_an_older_worker_is_asked_like_any_other() -> None:
    """Nobody waits for a turn."""
    decided = decide(snapshot(OFFERED, older("w1"), worker("w2")))
    assert [effect.cluster for effect in those(CreateWorkload, decided.effects)] == ["w1", "w2"]


@pytest.mark.parametrize(("reach", "waits"), [(Connecting(), True), (Lost(NOW), False)], ids=["connecting", "lost"])
def test_a_turn_goes_on_while_its_worker_is_being_connected_to(reach: Connecting | Lost, waits: bool) -> None:
    """Its copy had got quota behind the open gate, and another worker preempted for the same job (seed 20916)."""
    with_turn = attrs.evolve(opened("w1", ago=timedelta(seconds=13)), reach=reach)
    seen = snapshot(OFFERED, with_turn, closed("w2"))
    assert ("open gate on w2" not in in_words(seen, with_gates(seen))) is waits
