"""Writes for the sake of words: how often, and that each has its turn.

Writes that others bring about: at once at first, then one a second.
"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.machinery.message_rate import A_SECOND, AT_ONCE, BETWEEN, Budget, MessageRate


def test_the_first_may_be_written_at_once_and_the_next_after_ten_seconds() -> None:
    pace = MessageRate[str]()
    assert pace.wait("a", 100.0) == 0.0
    pace.wrote("a", 100.0)
    assert pace.wait("a", 104.0) == 6.0
    assert pace.wait("a", 110.0) == 0.0


def test_a_write_for_another_reason_counts_for_its_object_alone() -> None:
    pace = MessageRate[str]()
    pace.touched("a", 100.0)
    assert pace.wait("a", 100.0) == BETWEEN
    assert pace.wait("b", 100.0) == 0.0


def test_who_waits_has_a_turn_and_keeps_it() -> None:
    """A thousand that look again at the same moment would be a thousand decisions for five writes."""
    pace = MessageRate[int]()
    assert pace.wait(0, 0.0) == 0.0
    pace.wrote(0, 0.0)
    turns = [pace.wait(key, 0.0) for key in range(1, 1_001)]
    assert [round(turn * A_SECOND) for turn in turns] == list(range(1, 1_001))
    assert [pace.wait(key, 0.0) for key in range(1, 1_001)] == turns


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0.0, 0.05, 0.3, 2.0, 15.0])), max_size=200))
def test_writes_are_never_closer_than_promised(asks: list[tuple[int, float]]) -> None:
    """However late or early anybody comes for a turn."""
    pace, now, written = MessageRate[int](), 0.0, list[tuple[float, int]]()
    for key, later in asks:
        now += later
        if pace.wait(key, now, urgent=key % 3 == 0) <= 0.0:
            pace.wrote(key, now)
            written.append((now, key))
    times = [at for at, _ in written]
    assert all(after - before >= 1 / A_SECOND - 1e-9 for before, after in itertools.pairwise(times))
    for written_key in {key for _, key in written}:
        own = [at for at, key in written if key == written_key]
        assert all(after - before >= BETWEEN - 1e-9 for before, after in itertools.pairwise(own))


def test_what_is_urgent_goes_before_all_that_wait() -> None:
    """The deadline of a job on a lost worker must be told before it is over, whoever else has something to say."""
    pace = MessageRate[int]()
    for key in range(1_000):
        pace.wait(key, 0.0)
    urgent = [pace.wait(key, 1.0, urgent=True) for key in range(2_000, 2_010)]
    assert [round(turn * A_SECOND) for turn in urgent] == list(range(10))


def test_what_is_gone_is_forgotten() -> None:
    pace = MessageRate[str]()
    pace.wrote("a", 0.0)
    pace.wait("b", 0.0)
    pace.forget("b")
    pace.touched("c", 100.0)
    assert len(pace) == 1
    pace.forget("c")
    assert len(pace) == 0


def test_one_that_is_written_again_and_again_hides_none_that_are_settled() -> None:
    """What is remembered stands in the order of the last writes."""
    pace = MessageRate[str]()
    for key, at in (("often", 0.0), ("once", 1.0), ("often", 9.0), ("often", 18.0)):
        pace.touched(key, at)
    assert len(pace) == 1


def written(budget: Budget[str], seconds: int) -> int:
    """How often an object is written that changes fifty times a second."""
    count = 0
    for tick in range(50 * seconds):
        if budget.wait("a", tick / 50) <= 0:
            budget.spent("a", tick / 50)
            count += 1
    return count


def test_what_changes_all_the_time_is_written_once_a_second_in_the_end() -> None:
    assert written(Budget[str](), 100) <= AT_ONCE + 101


def test_the_next_one_waits_a_second_at_most_however_often_it_was_written() -> None:
    budget = Budget[str]()
    for _ in range(600):
        budget.spent("a", 100.0)
    assert 0 < budget.wait("a", 100.0) <= 1.0
    assert budget.wait("b", 100.0) == 0.0


def test_it_may_be_written_at_once_again_after_a_while_and_if_it_is_another_one() -> None:
    budget = Budget[str]()
    for _ in range(60):
        budget.spent("a", 100.0)
    assert budget.wait("a", 101.0) == 0.0
    budget.forget("a")
    assert len(budget) == 0
