"""Conditions and their times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.conditions import (
    condition,
    is_true,
    new_condition,
    parse_timestamp,
    says_the_same,
    timestamp,
    updated,
)
from tests.core.door import NOW

TOLD = new_condition("Active", True, "Connected", "fine", now=NOW, generation=2)
LATER = NOW + timedelta(hours=1)


@given(st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds + 0.5, UTC)))
def test_a_time_survives_the_wire_to_the_second(moment: datetime) -> None:
    assert parse_timestamp(timestamp(moment)) == moment.replace(microsecond=0)


def test_times_are_written_in_utc() -> None:
    """Whatever zone the manager runs in."""
    assert timestamp(datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))) == "2025-12-31T23:00:00Z"


NONE_IN_UTC = ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59")


@pytest.mark.parametrize("text", [None, "", "soon", "2026-13-01T00:00:00Z", 5, ["2026"], *NONE_IN_UTC])
def test_a_time_that_is_none_is_none(text: object) -> None:
    """A damaged object is no crash."""
    assert parse_timestamp(text) is None


@pytest.mark.parametrize("text", ["2026-11-21T12:00:00Z", "2026-11-21T12:00:00", "2026-11-21T13:00:00.000000+01:00"])
def test_the_forms_kubernetes_writes_are_read(text: str) -> None:
    """With or without fractions (MicroTime) and zone."""
    assert parse_timestamp(text) == NOW


def test_a_new_condition_is_complete() -> None:
    assert TOLD == {
        "type": "Active",
        "status": "True",
        "reason": "Connected",
        "message": "fine",
        "lastTransitionTime": "2026-11-21T12:00:00Z",
        "observedGeneration": 2,
    }
    assert "observedGeneration" not in new_condition("Active", False, "r", "m", now=NOW)


def test_the_transition_time_moves_only_with_the_status() -> None:
    """Otherwise every write would look like a flap."""
    same = new_condition("Active", True, "Other", "other", now=LATER)
    assert updated([TOLD], same) == [{**same, "lastTransitionTime": TOLD["lastTransitionTime"]}]
    lost = new_condition("Active", False, "Lost", "gone", now=LATER)
    assert updated([TOLD], lost) == [lost]


def test_other_conditions_keep_their_places() -> None:
    other = {"type": "Other", "status": "True"}
    assert [entry["type"] for entry in updated([other, TOLD], {**TOLD, "status": "False"})] == ["Other", "Active"]
    assert [entry["type"] for entry in updated([other], TOLD)] == ["Other", "Active"]


def test_conditions_are_found_by_type() -> None:
    """An unknown one is neither true nor an error."""
    obj = {"status": {"conditions": [TOLD, {"type": "Broken", "status": "Unknown"}]}}
    assert condition(obj, "Active") == TOLD
    assert is_true(obj, "Active")
    assert not is_true(obj, "Broken")
    assert not is_true(obj, "Missing")
    assert not is_true({}, "Active")


def test_saying_the_same_is_not_worth_a_write() -> None:
    """Times and generations do not count."""
    assert says_the_same(TOLD, {**TOLD, "lastTransitionTime": "later", "observedGeneration": 9})
    assert not says_the_same(TOLD, {**TOLD, "message": "else"})
    assert not says_the_same(None, TOLD)
