"""Penalties: what a job remembers of a worker, and what a worker carries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored.penalties import FAULT, Failures, failed_on, is_fault
from tests.core.building import NOW, condition

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
    placements = [{"worker": name, "fault": FAULT} for name in failed]

    assert failed_on(placements, ["w1", "w2", "w3"]) == excluded


def test_an_end_that_is_not_the_workers_fault_excludes_nobody() -> None:
    assert failed_on([{"worker": "w1", "why": "Preempted"}], ["w1", "w2"]) == set()


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


def test_nothing_is_written_where_nothing_is_known() -> None:
    assert str(Failures()) == ""


@given(st.one_of(st.none(), st.text(), st.sampled_from(["[]", "3", '{"owners":[1]}', '{"owners":{"a":1},"hours":{}}'])))
def test_a_damaged_annotation_is_no_penalty(text: str | None) -> None:
    assert Failures.parse(text) == Failures()
