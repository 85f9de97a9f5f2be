"""Nobody is recorded while an earlier attempt of the job may still run where it cannot be seen."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import GIVE_UP_ANNOTATION, LAST_WORKER_ANNOTATION, PLACEMENTS_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import with_value
from tests.core.building import ADAPTER, EARLIER, UNMARKED, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    NOW,
    SETTINGS,
    AnnounceWorkload,
    ApplyStatus,
    Connecting,
    Creating,
    Lost,
    PatchWorkload,
    Plan,
    Snapshot,
    Syncing,
    Unanswered,
    Unserved,
    Unusable,
    Worker,
    decide,
    sole,
    those,
)
from tests.core.wording import in_words, words

AGAIN = workload(nominated=("w1", "w2"), evictions=1)
"""It was evicted, and has quota again."""
RECORD = ["record w1"]
W2 = ClusterName("w2")
GRACE = timedelta(seconds=30)
"""Of pods that say nothing of their own."""
_HOUR = with_value(AGAIN["spec"]["podSets"][0], ("template", "spec", "terminationGracePeriodSeconds"), 3600)
HOUR = with_value(AGAIN, ("spec", "podSets"), [_HOUR])
"""Its pods may take an hour to end."""


def beside(other: Worker, local: Json = AGAIN, **facts: Any) -> Snapshot:
    """w1 has admitted it, and `other` may have something of before."""
    return snapshot(local, worker("w1", copy_of(local, admitted=True)), other, **facts)


def decided(other: Worker, **facts: Any) -> tuple[list[str], Plan]:
    seen = beside(other, **facts)
    return words(seen), decide(seen)


def ago(**time: float) -> Lost:
    return Lost(NOW - timedelta(**time))


def unseen(**time: float) -> Lost:
    return Lost(NOW - timedelta(**time), seen=False)


class TestSameAttempt:
    """The recorded worker is the one cluster that may have this attempt's job: nobody waits for others."""

    FIRST = workload(nominated=("w1", "w2"))

    @pytest.mark.parametrize(
        "other",
        [
            worker("w2", reach=Connecting()),
            worker("w2", reach=unseen(seconds=1)),
            worker("w2", reach=Lost(seen=False)),
            worker("w2", copy_of(FIRST, admitted=True), reach=ago(seconds=1)),
            worker("w2", kind=Syncing()),
            worker("w2", kind=Unserved(seen=False)),
        ],
        ids=["connecting", "lost", "never seen", "lost with a copy", "syncing", "kind not served"],
    )
    def test_nobody_waits_right_after_a_start(self, other: Worker) -> None:
        """Measured beside a real Kueue: a worker that dropped within a minute of our start stalled every job for it."""
        assert decided(other, local=self.FIRST, running_for=timedelta(0))[0][:1] == RECORD


class TestLastWorker:
    """The worker that had the job before the eviction."""

    def test_one_that_dropped_with_the_job_is_waited_for(self) -> None:
        left = worker("w2", copy_of(AGAIN, attempt=EARLIER, admitted=True), job_copy_of(AGAIN, attempt=EARLIER))
        words, plan = decided(attrs.evolve(left, reach=ago(minutes=5)), last_worker=W2)
        assert (words, plan.look_again) == (["warn", "patch workload on "], 600)
        assert decided(attrs.evolve(left, reach=ago(minutes=15)), last_worker=W2)[0] == RECORD

    def test_one_whose_answer_to_the_creation_was_lost_with_it(self) -> None:
        """Recorded, created, link lost, evicted, reserved again: the job was never seen."""
        away = worker("w2", copy_of(AGAIN, attempt=EARLIER), reach=ago(minutes=5), creation=Unanswered(timedelta(0)))
        assert decided(away, last_worker=W2)[0] == ["warn", "patch workload on "]
        assert decided(attrs.evolve(away, reach=ago(minutes=15)), last_worker=W2)[0] == RECORD

    def test_a_creation_without_an_answer_soon_shows_in_a_watch_that_works(self) -> None:
        words, plan = decided(worker("w2", creation=Unanswered(timedelta(seconds=3))))
        assert (words[:1] == RECORD, plan.look_again) == (False, 7)
        assert decided(worker("w2", creation=Unanswered(timedelta(seconds=10))))[0][:1] == RECORD

    @pytest.mark.parametrize("where", ["w1", "w2"])
    def test_pods_of_a_copy_that_went_at_once_are_waited_for(self, where: str) -> None:
        """Beside a real Kueue: somebody deleted the copy in the background, and 12 of 42 next runs began before."""

        def after(seconds: float) -> Snapshot:
            left, seen = timedelta(seconds=seconds), beside(worker("w2"))
            return seen.with_workers(lambda at: attrs.evolve(at, pods_left_ago=left if at.name == where else None))

        waits = decide(after(3))
        assert "record w1" not in in_words(after(3), waits)
        assert waits.look_again == 32
        assert [told.note for told in those(AnnounceWorkload, waits.effects)] == [
            f'Waiting for worker cluster "{where}": pods of the job copy that was deleted there may still end'
        ]
        assert words(after(35))[:1] == RECORD
        limited = attrs.evolve(SETTINGS, pod_grace_limit=timedelta(seconds=10))
        assert words(after(14), settings=limited)[:1] != RECORD
        assert words(after(15), settings=limited)[:1] == RECORD

    def test_a_creation_in_flight_is_waited_for(self) -> None:
        assert decided(worker("w2", in_flight=Creating()))[0][:1] != RECORD

    @pytest.mark.parametrize(
        ("status", "ended"), [({"active": 0}, False), ({"conditions": [{"type": "Complete", "status": "True"}]}, True)]
    )
    def test_one_that_was_seen_to_stop_is_waited_for_until_its_pods_have_ended(self, status: Json, ended: bool) -> None:
        """A job is stopped before its pods are: out of sight they count as in sight (simulation, seed 284)."""
        copy = copy_of(AGAIN, attempt=EARLIER, evicted=True, spec={"active": False})
        left = worker("w2", copy, job_copy_of(AGAIN, attempt=EARLIER, status=status), reach=ago(minutes=1))
        assert (decided(left, last_worker=W2)[0] == RECORD) is ended

    def test_one_whose_kueue_may_start_it_again_is_waited_for(self) -> None:
        """It had preempted the job, was lost at once, and had room for it again (simulation, seed 8567)."""
        stopped = job_copy_of(AGAIN, attempt=EARLIER, status={"active": 0})
        left = worker("w2", copy_of(AGAIN, attempt=EARLIER, evicted=True), stopped)
        words, plan = decided(attrs.evolve(left, reach=ago(minutes=5)), last_worker=W2)
        assert (words, plan.look_again) == (["warn", "patch workload on "], 600)
        assert decided(attrs.evolve(left, reach=ago(minutes=15)), last_worker=W2)[0] == RECORD

    @pytest.mark.parametrize(("owned", "active", "is_waited_for"), [(1, 1, True), (1, 0, False), (0, 1, False)])
    def test_nor_may_it_start_one_that_does_not_show(self, owned: int, active: int, is_waited_for: bool) -> None:
        """The kind is not served: only the Workload copy tells that there was a job."""
        copy = copy_of(AGAIN, attempt=EARLIER, evicted=True, owned=bool(owned), spec={"active": bool(active)})
        words, _ = decided(worker("w2", copy, kind=Unserved(timedelta(0))), last_worker=W2, quiet_for=GRACE)
        assert (words[:1] != RECORD) == is_waited_for

    @pytest.mark.parametrize(("owned", "asked", "is_asked"), [(1, 0, True), (1, 1, False), (0, 0, False)])
    def test_one_that_does_not_show_is_asked_to_stop_also_during_an_eviction(
        self, owned: int, asked: int, is_asked: bool
    ) -> None:
        """Nothing else would end the wait: its Kueue may keep it until it has room, for ever."""
        evicted = workload(evicted="Preempted", evictions=1)
        copy = copy_of(workload(cluster="w1"), evicted=True, owned=bool(owned), stopping=bool(asked))
        stopped = job_copy_of(workload(cluster="w1"), suspended=True, status={"active": 0})
        seen = snapshot(
            evicted, worker("w1", copy, stopped, kind=Unserved(timedelta(days=2))), job=job(status={"active": 1})
        )
        assert ("stop on w1" in words(seen)) == is_asked

    @pytest.mark.parametrize("quota", [True, False])
    @pytest.mark.parametrize("state", [{"evicted": True}, {"admitted": True}])
    def test_one_whose_jobs_may_neither_be_seen_nor_deleted_is_asked_to_stop(self, quota: bool, state: Any) -> None:
        """The deletion of the job fails, and what comes after that is not sent: it was waited for, for ever."""
        local, copy = workload(quota=quota, evictions=1), copy_of(AGAIN, attempt=EARLIER, owned=True, **state)
        left = worker("w2", copy, job_copy_of(AGAIN, attempt=EARLIER), kind=Unserved(timedelta(days=2)))
        first = words(beside(left, local, last_worker=W2))
        assert ("stop on w2" in first, "delete job on w2 unless it is stopped" in first) == (True, True)
        later = words(beside(left, local, last_worker=W2, quiet_for=timedelta(seconds=5)))
        assert [word for word in later if " on w2" in word] == ["stop on w2", "delete job on w2 unless it is stopped"]
        stopped = copy_of(AGAIN, attempt=EARLIER, owned=True, evicted=True, spec={"active": False})
        over = words(beside(attrs.evolve(left, copy=stopped), local, last_worker=W2))
        assert [word for word in over if word.endswith("w2")] == ["delete job on w2"]

    @pytest.mark.parametrize(
        ("quota", "quiet", "is_waited_for"),
        [(True, GRACE, True), (False, timedelta(0), True), (False, GRACE, False)],
    )
    def test_one_that_does_not_show_ends_until_its_kueue_has_its_quota_back_and_its_pods_have_had_their_grace(
        self, quota: bool, quiet: timedelta, is_waited_for: bool
    ) -> None:
        """Kueue evicts first, and has the quota back when no pod is active (simulation, seed 768): those that are told
        to end do so until their grace period is over (seed 1551)."""
        copy = copy_of(AGAIN, attempt=EARLIER, admitted=quota, evicted=True, owned=True, spec={"active": False})
        words, _ = decided(worker("w2", copy, kind=Unserved(timedelta(0))), last_worker=W2, quiet_for=quiet)
        assert (RECORD[0] not in words) == is_waited_for

    @pytest.mark.parametrize(("quiet", "is_waited_for"), [(3599, True), (3600, False)])
    def test_pods_of_one_that_does_not_show_have_all_of_their_grace(self, quiet: float, is_waited_for: bool) -> None:
        """They were waited for as long as those of a copy that somebody has deleted: five minutes, and ran twice."""
        stopped = copy_of(HOUR, attempt=EARLIER, owned=True, spec={"active": False})
        left = worker("w2", stopped, kind=Unserved(timedelta(hours=1)))
        words, _ = decided(left, local=HOUR, last_worker=W2, quiet_for=timedelta(seconds=quiet))
        assert (RECORD[0] not in words) == is_waited_for

    @pytest.mark.parametrize(
        ("status", "quiet", "is_waited_for"),
        [
            ({"active": 2}, 0, True),
            ({"active": 0, "terminating": 2}, 0, True),
            ({"active": 2}, GRACE.total_seconds(), False),
            ({"conditions": [{"type": "Complete", "status": "True"}]}, 0, False),
        ],
        ids=["ran when it was seen last", "ends", "had its grace", "has ended"],
    )
    def test_so_have_those_of_a_job_that_was_seen_before_its_worker_was_lost(
        self, status: Json, quiet: float, is_waited_for: bool
    ) -> None:
        """The worker was back with its Workloads, and its jobs were not read yet (simulation, seed 32359)."""
        copy = copy_of(AGAIN, attempt=EARLIER, evicted=True, owned=True, spec={"active": False})
        was_seen = job_copy_of(AGAIN, attempt=EARLIER, status=status)
        left = worker("w2", copy, was_seen, kind=Unserved(timedelta(minutes=2)))
        said, decision = decided(left, last_worker=W2, quiet_for=timedelta(seconds=quiet))
        assert (RECORD[0] not in said) == is_waited_for
        warnings = [event.note for event in those(AnnounceWorkload, decision.effects)]
        assert not any("is not stopped" in warning for warning in warnings), "nobody has to act"

    @pytest.mark.parametrize(("quiet", "gives_back"), [(299, False), (400, True)])
    def test_quota_is_not_held_for_pods_with_a_longer_grace(self, quiet: float, gives_back: bool) -> None:
        """A grace period of an hour held it for an hour, one of a year for a year."""
        stopped = copy_of(HOUR, attempt=EARLIER, owned=True, evicted=True, spec={"active": False})
        left = worker("w2", stopped, kind=Unserved(timedelta(minutes=30)))
        said, _ = decided(left, local=HOUR, last_worker=W2, quiet_for=timedelta(seconds=quiet))
        assert any(word.startswith("give back") for word in said) == gives_back

    def test_what_a_worker_that_is_lost_for_good_was_stopping_is_not_waited_for_again(self) -> None:
        """Each change of the Workload began its pods' grace anew, and its user read that somebody had deleted a job."""
        stopped = copy_of(HOUR, attempt=EARLIER, admitted=True, evicted=True, owned=True)
        left = worker("w2", stopped, reach=ago(hours=2))
        assert decided(left, local=HOUR, last_worker=W2, quiet_for=timedelta(0))[0][:1] == RECORD

    HIDDEN = worker("w2", copy_of(AGAIN, attempt=EARLIER, admitted=True, owned=True), kind=Unserved(timedelta(days=2)))

    def test_one_whose_kueue_is_down_as_well_is_waited_for_without_quota_in_hand(self) -> None:
        """It all but certainly runs, so no time ends that; both sides' quota was held, and a false time was told."""
        plans = [
            decide(beside(self.HIDDEN, last_worker=W2, quiet_for=timedelta(seconds=seconds))) for seconds in (0, 90)
        ]
        events = [effect.note for plan in plans for effect in plan.effects if isinstance(effect, AnnounceWorkload)]
        why = 'Workload "job-train-1a2b3" (UID uid-copy) is not stopped, and its jobs cannot be seen: start Kueue there'
        assert [why in note for note in events] == [True, True]
        assert words(beside(self.HIDDEN, last_worker=W2, quiet_for=timedelta(seconds=90)))[0].startswith("give back: ")
        noted = with_value(AGAIN, ("metadata", "annotations", LAST_WORKER_ANNOTATION), "w2")
        said = sole(ApplyStatus, decide(beside(self.HIDDEN, noted, last_worker=W2)).telling)
        why = ", has not stopped an earlier attempt: no other gets it before that"
        assert said.object["status"]["admissionChecks"][0]["message"].endswith(why)

    @pytest.mark.parametrize(
        ("kind", "warnings", "again"),
        [
            (Unserved(timedelta(minutes=1)), 1, 88),
            (Unserved(timedelta(seconds=40)), 0, 20),
            (Syncing(), 0, 88),
        ],
        ids=["hidden", "for a moment", "being read"],
    )
    def test_during_its_eviction_it_is_told_too(self, kind: Unserved | Syncing, warnings: int, again: float) -> None:
        """But not by a start, or a short loss: who gave it up then had it run twice."""
        left = worker("w2", copy_of(workload(cluster="w2"), admitted=True, owned=True, stopping=True), kind=kind)
        seen = snapshot(workload(evicted="Preempted", evictions=1), left, job=job())
        assert (words(seen).count("warn"), decide(seen).look_again) == (warnings, again)

    def test_while_its_kind_is_being_read_it_is_no_leftover_yet(self) -> None:
        left = attrs.evolve(self.HIDDEN, kind=Syncing())
        said, plan = decided(left, last_worker=W2)
        assert (RECORD[0] in said, plan.look_again) == (False, 900)

    def test_a_person_may_give_it_up(self) -> None:
        local = with_value(AGAIN, ("metadata", "annotations", GIVE_UP_ANNOTATION), "w2/uid-copy")
        assert decided(self.HIDDEN, local=local, last_worker=W2)[0][0] == "record w1"

    def test_a_copy_of_this_attempt_is_nobodys_run(self) -> None:
        """Two workers had admitted it, and the kind of the one was not served any more: it waited for ever."""
        first = workload(nominated=("w1", "w2"))
        also = worker("w2", copy_of(first, admitted=True), kind=Unserved(timedelta(seconds=1)))
        assert decided(also, local=first)[0] == ["record w1", "delete workload on w2"]

    def test_kinds_that_keep_their_status_are_not_seen_to_stop(self) -> None:
        """Their quota is free before anybody knows."""
        sets = attrs.evolve(ADAPTER, status=attrs.evolve(ADAPTER.status, rule=None))
        left = worker("w2", copy_of(AGAIN, attempt=EARLIER), job_copy_of(AGAIN, attempt=EARLIER, status={}))
        words, plan = decided(attrs.evolve(left, reach=ago(minutes=5)), adapter=sets)
        assert (words[:1] == RECORD, plan.look_again) == (False, 600)

    def test_one_without_a_job_when_it_was_lost_is_not_waited_for(self) -> None:
        assert decided(worker("w2", reach=ago(seconds=1)), last_worker=W2)[0] == RECORD


class TestNoRecord:
    """Somebody has erased what the Workload said of its worker, which has left the config: the copies' marks tell."""

    @pytest.mark.parametrize("attempt", [None, EARLIER], ids=["this attempt", "an earlier one"])
    @pytest.mark.parametrize("facts", [{"reach": ago(seconds=1)}, {"kind": Unserved()}], ids=["lost", "not served"])
    @pytest.mark.parametrize("status", [{"active": 1}, {"terminating": 2}])
    def test_a_job_copy_that_is_known_is_waited_for(
        self, attempt: str | None, facts: dict[str, Any], status: Json
    ) -> None:
        """Its kubeconfig broke while its pods ended on a dead node, and it began elsewhere at once (simulation, seed
        2815)."""
        known = job_copy_of(AGAIN, attempt=attempt, deleting=True, status=status)
        assert RECORD[0] not in decided(worker("w2", None, known, configured=False, **facts))[0]

    @pytest.mark.parametrize("attempt", [None, EARLIER], ids=["this attempt", "an earlier one"])
    def test_a_workload_copy_whose_job_is_hidden_is_waited_for(self, attempt: str | None) -> None:
        copied = copy_of(AGAIN, attempt=attempt, admitted=True, owned=True)
        assert RECORD[0] not in decided(worker("w2", copied, kind=Unserved(), configured=False))[0]

    @pytest.mark.parametrize("copied", [True, False])
    @pytest.mark.parametrize(
        "facts",
        [{"configured": False}, {"kind": Unusable()}],
        ids=["not in the config", "its definition lacks a field"],
    )
    def test_this_attempts_job_is_seen_gone_first(self, copied: bool, facts: dict[str, Any]) -> None:
        """It cannot be recorded again where nothing new goes: it was removed as the other one began."""
        copy = copy_of(AGAIN, admitted=True, owned=True) if copied else None
        runs = worker("w2", copy, job_copy_of(AGAIN), **facts)
        assert RECORD[0] not in decided(runs)[0]

    @pytest.mark.parametrize("copied", [True, False])
    @pytest.mark.parametrize("facts", [{"configured": False}, {"kind": Unusable()}])
    def test_this_attempts_job_has_ended_there(self, copied: bool, facts: dict[str, Any]) -> None:
        """What has run is not run again: its copies were removed as the other one began."""
        ended = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
        copy = copy_of(AGAIN, admitted=True, owned=True) if copied else None
        seen = beside(worker("w2", copy, job_copy_of(AGAIN, status=ended), **facts), job=job(status={"active": 1}))
        assert "copy job status" in words(seen)
        assert not {RECORD[0], "delete job on w2"}.intersection(words(seen))

    def test_nor_is_its_job_shown_as_stopped(self) -> None:
        """While it shows, and out of sight."""
        known = job_copy_of(AGAIN, attempt=EARLIER, status={"active": 1})
        left, before = worker("w2", None, known, configured=False), workload(quota=False, evictions=1)
        seen = [
            snapshot(before, left, job=job(status={"active": 1}))
            for left in (left, attrs.evolve(left, reach=ago(seconds=1)), worker("w2"))
        ]
        assert ["copy job status" in words(shown) for shown in seen] == [False, False, True]

    @pytest.mark.parametrize("last", [None, W2])
    @pytest.mark.parametrize("facts", [{}, {"reach": ago(seconds=1)}], ids=["in sight", "lost"])
    def test_what_nobody_can_prove_counts_where_it_had_the_workload(
        self, last: ClusterName | None, facts: dict[str, Any]
    ) -> None:
        """The key is lost, or Kueue's own controller made it."""
        known = worker("w2", None, job_copy_of(AGAIN, attempt=UNMARKED), configured=False, **facts)
        assert (RECORD[0] in decided(known, last_worker=last)[0]) == (last is None)


class TestAfterAStart:
    """A process that has just started has not seen the eviction."""

    def test_a_lost_worker_it_has_never_seen_is_waited_for(self) -> None:
        """Only for Workloads that were evicted before: others cannot have an earlier attempt."""
        words, plan = decided(worker("w2", reach=unseen(minutes=5)))
        assert (words, plan.look_again) == (["warn"], 600)
        assert decided(worker("w2", reach=unseen(minutes=15)))[0] == RECORD

    def test_so_it_is_where_the_job_shows_that_it_ran_for_a_workload_that_is_gone(self) -> None:
        """Somebody had deleted that, and Kueue made another one for the same pod: the pod ran on two workers."""
        first, away = workload(nominated=("w1", "w2")), worker("w2", reach=unseen(minutes=5))
        assert decided(away, local=first, job=job(status={"active": 1}))[0] == ["warn"]
        assert decided(away, local=first, job=job(status={"active": 0}))[0][:1] == RECORD

    def test_so_it_is_where_its_spec_has_changed(self) -> None:
        """Kueue makes a Workload again for that, and its job may have run before any status was shown."""
        first, away = workload(nominated=("w1", "w2")), worker("w2", reach=unseen(minutes=5))
        for generation, waits in ((1, False), (2, True)):
            its = with_value(job(), ("metadata", "generation"), generation)
            assert (decided(away, local=first, job=its)[0] == ["warn"]) is waits

    def test_of_a_set_which_never_shows_that_it_ran_the_age_tells(self) -> None:
        """Kueue makes a Workload as the set is made: a later one has another before it, that somebody has deleted."""
        sets = attrs.evolve(ADAPTER, status=attrs.evolve(ADAPTER.status, rule=None))
        made = ("metadata", "creationTimestamp")
        first, later = (
            with_value(workload(nominated=("w1", "w2")), made, timestamp(NOW - timedelta(minutes=at)))
            for at in (60, 50)
        )
        its = with_value(job(), made, timestamp(NOW - timedelta(minutes=60)))
        away = worker("w2", reach=unseen(minutes=5))
        assert decided(away, local=later, job=its, adapter=sets)[0] == ["warn"]
        assert decided(away, local=first, job=its, adapter=sets)[0][:1] == RECORD
        assert decided(away, local=later, job=its)[0][:1] == RECORD

    def test_one_that_was_not_asked_yet_has_a_minute(self) -> None:
        words, plan = decided(worker("w2", reach=Connecting()), running_for=timedelta(seconds=5))
        assert words == ["warn"]
        assert plan.look_again is not None
        assert plan.look_again <= 60

    def test_the_note_on_the_workload_says_which_one(self) -> None:
        """Others need not be waited for."""
        noted = with_value(AGAIN, ("metadata", "annotations", LAST_WORKER_ANNOTATION), "w2")
        assert decided(worker("w3", reach=unseen(minutes=5)), local=noted)[0][0] != "warn"
        assert decided(worker("w2", reach=unseen(minutes=5)), local=noted)[0] == ["warn"]

    def test_one_that_had_it_before_the_start_is_waited_for_though_no_config_lists_it_any_more(self) -> None:
        """Its pods were still ending in sight, on a dead node say, when it was lost."""
        placed = json.dumps([{"worker": "w2", "since": "2026-11-21T10:00:00Z", "until": "2026-11-21T11:00:00Z"}])
        local = with_value(AGAIN, ("metadata", "annotations"), {PLACEMENTS_ANNOTATION: placed})
        ending = job_copy_of(local, attempt=EARLIER, deleting=True, status={"terminating": 2})
        gone = worker("w2", None, ending, configured=False, reach=ago(seconds=10))
        assert RECORD[0] not in words(beside(gone, local))


class TestNote:
    """What a restart must not forget stands on the Workload, while it matters."""

    @pytest.mark.parametrize(
        "local",
        [workload(evicted="Preempted", evictions=1), workload(quota=False, evictions=1), AGAIN],
        ids=["evicted", "no quota", "again"],
    )
    def test_it_is_written_while_the_worker_is_out_of_sight(self, local: Json) -> None:
        left = worker("w2", None, job_copy_of(AGAIN, attempt=EARLIER), reach=ago(minutes=1))
        seen = snapshot(local, left, last_worker=W2, job=job(suspended=True))
        notes = those(PatchWorkload, decide(seen).effects)
        assert [note.patch["metadata"]["annotations"] for note in notes] == [{LAST_WORKER_ANNOTATION: "w2"}]

    def test_it_is_taken_away_once_the_worker_was_seen(self) -> None:
        """Before anybody is recorded: the record is made from the Workload without it."""
        noted = with_value(AGAIN, ("metadata", "annotations", LAST_WORKER_ANNOTATION), "w2")
        seen = beside(worker("w2"), local=noted)
        note = sole(PatchWorkload, decide(seen).effects)
        assert note.patch["metadata"]["annotations"] == {LAST_WORKER_ANNOTATION: None}

    def test_copies_do_not_have_it(self) -> None:
        noted = with_value(workload(), ("metadata", "annotations", LAST_WORKER_ANNOTATION), "w2")
        assert LAST_WORKER_ANNOTATION not in copy_of(noted)["metadata"]["annotations"]
