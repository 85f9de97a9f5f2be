"""Rounds of asking: who is asked when, and what is remembered on the Workload."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, Nomination
from multikueue.core.dispatchers.incremental import Incremental, Order, Round
from multikueue.core.model.labels import ADMISSION_MANAGER
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import check
from tests.core.building import CHECK, RESERVED_AT, candidates, copy_of, snapshot, worker, workload
from tests.core.door import NOW, ApplyStatus, decide, sole
from tests.core.wording import in_words, words

ROUND = timedelta(minutes=5)
FLEET = ("w3", "w1", "w2", "w5", "w4")
"""The config's order, which is not the alphabet's."""


@attrs.define
class Pending:
    """A Workload that waits, as a dispatcher sees it: what it answers is what it finds the next time."""

    dispatcher: Incremental
    fleet: tuple[str, ...] = FLEET
    lost: frozenset[str] = frozenset()
    awaited: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    message: str = ""
    minutes: float = 0.0

    def ask(self, minutes: float = 0.0) -> Nomination:
        """Let that time pass, ask, and write down the answer."""
        self.minutes += minutes
        seen = candidates(
            self.fleet,
            [name for name in self.fleet if name not in self.lost | self.awaited],
            self.names,
            awaited=[name for name in self.fleet if name in self.awaited - self.lost],
            message=self.message,
        )
        answer = self.dispatcher.nominate({}, seen, NOW + timedelta(minutes=self.minutes))
        self.names = answer.names
        self.message = self.message if answer.message is None else answer.message
        return answer

    def evict(self) -> None:
        """Kueue takes the nominations away and resets the check."""
        self.names, self.message = (), 'Reset to Pending after eviction. Previously: "Pending"'


def test_an_order_is_given_by_its_word_too() -> None:
    """The text was taken for the config's order, without a word."""
    assert Incremental(order="alphabetical") == Incremental(order=Order.ALPHABETICAL)
    for odd in ({"order": "alphabetic"}, {"step": 0}):
        with pytest.raises(ValueError, match=r"alphabetic|step"):
            Incremental(**odd)


def test_each_round_asks_the_next_of_the_config() -> None:
    waiting = Pending(Incremental(step=2))
    assert waiting.ask().names == ("w3", "w1")
    assert waiting.ask(4.9).names == ("w3", "w1")
    assert waiting.ask(0.1).names == ("w3", "w1", "w2", "w5")
    assert waiting.ask(4.9).names == ("w3", "w1", "w2", "w5")
    assert waiting.ask(0.1).names == ("w3", "w1", "w2", "w5", "w4")


def test_or_the_next_of_the_alphabet() -> None:
    waiting = Pending(Incremental(step=2, order=Order.ALPHABETICAL))
    assert waiting.ask().names == ("w1", "w2")
    assert waiting.ask(5).names == ("w1", "w2", "w3", "w4")


def test_it_asks_to_be_woken_when_the_round_is_over_and_not_once_all_are_asked() -> None:
    """A list that is exhausted is no error: what waits then waits for a change (item 42)."""
    waiting = Pending(Incremental(step=2))
    assert waiting.ask().look_again == 300.0
    assert waiting.ask(2).look_again == 180.0
    assert waiting.ask(3).look_again == 300.0
    assert waiting.ask(5).look_again is None
    message = waiting.message
    assert waiting.ask(60) == Nomination(FLEET, None, message)


def test_with_few_workers_the_first_round_asks_them_all() -> None:
    waiting = Pending(Incremental(step=3), fleet=("w1", "w2"))
    assert waiting.ask().names == ("w1", "w2")
    assert waiting.ask().look_again is None


def test_the_message_holds_the_round_for_people_and_the_next_process() -> None:
    waiting = Pending(Incremental(step=2))
    waiting.ask()
    assert waiting.message == "The workload is offered to [w3 w1], round 1 since 2026-11-21T12:00:00.000Z"
    waiting.ask(7)
    assert waiting.message == "The workload is offered to [w3 w1 w2 w5], round 2 since 2026-11-21T12:07:00.000Z"
    assert Round.parse(waiting.message) == Round(2, NOW + timedelta(minutes=7))


def test_while_nothing_changes_nothing_is_written() -> None:
    waiting = Pending(Incremental(step=2))
    waiting.ask()
    before = (waiting.names, waiting.message)
    waiting.ask(1.23)
    assert (waiting.names, waiting.message) == before


def test_one_out_of_reach_is_not_asked() -> None:
    """Kueue nominates it, and waits a round for nothing (item 42)."""
    assert Pending(Incremental(step=2), lost=frozenset({"w1"})).ask().names == ("w3", "w2")


def test_for_a_lost_worker_the_next_is_asked_at_once_and_it_stays_nominated() -> None:
    """Nobody waits out a round for a worker that cannot answer; it may still win when it is back."""
    waiting = Pending(Incremental(step=2))
    waiting.ask()
    waiting.lost = frozenset({"w3"})
    answer = waiting.ask(1)
    assert answer.names == ("w3", "w1", "w2")
    assert answer.look_again == 240.0
    waiting.lost = frozenset()
    assert waiting.ask(1).names == ("w3", "w1", "w2")
    assert waiting.ask(3).names == ("w3", "w1", "w2", "w5")


def test_if_all_workers_of_a_round_are_lost_the_next_are_asked_at_once() -> None:
    waiting = Pending(Incremental(step=2))
    waiting.ask()
    waiting.lost = frozenset({"w3", "w1"})
    assert waiting.ask(1).names == ("w3", "w1", "w2", "w5")


def test_every_round_adds_a_worker_however_many_have_reconnected() -> None:
    waiting = Pending(Incremental(step=1))
    waiting.ask()
    for lost in ({"w3"}, {"w3", "w1"}):
        waiting.lost = frozenset(lost)
        waiting.ask()
    waiting.lost = frozenset()
    assert waiting.ask().names == ("w3", "w1", "w2")
    assert waiting.ask(5).names == ("w3", "w1", "w2", "w5")


def test_a_worker_that_reconnects_after_all_others_were_asked_is_asked_at_once() -> None:
    """Nothing is parked until somebody restarts something."""
    waiting = Pending(Incremental(step=2), fleet=("w1", "w2", "w3"), lost=frozenset({"w2", "w3"}))
    assert waiting.ask().names == ("w1",)
    waiting.lost = frozenset({"w3"})
    assert waiting.ask(1).names == ("w1", "w2")
    waiting.lost = frozenset()
    assert waiting.ask(60).names == ("w1", "w2", "w3")


def test_with_no_worker_in_reach_nothing_is_nominated_or_noted() -> None:
    waiting = Pending(Incremental(), lost=frozenset(FLEET))
    assert waiting.ask() == Nomination((), None, None)
    waiting.lost = frozenset()
    assert waiting.ask(60).names == ("w3", "w1", "w2")


def test_a_worker_removed_from_the_config_is_dropped_and_the_next_is_asked() -> None:
    waiting = Pending(Incremental(step=2))
    waiting.ask()
    waiting.fleet = ("w1", "w2", "w5", "w4")
    assert waiting.ask(1).names == ("w1", "w2")
    waiting.fleet = ("w1",)
    assert waiting.ask(1).names == ("w1",)
    assert waiting.message == "The workload is offered to [w1], round 1 since 2026-11-21T12:00:00.000Z"


def test_an_eviction_begins_the_first_round_at_once() -> None:
    """Kueue's own remembers the round of the attempt before, and lets the next one wait for its end (item 42)."""
    waiting = Pending(Incremental(step=2))
    waiting.ask()
    waiting.ask(5)
    waiting.evict()
    answer = waiting.ask(1)
    assert (answer.names, answer.look_again) == (("w3", "w1"), 300.0)


def test_after_a_start_workers_that_have_not_answered_keep_their_place() -> None:
    """A restart neither shortens a round nor asks whoever happens to answer first."""
    waiting = Pending(Incremental(step=2), awaited=frozenset(FLEET))
    assert waiting.ask() == Nomination(())
    waiting.awaited = frozenset({"w1", "w2"})
    assert waiting.ask().names == ("w3",)
    waiting.awaited = frozenset()
    assert waiting.ask().names == ("w3", "w1")
    waiting.awaited = frozenset({"w3", "w1"})
    assert waiting.ask().names == ("w3", "w1")
    waiting.lost, waiting.awaited = frozenset({"w1"}), frozenset({"w3"})
    assert waiting.ask().names == ("w3", "w1", "w2")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "somebody else was here",
        "The workload is offered to [w3 w1], round 1 since",
        "The workload is offered to [w3 w1], round 1 since yesterday",
        "The workload is offered to [w3 w1], round 0 since 2026-11-21T12:00:00Z",
        "The workload is offered to [w3 w1], round 1 since 2126-11-21T12:00:00Z",
    ],
)
def test_a_round_whose_time_is_missing_damaged_or_to_come_begins_now(message: str) -> None:
    """And is written down, or it would begin now each time somebody looks, and never end."""
    waiting = Pending(Incremental(step=2), names=("w3", "w1"), message=message)
    answer = waiting.ask()
    assert (answer.names, answer.look_again) == (("w3", "w1"), 300.0)
    assert Round.parse(waiting.message) == Round(1, NOW)
    assert waiting.ask(5).names == ("w3", "w1", "w2", "w5")


def test_names_that_another_dispatcher_left_are_kept() -> None:
    """An operator who changes the setting disturbs nothing that waits, and causes no write."""
    waiting = Pending(Incremental(step=2), names=("w1", "w2", "w3", "w4", "w5"))
    assert waiting.ask() == Nomination(("w1", "w2", "w3", "w4", "w5"))


events = st.lists(
    st.tuples(
        st.sampled_from((0.0, 0.5, 2.0, 5.0, 30.0)),
        st.frozensets(st.sampled_from(FLEET)),
        st.frozensets(st.sampled_from(FLEET), max_size=1),
        st.sampled_from((None, None, None, "garbage")),
    ),
    max_size=12,
)
dispatchers = st.builds(Incremental, step=st.integers(1, 6), order=st.sampled_from(Order))


@given(dispatchers, events)
def test_within_an_attempt_names_are_only_added_and_only_of_workers_in_reach(
    dispatcher: Incremental, happening: list[tuple[float, frozenset[str], frozenset[str], str | None]]
) -> None:
    """And as long as somebody can still be asked who has not been, time alone leads there."""
    waiting = Pending(dispatcher)
    for minutes, lost, awaited, damage in happening:
        waiting.lost, waiting.awaited = lost, awaited
        waiting.message = waiting.message if damage is None else damage
        before = waiting.names
        answer = waiting.ask(minutes)
        assert answer.names[: len(before)] == before
        assert not set(answer.names[len(before) :]) & (lost | awaited)
        unasked = set(FLEET) - lost - awaited - set(answer.names)
        if unasked and answer.names:
            assert answer.look_again is not None
            assert 0 < answer.look_again <= ROUND.total_seconds()
        if unasked and not awaited:
            assert len(set(answer.names) - lost) >= dispatcher.step
        assert waiting.ask() == attrs.evolve(answer, names=waiting.names), "asked again at once it says the same"


@given(dispatchers, st.lists(st.integers(0, 40).map(lambda number: f"w{number}"), unique=True))
def test_rounds_end_with_all_asked_and_never_name_too_many(dispatcher: Incremental, fleet: list[str]) -> None:
    waiting = Pending(dispatcher, fleet=tuple(fleet))
    counts = [0]
    while (answer := waiting.ask()).look_again is not None:
        counts.append(len(answer.names))
        assert counts[-1] - counts[-2] == dispatcher.step
        waiting.minutes += answer.look_again / 60
    assert len(waiting.names) == min(len(fleet), MAX_NOMINATIONS)
    assert all(earlier < later for earlier, later in pairwise(counts))


def with_message(local: Json, message: str) -> Json:
    """The Workload, with that message on our check."""
    entry = check(local, CHECK)
    assert entry is not None
    entry["message"] = message
    return local


class TestWriting:
    def test_names_and_round_are_one_write_as_kueue(self) -> None:
        """A crash leaves both or neither; the check stays Pending since when it was."""
        told_round = "The workload is offered to [w1], round 1 since 2026-11-21T12:00:00.000Z"
        seen = snapshot(workload(other_checks={"budget": "Ready"}), worker("w1"), worker("w2"))
        decided = decide(seen, Incremental(step=1))
        assert in_words(seen, decided) == ["nominate w1", "create workload on w1"]
        assert decided.look_again == 300.0
        write = decided.effects[0]
        assert isinstance(write, ApplyStatus)
        assert write.field_manager == ADMISSION_MANAGER
        assert check(write.object, CHECK) == {
            "name": CHECK,
            "state": "Pending",
            "message": f"{told_round} — w2: not nominated yet",
            "lastTransitionTime": RESERVED_AT,
        }
        assert check(write.object, "budget") == check(workload(other_checks={"budget": "Ready"}), "budget")

    def test_within_a_round_nothing_is_written(self) -> None:
        local = with_message(
            workload(nominated=("w1",)), "The workload is offered to [w1], round 1 since 2026-11-21T11:58:00Z"
        )
        seen = snapshot(local, worker("w1", copy_of(local)), worker("w2"))
        first = decide(seen, Incremental(step=1))
        assert first.look_again == 180.0
        write = sole(ApplyStatus, first.effects)  # a time as others write it is written our way, once
        entry = check(write.object, CHECK)
        assert entry is not None
        seen = snapshot(with_message(local, entry["message"]), worker("w1", copy_of(local)), worker("w2"))
        assert decide(seen, Incremental(step=1)).effects == ()

    def test_when_the_round_is_over_the_next_worker_gets_a_copy(self) -> None:
        local = with_message(
            workload(nominated=("w1",)), "The workload is offered to [w1], round 1 since 2026-11-21T11:55:00Z"
        )
        seen = snapshot(local, worker("w1", copy_of(local)), worker("w2"))
        assert words(seen, Incremental(step=1)) == ["nominate w1 w2", "create workload on w2"]
