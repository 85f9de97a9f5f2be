"""Which workers a Workload cannot go to, and the one reason that is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import Group, PodSet, ResourceRequest, Running
from multikueue.core.dispatchers.scored.job_annotations import FLAVORS, NAMES, PREFERENCE, SELECTOR, TOGETHER
from multikueue.errors import Cause
from tests.core.dispatchers.scored.pending import GPU, copy, pending, queue, why
from tests.core.door import NOW


def test_what_others_ahead_have_a_claim_to_is_no_room() -> None:
    waiting = pending({"w1": queue(8)})
    waiting.change("w1", net={GPU: 3})

    assert why(waiting.ask()) == {"w1": Cause.CLAIMED}


def test_where_jobs_of_others_wait_there_is_no_room_for_ten_minutes() -> None:
    waiting = pending({"w1": queue(8, others_pending=1, others_since=NOW)})
    assert why(waiting.ask()) == {"w1": Cause.OTHERS_WAIT}
    assert waiting.ask(600).names == ("w1",)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"available": False}, Cause.OUT_OF_REACH),
        ({"obstacle": Reason(Cause.REFUSED)}, Cause.REFUSED),
        ({"queue": queue(active=False)}, Cause.QUEUE_INACTIVE),
        ({"queue": queue(ceiling={GPU: 3})}, Cause.NEVER_FITS),
        ({"annotations": {"multikueue.dev/taints": "spot:NoDispatch"}}, Cause.NOT_TOLERATED),
    ],
)
def test_the_filter_tells_one_reason(changes: dict[str, Any], expected: Cause) -> None:
    waiting = pending({"w1": queue()})
    waiting.change("w1", **changes)

    assert why(waiting.ask()) == {"w1": expected}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({NAMES: "w2"}, Cause.NOT_NAMED),
        ({SELECTOR: "gpu"}, Cause.NOT_SELECTED),
        ({TOGETHER: "job/a"}, Cause.NOT_TOGETHER),
    ],
)
def test_what_a_job_asks_for_keeps_it_away(asked: dict[str, str], expected: Cause) -> None:
    assert why(pending({"w1": queue()}, annotations=asked).ask()) == {"w1": expected}


@pytest.mark.parametrize(("ceiling", "expected"), [(8, Cause.NO_ROOM), (3, Cause.NEVER_FITS)])
def test_what_is_free_in_several_flavors_is_no_room(ceiling: int, expected: Cause) -> None:
    spot = ("spot", "gpu")
    groups = (Group(frozenset({"gpu"}), ("a100", "spot")),)
    facts = attrs.evolve(queue(), groups=groups, free={GPU: 2, spot: 2}, ceiling={GPU: ceiling, spot: ceiling})
    assert why(pending({"w1": facts}).ask()) == {"w1": expected}


@pytest.mark.parametrize(
    ("given", "theirs", "goes"),
    [
        (("oslo",), "oslo,oslo-spot", True),
        (("oslo", "oslo-spot"), "oslo, oslo-spot", True),
        (("bergen",), "oslo", False),
        (("oslo", "bergen"), "oslo", False),
        (("bergen",), None, True),
        (("oslo",), "", False),
    ],
)
def test_a_worker_that_names_the_managers_flavors_gets_only_what_got_these(
    given: tuple[str, ...], theirs: str | None, goes: bool
) -> None:
    annotations = {} if theirs is None else {FLAVORS: theirs}
    waiting = pending({"w1": queue(8)}, flavors=given)
    waiting.change("w1", annotations=annotations)
    answer = waiting.ask()
    assert answer.names == (("w1",) if goes else ())
    assert why(answer) == ({} if goes else {"w1": Cause.OTHER_FLAVOR})


def test_an_unreadable_narrowing_holds_the_job_and_tells_it() -> None:
    waiting = pending({"w1": queue()}, annotations={NAMES: "!", PREFERENCE: "!"})
    answer = waiting.ask()

    assert (answer.names, why(answer)) == ((), {"w1": Cause.UNREADABLE})
    assert NAMES in waiting.message
    assert answer.problem == f"Ignored, as it cannot be read: {PREFERENCE}"


@pytest.mark.parametrize("reason", ["ExceedsMaxQuota", "NoMatchingFlavor"])
def test_a_refusal_holds_until_the_queue_changes_or_an_hour_has_passed(reason: str) -> None:
    waiting = pending({"w1": queue()})
    waiting.ask()
    waiting.change("w1", conditions=copy("QuotaReserved", reason, status=False))
    assert why(waiting.ask(1)) == {"w1": Cause.REFUSED}
    waiting.change("w1", conditions=())
    assert (waiting.ask(60).names, waiting.ask(3500).names) == ((), ())
    assert waiting.ask(40).names == ("w1",)
    waiting.change("w1", conditions=copy("QuotaReserved", reason, status=False))
    waiting.ask(1)
    waiting.change("w1", conditions=(), queue=queue(generation="q.2"))
    assert waiting.ask(1).names == ("w1",)


@pytest.mark.parametrize(("minutes", "names"), [(59, ("w2",)), (60, ("w1",))])
def test_what_nodes_had_no_place_for_goes_elsewhere_first(minutes: int, names: tuple[str, ...]) -> None:
    """For an hour, and not where it is the only one."""
    shape, at = ResourceRequest((PodSet({"gpu": 4}),)).shape, NOW - timedelta(minutes=minutes)
    full = queue(8, unplaced={shape: at})

    assert pending({"w1": full, "w2": queue(8)}).ask().names == names
    assert pending({"w1": full, "w2": queue(8)}, gpus=3).ask().names == ("w1",)
    assert pending({"w1": full, "w2": queue(0)}).ask().names == ("w1",)


def test_one_that_nodes_have_no_place_for_is_taken_back_for_another_worker_and_stays_at_the_only_one() -> None:
    waiting = pending({"w1": queue(8), "w2": queue(0)})
    waiting.ask()
    waiting.change("w1", conditions=copy("QuotaReserved", "TopologyPlacementFailed", status=False))
    answer = waiting.ask(1)
    assert (answer.names, waiting.ask(60).names) == (("w1",), ("w1",))
    assert isinstance(answer.claim, Entry)
    assert (answer.claim.unplaced, answer.claim.doubtful) == ((("w1", "queue"),), True)
    waiting.change("w2", queue=queue(8))

    assert (waiting.ask(1).names, why(waiting.ask())) == (("w2",), {"w1": Cause.NO_NODES})


@pytest.mark.parametrize("more", [{}, {"within": "LowerPriority"}])
def test_a_worker_with_a_penalty_gets_one_job_at_a_time(more: dict[str, Any]) -> None:
    """Until the penalty ends, or a success there clears it. What is offered there stays."""
    ours = {"penalized_until": NOW + timedelta(hours=1), "running": (Running(0, {GPU: 4}),), **more}
    waiting = pending({"w1": queue(8, **ours)}, priority=1)

    assert why(waiting.ask()) == {"w1": Cause.ON_TRIAL}
    assert waiting.ask(3600).names == ("w1",)
    assert pending({"w1": queue(8, **ours)}, names=("w1",)).ask().names == ("w1",)
