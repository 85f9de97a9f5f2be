"""What is remembered of refused creations, and who is tried again when one succeeds."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.errors import AlreadyExists, ApiError, Forbidden
from multikueue.runtime.create_conflicts import ASK_AGAIN_AFTER, LASTS, REFUSAL_BACKOFF, REMADE, CreateConflicts

pytestmark = pytest.mark.looptime

FORBIDDEN, TAKEN = Forbidden("no", status=403), AlreadyExists("taken", status=409)
WL, SECOND, THIRD = ObjectKey("ns", "wl"), ObjectKey("ns", "second"), ObjectKey("ns", "third")
ELSEWHERE = ObjectKey("elsewhere", "wl")


def refused(*workloads: ObjectKey, error: ApiError = FORBIDDEN) -> CreateConflicts:
    """A worker that has refused a job of each."""
    conflicts = CreateConflicts()
    for workload in workloads:
        conflicts.met(JOB, workload, workload, error, "why")
    return conflicts


async def test_a_creation_has_those_that_wait_in_its_namespace_tried_again_in_turn() -> None:
    """What was in the way may be gone. Each is asked once: the next follows when that one is taken."""
    conflicts = refused(WL, SECOND, ELSEWHERE)
    await anyio.sleep(ASK_AGAIN_AFTER)
    assert [conflicts.created(JOB, THIRD) for _ in range(3)] == [WL, SECOND, None]


async def test_who_was_refused_a_moment_ago_is_not_asked_again_and_nobody_is_in_its_place() -> None:
    conflicts = refused(WL)
    await anyio.sleep(ASK_AGAIN_AFTER - 1)
    conflicts.met(JOB, SECOND, SECOND, FORBIDDEN, "why")
    assert conflicts.created(JOB, THIRD) is None
    await anyio.sleep(1)
    assert conflicts.created(JOB, THIRD) == WL
    assert conflicts.created(JOB, THIRD) is None


async def test_another_kind_and_a_taken_name_are_no_matter_of_others() -> None:
    conflicts, taken = refused(WL), refused(WL, error=TAKEN)
    await anyio.sleep(ASK_AGAIN_AFTER)
    assert conflicts.created(WORKLOAD, THIRD) is None
    assert taken.created(JOB, THIRD) is None


async def test_who_was_created_waits_no_more() -> None:
    conflicts = refused(WL)
    await anyio.sleep(ASK_AGAIN_AFTER)
    assert conflicts.created(JOB, WL) is None
    assert len(conflicts) == 0


@pytest.mark.parametrize("how", ["asked", "created"])
async def test_who_is_tried_again_has_no_refusal_any_more(how: str) -> None:
    """Its back-off is over at once, on the user's word or because another one was taken."""
    conflicts = refused(WL)
    assert conflicts.refusal(JOB, WL, own=()) is not None
    await anyio.sleep(ASK_AGAIN_AFTER)
    if how == "asked":
        conflicts.forget(WL)
        assert conflicts.created(JOB, THIRD) is None, "it waits for nobody"
    else:
        assert conflicts.created(JOB, THIRD) == WL
    assert not conflicts.refusal(JOB, WL, own=())


async def test_a_refusal_is_news_once_for_each_reason() -> None:
    conflicts = refused(WL)
    assert [conflicts.is_news(JOB, WL, WL) for _ in range(2)] == [True, False]
    conflicts.met(JOB, WL, WL, FORBIDDEN, "another")
    assert [conflicts.is_news(JOB, WL, WL) for _ in range(2)] == [True, False]
    assert not conflicts.is_news(JOB, SECOND, SECOND)


async def test_refusals_of_workloads_that_nobody_tries_any_more_are_forgotten() -> None:
    """They are deleted or run elsewhere, which nobody tells."""
    conflicts = refused(WL, SECOND)
    await anyio.sleep(REFUSAL_BACKOFF.base + 3590)
    conflicts.met(JOB, SECOND, SECOND, FORBIDDEN, "why")
    assert len(conflicts) == 2
    await anyio.sleep(20)
    conflicts.met(JOB, THIRD, THIRD, FORBIDDEN, "why")
    assert len(conflicts) == 2
    await anyio.sleep(ASK_AGAIN_AFTER)
    assert [conflicts.created(JOB, ELSEWHERE), conflicts.created(JOB, ObjectKey("ns", "new"))] == [None, SECOND]


async def test_what_turns_out_to_be_our_own_was_never_in_the_way() -> None:
    """The answer to its creation was lost, and the watch shows it now."""
    conflicts = refused(WL)
    assert conflicts.refusal(JOB, WL, own=(SECOND,))
    assert not conflicts.refusal(JOB, WL, own=(WL,))


async def test_what_does_not_last_is_made_five_times_at_once_and_then_ever_more_rarely() -> None:
    conflicts, waits = CreateConflicts(), list[float]()
    for number in range(REMADE + 4):
        conflicts.made(WL, str(number), was_here=True)
        left = conflicts.remade(WL)
        waits.append(0.0 if left is None else left.left.total_seconds())
        await anyio.sleep(waits[-1])
        assert conflicts.remade(WL) is None
    assert waits == [0.0] * REMADE + [1.0, 2.0, 4.0, 8.0]
    assert conflicts.remade(SECOND) is None


@pytest.mark.parametrize("how", ["lasts", "asked"])
async def test_what_has_lasted_or_is_asked_for_is_made_again_at_once(how: str) -> None:
    conflicts = CreateConflicts()
    for _ in range(REMADE + 3):
        conflicts.made(WL, "0", was_here=False)
    if how == "asked":
        conflicts.forget(WL)
    else:
        await anyio.sleep(4 + LASTS)
    conflicts.made(WL, "0", was_here=False)
    assert conflicts.remade(WL) is None


async def test_an_offer_that_another_worker_has_won_was_not_made_in_vain() -> None:
    conflicts = CreateConflicts()
    for number in range(REMADE + 3):
        conflicts.made(WL, str(number), was_here=False)
    assert conflicts.remade(WL) is None
