"""Writes that others bring about: at once at first, then one a second."""

from __future__ import annotations

from multikueue.core.machinery.write_budget import AT_ONCE, WriteBudget


def written(budget: WriteBudget[str], seconds: int) -> int:
    """How often an object is written that changes fifty times a second."""
    count = 0
    for tick in range(50 * seconds):
        if budget.wait("a", tick / 50) <= 0:
            budget.wrote("a", tick / 50)
            count += 1
    return count


def test_what_changes_all_the_time_is_written_once_a_second_in_the_end() -> None:
    assert written(WriteBudget[str](), 100) <= AT_ONCE + 101


def test_the_next_one_waits_a_second_at_most_however_often_it_was_written() -> None:
    budget = WriteBudget[str]()
    for _ in range(600):
        budget.wrote("a", 100.0)
    assert 0 < budget.wait("a", 100.0) <= 1.0
    assert budget.wait("b", 100.0) == 0.0


def test_it_may_be_written_at_once_again_after_a_while_and_if_it_is_another_one() -> None:
    budget = WriteBudget[str]()
    for _ in range(60):
        budget.wrote("a", 100.0)
    assert budget.wait("a", 101.0) == 0.0
    budget.forget("a")
    assert len(budget) == 0
