"""Penalties: what a job remembers of a worker, and what a worker carries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored.penalties import Failures, WorkerVerdict, failed_on, noted, together
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.placements import FAULT, is_fault
from tests.core.building import condition
from tests.core.door import NOW

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("failed", "excluded"),
    [
        ([], set()),
        (["w1"], {"w1"}),
        (["w1", "w2"], {"w1", "w2"}),
        (["w1", "w2", "w3"], set()),  # all were tried: from the beginning
        (["w1", "w2", "w3", "w2"], {"w2"}),
        (["gone"], {"gone"}),
    ],
)
def test_a_job_does_not_go_back_before_all_others_were_tried(failed: list[str], excluded: set[str]) -> None:
    placements = [{"worker": name, "until": timestamp(NOW), "fault": FAULT} for name in failed]

    assert failed_on(placements, ["w1", "w2", "w3"], NOW).keys() == excluded


@pytest.mark.parametrize("until", [timestamp(NOW - HOUR), "damaged", None])
def test_a_job_goes_back_after_an_hour_though_others_have_had_no_room(until: str | None) -> None:
    assert failed_on([{"worker": "w1", "until": until, "fault": FAULT}], ["w1", "w2"], NOW) == {}


def test_a_failure_is_over_in_an_hour_whatever_time_stands_there() -> None:
    """Whoever may change the Workload writes it."""
    placement = {"worker": "w1", "until": "9999-12-31T23:59:59Z", "fault": FAULT}
    assert failed_on([placement], ["w1", "w2"], NOW) == {"w1": NOW + HOUR}


def test_an_end_that_is_not_the_workers_fault_excludes_nobody() -> None:
    assert failed_on([{"worker": "w1", "until": timestamp(NOW), "why": "Preempted"}], ["w1", "w2"], NOW) == {}


@pytest.mark.parametrize(
    ("reason", "fault"), [("PodsReadyTimeout", True), ("AdmissionCheck", True), ("Preempted", False)]
)
def test_whose_fault_an_eviction_is(reason: str, fault: bool) -> None:
    assert is_fault({"status": {"conditions": [condition("Evicted", reason)]}}) is fault
    assert not is_fault({"status": {"conditions": [condition("Evicted", reason, status=False)]}})


def test_one_owner_alone_is_no_penalty() -> None:
    failures = Failures().failed("a", NOW).failed("a", NOW + HOUR)

    assert not failures.penalized(NOW + HOUR)


def test_two_owners_are_one_and_it_doubles_to_eight_hours() -> None:
    failures, now, lengths = Failures().failed("a", NOW), NOW, list[float]()
    for owner in "bababab":
        failures = Failures.parse(str(failures.failed(owner, now)))
        assert failures.until is not None
        lengths.append((failures.until - now) / HOUR)
        now = failures.until

    assert lengths[:4] == [1, 2, 4, 8]
    assert max(lengths) == 8


def test_one_that_began_before_the_penalty_does_not_double_it() -> None:
    failures = Failures().failed("a", NOW).failed("b", NOW)

    assert failures.failed("c", NOW + HOUR / 2).until == failures.until


def test_after_eight_hours_without_a_failure_it_begins_with_an_hour_again() -> None:
    failures = Failures().failed("a", NOW).failed("b", NOW)
    later = NOW + 10 * HOUR

    assert not failures.failed("c", later).penalized(later)
    assert failures.failed("c", later).failed("a", later).until == later + HOUR


def ended(owner: str, *, failed: bool = True, after: int = 0) -> WorkerVerdict:
    return WorkerVerdict(owner, failed, NOW + after * HOUR / 60)


def test_what_ended_changes_the_annotation_and_nothing_is_written_for_what_does_not() -> None:
    once = noted(None, [ended("a")])
    assert once is not None
    assert not Failures.parse(once).penalized(NOW)
    assert noted(once, [ended("a", after=5)]) is None
    two = noted(once, [ended("b", after=5)])
    assert two is not None
    assert Failures.parse(two).until == NOW + HOUR * 65 / 60
    assert noted(two, [ended("c", after=6), ended("d", after=7)]) is None


def test_one_success_clears_all_and_costs_nothing_where_there_is_nothing() -> None:
    failed = noted(None, [ended("a"), ended("b")])

    assert noted(failed, [ended("a", failed=False)]) == ""
    assert noted(failed, [ended("a", failed=False), ended("b", after=1)]) == str(
        Failures().failed("b", NOW + HOUR / 60)
    )
    assert noted(None, [ended("a", failed=False)]) is None
    assert noted(None, []) is None


def test_of_a_thousand_jobs_that_fail_together_one_of_each_owner_is_kept() -> None:
    kept: tuple[WorkerVerdict, ...] = ()
    for number in range(1000):
        kept = together(kept, ended(f"ns-{number % 3}", after=number))

    assert [verdict.owner for verdict in kept] == ["ns-1", "ns-2", "ns-0"]
    assert together(kept, ended("x", failed=False)) == (ended("x", failed=False),)


def test_it_is_short_however_many_fail() -> None:
    failures = Failures()
    for number in range(50):
        failures = Failures.parse(str(failures.failed(f"{number:02}".ljust(63, "n"), NOW + number * 2 * HOUR)))

    assert len(str(failures)) <= 600


def test_nothing_is_written_where_nothing_is_known() -> None:
    assert str(Failures()) == ""


@given(
    st.one_of(
        st.none(),
        st.text(),
        st.sampled_from(
            ["[]", "3", '{"owners":[1]}', '{"owners":{"a":1},"hours":{}}', '{"hours":1e999}', '{"hours":-9}']
        ),
    )
)
def test_a_damaged_annotation_is_no_penalty(text: str | None) -> None:
    assert Failures.parse(text) == Failures()


@pytest.mark.parametrize("hours", [10**30, -(10**30)])
def test_a_damaged_length_of_the_last_penalty_makes_the_next_no_longer_than_the_longest(hours: int) -> None:
    damaged = Failures.parse(f'{{"until":"{timestamp(NOW - HOUR)}","hours":{hours}}}')
    assert damaged.failed("team-a", NOW).hours in (0, 8)
