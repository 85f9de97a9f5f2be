"""Whom the scored dispatcher offers a Workload to, when it takes an offer back, holds, races and gives up."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, Candidate, Candidates, Known
from multikueue.core.dispatchers.guarded import Guarded
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import JobFacts, PodSet, ResourceRequest, Room, Running, obstacle_of
from multikueue.core.dispatchers.scored.job_annotations import FLAVORS, NAMES, SELECTOR, TAINTS, TOGETHER, TOLERATIONS
from multikueue.core.dispatchers.scored.ledger import Ledger
from multikueue.core.dispatchers.scored.profile import Hold, Profile, Then
from multikueue.core.dispatchers.scored.score import COST
from multikueue.core.dispatchers.scored.scored import Scored
from multikueue.core.model.names import ClusterName
from multikueue.errors import Cause
from tests.core.building import workload
from tests.core.dispatchers.scored.pending import GPU, Pending, copy, pending, queue, why
from tests.core.door import NOW

TAINTED = {TAINTS: "spot=true:NoDispatch"}


def test_the_one_that_has_room_is_asked() -> None:
    waiting = pending({"w1": queue(2), "w2": queue(8), "w3": queue(3)})
    answer = waiting.ask()

    assert answer.names == ("w2",)
    assert why(answer) == {"w1": Cause.NO_ROOM, "w3": Cause.NO_ROOM}
    assert waiting.message.startswith("The workload is offered to [w2] since 2026-11-21T12:00:00.000Z")


def test_the_same_state_is_written_once() -> None:
    waiting = pending({"w1": queue(8), "w2": queue(7)})
    for _ in range(5):
        waiting.ask(1)
        waiting.change("w2", queue=queue(6))

    assert waiting.writes == 1


def test_an_offer_that_was_begun_and_not_written_is_kept_unless_it_was_taken_back() -> None:
    waiting = pending({"w1": queue(8), "w2": queue(6)})
    waiting.change("w2", has_copy=True)
    assert waiting.ask().names == ("w2",)

    waiting.message = "The workload is held since 2026-11-21T12:00:00.000Z, round 1, asked before: [w2]"
    waiting.names = ()
    assert waiting.ask().names == ("w1",)


@pytest.mark.parametrize(
    "changes", [{"available": False}, {"obstacle": Reason(Cause.CORDONED)}, {"annotations": TAINTED}]
)
def test_a_copy_where_it_cannot_go_any_more_is_no_offer(changes: dict[str, Any]) -> None:
    """It is there until the worker can be reached. What is said of the hold is written once."""
    waiting = pending({"w1": queue(8), "w2": queue(0)})
    waiting.change("w1", has_copy=True, **changes)
    for _ in range(5):
        assert waiting.ask(1).names == ()
    assert waiting.writes == 1


def test_after_a_while_the_next_one_with_room_is_asked_and_the_first_again_for_longer() -> None:
    waiting = pending({"w1": queue(8), "w2": queue(7)})
    first = waiting.ask()
    assert first.look_again == 15
    assert waiting.ask(14.9).names == first.names == ("w1",)
    second = waiting.ask(0.1)
    assert (second.names, why(second)) == (("w2",), {"w1": Cause.ASKED_BEFORE})
    assert waiting.ask(15).names == ("w1",)
    assert waiting.ask(29).names == ("w1",)
    assert waiting.ask(1).names == ("w2",)


def test_the_only_one_with_room_keeps_it_without_a_write() -> None:
    waiting = pending({"w1": queue(8), "w2": queue(0)})
    waiting.ask()

    assert [waiting.ask(60).names for _ in range(3)] == [("w1",)] * 3
    assert waiting.writes == 1


def test_one_that_nobody_takes_though_there_is_room_waits_for_the_others_too() -> None:
    """Figures that lie (its Kueue is down, or what is free is not for such pods) kept it where nobody took it."""
    waiting = pending({"w1": queue(8), "w2": queue(0)})
    first, late = waiting.ask().claim, waiting.ask(15).claim
    assert isinstance(first, Entry)
    assert isinstance(late, Entry)
    assert (first.waits_for, late.waits_for) == (None, (("w2", "queue"),))

    waiting.change("w2", queue=queue(4))
    assert waiting.ask().names == ("w2",)


def test_nobody_has_room_so_it_is_held_and_the_check_says_why() -> None:
    waiting = pending({"w1": queue(2), "w2": queue(3)})
    answer = waiting.ask()

    assert (answer.names, answer.look_again) == ((), 1800.0)  # then it is held for an hour
    assert "held" in waiting.message
    assert "w1: needs 4m gpu, 2m of a100" in waiting.message
    waiting.change("w2", queue=queue(4))
    assert waiting.ask(60).names == ("w2",)


def test_nothing_is_told_of_a_hold_while_a_worker_has_not_answered_yet() -> None:
    """Else that it cannot be reached would be told for as long as the hold lasts."""
    waiting = pending({"w1": queue(0)})
    waiting.change("w1", available=False, awaited=True)
    assert (waiting.ask().names, waiting.message) == ((), "")
    waiting.change("w1", available=True, awaited=False)
    waiting.ask(1)
    assert ": w1: needs " in waiting.message


@pytest.mark.parametrize(
    ("obstacle", "conditions", "kept"),
    [
        (Cause.NEVER_STARTS, copy("QuotaReserved", "Test", status=True), False),
        (Cause.NEVER_STARTS, copy("Admitted", "Test", status=True), True),
        (Cause.QUEUE_UNFIT, copy("QuotaReserved", "Test", status=True), True),
    ],
)
def test_quota_is_taken_back_only_where_no_copy_ever_starts(obstacle: Cause, conditions: Any, kept: bool) -> None:
    waiting = pending({"w1": queue(8), "w2": queue(6)})
    waiting.ask()
    waiting.change("w1", has_copy=True, conditions=conditions, obstacle=Reason(obstacle))
    assert waiting.ask(1).names == (("w1",) if kept else ("w2",))


def test_never_held_where_the_profile_says_so() -> None:
    waiting = pending({"w1": queue(2), "w2": queue(3)}, profile=Profile(hold=Hold.NEVER))
    names = [waiting.ask(15).names for _ in range(2)]

    assert sorted(names) == [("w1",), ("w2",)]


def test_nobody_is_asked_whose_queues_are_being_read_though_nothing_is_held() -> None:
    """What they say may be that no copy can ever start there."""
    waiting = pending({"w1": queue(0, known=Known.AWAITED), "w2": queue(2)}, profile=Profile(hold=Hold.NEVER))
    waiting.change("w2", available=False)
    assert waiting.ask().names == ()
    waiting.change("w1", queue=queue(3))
    assert waiting.ask(1).names == ("w1",)
    waiting.change("w1", queue=queue(0, known=Known.AWAITED))
    assert waiting.ask(600).names == ("w1",)


def test_quota_that_says_nothing_is_raced_with_most_at_a_time() -> None:
    raced = {"w1": None, "w2": queue(0, known=Known.FORBIDDEN), "w3": queue(0, has_checks=True), "w4": None}
    waiting = pending(raced)
    first, second = waiting.ask().names, waiting.ask(15).names

    assert (len(first), len(second)) == (3, 1)
    assert set(first) | set(second) == set(raced)


@pytest.mark.parametrize(("minutes", "starving"), [(-1, False), (1, True), (None, False)])
def test_one_that_is_held_for_an_hour_while_later_ones_start_is_told(minutes: int | None, starving: bool) -> None:
    """It has had its quota for half an hour; the last that has started got its so many minutes later."""
    reserved = NOW - timedelta(minutes=30)
    latest = None if minutes is None else reserved + timedelta(minutes=minutes)
    waiting = pending({"w1": queue(0)}, overtaken_by=latest)
    assert waiting.ask(1799).problem == ""

    answer = waiting.ask(1)

    assert ("giveUp" in answer.problem, answer.look_again) == (starving, 3600.0)


def test_room_comes_before_a_race() -> None:
    assert pending({"w1": None, "w2": queue(4)}).ask().names == ("w2",)


@pytest.mark.parametrize(
    "facts",
    [
        {"within": "LowerPriority", "running": (Running(0, {GPU: 4}),)},
        {"reclaim": "Any", "lent": {GPU: 4}},
    ],
)
def test_evidence_of_preemption_is_asked_without_room(facts: dict[str, Any]) -> None:
    waiting = pending({"w1": queue(0), "w2": queue(0, **facts)}, priority=1)

    assert waiting.ask().names == ("w2",)


def test_equal_priority_is_no_evidence() -> None:
    facts = queue(0, within="LowerPriority", running=(Running(1, {GPU: 4}),))

    assert pending({"w1": facts}, priority=1).ask().names == ()


def test_a_probe_is_made_by_the_first_and_each_time_later() -> None:
    waiting = pending({"w1": queue(0, within="LowerPriority")})
    assert waiting.ask().names == ()
    waiting.change("w1", leads=True)
    offers, starts = 0, list[float]()
    for second in range(1, 600):
        before = waiting.names
        waiting.ask(1)
        if waiting.names and not before:
            offers, starts = offers + 1, [*starts, second]
    pauses = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert starts[0] == 1
    assert pauses == sorted(pauses)
    assert pauses[0] >= 30
    assert offers <= 5


def test_an_offer_on_evidence_of_preemption_is_not_taken_back_before_its_timeout() -> None:
    waiting = pending({"w1": queue(0, within="LowerPriority"), "w2": queue(0)})
    waiting.change("w1", leads=True)
    waiting.ask()
    waiting.change("w1", conditions=copy("BlockedOnPreemptionGates", "Test", status=True))
    waiting.change("w2", queue=queue(8))

    assert waiting.ask(299).names == ("w1",)
    assert waiting.ask(1).names == ("w2",)


def test_an_offer_without_room_is_taken_back_as_soon_as_another_worker_has_room() -> None:
    """It stayed for `retry` where it was to be seen whether the worker preempts, beside idle CPUs elsewhere."""
    waiting = pending({"w1": queue(0, within="LowerPriority"), "w2": queue(0)})
    waiting.change("w1", leads=True)
    waiting.ask()
    waiting.change("w1", conditions=copy("QuotaReserved", "Pending", status=False))
    assert waiting.ask(1).names == ("w1",)
    waiting.change("w2", queue=queue(8))

    assert waiting.ask(1).names == ("w2",)


def test_an_offer_by_figures_that_were_old_goes_on_to_a_worker_with_room() -> None:
    """They are a second old, and a burst fills a worker in that time: the rest of it waited for `retry` there."""
    waiting = pending({"w1": queue(4), "w2": queue(8)})
    waiting.ask()
    waiting.change("w1", queue=queue(0), conditions=copy("QuotaReserved", "Pending", status=False))

    assert waiting.ask(1).names == ("w2",)


def test_what_its_kueue_says_of_an_offer_counts_before_figures_that_show_room() -> None:
    """They are older. What they show stays claimed, so that nobody else is sent there meanwhile."""
    waiting = pending({"w1": queue(4), "w2": queue(0)})
    waiting.ask()
    waiting.change("w1", conditions=copy("QuotaReserved", "Pending", status=False))
    answer = waiting.ask(1)
    assert answer.names == ("w1",)
    assert isinstance(answer.claim, Entry)
    assert (answer.claim.without_room, answer.claim.doubtful) == (True, False)
    waiting.change("w2", queue=queue(8))

    assert waiting.ask(1).names == ("w2",)


def test_an_offer_of_which_its_kueue_has_said_nothing_stays_whatever_the_figures_are() -> None:
    """They may show already what its copy has got."""
    waiting = pending({"w1": queue(4), "w2": queue(4)})
    waiting.ask()
    waiting.change("w1", queue=queue(0))

    assert waiting.ask(1).names == ("w1",)


@pytest.mark.parametrize("has_checks", [False, True])
def test_a_copy_with_quota_is_never_taken_back(has_checks: bool) -> None:
    waiting = pending({"w1": queue(4), "w2": queue(3)}, profile=Profile(give_up_after=timedelta(minutes=40)))
    waiting.ask()
    waiting.change("w1", conditions=copy("QuotaReserved", "QuotaReserved", status=True))
    waiting.change("w1", queue=queue(0, has_checks=has_checks))
    waiting.change("w2", queue=queue(8))

    assert waiting.ask(600).names == ("w1",)
    late = waiting.ask(3000)
    assert (late.names, late.not_taken) == (("w1",), None)


def test_a_short_loss_takes_nothing_back() -> None:
    waiting = pending({"w1": queue(8), "w2": queue(4)})
    assert waiting.ask().names == ("w1",)
    waiting.change("w1", available=False, awaited=True)
    assert waiting.ask(20).names == ("w1",)
    waiting.change("w1", available=False, awaited=False)
    assert waiting.ask(40).names == ("w2",)


def test_a_new_attempt_begins_from_the_start_whatever_the_message_says() -> None:
    waiting = pending({"w1": queue(8), "w2": queue(7)})
    waiting.ask()
    waiting.ask(15)
    waiting.names = ()  # Kueue evicts it

    assert waiting.ask().names == ("w1",)


def test_an_attempt_whose_quota_is_of_a_clock_ahead_is_written_once() -> None:
    """Each look wrote another moment, and its own write made the next look: for as long as the clocks differ."""
    waiting = pending({"w1": queue(8), "w2": queue(7)})
    assert waiting.ask(-33 * 60).names == ("w1",)
    for _ in range(5):
        assert waiting.ask(10).names == ("w1",)
    assert waiting.writes == 1
    assert waiting.ask(3 * 60).names == ("w2",)


@pytest.mark.parametrize("then", Then)
def test_it_gives_its_quota_back_after_a_while(then: Then) -> None:
    profile = Profile(give_up_after=timedelta(minutes=31), then=then)
    waiting = pending({"w1": queue(0)}, profile=profile)
    assert waiting.ask().look_again == 60
    not_taken = waiting.ask(60).not_taken
    assert not_taken is not None
    assert not_taken.deactivate == (then is Then.DEACTIVATE)


def test_an_unknown_profile_changes_nothing_and_is_told() -> None:
    seen = Candidates((Candidate(ClusterName("w1")),), ("w1",), facts=JobFacts(profile="x"))
    answer = Scored().nominate({}, seen, NOW)

    assert (answer.names, answer.problem) == (("w1",), 'There is no profile "x"')


def test_what_the_ledger_wakes_is_offered() -> None:
    """The two use one filter: who stands in the line of a queue takes its room, or it would block all others."""
    dispatcher, ledger = Scored(), Ledger()
    job = JobFacts(ResourceRequest((PodSet({"gpu": 4}),)))
    seen = Candidates((Candidate(ClusterName("w1"), facts=Room(queue(2))),), facts=job)
    made = dispatcher.nominate(workload(), seen, NOW).claim
    assert isinstance(made, Entry)
    ledger.put(made)
    (place,) = made.places
    ledger.set_queue(place, queue(6))
    assert ledger.woken(NOW) == (made.key,)
    net = ledger.net(made.key, place, NOW)
    grown = Candidates((Candidate(ClusterName("w1"), facts=Room(queue(6), net)),), facts=job)
    answer = dispatcher.nominate(workload(), grown, NOW)
    assert answer.names == ("w1",)
    assert isinstance(answer.claim, Entry)
    assert answer.claim.offered == (place,)


NAMES_OF_ALL = tuple(f"w{number}" for number in range(25))


reasons = st.sampled_from([None, None, Reason(Cause.REFUSED)])


quota = st.sampled_from([(), copy("QuotaReserved", "ExceedsMaxQuota", status=False), copy("X", "Y", status=True)])


facts = st.one_of(
    st.none(),
    st.builds(
        queue,
        st.integers(0, 8),
        known=st.sampled_from(Known),
        active=st.booleans(),
        within=st.sampled_from(["Never", "LowerPriority"]),
        others_pending=st.integers(0, 1),
    ),
)


workers = st.builds(
    Candidate,
    st.sampled_from(NAMES_OF_ALL).map(ClusterName),
    available=st.booleans(),
    awaited=st.booleans(),
    obstacle=reasons,
    facts=st.builds(Room, facts, leads=st.booleans(), obstacle=reasons),
    conditions=quota,
)


profiles = st.builds(
    Profile,
    candidates=st.integers(1, 20),
    most=st.integers(20, 20),
    hold=st.sampled_from(Hold),
    retry=st.just(timedelta(0, 15)),
)


@given(
    st.lists(workers, max_size=25, unique_by=lambda worker: worker.name),
    st.lists(st.sampled_from((*NAMES_OF_ALL, "stranger")), max_size=20, unique=True),
    profiles,
    st.sampled_from([None, "w1,w2,w3", "!"]),
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(["The workload is held since 2026-11-21T11:59:00Z, round 3, asked before: [w1 w2]"]),
    ),
)
def test_it_never_widens_and_answers_the_same(
    listed: Sequence[Candidate], nominated: Collection[str], profile: Profile, named: str | None, message: str
) -> None:
    seen = tuple(attrs.evolve(worker, nominated=worker.name in nominated) for worker in listed)
    annotations = {} if named is None else {NAMES: named}
    job = JobFacts(ResourceRequest((PodSet({"gpu": 4}),)), annotations)
    candidates = Candidates(seen, tuple(nominated), message, job)
    dispatcher = Scored({"default": profile})
    answer = dispatcher.nominate(workload(), candidates, NOW)

    assert Guarded(dispatcher).nominate(workload(), candidates, NOW) == answer
    assert len(answer.names) <= MAX_NOMINATIONS
    new = set(answer.names) - set(nominated)
    assert new <= {worker.name for worker in seen if worker.available and obstacle_of(worker) is None}
    assert named is None or new <= {"w1", "w2", "w3"}
    assert set(answer.names).isdisjoint(answer.reasons)
    assert set(answer.names) | set(answer.reasons) == {worker.name for worker in seen}


placed_workers = st.builds(
    Candidate,
    st.sampled_from(NAMES_OF_ALL).map(ClusterName),
    labels=st.sampled_from([{}, {"region": "eu"}, {"region": "us"}]),
    annotations=st.sampled_from([{}, TAINTED, {FLAVORS: "oslo"}, {FLAVORS: "bergen"}, {TAINTS: "?", COST: "-1"}]),
    facts=st.builds(Room, facts, leads=st.booleans()),
)


@given(
    st.lists(placed_workers, max_size=25, unique_by=lambda worker: worker.name),
    profiles,
    st.sampled_from([None, "w1,w2,w3", "w1", "!"]),
    st.sampled_from([None, "region=eu", "region notin (us)", "region in"]),
    st.sampled_from([None, "spot", "spot=true", "spot=false", ","]),
    st.sampled_from([None, "w1", "w2"]),
)
def test_whatever_a_job_asks_for_only_narrows(
    listed: Sequence[Candidate],
    profile: Profile,
    named: str | None,
    selected: str | None,
    tolerated: str | None,
    company: str | None,
) -> None:
    """As the documentation reads, said once more without the code that reads annotations."""
    asked = {NAMES: named, SELECTOR: selected, TOLERATIONS: tolerated, TOGETHER: company and "job/a"}
    annotations = {name: value for name, value in asked.items() if value is not None}
    waiting = Pending({worker.name: worker for worker in listed}, profile, flavors=("oslo",), annotations=annotations)
    waiting.company = None if company is None else ClusterName(company)
    readable = named != "!" and selected != "region in"
    allowed = {
        worker.name
        for worker in listed
        if readable
        and (named is None or worker.name in named.split(","))
        and (selected is None or worker.labels.get("region") == "eu" or (selected != "region=eu" and not worker.labels))
        and (TAINTS not in worker.annotations or (worker.annotations == TAINTED and tolerated in ("spot", "spot=true")))
        and worker.annotations.get(FLAVORS) != "bergen"
        and company in (None, worker.name)
    }
    assert set(waiting.ask().names) <= allowed


@given(st.lists(st.integers(0, 8), min_size=2, max_size=6), st.integers(1, 8))
def test_the_first_that_has_room_is_asked(frees: list[int], gpus: int) -> None:
    waiting = pending({f"w{index}": queue(free) for index, free in enumerate(frees)}, gpus=gpus)
    names = waiting.ask().names

    assert names == tuple(f"w{index}" for index, free in enumerate(frees) if free >= gpus)[:1]
