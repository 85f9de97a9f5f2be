"""Shares of one bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.machinery.shares import LatestOfEach, Shares

LIMIT = 1_000


def filled(flows: int) -> Shares[tuple[int, int]]:
    """Flows that take one by one, in turns, until none finds room."""
    shares: Shares[tuple[int, int]] = Shares(LIMIT)
    for number in range(LIMIT):
        for flow in range(flows):
            if shares.has_room(flow, 1):
                shares.keep((flow, number), flow, 1)
    return shares


def test_one_flow_gets_three_quarters_and_a_newcomer_three_of_the_rest() -> None:
    shares = filled(1)
    assert shares.total == 750
    assert shares.has_room("new", 187)
    assert not shares.has_room("new", 188)


def test_with_many_that_take_all_they_can_there_is_still_room() -> None:
    for flows in range(1, 12):
        shares = filled(flows)
        assert shares.total < LIMIT
        assert shares.has_room("new", LIMIT // (3 * flows + 1) // 2)


def test_a_key_counts_as_the_most_that_it_has_had_until_it_has_gone() -> None:
    shares: Shares[str] = Shares(LIMIT)
    shares.keep("a", "flow", 300)
    shares.keep("a", "flow", 100)
    assert shares.total == 300
    shares.keep("a", "other", 100)
    assert shares.total == 300
    assert shares.has_room("flow", 500)
    shares.drop("a")
    shares.drop("a")
    assert shares.total == 0
    assert "a" not in shares


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 3), st.integers(0, 500)), max_size=60))
def test_the_sum_is_that_of_what_is_kept(steps: list[tuple[bool, int, int, int]]) -> None:
    shares: Shares[int] = Shares(LIMIT)
    for keeps, key, flow, amount in steps:
        if keeps and shares.has_room(flow, amount):
            shares.keep(key, key % 4, amount)
        elif not keeps:
            shares.drop(key)
    assert shares.total == sum(amount for _, amount in shares._kept.values())
    assert sum(shares._by_flow.values()) == shares.total


def test_the_largest_flow_is_known() -> None:
    shares = Shares[str](100)
    assert shares.largest() is None
    for key, flow, amount in (("a1", "a", 10), ("b1", "b", 15), ("a2", "a", 10)):
        shares.keep(key, flow, amount)
    assert (shares.largest(), shares.of("a"), shares.of("b"), shares.of("c")) == ("a", 20, 15, 0)


def test_beyond_the_number_the_first_goes_of_the_flow_that_has_most() -> None:
    kept = LatestOfEach[str, int](3, lambda key: key[0])
    kept["a0"] = 0
    kept.update({f"b{number}": number for number in range(5)})
    assert dict(kept) == {"a0": 0, "b3": 3, "b4": 4}
    del kept["a0"]
    kept["b3"] = 30
    assert (len(kept), kept.get("a0"), kept.pop("b3")) == (2, None, 30)
