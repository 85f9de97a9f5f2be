"""Slots: who has one, who waits, and who is asked."""

from __future__ import annotations

from collections.abc import Hashable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from multikueue.core.machinery.slots import KeySlots
from tests.examples import examples


def places(limit: int = 4, share: int = 2) -> KeySlots[str]:
    """So many in all, and so many for each flow."""
    return KeySlots(limit, lambda _flow: share)


def test_who_finds_no_place_is_asked_when_there_is_one() -> None:
    some = places(limit=2)
    assert some.enter("a", "x")
    assert some.enter("b", "x")
    assert not some.enter("c", "y")
    assert some.ask() == []
    some.leave("a")
    assert some.ask() == ["c"]
    assert not some.enter("late", "z"), "the free place is kept for whom was asked"
    assert some.enter("c", "y")


def test_a_flow_has_no_more_than_its_share() -> None:
    some = places()
    assert [some.enter(key, "hostile") for key in "abc"] == [True, True, False]
    assert some.enter("d", "other")
    assert some.ask() == []
    some.leave("a")
    assert some.ask() == ["c"]


def test_who_wants_nothing_any_more_makes_room_for_the_next() -> None:
    """Otherwise one that is gone would keep a place for ever."""
    some = places(limit=1)
    for key in "abcd":
        some.enter(key, "x")
    some.leave("a")
    assert some.ask() == ["b"]
    some.withdraw("b")
    some.withdraw("c")
    assert some.ask() == ["d"]
    some.withdraw("d")
    assert (some.inside, some.waiting, some.ask()) == (0, 0, [])


def test_who_comes_back_and_finds_a_place_waits_no_more() -> None:
    """It was planned again before anybody asked it: it would be asked though it is inside."""
    some = places(limit=1)
    some.enter("a", "x")
    assert not some.enter("b", "y")
    some.leave("a")
    assert some.enter("b", "y")
    assert (some.inside, some.waiting, "b" in some) == (1, 0, False)
    some.leave("b")
    assert some.ask() == []


def test_flows_take_turns_for_free_places() -> None:
    some = places(limit=2)
    some.enter("0", "big")
    some.enter("1", "big")
    for number in range(2, 1_000):
        some.enter(str(number), "big")
    some.enter("small", "small")
    some.leave("0")
    some.leave("1")
    assert some.ask() == ["2", "small"]


class PlacesMachine(RuleBasedStateMachine):
    """Whatever happens, limits hold, and nobody waits beside a free place."""

    def __init__(self) -> None:
        super().__init__()
        self.places: KeySlots[tuple[str, int]] = KeySlots(3, self.share)
        self.inside: set[tuple[str, int]] = set()
        self.asked: set[tuple[str, int]] = set()
        self.wanting: set[tuple[str, int]] = set()

    @staticmethod
    def share(flow: Hashable) -> int:
        return 1 if flow == "hostile" else 2

    @rule(flow=st.sampled_from(("hostile", "a", "b")), number=st.integers(0, 4))
    def enter(self, flow: str, number: int) -> None:
        key = flow, number
        self.asked.discard(key)
        if self.places.enter(key, flow):
            self.inside.add(key)
            self.wanting.discard(key)
        else:
            self.wanting.add(key)
        self.ask()

    @precondition(lambda self: self.inside)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.inside)))
        self.inside.discard(key)
        self.places.leave(key)
        self.ask()

    @precondition(lambda self: self.asked or self.wanting)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.asked | self.wanting)))
        self.asked.discard(key)
        self.wanting.discard(key)
        self.places.withdraw(key)
        self.ask()

    def ask(self) -> None:
        asked = set(self.places.ask())
        assert asked <= self.wanting
        self.wanting -= asked
        self.asked |= asked

    @invariant()
    def limits_hold(self) -> None:
        taken = self.inside | self.asked
        assert len(taken) <= 3
        for flow in ("hostile", "a", "b"):
            assert sum(of == flow for of, _ in taken) <= self.share(flow)
        assert (self.places.inside, self.places.waiting) == (len(self.inside), len(self.asked) + len(self.wanting))

    @invariant()
    def nobody_waits_beside_a_free_place(self) -> None:
        taken = self.inside | self.asked
        if len(taken) < 3:
            for flow, _ in self.wanting:
                assert sum(of == flow for of, _ in taken) == self.share(flow)


PlacesMachine.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=40, deadline=None)
TestPlacesMachine = PlacesMachine.TestCase
