"""What a process remembers of Workloads between reconciles."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from multikueue.core.model.destination import Destination
from multikueue.core.model.labels import LAST_WORKER_ANNOTATION
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.core.model.objects import with_value
from multikueue.core.model.workloads import attempt
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from tests.core.building import KEY, workload
from tests.core.door import Created, NothingSent, Unanswered, Untracked

pytestmark = pytest.mark.looptime

W1, W2 = ClusterName("w1"), ClusterName("w2")
PENDING, RECORDED = workload(), workload(cluster="w1")
NOW = attempt(PENDING)
TRAIN = ObjectKey("there", "train")


def pod(number: int) -> ObjectKey:
    return ObjectKey("there", f"pod-{number}")


def observed() -> WorkloadMemory:
    """A memory that has seen the Workload before a worker was recorded."""
    memory = WorkloadMemory()
    memory.observe(KEY, PENDING)
    return memory


async def test_an_attempt_that_was_seen_without_a_worker_has_nothing_sent() -> None:
    """Nobody but this process can have created its job since."""
    memory = WorkloadMemory()
    assert memory.creation(W1, KEY, NOW) == Untracked()
    memory.observe(KEY, PENDING)
    memory.observe(KEY, RECORDED)
    assert memory.creation(W1, KEY, NOW) == NothingSent()
    assert memory.creation(W1, KEY, "another attempt") == Untracked()


async def test_quota_that_was_seen_to_begin_is_known_how_long_it_is_held() -> None:
    """By no clock of another host. With each eviction it begins anew; a change of another kind changes nothing."""
    memory, waits = WorkloadMemory(), workload(quota=False)
    memory.observe(KEY, waits)
    assert memory.held_for(KEY) is None
    memory.observe(KEY, workload())
    await anyio.sleep(30)
    memory.touched(KEY, here=True)
    memory.observe(KEY, workload(nominated=("w1",)))
    assert memory.held_for(KEY) == timedelta(seconds=30)
    memory.observe(KEY, workload(evictions=1))
    assert memory.held_for(KEY) == timedelta(0)
    after_a_start = WorkloadMemory()
    after_a_start.observe(KEY, workload())
    assert after_a_start.held_for(KEY) is None


async def test_one_that_was_recorded_when_this_process_first_saw_it_is_not_known() -> None:
    memory = WorkloadMemory()
    memory.observe(KEY, RECORDED)
    assert memory.creation(W1, KEY, NOW) == Untracked()


async def test_a_creation_is_remembered_for_its_attempt_alone() -> None:
    memory = observed()
    memory.sending(W1, KEY, TRAIN)
    memory.created(W1, KEY, TRAIN, NOW)
    assert memory.creation(W1, KEY, NOW) == Created()
    assert memory.creation(W2, KEY, NOW) == NothingSent()
    assert memory.creation(W1, KEY, "the next attempt") == Untracked()


async def test_one_without_an_answer_concerns_later_attempts_as_well() -> None:
    """It may arrive late."""
    memory = observed()
    memory.sending(W1, KEY, TRAIN)
    memory.unanswered(W1, KEY, TRAIN)
    await anyio.sleep(3)
    assert memory.creation(W1, KEY, "the next attempt") == Unanswered(timedelta(seconds=3), "there")


async def test_what_is_seen_of_a_worker_counts_from_when_it_is_back() -> None:
    """What it shows first may be older than the job."""
    memory = observed()
    memory.sending(W1, KEY, TRAIN)
    memory.unanswered(W1, KEY, TRAIN)
    await anyio.sleep(60)
    memory.reconnected(W1)
    await anyio.sleep(2)
    assert memory.creation(W1, KEY, NOW) == Unanswered(timedelta(seconds=2), "there")
    memory.reconnected(W2)
    assert memory.creation(W1, KEY, NOW) == Unanswered(timedelta(seconds=2), "there")


async def test_the_last_worker_outlives_the_eviction() -> None:
    memory = WorkloadMemory()
    memory.observe(KEY, RECORDED)
    memory.observe(KEY, workload(evictions=1))
    assert memory.last_worker(KEY) == W1


async def test_what_is_in_doubt_stays_so_when_the_creation_is_tried_again_in_vain() -> None:
    """The first request may have created the job: that its name is taken now nearly proves it."""
    memory = observed()
    memory.sending(W1, KEY, TRAIN)
    memory.unanswered(W1, KEY, TRAIN)
    memory.not_created(W1, KEY, TRAIN, still_unanswered=memory.sending(W1, KEY, TRAIN))
    assert isinstance(memory.creation(W1, KEY, NOW), Unanswered)
    memory.all_shown(W1, KEY)
    assert memory.creation(W1, KEY, NOW) == NothingSent()


async def test_of_a_pod_group_the_worst_counts() -> None:
    """One pod exists, another was never sent, a third may exist."""
    memory = observed()
    memory.sending(W1, KEY, pod(0))
    memory.created(W1, KEY, pod(0), NOW)
    memory.not_created(W1, KEY, pod(1), still_unanswered=memory.sending(W1, KEY, pod(1)))
    assert memory.creation(W1, KEY, NOW) == Created()
    memory.sending(W1, KEY, pod(2))
    memory.unanswered(W1, KEY, pod(2))
    memory.sending(W1, KEY, pod(3))
    memory.created(W1, KEY, pod(3), NOW)
    assert isinstance(memory.creation(W1, KEY, NOW), Unanswered)


async def test_nothing_is_kept_of_workloads_that_are_gone_once_nothing_shows_of_them() -> None:
    """Their copies' deletions and late answers come afterwards, and one more reconcile asks for what is known."""
    memory = WorkloadMemory()
    for number in range(100):
        key = ObjectKey("team", f"job-{number}")
        memory.observe(key, PENDING)
        memory.sending(W1, key, TRAIN)
        memory.forget(key)
        memory.unanswered(W1, key, TRAIN)
        memory.created(W1, key, TRAIN, NOW)
        memory.touched(key)
        memory.left(key)
        assert memory.last_worker(key) is None
        assert memory.creation(W1, key, NOW) == Untracked()
        assert memory.quiet_for(key) == timedelta(0)
    assert len(memory) == 0


async def test_a_workload_that_is_made_again_for_a_job_knows_where_that_may_run() -> None:
    """Kueue makes one where a job did not match the former: a creation had no answer, its worker was silent, and the
    job began on another one (simulation, seed 2551)."""
    memory, anew = WorkloadMemory(), with_value(PENDING, ("metadata", "uid"), "uid-anew")
    memory.observe(KEY, PENDING)
    memory.observe(KEY, RECORDED)
    memory.sending(W1, KEY, TRAIN)
    memory.forget(KEY)
    await anyio.sleep(30.0)
    memory.unanswered(W1, KEY, TRAIN)
    memory.left(KEY)
    assert memory.was_here(KEY)
    memory.observe(KEY, anew)
    assert (memory.last_worker(KEY), memory.placement(KEY), memory.quiet_for(KEY)) == (W1, None, timedelta(0))
    assert memory.creation(W1, KEY, attempt(anew)) == Unanswered(timedelta(0), "there")
    memory.all_shown(W1, KEY)
    assert memory.creation(W1, KEY, attempt(anew)) == NothingSent()


async def test_what_the_former_one_says_of_it_holds_for_the_next() -> None:
    """A process that has started since knows it from there alone."""
    memory, noted = WorkloadMemory(), ("metadata", "annotations", LAST_WORKER_ANNOTATION)
    memory.observe(KEY, with_value(PENDING, noted, "w2"))
    memory.forget(KEY)
    memory.observe(KEY, with_value(PENDING, ("metadata", "uid"), "uid-anew"))
    assert memory.last_worker(KEY) == W2


async def test_what_has_shown_at_another_address_is_there_also_while_it_does_not_show() -> None:
    memory, before, after = WorkloadMemory(), Destination("", "address1"), Destination("", "address2")
    memory.placed(KEY, RECORDED, before)
    assert memory.leads_there(KEY, before, shown=False)
    assert not memory.leads_there(KEY, after, shown=False)
    assert memory.leads_there(KEY, after, shown=True)
    memory.led_to(KEY, after)
    memory.placed(KEY, RECORDED, before)
    assert memory.leads_there(KEY, after, shown=False)
    memory.led_to(KEY, None)
    assert memory.leads_there(KEY, Destination("", "address3"), shown=False), "nothing is left there"


async def test_that_a_workload_was_here_is_known_until_nothing_is_left_of_it() -> None:
    memory = observed()
    assert not memory.was_here(KEY), "it is here"
    memory.forget(KEY)
    assert memory.was_here(KEY)
    memory.left(KEY)
    assert not memory.was_here(KEY)


async def test_nobody_has_what_is_known_of_others_forgotten_by_what_they_delete() -> None:
    """A worker was lost, a creation there had no answer, and another namespace deleted ten thousand small jobs: that
    the job may run there was forgotten."""
    memory = observed()
    memory.sending(W1, KEY, TRAIN)
    memory.unanswered(W1, KEY, TRAIN)
    memory.forget(KEY)
    for number in range(10_001):
        key = ObjectKey("attacker", f"job-{number}")
        memory.observe(key, PENDING)
        memory.forget(key)
        memory.missed(ObjectKey("attacker", f"other-{number}"))
    assert isinstance(memory.creation(W1, KEY, NOW), Unanswered)
    assert memory.was_here(KEY)
