"""Copies whose creation a worker refuses, or does not answer: what is noted, told, and found there."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from unittest import mock

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    ORIGIN_LABEL,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import attempt
from multikueue.errors import (
    AlreadyExists,
    ApiError,
    Cause,
    Conflict,
    DeadlineExceeded,
    Forbidden,
    Invalid,
    NotFound,
    NotSent,
    ServerFault,
    TooManyRequests,
)
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.create_conflicts import (
    CERTAIN_AFTER,
    PASSING_FOR,
    REFUSAL_BACKOFF,
    SOON_BACKOFF,
    CreateConflicts,
)
from multikueue.runtime.effect_executor import TELL_AFTER, EffectExecutor
from multikueue.sandbox.apiserver import Match, Refuse, Reset
from tests.core.door import (
    NAME_TAKEN,
    AnnounceWorkload,
    Created,
    CreateJob,
    Refusal,
    RefusalFacts,
    Unanswered,
    Untracked,
)
from tests.runtime.executing import KEY, W1, W2, Fleet, a_job, a_workload


async def test_a_name_that_is_taken_is_told_and_noted() -> None:
    """Somebody else's object is left alone; the message says what to do, and the worker counts as blocked later."""
    fleet = Fleet()
    await fleet.clusters[W1].client.create(JOB, a_job())
    with pytest.raises(AlreadyExists, match=r'jobs\.batch "default/job" exists on worker cluster "w1"'):
        await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, a_job()),))

    assert not fleet.clusters[W1].create_conflicts.refusal(JOB, KEY, own=())


def marked(attempt: str, origin: str = "multikueue") -> Json:
    job = a_job()
    job["metadata"] |= {"labels": {ORIGIN_LABEL: origin}, "annotations": {ATTEMPT_ANNOTATION: attempt}}
    return job


async def test_a_copy_whose_creation_was_not_answered_is_found_under_its_name() -> None:
    """Its event may be late by more than a taken name is waited for: the worker would count as one that refuses."""
    fleet = Fleet()
    await fleet.clusters[W1].client.create(JOB, marked("a"))
    await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, marked("a")),))
    assert fleet.memory.creation(W1, KEY, attempt(a_workload())) == Created()


@pytest.mark.parametrize(
    "there",
    [marked("another attempt"), marked("a", origin="another-manager"), a_job(), Match(verbs=("get",))],
    ids=["of another attempt", "of another manager", "nobody's copy", "may not be read"],
)
async def test_what_else_has_its_name_is_not_taken_for_it(there: Json | Match) -> None:
    fleet = Fleet()
    client = fleet.clusters[W1].client
    await client.create(JOB, marked("a") if isinstance(there, Match) else there)
    if isinstance(there, Match):
        client.faults.add(Refuse(403), on=there)
    with pytest.raises(AlreadyExists):
        await fleet.executor.execute(a_workload(), (CreateJob(W1, JOB, marked("a")),))


@pytest.mark.looptime
async def test_a_name_that_an_earlier_copy_of_ours_still_has_is_waited_for() -> None:
    """It ends by itself: for a minute in place, then the worker is asked again after half a minute, then a minute."""
    fleet = Fleet()
    client, conflicts = fleet.clusters[W1].client, fleet.clusters[W1].create_conflicts
    earlier = marked("another attempt")
    earlier["metadata"]["finalizers"] = ["example.com/slow"]
    key = ObjectKey.of(await client.create(JOB, earlier))
    await client.delete(JOB, key, propagation="Foreground")

    async def refused() -> Refusal | None:
        with pytest.raises(Conflict, match=NAME_TAKEN.why):
            await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, marked("a")),))
        return conflicts.refusal(JOB, KEY, own=())

    assert await refused() is None
    await anyio.sleep(PASSING_FOR)
    for left in (SOON_BACKOFF.base, 2 * SOON_BACKOFF.base):
        assert await refused() == Refusal(NAME_TAKEN.why, timedelta(seconds=left))
        await anyio.sleep(left)
    await client.merge_patch(JOB, key, {"metadata": {"finalizers": None}})
    await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, marked("a")),))
    assert not is_terminating(await client.get(JOB, key))


@pytest.mark.looptime
async def test_a_name_that_stays_taken_is_told() -> None:
    """Not at once: right after a lost reply it is our own object."""
    fleet = Fleet()
    await fleet.clusters[W1].client.create(JOB, a_job())
    for waiting in (0, 1):
        with pytest.raises(AlreadyExists):
            await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
        assert fleet.events.statistics().waiting == waiting
        await anyio.sleep(TELL_AFTER)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("error", "lasting"),
    [
        (Invalid("spec.x: Invalid value", status=422), 0.0),
        (Forbidden('admission webhook "policy" denied the request', status=403), 0.0),
        (Forbidden('User "x" cannot create resource "jobs"', status=403), CERTAIN_AFTER),
        (AlreadyExists("taken", status=409), CERTAIN_AFTER),
        (Forbidden("exceeded quota: jobs", status=403), PASSING_FOR),
        (NotFound("no such namespace", status=404), PASSING_FOR),
        (TooManyRequests("later", status=429), PASSING_FOR),
        (ServerFault("failed calling webhook", status=500), PASSING_FOR),
    ],
    ids=repr,
)
async def test_what_a_worker_refuses_counts_once_it_has_lasted(error: ApiError, lasting: float) -> None:
    """A policy's word is final; room in a ResourceQuota may be made, and a webhook may answer again.

    One that does not answer is that of a Kueue which is restarted, as often as not: half a minute later it is back.
    """
    conflicts, backoff = CreateConflicts(), SOON_BACKOFF if isinstance(error, ServerFault) else REFUSAL_BACKOFF
    conflicts.met(JOB, KEY, KEY, error, str(error))
    if lasting:
        await anyio.sleep(lasting - 1)
        assert conflicts.refusal(JOB, KEY, own=()) is None
        await anyio.sleep(1)
    facts = RefusalFacts(error.cause or "")
    assert conflicts.refusal(JOB, KEY, own=()) == Refusal(str(error), timedelta(seconds=backoff.base), facts)
    assert (facts.cause == Cause.NAME_TAKEN) == isinstance(error, AlreadyExists)
    assert conflicts.refusal(WORKLOAD, KEY, own=()) is None
    conflicts.settle(JOB, KEY, own=())
    await anyio.sleep(backoff.base)
    assert conflicts.refusal(JOB, KEY, own=()) is None


async def test_an_event_in_the_jobs_namespace_has_no_address_of_a_worker() -> None:
    """Where workers are is nobody's business but the operator's."""
    emitted = mock.Mock()
    executing = EffectExecutor(lambda _: None, emitted, WorkloadMemory())
    note = 'worker cluster "w1" refuses it: dial https://10.11.12.13:6443/apis and 10.1.2.3:443'
    await executing.execute(a_workload(uid="u"), (AnnounceWorkload("Warning", note),))
    shown = emitted.emit.call_args.args[4]
    assert shown == 'worker cluster "w1" refuses it: dial [address] and [address]'


@pytest.mark.parametrize(("status", "events"), [(403, 1), (404, 1), (422, 1), (429, 0), (500, 0)])
async def test_a_refusal_is_noted_and_told(status: int, events: int) -> None:
    """adapters.md H2, 9.9: Kueue's controller tries on in silence. What may pass by itself is not told."""
    fleet = Fleet()
    fleet.clusters[W1].client.faults.add(Refuse(status), on=Match(verbs=("create",)))
    with pytest.raises(ApiError):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert len(fleet.clusters[W1].create_conflicts) == 1
    assert fleet.events.statistics().waiting == events


@pytest.mark.looptime
async def test_a_refusal_that_is_met_again_after_its_back_off_is_the_same_one() -> None:
    """It has lasted: it is not tried in place for a minute once more, and the check goes on to tell it."""
    conflicts, error = CreateConflicts(), ServerFault("failed calling webhook", status=500)
    conflicts.met(JOB, KEY, KEY, error, "no")
    await anyio.sleep(PASSING_FOR)
    conflicts.settle(JOB, KEY, own=())
    await anyio.sleep(SOON_BACKOFF.base)
    assert conflicts.refusal(JOB, KEY, own=()) is None, "it is asked again"
    conflicts.met(JOB, KEY, KEY, error, "no")
    assert conflicts.refusal(JOB, KEY, own=()) == Refusal("no", timedelta(seconds=SOON_BACKOFF.delay(2)))


@pytest.mark.looptime
async def test_one_that_may_pass_is_not_the_one_before_that_could_not() -> None:
    """Its job was invalid, and is mended: a webhook without an answer is tried in place for a minute, as ever."""
    conflicts = CreateConflicts()
    conflicts.met(JOB, KEY, KEY, Invalid("spec is invalid", status=422), "invalid")
    assert conflicts.refusal(JOB, KEY, own=()) is not None
    await anyio.sleep(REFUSAL_BACKOFF.base)
    conflicts.met(JOB, KEY, KEY, ServerFault("failed calling webhook", status=500), "no")
    assert conflicts.refusal(JOB, KEY, own=()) is None


@pytest.mark.looptime
async def test_a_worker_that_refuses_again_is_left_alone_for_longer() -> None:
    """Asking costs a round of the Workload each time."""
    conflicts, error = CreateConflicts(), Invalid("no", status=422)
    waits = []
    for _ in range(6):
        conflicts.met(JOB, KEY, KEY, error, "no")
        refusal = conflicts.refusal(JOB, KEY, own=())
        assert refusal is not None
        waits.append(refusal.left.total_seconds())
        await anyio.sleep(waits[-1])
    assert waits == [300, 600, 1200, 2400, 3600, 3600]
    conflicts.created(JOB, KEY)
    assert len(conflicts) == 0


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Reset(), Unanswered),
        (Refuse(500), Unanswered),
        (Refuse(403), Untracked),
        (Refuse(429), Untracked),
        (None, Created),
    ],
    ids=["no answer", "500", "403", "429", "created"],
)
@pytest.mark.looptime
async def test_it_is_remembered_whether_the_job_may_exist(fault: Reset | Refuse | None, expected: type) -> None:
    """A creation without an answer may have happened; one that was refused has not."""
    fleet = Fleet()
    if fault is not None:
        fleet.clusters[W1].client.faults.add(fault, on=Match(verbs=("create",)))
    with contextlib.suppress(ApiError):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), expected)
    assert isinstance(fleet.memory.creation(W2, KEY, attempt(a_workload(uid="u"))), Untracked)


@pytest.mark.looptime
async def test_a_creation_that_was_not_answered_in_time_may_have_happened() -> None:
    """A timeout is not `NotSent`: the worker may have made the job, or make it later."""
    fleet = Fleet()
    timeout = DeadlineExceeded("no answer in time")
    with (
        mock.patch.object(fleet.clusters[W1].client, "create", side_effect=timeout),
        contextlib.suppress(ApiError),
    ):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    sent = fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u")))
    assert isinstance(sent, Unanswered)
    assert sent.namespace == "default", "where it may be"


@pytest.mark.parametrize("then", [Refuse(409), Refuse(429), Refuse(403)], ids=["409", "429", "403"])
@pytest.mark.looptime
async def test_a_creation_in_doubt_stays_so_when_it_is_refused_the_next_time(then: Refuse) -> None:
    """The first request may have created the job, late."""
    fleet = Fleet()
    faults = fleet.clusters[W1].client.faults
    for fault in (Reset(), then):
        faults.clear()
        faults.add(fault, on=Match(verbs=("create",)))
        with contextlib.suppress(ApiError):
            await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), Unanswered)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (a_job(), Untracked),
        (marked("a", origin="another-manager"), Untracked),
        (marked("another attempt"), Unanswered),
        (None, Unanswered),
    ],
    ids=["somebody else's", "of another manager", "ours, of another attempt", "may not be read"],
)
@pytest.mark.looptime
async def test_a_taken_name_may_be_that_of_the_very_job(there: Json | None, expected: type) -> None:
    """A request may be sent twice, after a 5xx with Retry-After or by a proxy: the second finds what the first made."""
    fleet = Fleet()
    client = fleet.clusters[W1].client
    await client.create(JOB, there or marked("a"))
    if there is None:
        client.faults.add(Refuse(403), on=Match(verbs=("get",)))
    with pytest.raises(AlreadyExists):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, marked("a")),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), expected)


async def test_nothing_was_sent_to_a_cluster_that_is_gone() -> None:
    fleet = Fleet(gone={W1})
    with pytest.raises(NotSent, match='cluster "w1" is not connected'):
        await fleet.executor.execute(a_workload(uid="u"), (CreateJob(W1, JOB, a_job()),))
    assert isinstance(fleet.memory.creation(W1, KEY, attempt(a_workload(uid="u"))), Untracked)
