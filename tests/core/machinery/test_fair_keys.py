"""Flows take turns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.machinery.fair_keys import FairKeys, in_turns


def test_ten_thousand_keys_of_one_flow_delay_another_by_one_turn() -> None:
    flows: FairKeys[str] = FairKeys()
    for number in range(10_000):
        flows.add(f"big-{number}", "big")
    flows.add("small", "small")

    assert [flows.take(), flows.take(), flows.take()] == ["big-0", "small", "big-1"]


def test_a_flow_that_may_not_be_served_keeps_its_turn() -> None:
    flows: FairKeys[str] = FairKeys()
    flows.add("a1", "a")
    flows.add("b1", "b")
    flows.add("b2", "b")

    assert flows.take(lambda flow: flow == "b") == "b1"
    assert flows.take() == "a1"
    assert flows.take(lambda _: False) is None
    assert flows.take() == "b2"


def test_a_key_is_in_one_flow_at_a_time() -> None:
    """The first add keeps the place; another flow takes the key over."""
    flows: FairKeys[str] = FairKeys()
    flows.add("key", "hostile")
    flows.add("next", "hostile")
    flows.add("key", "hostile")
    assert len(flows) == 2
    flows.add("key", "own")
    assert len(flows) == 2
    assert [flows.take(), flows.take(), flows.take()] == ["next", "key", None]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4))))
def test_each_flow_is_served_within_as_many_takes_as_there_are_flows(added: list[tuple[int, int]]) -> None:
    flows: FairKeys[tuple[int, int]] = FairKeys()
    for key, flow in added:
        flows.add((key, flow), flow)
    left = {flow: len({key for key, of in added if of == flow}) for flow in range(5)}
    waits = dict.fromkeys(left, 0)

    while (taken := flows.take()) is not None:
        left[taken[1]] -= 1
        waits = {flow: 0 if flow == taken[1] or not left[flow] else waits[flow] + 1 for flow in left}
        assert max(waits.values()) < len(left)
    assert not any(left.values())
    assert len(flows) == 0


def test_of_all_that_are_too_many_each_flow_has_some_of_the_first() -> None:
    keys = [*(f"a{number}" for number in range(1_000)), "b0", "c0", "b1"]
    assert [*in_turns(keys, lambda key: key[0])][:7] == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]
    assert sorted(in_turns(keys, lambda key: key[0])) == sorted(keys)


def test_the_flow_that_has_most_is_crowded_out() -> None:
    flows: FairKeys[str] = FairKeys()
    for key in ("b0", "a0", "a1"):
        flows.add(key, key[0])
    assert flows.crowd_out() == "a0"
    assert [flows.take(), flows.take()] == ["b0", "a1"]


def test_turns_cost_as_much_as_there_are_keys_however_long_one_flow_is() -> None:
    """Fifty thousand of one flow beside a thousand others were fifty million steps. Steps are lines that are run."""
    keys = [("long", number) for number in range(500)] + [(f"short{number}", 0) for number in range(100)]
    steps = 0

    def count(_frame: FrameType, event: str, _arg: object) -> Callable[..., Any]:
        nonlocal steps
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        taken = [*in_turns(keys, lambda key: key[0])]
    finally:
        sys.settrace(before)
    assert sorted(taken) == sorted(keys)
    assert steps <= 20 * len(keys)
