"""What is seen of an earlier attempt on a worker in sight keeps the others from the job, as long as it is seen.

Removing copies: what was seen, once, everywhere it can be reached.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.conditions import changed_at, is_true, message, parse_timestamp, timestamp
from multikueue.core.model.labels import GIVE_UP_ANNOTATION, GIVE_UP_BEFORE_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from tests.core.building import (
    ADAPTER,
    EARLIER,
    RESERVED_AT,
    UNMARKED,
    copy_of,
    job_copy_of,
    snapshot,
    worker,
    workload,
)
from tests.core.door import (
    FINALIZER,
    HELD_UP,
    NOW,
    ApplyStatus,
    DeleteJob,
    DeleteWorkload,
    Lost,
    PatchWorkload,
    Served,
    Snapshot,
    Unserved,
    Worker,
    decide,
    notes,
    sole,
    those,
)
from tests.core.wording import in_words, words

AGAIN = workload(nominated=("w1", "w2"), evictions=1)
"""It was evicted, and has quota again."""
LATE = timedelta(seconds=90)
"""The grace period of its pods, and a minute."""
BY_CHECK = {"reason": "AdmissionCheck", "underlyingCause": ""}
"""Which evictions are counted."""
SOON = timestamp(NOW - LATE + timedelta(seconds=1))
"""What was deleted then, and has quota since then, is waited for one more second."""


def left(local: Json = AGAIN, *, attempt: str = EARLIER, **facts: Any) -> Worker:
    """A worker that still has the job of before, which runs."""
    return worker("w1", None, job_copy_of(local, attempt=attempt, uid="uid-left", **facts))


def beside(other: Worker, local: Json = AGAIN, **facts: Any) -> Snapshot:
    """w2 has admitted it."""
    return snapshot(local, other, worker("w2", copy_of(local, admitted=True)), **facts)


def recorded(seen: Snapshot) -> bool:
    return any(word.startswith("record") for word in words(seen))


class TestWaiting:
    @pytest.mark.parametrize("deleting", [False, True])
    @pytest.mark.parametrize("quiet", [timedelta(0), LATE, timedelta(hours=1)])
    def test_what_is_seen_to_run_or_to_end_is_waited_for_as_long_as_it_is_seen(
        self, deleting: bool, quiet: timedelta
    ) -> None:
        """It ran on a second worker after 60 quiet seconds, and at once beside a finalizer."""
        assert not recorded(beside(left(deleting=deleting), quiet_for=quiet))

    @pytest.mark.parametrize("deleting", [False, True])
    def test_what_has_ended_by_itself_holds_up_nobody(self, deleting: bool) -> None:
        """A finalizer may hold it for ever."""
        done: Json = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
        assert not decide(beside(left(deleting=deleting, status=done))).row.startswith("earlier run")

    @pytest.mark.parametrize("deleting", [False, True])
    def test_what_has_been_stopped_may_still_have_pods_that_end(self, deleting: bool) -> None:
        """A Job shows no active pod a second after it is suspended: they ran on for 25 s beside the next attempt's."""
        assert decide(beside(left(deleting=deleting, status={"active": 0}))).row.startswith("earlier run: ")

    def test_the_same_worker_waits_for_its_own(self) -> None:
        own = worker("w2", copy_of(AGAIN, admitted=True), job_copy_of(AGAIN, attempt=EARLIER, deleting=True))
        assert decide(snapshot(AGAIN, own)).row.startswith("earlier run: ")

    @pytest.mark.parametrize(("admitted", "evicted"), [(False, False), (False, True), (True, True)])
    def test_what_a_copy_without_quota_may_start_again_is_waited_for(self, admitted: bool, evicted: bool) -> None:
        """Its Kueue had stopped the job for want of quota, admitted the copy and started the job (seeds 0, 8567)."""
        stopped = left(status={"active": 0})
        waits = copy_of(AGAIN, attempt=EARLIER, admitted=admitted, evicted=evicted)
        assert not recorded(beside(attrs.evolve(stopped, copy=waits)))
        assert not recorded(beside(attrs.evolve(stopped, copy=waits, reach=Lost(NOW))))

    def test_it_is_told_with_its_name_and_uid(self) -> None:
        (note,) = notes(decide(beside(left(), quiet_for=LATE)))
        assert note == 'Waiting for worker cluster "w1": Job "train" (UID uid-left) of an earlier attempt may still run'
        (said,) = (word for word in words(beside(left(deleting=True))) if word.startswith("say"))
        assert said.endswith("of an earlier attempt is still ending, held by the finalizer example.com/slow")

    def test_an_elastic_or_shared_job_of_an_earlier_attempt_counts_too(self) -> None:
        other = worker("w1", shared=job_copy_of(AGAIN, attempt=EARLIER))
        assert not recorded(beside(other, quiet_for=LATE))

    def test_a_part_of_a_group_waits_for_the_job_they_share(self) -> None:
        """`stale_jobs_on` has nothing of groups: none of their Workloads has the job for itself."""
        part = workload(nominated=("w1", "w2"), evictions=1, index="0")
        assert not recorded(beside(left(part), local=part, quiet_for=LATE))


class TestSendingBack:
    """Waiting holds quota here and on the worker that has admitted it."""

    def given_back(self, seen: Snapshot) -> Json | None:
        """What is written of a Workload that gives its quota back; None: it does not."""
        written = [effect.object for effect in those(ApplyStatus, decide(seen).effects) if not effect.cluster]
        return next((body for body in written if is_true(body, "Evicted")), None)

    def test_after_their_grace_and_a_minute_without_a_change_its_quota_is_given_back(self) -> None:
        assert self.given_back(beside(left(), quiet_for=LATE - timedelta(seconds=1))) is None
        for quiet in (LATE, LATE + timedelta(hours=1)):
            written = self.given_back(beside(left(), quiet_for=quiet))
            assert "UID uid-left" in message(written or {}, "Evicted")

    @pytest.mark.parametrize("cluster", [None, "w2"])
    @pytest.mark.parametrize("deleted", [False, True])
    def test_it_is_looked_at_when_that_is_over(self, cluster: str | None, deleted: bool) -> None:
        """Each look put it off: with one a minute quota was held for 120 s, not 61, beside a real Kueue."""
        local = workload(nominated=("w1", "w2"), evictions=1, cluster=cluster, reserved_at=SOON)
        there = left(local, deleting=deleted)
        if deleted:
            there.jobs[0].object["metadata"]["deletionTimestamp"] = SOON
        quiet = timedelta(0) if deleted else LATE - timedelta(seconds=1)
        seen = beside(there, local, quiet_for=quiet)
        assert self.given_back(seen) is None
        assert decide(seen).look_again == 1

    @pytest.mark.parametrize(
        ("ours", "held", "evicted"),
        [(90, 90, 90), (7200, 90, 90), (-7200, 90, 90), (3600, 3600, 3600), (3600, None, 3600), (-7200, None, 90)],
        ids=["as Kueue's", "two hours ahead", "two hours behind", "held long", "since a restart", "behind since one"],
    )
    def test_what_waits_in_its_queue_comes_first(self, ours: float, held: float | None, evicted: float) -> None:
        """Kueue (v0.19.2) asks the others a second later: the first had its quota again within 100 ms, each time. By
        Kueue's clock: where ours is ahead, it was sent back 60 times a second (seed 47), and kept its quota for an hour
        (seed 87)."""
        began = NOW - timedelta(seconds=ours)
        local = workload(nominated=("w1", "w2"), evictions=1, reserved_at=timestamp(began))
        held_for = None if held is None else timedelta(seconds=held)
        written = self.given_back(beside(left(local), local, quiet_for=LATE, held_for=held_for))
        assert written is not None
        status = written["status"]
        assert changed_at(written, "Evicted") == began + timedelta(seconds=evicted)
        assert status["requeueState"] == {"requeueAt": timestamp(began + timedelta(seconds=evicted + 4))}
        assert status["schedulingStats"]["evictions"][-1] == {**BY_CHECK, "count": 1}
        assert not {"clusterName", "nominatedClusterNames"} & status.keys()

    def test_it_goes_round_once_a_minute(self) -> None:
        """Where our clock is ahead, it has always waited for long."""
        began = NOW - timedelta(hours=1)
        local = workload(nominated=("w1", "w2"), evictions=1, reserved_at=timestamp(began))
        there = left(local, deleting=True)
        there.jobs[0].object["metadata"]["deletionTimestamp"] = timestamp(began)
        written = self.given_back(beside(there, local, held_for=timedelta(seconds=2)))
        assert written is not None
        assert parse_timestamp(written["status"]["requeueState"]["requeueAt"]) == began + timedelta(minutes=1)

    @pytest.mark.parametrize("state", ["Retry", "Rejected"])
    def test_what_another_check_ends_is_left_to_its_kueue(self, state: str) -> None:
        """Our write made the check Pending again: nothing deactivated the Workload, or it was queued too early."""
        local = workload(nominated=("w1", "w2"), evictions=1)
        local["status"]["admissionChecks"].append({"name": "prov", "state": state, "message": ""})
        assert self.given_back(beside(left(local), local, quiet_for=LATE)) is None

    @pytest.mark.parametrize("active", [False, True])
    def test_one_that_changes_all_the_time_is_not_waited_for_any_longer(self, active: bool) -> None:
        """Evicted half an hour ago; while it is active that was its Kueue's own doing, and it is only now asked."""
        asked = copy_of(AGAIN, attempt=EARLIER, evicted=True, spec={"active": active})
        assert asked["status"]["conditions"][-1]["lastTransitionTime"] == RESERVED_AT
        other = attrs.evolve(left(), copy=asked)
        assert (self.given_back(beside(other)) is None) == active

    def test_it_is_given_back_whether_another_worker_would_get_it_or_not(self) -> None:
        """Nobody is offered it meanwhile, so the quota would lie idle here."""
        seen = snapshot(AGAIN, left(), worker("w2", copy_of(AGAIN)), quiet_for=LATE)
        assert self.given_back(seen) is not None


class TestStopping:
    """The worker's Kueue is asked to stop what its API server may refuse to delete."""

    def test_its_workload_copy_is_deactivated_before_the_job_is_deleted(self) -> None:
        running = attrs.evolve(left(), copy=copy_of(AGAIN, attempt=EARLIER, admitted=True))
        seen = beside(running)
        assert words(seen)[-2:] == ["stop on w1", "delete job on w1 unless it is stopped"]

    @pytest.mark.parametrize("evicted", [False, True])
    def test_so_is_that_of_a_stopped_job_which_may_be_started_again(self, evicted: bool) -> None:
        """Beside a job that cannot be deleted the copy would wait for quota there, and get it some day."""
        waits = copy_of(AGAIN, attempt=EARLIER, evicted=evicted)
        stopped = attrs.evolve(left(status={"active": 0}), copy=waits)
        seen = beside(stopped, quiet_for=HELD_UP)
        assert words(seen)[-2:] == ["stop on w1", "delete job on w1 unless it is stopped"]
        # A Kueue there that starts and evicts it all the time would refuse the question each time, and nothing went.
        assert words(beside(stopped))[-1:] == ["delete job on w1"]

    def test_it_keeps_its_quota_until_the_job_is_gone(self) -> None:
        going = attrs.evolve(left(deleting=True), copy=copy_of(AGAIN, attempt=EARLIER, evicted=True))
        assert "delete workload on w1" not in in_words(beside(going), decide(beside(going)))
        gone = worker("w1", copy_of(AGAIN, attempt=EARLIER, evicted=True))
        assert "delete workload on w1" in in_words(beside(gone), decide(beside(gone)))


class TestGivingUp:
    """A person knows that nothing runs there, or that it may run twice."""

    def given_up(self, text: str) -> Json:
        return with_value(AGAIN, ("metadata", "annotations", GIVE_UP_ANNOTATION), text)

    @pytest.mark.parametrize("text", ["w1/uid-left", "w9/x, w1/uid-left"])
    @pytest.mark.parametrize("attempt", [EARLIER, UNMARKED])
    def test_by_worker_and_uid_on_the_workload(self, text: str, attempt: str) -> None:
        """Copies without a mark, which Kueue's own controller makes, blocked without end."""
        assert not recorded(beside(left(attempt=attempt)))
        assert recorded(beside(left(attempt=attempt), local=self.given_up(text)))

    @pytest.mark.parametrize("text", ["w2/uid-left", "w1/uid-of-another", "w1", "*", "w1/"])
    def test_what_does_not_match_gives_up_nothing_and_is_told(self, text: str) -> None:
        seen = beside(left(), local=self.given_up(text), quiet_for=LATE)
        assert not recorded(seen)
        assert any(f'gives up nothing: no worker has "{text}"' in note for note in notes(decide(seen)))

    def before(self, text: str) -> Worker:
        made = left()
        (job,) = made.jobs
        dated = with_value(job.object, ("metadata", "creationTimestamp"), timestamp(NOW - timedelta(hours=1)))
        return attrs.evolve(
            made, jobs=(attrs.evolve(job, object=dated),), annotations={GIVE_UP_BEFORE_ANNOTATION: text}
        )

    def test_all_that_a_broken_worker_had_before_a_time(self) -> None:
        assert recorded(beside(self.before(timestamp(NOW))))
        assert not recorded(beside(self.before(timestamp(NOW - timedelta(hours=2)))))

    @pytest.mark.parametrize("text", ["true", "yesterday"])
    def test_a_time_that_cannot_be_read_gives_up_nothing_and_is_told(self, text: str) -> None:
        seen = beside(self.before(text), quiet_for=LATE)
        assert not recorded(seen)
        assert any(GIVE_UP_BEFORE_ANNOTATION in note and "gives up nothing" in note for note in notes(decide(seen)))

    def test_a_set_that_keeps_its_status_can_be_given_up(self) -> None:
        sets = attrs.evolve(ADAPTER, status=attrs.evolve(ADAPTER.status, rule=None))
        assert not recorded(beside(left(), adapter=sets))
        assert recorded(beside(left(), local=self.given_up("w1/uid-left"), adapter=sets))

    def test_copies_do_not_have_the_annotation(self) -> None:
        assert GIVE_UP_ANNOTATION not in copy_of(self.given_up("w1/uid-left"))["metadata"]["annotations"]


class TestDeleting:
    def test_deletes_name_the_object_that_was_seen(self) -> None:
        """Never a stranger's object that has taken the name since (item 26)."""
        local = workload(quota=False)
        stopped = job_copy_of(local, uid="jb", status={"active": 0})
        job = sole(
            DeleteJob, decide(snapshot(local, worker("w1", copy_of(local, held=True, uid="wl"), stopped))).effects
        )
        assert (job.uid, job.propagation) == ("jb", "Foreground")
        copy = sole(DeleteWorkload, decide(snapshot(local, worker("w1", copy_of(local, held=True, uid="wl")))).effects)
        assert (copy.uid, copy.version) == ("wl", "rv-wl")

    def test_what_is_being_deleted_is_not_deleted_again(self) -> None:
        """A job with a slow finalizer costs one request, not one at every event."""
        local = workload(quota=False)
        seen = snapshot(local, worker("w1", copy_of(local, deleting=True), job_copy_of(local, deleting=True)))
        assert decide(seen).effects == ()

    def test_kueues_finalizer_comes_off_a_copy_that_somebody_else_deleted(self) -> None:
        """Otherwise the worker would keep it for ever; other finalizers stay."""
        local = workload(quota=False)
        deleted = copy_of(local, deleting=True, held=True)
        early = decide(snapshot(local, worker("w1", deleted)))
        assert (early.effects, early.look_again) == ((), FINALIZER.total_seconds()), "Kueue takes it off, as a rule"
        late = with_value(deleted, ("metadata", "deletionTimestamp"), timestamp(NOW - FINALIZER))
        effect = sole(PatchWorkload, decide(snapshot(local, worker("w1", late))).effects)
        expected = {"uid": "uid-copy", "resourceVersion": "rv-uid-copy", "finalizers": ["example.com/slow"]}
        assert effect.patch == {"metadata": expected}

    def test_clusters_out_of_the_config_are_cleaned_too(self) -> None:
        """A cluster that leaves a config is cleaned, never forgotten (item 28)."""
        local = workload(deleting=True)
        seen = snapshot(local, worker("w9", copy_of(local), job_copy_of(local), configured=False, kind=Unserved()))
        assert words(seen) == ["delete job on w9"]

    def test_the_local_job_may_be_gone_when_its_copies_are_cleaned(self) -> None:
        """Deleting a job on the manager deletes it everywhere."""
        local = workload(deleting=True)
        assert words(snapshot(local, worker("w1", None, job_copy_of(local)), job={})) == ["delete job on w1"]


class TestHeldUp:
    """A webhook refuses the deletion of the job, or we may not delete its kind: it would run on, with its quota."""

    RUNS = workload(cluster="w1")
    ASKED = ("stop on w1", "delete job on w1 unless it is stopped")

    @pytest.mark.parametrize(
        "local", [None, workload(deleting=True, cluster="w1"), workload(finished="OwnerNotFound", cluster="w1")]
    )
    @pytest.mark.parametrize("kind", [Served(), Unserved(timedelta(days=1))])
    def test_what_nobody_wants_is_asked_to_stop(self, local: Json | None, kind: Served | Unserved) -> None:
        def seen(seconds: int, **facts: Any) -> list[str]:
            copy = copy_of(self.RUNS, **({"admitted": True, "owned": True} | facts))
            there = worker("w1", copy, job_copy_of(self.RUNS), kind=kind)
            return words(snapshot(local, there, job={}, quiet_for=timedelta(seconds=seconds)))

        assert tuple(seen(0)) == tuple(seen(10)) == self.ASKED
        assert seen(0, stopping=True) == [], "it has ten seconds for that"
        assert seen(10, stopping=True) == ["delete job on w1"]
        assert seen(0, finished="OutOfSync") == ["delete job on w1"]
        hidden = tuple(seen(0, evicted=True, admitted=False))
        assert hidden == (("delete job on w1",) if isinstance(kind, Served) else self.ASKED)
