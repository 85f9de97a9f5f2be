"""A dispatcher of somebody else's that fails: one Workload is told, and nobody new is nominated."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import attrs
import pytest

from multikueue.core.dispatchers.dispatcher import Candidate, Candidates, Nomination, NotTaken
from multikueue.core.dispatchers.guarded import RETRY, SOONEST, Guarded
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.workloads import Rejection
from multikueue.errors import Cause
from tests.core.building import candidates, condition, copy_of, snapshot, worker, workload
from tests.core.door import NOW, AnnounceWorkload, decide, sole
from tests.core.wording import in_words, verdict_written, words

FLEET = tuple(f"w{number}" for number in range(30))
SEEN = candidates(FLEET, FLEET[1:], ["w0", "gone"])
ODD: Any = Nomination
"""As somebody without a type checker would write it."""
ODD_REASON: Any = Reason
HERE = f"The dispatcher {__name__}.Policy"


@attrs.frozen
class Policy:
    """Answers whatever it is made with."""

    answer: Any

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Any:
        del now
        return self.answer(workload, candidates) if callable(self.answer) else self.answer


def divided(workload: Json, candidates: Candidates) -> Nomination:
    raise ZeroDivisionError(workload, candidates)


def cancelled(workload: Json, candidates: Candidates) -> Nomination:
    """As a future does whose result is asked for."""
    raise asyncio.CancelledError(workload, candidates)


def unread(workload: Json, candidates: Candidates) -> Nomination:
    return Nomination(tuple(json.loads("oslo, rome")))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (divided, "raises ZeroDivisionError in test_guarded.py, line "),
        (cancelled, "raises CancelledError in test_guarded.py, line "),
        (unread, "raises JSONDecodeError in test_guarded.py, line "),
        (None, "answers NoneType, which is not a multikueue.Nomination"),
        (("w1",), "answers tuple, which is not"),
        (ODD(None), "nominates what is not a tuple of names"),
        (ODD("w1"), "nominates what is not a tuple of names"),
        (ODD(("w1", 7)), "nominates what is not a tuple of names"),
        (Nomination(("w1", "w1")), "nominates a worker twice"),
        (Nomination(FLEET[:21]), "nominates 21 workers, and 20 are allowed"),
        (Nomination(("w1", "elsewhere")), 'nominates "elsewhere", which is not available'),
        (ODD(("w1",), message=5), "gives a message that is not a text"),
        (Nomination(("w1",), look_again=0.0), "wants to be asked again in 0.0 s"),
        (Nomination(("w1",), look_again=-1), "wants to be asked again in -1 s"),
        (Nomination(("w1",), look_again=math.nan), "wants to be asked again in nan s"),
        (ODD(("w1",), look_again="soon"), "wants to be asked again in 'soon' s"),
        (Nomination(("w1",), look_again=10**400), "wants to be asked again in 1000"),
        (ODD(("w1",), reasons=None), "gives reasons that are not of multikueue.Reason by worker"),
        (ODD(("w1",), reasons={"w2": ODD_REASON(Cause.NO_ROOM, 5)}), "gives a reason that is not a multikueue.Reason"),
        (ODD(("w1",), reasons={3: Reason(Cause.NO_ROOM)}), "gives reasons that are not of multikueue.Reason by worker"),
        (Nomination(("w1",), message="\ud800"), "gives a message that is not a text"),
        (Nomination(("w1",), problem="\ud800"), "gives a message that is not a text"),
        (Nomination(("\ud800",)), "nominates what is not a tuple of names"),
        (ODD(("w1",), reasons={"w1": "full"}), "gives a reason that is not a multikueue.Reason"),
    ],
)
def test_what_cannot_be_used_leaves_the_nominations_as_they_are(answer: object, problem: str) -> None:
    """It is asked again a minute later: it may depend on the time."""
    answered = Guarded(Policy(answer)).nominate(workload(), SEEN, NOW)
    assert answered == Nomination(("w0", "gone"), RETRY, problem=answered.problem)
    assert answered.problem.startswith(f"{HERE} {problem}")
    assert answered.problem.endswith(": nobody new is nominated")


@pytest.mark.parametrize(
    "answer",
    [
        Nomination(()),
        Nomination(("w5", "w1"), 1.0, "round 2"),
        Nomination(("w0", "w1")),
        Nomination(("gone",), binding=True),
        Nomination(FLEET[1:21]),
    ],
)
def test_what_can_be_used_is_passed_on_as_it_is(answer: Nomination) -> None:
    """One that is nominated already may stay, wherever it is."""
    assert Guarded(Rememberer(answer)).nominate(workload(), SEEN, NOW) is answer


def test_what_wants_to_be_asked_again_at_once_is_asked_again_after_a_second() -> None:
    """It kept the loop busy."""
    answered = Guarded(Policy(Nomination(("w1",), look_again=0.001))).nominate(workload(), SEEN, NOW)
    assert answered == Nomination(("w1",), SOONEST)


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt])
def test_what_ends_the_program_ends_it(end: type[BaseException]) -> None:
    def ends(*_: object) -> Nomination:
        raise end

    with pytest.raises(end):
        Guarded(Policy(ends)).nominate(workload(), SEEN, NOW)


@pytest.mark.parametrize("answer", [divided, Nomination(("elsewhere",))], ids=["raises", "nonsense"])
def test_the_workload_is_told_by_a_warning_and_stays_where_it_is_offered(answer: object) -> None:
    offered = workload(nominated=("w1",))
    seen = snapshot(offered, worker("w1", copy_of(offered)), worker("w2"))
    decided = decide(seen, Policy(answer))
    assert in_words(seen, decided) == ["warn"]
    announced = sole(AnnounceWorkload, decided.effects)
    assert decided.problems == (announced.note,)
    assert announced.note.startswith(HERE)
    assert decided.look_again == RETRY


@pytest.mark.parametrize("deactivate", [False, True])
def test_what_nobody_took_gives_its_quota_back(deactivate: bool) -> None:
    """Kueue v0.19.2 keeps it until the time that a check names (findings/kueue-retry-time-keeps-quota.sh)."""
    seen = snapshot(workload(), worker("w1"))
    decided = decide(seen, Policy(Nomination((), not_taken=NotTaken("nobody took it", deactivate))))
    assert words(seen, Policy(Nomination((), not_taken=NotTaken("nobody took it", deactivate)))) == (
        ["rejected: nobody took it"] if deactivate else ["give back: nobody took it", "tell"]
    )
    assert verdict_written(decided) == (Rejection.NOT_TAKEN if deactivate else None)


@pytest.mark.parametrize("answer", [divided, None])
def test_a_workload_that_a_worker_has_admitted_goes_to_it_all_the_same(answer: object) -> None:
    offered = workload(nominated=("w1",))
    seen = snapshot(offered, worker("w1", copy_of(offered, admitted=True)), worker("w2"))
    assert words(seen, Policy(answer)) == ["record w1"]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (lambda worker: worker.available and not worker.nominated, ("w2",)),
        (lambda worker: worker.nominated, ("w1",)),
        (lambda worker: any(entry["type"] == "QuotaReserved" for entry in worker.conditions), ("w1",)),
        (lambda worker: worker.awaited or not worker.available, ()),
    ],
)
def test_it_is_shown_what_a_policy_needs_of_each_worker(
    wanted: Callable[[Candidate], bool], chosen: tuple[str, ...]
) -> None:
    """Workers out of the config are not shown."""
    offered = workload(nominated=("w1",))
    copy = copy_of(offered)
    copy["status"]["conditions"] = [condition("QuotaReserved")]
    seen = snapshot(offered, worker("w1", copy), worker("w2"), worker("w3", configured=False))
    asked: list[Candidates] = []

    def choose(_: Json, shown: Candidates) -> Nomination:
        asked.append(shown)
        return Nomination(tuple(worker.name for worker in shown.workers if wanted(worker)))

    decide(seen, Policy(choose))
    assert [worker.name for worker in asked[0].workers if wanted(worker)] == list(chosen)


def test_the_workers_are_summed_up_in_the_order_of_the_config() -> None:
    shown = candidates(["w3", "w1", "w2"], ["w1", "w3"], ["w2", "gone", "w3"], awaited=["w2"])
    assert (shown.configured, shown.available, shown.awaited) == (("w3", "w1", "w2"), ("w3", "w1"), ("w2",))
    assert (shown.kept, shown.nominated) == (("w2", "w3"), ("w2", "gone", "w3"))


def test_labels_and_annotations_are_there_to_choose_by() -> None:
    near = Candidate(ClusterName("oslo"), labels={"region": "north"}, annotations={"example.com/price": "3"})
    far = Candidate(ClusterName("rome"), labels={"region": "south"})
    north = Policy(
        lambda _, shown: Nomination(
            tuple(worker.name for worker in shown.workers if worker.labels.get("region") == "north")
        )
    )
    assert Guarded(north).nominate(workload(), Candidates((far, near)), NOW).names == ("oslo",)


class Rememberer(Policy):
    """Knows its own messages by their beginning."""

    def remembers(self, message: str) -> bool:
        if message == "odd":
            raise ZeroDivisionError
        return message.startswith("round ")


@pytest.mark.parametrize(("message", "kept"), [("round 2", True), ("Waiting for quota", False), ("odd", True)])
def test_a_dispatcher_says_which_messages_are_its_own(message: str, kept: bool) -> None:
    """Where that fails nothing is lost."""
    assert Guarded(Rememberer(None)).remembers(message) is kept
    assert not Guarded(Policy(None)).remembers(message), "one that remembers nothing"


@pytest.mark.parametrize(
    ("dispatcher", "written"),
    [
        (Policy(Nomination(("w1",), message="round 2")), None),
        (Rememberer(Nomination(("w1",), message="the second round")), None),
        (Rememberer(Nomination(("w1",), message="round 2")), "round 2"),
    ],
    ids=["remembers nothing", "does not know it", "knows it"],
)
def test_a_message_that_its_dispatcher_does_not_know_is_not_written(dispatcher: Policy, written: str | None) -> None:
    """It would be replaced by what the Workload waits for, and written again, with each look: a loop of writes."""
    answered = Guarded(dispatcher).nominate(workload(), SEEN, NOW)
    assert (answered.names, answered.message) == (("w1",), written)
    assert answered.problem.endswith(
        "" if written else "gives a message that its `remembers` does not know: it is not written"
    )


@pytest.mark.parametrize("said", ["Waiting for quota", "Reset to Pending after eviction", "anything"])
def test_what_no_dispatcher_remembers_gives_way_to_what_is_waited_for(said: str) -> None:
    """Its words decide nothing."""
    seen = snapshot(workload(said=said), worker("w1"), job={})
    assert words(seen) == ["say Waiting for its job to be seen"]
    assert decide(seen, Rememberer(Nomination(()))).effects == decide(seen).effects
    kept = snapshot(workload(said="round 2"), worker("w1"), job={})
    assert decide(kept, Rememberer(Nomination(()))).effects == ()


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"reasons": {"w2": ODD_REASON("NoRoom")}}, "gives a reason that is not a multikueue.Reason"),
        ({"not_taken": "nobody takes it"}, "says with what is no multikueue.NotTaken that nobody took it"),
        ({"problem": 5}, "gives a message that is not a text"),
    ],
)
def test_what_would_end_the_decision_is_told_as_well(more: dict[str, Any], problem: str) -> None:
    """The Workload was not planned any more, whatever its workers showed."""
    decided = decide(snapshot(workload(), worker("w1"), worker("w2")), Policy(ODD(("w1",), **more)))
    assert decided.problems[0].startswith(f"{HERE} {problem}")


@pytest.mark.parametrize("given", [(5,), ("nobody takes it", 60)])
def test_what_nobody_took_says_why_and_how_long(given: tuple[Any, ...]) -> None:
    def nobody(*_: object) -> Nomination:
        return Nomination((), not_taken=NotTaken(*given))

    decided = decide(snapshot(workload(), worker("w1")), Policy(nobody))
    assert decided.problems[0].startswith(f"{HERE} raises TypeError")
