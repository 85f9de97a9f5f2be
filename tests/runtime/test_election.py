"""Leadership as a lifetime: who leads when, and what happens when the API server is gone."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta

import anyio
import pytest
import structlog

from multikueue.core.machinery.lease import LeaseSettings
from tests.runtime.stage import Stage, wall_clock

pytestmark = pytest.mark.looptime


async def test_of_many_that_start_at_once_one_leads() -> None:
    stage = Stage()
    async with AsyncExitStack() as stack:
        candidates = [await stack.enter_async_context(stage.candidate(f"replica-{number}")) for number in range(5)]
        await anyio.sleep(60)

        assert sum(candidate.elector.leading for candidate in candidates) == 1
        assert stage.terms == []


async def test_a_leader_that_is_stopped_hands_over_at_once() -> None:
    """A rolling update costs the time of one retry, not the whole duration of the lease."""
    stage = Stage()
    async with stage.leader("a") as first, stage.candidate("b"):
        await anyio.sleep(5)
        first.stop()

        assert await stage.until("b") < 3.0
        assert stage.store.lease is not None
        assert stage.store.lease["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("died", [False, True], ids=["stopped", "died"])
async def test_a_new_leader_knows_until_when_the_one_before_was_at_work(died: bool) -> None:
    """What it was away for does not count for lost workers."""
    stage = Stage()
    async with stage.leader("a") as first:
        assert first.elector.led_until is None
        await anyio.sleep(60)
        first.way.cut = died
        first.stop()
        stopped = wall_clock()
        await anyio.sleep(600)
        async with stage.candidate("b") as second:
            await stage.until("b")
            led_until = second.elector.led_until
            assert led_until is not None
            assert abs((stopped - led_until).total_seconds()) <= LeaseSettings().retry_period
            await anyio.sleep(60)
            assert second.elector.led_until == led_until, "its own renewals change nothing"


async def test_a_leader_that_died_is_replaced_after_the_duration() -> None:
    stage = Stage()
    async with stage.leader("a") as first, stage.candidate("b"):
        await anyio.sleep(5)
        first.way.cut = True  # nothing it does any more gets through, as if its machine had lost power
        first.stop()

        assert 10.0 < await stage.until("b") <= 18.0


@pytest.mark.parametrize("fault", ["cut", "hangs"])
async def test_a_leader_cut_off_stops_before_another_may_start(fault: str) -> None:
    """`Stage.lead` fails this test if the two overlap, also while the old one takes its time to end."""
    stage = Stage()
    async with stage.leader("a", ends_after=4.5) as first, stage.candidate("b"):
        await anyio.sleep(7)
        setattr(first.way, fault, True)
        await stage.until("b")

        ((who, began, ended),) = stage.terms
        assert who == "a"
        assert ended - began <= 7 + 10 + 4.5


async def test_a_leader_cut_off_for_a_moment_goes_on() -> None:
    stage = Stage()
    async with stage.leader("a") as leader:
        for _ in range(5):
            leader.way.cut = True
            await anyio.sleep(6)
            leader.way.cut = False
            await anyio.sleep(6)

        assert stage.terms == []


async def test_a_renewal_whose_answer_was_lost_is_not_a_loss() -> None:
    """The write happened; the next one conflicts, looks, finds its own name and goes on."""
    stage = Stage()
    async with stage.leader("a") as leader:
        leader.way.loses_answers = True
        await anyio.sleep(4)
        leader.way.loses_answers = False
        await anyio.sleep(60)

        assert stage.terms == []


async def test_a_slow_answer_does_not_prolong_a_lease() -> None:
    """The Lease counts from when its write began: others may have seen it from then on, however late the answer is."""
    stage = Stage()
    async with stage.leader("a") as leader:
        leader.way.slow_answers = 4.0
        await anyio.sleep(2.5)  # a renewal has been written, and is not answered yet
        written_at = leader.way.written_at
        await anyio.sleep(3.8)
        leader.way.cut = True

        await stage.until("")
        assert anyio.current_time() - written_at <= LeaseSettings().renew_deadline


async def test_the_lease_is_kept_while_the_stopped_leader_still_ends() -> None:
    """A drain longer than the lease must not overlap with the next leader: `Stage.lead` would say so."""
    stage = Stage()
    async with stage.leader("a", ends_after=40.0) as first, stage.candidate("b"):
        await anyio.sleep(5)
        first.stop()

        assert 40.0 < await stage.until("b") < 44.0


async def test_work_that_ends_by_itself_ends_the_election_and_frees_the_lease() -> None:
    stage = Stage()
    elector, _ = stage.elector("a")

    async def lead() -> None:
        await anyio.sleep(30)

    await elector.run(lead)

    assert stage.store.lease is not None
    assert stage.store.lease["spec"]["holderIdentity"] == ""


async def test_work_that_fails_frees_the_lease_and_says_why() -> None:
    stage = Stage()
    elector, _ = stage.elector("a")

    async def lead() -> None:
        raise ValueError("broken invariant")

    with pytest.raises(ExceptionGroup) as caught:
        await elector.run(lead)

    assert [str(error) for error in caught.value.exceptions] == ["broken invariant"]
    assert stage.store.lease is not None
    assert stage.store.lease["spec"]["holderIdentity"] == ""


async def test_a_release_that_gets_no_answer_holds_nobody_up() -> None:
    stage = Stage()
    async with stage.leader("a") as leader:
        leader.way.hangs = True
        leader.stop()
        stopped = anyio.current_time()
    assert anyio.current_time() - stopped < 5.0


async def test_a_candidate_that_may_not_read_leases_keeps_asking() -> None:
    stage = Stage()
    async with stage.candidate("a", forbidden=True) as asking:
        await anyio.sleep(60)
        assert 20 <= asking.way.requests <= 31
        assert asking.elector.refused
        asking.way.forbidden = False

        assert await stage.until("a") < 4.0
        assert not asking.elector.refused


async def test_a_standby_that_is_stopped_touches_nothing() -> None:
    stage = Stage()
    async with stage.leader("a"):
        async with stage.candidate("b") as second:
            await anyio.sleep(5)
        asked = second.way.requests
        await anyio.sleep(5)

        assert second.way.requests == asked
        assert stage.on_stage == "a"


async def test_a_standby_says_once_who_leads_and_again_when_that_is_somebody_else() -> None:
    """Nobody should have to guess why a second daemon does nothing."""
    stage = Stage()
    with structlog.testing.capture_logs() as lines:
        async with stage.leader("a"), stage.candidate("b"):
            await anyio.sleep(60)
            assert stage.store.lease is not None
            stage.store.keep({**stage.store.lease, "spec": {**stage.store.lease["spec"], "holderIdentity": "c"}})
            await anyio.sleep(10)

    standing_by = [line for line in lines if line["event"] == "standing by" and line["identity"] == "b"]
    assert [(line["leader"], line["log_level"], line["lease"]) for line in standing_by] == [
        ("a", "info", "kueue-system/multikueue"),
        ("c", "info", "kueue-system/multikueue"),
    ]


async def test_writes_that_are_not_answered_are_no_leadership() -> None:
    """They take effect, so the Lease is renewed all the time; its holder stops all the same, and says since when."""
    stage = Stage()
    async with stage.leader("a") as leader:
        await anyio.sleep(60)
        leader.way.loses_answers, muted = True, wall_clock()
        await anyio.sleep(120)
        assert not stage.on_stage
        leader.way.loses_answers = False
        await stage.until("a")
        assert leader.elector.led_until is not None
        assert abs(leader.elector.led_until - muted) <= timedelta(seconds=LeaseSettings().renew_deadline)


async def test_a_leader_that_finds_another_name_in_the_lease_stops_at_the_next_renewal() -> None:
    stage = Stage()
    async with stage.leader("a"):
        assert stage.store.lease is not None
        stage.store.keep({**stage.store.lease, "spec": {**stage.store.lease["spec"], "holderIdentity": "intruder"}})

        assert await stage.until("") < 2.5
