"""All at once: whom a Workload is offered to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, AllAtOnce, Nomination
from tests.core.building import NOW, candidates, workload

names = st.lists(st.integers(0, 40).map(lambda number: f"w{number}"), unique=True)


def nominate(configured: list[str], available: list[str], nominated: list[str]) -> Nomination:
    return AllAtOnce().nominate(workload(), candidates(configured, available, nominated), NOW)


def test_all_that_can_be_reached_are_offered_it() -> None:
    """In an order that does not depend on who connected first, so that no write only reorders."""
    assert nominate(["w2", "w1", "w3"], ["w2", "w1"], []) == Nomination(("w1", "w2"), None)


def test_one_that_drops_stays_and_one_that_left_the_config_does_not() -> None:
    assert nominate(["w1", "w2"], ["w2"], ["w1", "gone"]).names == ("w1", "w2")


@given(names, names, names)
def test_only_workers_of_the_config_are_named_and_never_too_many(
    configured: list[str], available: list[str], nominated: list[str]
) -> None:
    """The API server refuses a longer list."""
    usable = [name for name in available if name in configured]
    chosen = nominate(configured, usable, nominated).names
    assert set(chosen) <= set(configured)
    assert len(chosen) <= MAX_NOMINATIONS
    assert len(chosen) == MAX_NOMINATIONS or set(usable) <= set(chosen)
    assert nominate(configured, usable, list(chosen)).names == chosen
