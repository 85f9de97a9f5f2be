"""Orchestrated preemption: one worker at a time may evict somebody for a Workload."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import ADMISSION_MANAGER
from multikueue.core.workload.effects import ApplyStatus, CreateWorkload, Plan
from multikueue.core.workload.preemption_gates import GATE
from multikueue.core.workload.snapshot import Lost, Snapshot, Worker, WritingStatus
from tests.core.building import NOW, SETTINGS, copy_of, decide, snapshot, worker, workload
from tests.core.wording import in_words

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
    (made,) = with_gates(snapshot(local, worker("w1"))).effects
    assert isinstance(made, CreateWorkload)
    assert made.object["spec"]["preemptionGates"] == [{"name": GATE}]


def test_without_the_setting_the_spec_is_copied_as_it_is() -> None:
    """Our gate is not on it."""
    local = workload(nominated=("w1",), spec={"preemptionGates": [{"name": "of-the-manager"}]})
    (made,) = decide(snapshot(local, worker("w1"))).effects
    assert isinstance(made, CreateWorkload)
    assert made.object["spec"]["preemptionGates"] == [{"name": "of-the-manager"}]


def test_gates_that_were_made_before_the_setting_was_turned_off_are_opened() -> None:
    """Nobody else would, and the Workload would never preempt anywhere."""
    seen = snapshot(OFFERED, closed("w1"), closed("w2", blocked=False), opened("w3", ago=timedelta(minutes=1)))
    assert in_words(seen, decide(seen))[:2] == ["open gate on w1", "open gate on w2"]
    done = snapshot(OFFERED, opened("w1", ago=timedelta(minutes=1)))
    assert "open gate on w1" not in in_words(done, decide(done))


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


def test_the_gate_is_opened_as_kueue_keeps_it() -> None:
    """Under Kueue's field manager with all it owns, so that its next write neither undoes nor inherits anything."""
    copy = copy_of(OFFERED, gate="Closed", blocked=True)
    copy["status"]["preemptionGates"].append({"name": "other", "position": "Closed", "lastTransitionTime": "x"})
    (write,) = with_gates(snapshot(workload(nominated=("w1",)), worker("w1", copy))).effects
    assert isinstance(write, ApplyStatus)
    assert (write.cluster, write.field_manager) == ("w1", ADMISSION_MANAGER)
    assert write.object["metadata"]["resourceVersion"] == "rv-uid-copy"
    assert write.object["status"]["preemptionGates"] == [
        {"name": "other", "position": "Closed", "lastTransitionTime": "x"},
        {"name": GATE, "position": "Open", "lastTransitionTime": timestamp(NOW)},
    ]
    assert [one["type"] for one in write.object["status"]["conditions"]] == ["BlockedOnPreemptionGates"]


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
    assert in_words(seen, decide(seen, settings=settings)) == ["open gate on w2"]


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
    (made,) = with_gates(snapshot(local, worker("w1"), siblings=(other,))).effects
    assert isinstance(made, CreateWorkload)
    assert "preemptionGates" not in made.object["spec"]


def test_the_gate_is_no_drift() -> None:
    """A copy with a gate is still a copy of a Workload without."""
    seen = snapshot(OFFERED, closed("w1", blocked=False), closed("w2", blocked=False))
    assert with_gates(seen).effects == ()
