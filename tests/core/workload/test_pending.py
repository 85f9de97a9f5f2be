"""A Workload with quota and no worker: who is offered it, who wins, and what becomes of the others."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.adapters import CopyRules, SafeAdapter
from multikueue.adapters.rules import FieldsSet
from multikueue.core.dispatchers.dispatcher import AllAtOnce, External, Nomination
from multikueue.core.dispatchers.incremental import Incremental, Round
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.labels import (
    ADMISSION_MANAGER,
    ATTEMPT_ANNOTATION,
    JOB_UID_LABEL,
    ORIGIN_LABEL,
    STARTED_LABELS,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from tests.core.applying import carry_out
from tests.core.building import (
    ADAPTER,
    EARLIER,
    SUSPENDED,
    UNMARKED,
    CopyFacts,
    copy_of,
    job,
    job_copy_of,
    mark_on,
    snapshot,
    worker,
    workload,
)
from tests.core.door import (
    NOW,
    AnnounceWorkload,
    ApplyStatus,
    CreateJob,
    CreateWorkload,
    Lost,
    Refusal,
    Removing,
    Unserved,
    Worker,
    decide,
    sole,
    those,
)
from tests.core.wording import in_words, words

OFFERED = workload(nominated=("w1", "w2"))
ADMIT_W1 = ["admit on w1 as Ready", "tell", "count cq w1"]


class TestOffering:
    def test_every_reachable_worker_gets_a_copy(self) -> None:
        """All at once: the job starts wherever there is room first."""
        seen = snapshot(workload(), worker("w2"), worker("w1"))
        assert words(seen) == ["nominate w1 w2", "create workload on w2", "create workload on w1"]

    def test_the_copy_says_whose_it_is_and_for_which_attempt(self) -> None:
        """Without the job-uid label, or a worker's Kueue would finish a copy whose owner it cannot find."""
        local = workload(nominated=("w1",))
        made = sole(CreateWorkload, decide(snapshot(local, worker("w1"))).effects)
        metadata = made.object["metadata"]
        assert metadata["labels"][ORIGIN_LABEL] == "multikueue"
        assert JOB_UID_LABEL not in metadata["labels"]
        assert metadata["annotations"][ATTEMPT_ANNOTATION] == mark_on("w1", local)
        assert "ownerReferences" not in metadata
        assert made.object["spec"] == local["spec"]
        assert "status" not in made.object

    @pytest.mark.parametrize(
        "facts",
        [{"reach": Lost()}, {"configured": False}, {"kind": Unserved()}],
        ids=lambda facts: next(iter(facts)),
    )
    def test_a_worker_that_cannot_run_it_is_not_asked(self, facts: Json) -> None:
        """One broken worker, or one without the job's CRD, keeps nobody from running elsewhere (items 30, 34)."""
        seen = snapshot(workload(), worker("w1", **facts), worker("w2"))
        assert words(seen) == ["nominate w2", "create workload on w2"]

    def test_a_nominated_worker_out_of_reach_stays_nominated(self) -> None:
        """A flapping link rewrites no pending Workload, and raises no error (items 11, 43)."""
        seen = snapshot(OFFERED, worker("w1", reach=Lost()), worker("w2", copy_of(OFFERED)))
        assert decide(seen).effects == ()

    @pytest.mark.parametrize("reach", [Lost, None], ids=["worker", "kind"])
    def test_a_short_loss_rewrites_no_nominations(self, reach: type[Lost] | None) -> None:
        """In rounds the next is asked once the loss has lasted a minute; a new Workload goes to the others at once."""

        def lost(seconds: float) -> Worker:
            if reach is None:
                return worker("w1", copy_of(asked), kind=Unserved(timedelta(seconds=seconds)))
            return worker("w1", copy_of(asked), reach=reach(NOW - timedelta(seconds=seconds)))

        in_rounds, asked = Incremental(step=1), workload(nominated=("w1",))
        asked["status"]["admissionChecks"][0]["message"] = Round(1, NOW - timedelta(seconds=100)).describe(("w1",))
        shortly = decide(snapshot(asked, lost(20), worker("w2")), dispatcher=in_rounds)
        assert (shortly.effects, shortly.look_again) == ((), 40)
        seen = snapshot(asked, lost(60), worker("w2"))
        assert words(seen, dispatcher=in_rounds)[0] == "nominate w1 w2"
        new = snapshot(workload(), lost(20), worker("w2"))
        assert words(new, dispatcher=in_rounds)[0] == "nominate w2"

    def test_a_worker_taken_from_the_config_loses_its_copy(self) -> None:
        """Its quota is free again at once."""
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED)), worker("w2", copy_of(OFFERED), configured=False))
        assert words(seen) == ["nominate w1", "delete workload on w2"]

    def test_other_checks_come_first(self) -> None:
        """A Workload that waits for somebody else's check holds no quota on any worker."""
        seen = snapshot(workload(other_checks={"budget": "Pending"}), worker("w1"))
        assert words(seen) == ["say Waiting for the other admission checks"]
        seen = snapshot(workload(other_checks={"budget": "Ready"}), worker("w1"))
        assert words(seen) == ["nominate w1", "create workload on w1"]

    def test_while_other_checks_are_pending_stale_copies_still_go(self) -> None:
        """A copy of an earlier attempt holds quota for nothing."""
        local = workload(other_checks={"budget": "Pending"})
        seen = snapshot(local, worker("w1", copy_of(local, attempt=EARLIER)))
        assert "delete workload on w1" in words(seen)

    def test_the_dispatcher_may_ask_to_be_asked_again(self) -> None:
        """A dispatcher that works in rounds is woken for the next one."""

        @attrs.frozen
        class Rounds(AllAtOnce):
            def nominate(self, workload: Json, candidates: object, now: object) -> Nomination:
                return Nomination(("w2",), look_again=300.0)

        seen = snapshot(workload(), worker("w1"), worker("w2"))
        decided = decide(seen, Rounds())
        assert in_words(seen, decided) == ["nominate w2", "create workload on w2"]
        assert decided.look_again == 300.0

    def test_without_workers_nothing_is_written(self) -> None:
        """A manager that has just started does not rewrite what it found."""
        head = "Offered to no worker cluster: the MultiKueueConfig lists none that is known"
        assert decide(snapshot(workload(said=head))).effects == ()

    def test_a_job_that_cannot_be_seen_yet_is_waited_for(self) -> None:
        """Copies are made once we know that the job is delegated to us."""
        seen = snapshot(workload(said=""), worker("w1"), job={})
        assert words(seen) == ["say Waiting for its job to be seen"]

    @pytest.mark.parametrize("facts", [{}, {"job": {}}], ids=["offered", "job unknown"])
    def test_what_a_dispatcher_remembers_in_the_message_stays_while_it_says_nothing_new(self, facts: Json) -> None:
        """Else it would begin anew, and write it again, with each look."""

        @attrs.frozen
        class OneByOne(AllAtOnce):
            def nominate(self, workload: Json, candidates: object, now: object) -> Nomination:
                return Nomination(("w1",))

            def remembers(self, message: str) -> bool:
                return message.startswith("asking ")

        local = workload(nominated=("w1",), said="asking w1 since 1795600000")
        seen = snapshot(local, worker("w1", copy_of(local)), **facts)
        assert decide(seen, OneByOne()).effects == ()


class TestWinning:
    def test_the_winner_is_recorded_and_the_losers_go_at_once(self) -> None:
        """The losers' quota is free before the winner's pods start; nothing is created anywhere before the record."""
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), worker("w2", copy_of(OFFERED, uid="b")))
        assert words(seen) == ["record w1", "delete workload on w2"]

    def test_a_copy_of_an_earlier_attempt_does_not_win(self) -> None:
        """It was admitted before the eviction: it goes, whatever it says, and nobody is recorded for it."""
        before = copy_of(OFFERED, attempt=EARLIER, admitted=True)
        seen = snapshot(OFFERED, worker("w1", before), worker("w2", copy_of(OFFERED)))
        assert words(seen) == ["delete workload on w1"]

    def test_the_record_leaves_the_check_pending(self) -> None:
        """Ready makes the manager's Kueue start its own job, which cannot be copied any more."""
        decided = decide(snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True))))
        write = sole(ApplyStatus, decided.effects)
        assert (write.object["status"]["clusterName"], write.object["status"]["nominatedClusterNames"]) == ("w1", [])
        (entry,) = write.object["status"]["admissionChecks"]
        assert entry["state"] == "Pending"
        assert entry["message"] == 'The workload got reservation on "w1", its job is being created there'

    def test_a_job_that_is_there_already_is_taken_over_in_one_write(self) -> None:
        """The check turns Ready, clusterName is set and the nominations are gone."""
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True), job_copy_of(OFFERED)))
        decided = decide(seen)
        assert in_words(seen, decided) == ADMIT_W1
        write = decided.effects[0]
        assert isinstance(write, ApplyStatus)
        assert write.field_manager == ADMISSION_MANAGER
        assert write.object["metadata"]["resourceVersion"] == "rv-uid-local"
        assert write.object["status"]["clusterName"] == "w1"
        assert write.object["status"]["nominatedClusterNames"] == []  # whoever wrote them: they bar a clusterName
        (entry,) = write.object["status"]["admissionChecks"]
        assert (entry["state"], entry["message"]) == ("Ready", 'The workload was admitted on "w1"')

    def test_what_of_the_job_nobody_heeds_is_told_once(self) -> None:
        """On the job, too: its user waits for it to be deleted."""
        unheeding = SafeAdapter(attrs.evolve(ADAPTER, copies=CopyRules(unheeded=FieldsSet((("spec", "suspend"),)))))
        local = workload(check="Ready", cluster="w1")
        for seen, opened in ((OFFERED, True), (local, False)):
            there = worker("w1", copy_of(seen, admitted=True, owned=True), job_copy_of(seen))
            events = [
                effect
                for effect in those(AnnounceWorkload, decide(snapshot(seen, there, adapter=unheeding)).effects)
                if effect.note.startswith("spec.suspend may have no effect")
            ]
            assert [event.on_job for event in events] == [True] * opened

    def test_a_winner_is_nominated_before_it_is_recorded(self) -> None:
        """Kueue's webhook refuses a clusterName that was not nominated by an earlier write (item 22)."""
        local = workload(nominated=("w2",))
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True), job_copy_of(local)), worker("w2"))
        assert words(seen) == ["nominate w1"]

    def test_the_worker_that_has_the_job_wins_over_the_configs_order(self) -> None:
        """Of two that admitted, the one whose pods may run already keeps it: it is never started twice."""
        seen = snapshot(
            OFFERED,
            worker("w1", copy_of(OFFERED, admitted=True, uid="a")),
            worker("w2", copy_of(OFFERED, admitted=True), job_copy_of(OFFERED)),
        )
        assert words(seen) == ["admit on w2 as Ready", "tell", "count cq w2", "delete workload on w1"]

    def test_the_worker_that_has_the_job_keeps_it_while_its_record_waits(self) -> None:
        """Somebody has erased the record, and another worker out of sight may run an earlier attempt."""
        local = workload(nominated=("w2",), evictions=1)
        has_it = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local))
        lost = worker("w3", reach=Lost(NOW, seen=False))
        seen = snapshot(local, has_it, worker("w2"), lost, last_worker="w3")
        decided = decide(seen, dispatcher=External())
        assert not [word for word in in_words(seen, decided) if "delete" in word or "record" in word]

    def test_of_two_that_admitted_the_first_of_the_config_wins(self) -> None:
        """Workers' clocks decide nothing (item 24)."""
        local = workload(nominated=("w1", "w2"))
        seen = snapshot(
            local,
            worker("w2", copy_of(local, admitted=True, uid="a")),
            worker("w1", copy_of(local, admitted=True, uid="b")),
        )
        assert words(seen) == ["record w2", "delete workload on w1"]

    def test_one_that_is_being_removed_cannot_win_any_more(self) -> None:
        """It lost to one whose part was taken; if it won now, that one would be removed as well (seed 6454)."""
        first = worker("w1", copy_of(OFFERED, admitted=True, uid="a"), in_flight=Removing())
        seen = snapshot(OFFERED, first, worker("w2", copy_of(OFFERED, admitted=True, uid="b")))
        assert words(seen)[0] == "record w2"

    def test_one_that_was_chosen_stays_chosen_when_others_admit_it_too(self) -> None:
        """Else each would be removed as the other's loser, and all made again (simulation, seed 6598)."""
        local = workload(nominated=("w2",))
        first, second = (worker(name, copy_of(local, admitted=True)) for name in ("w1", "w2"))
        assert words(snapshot(local, first, second)) == ["record w2", "delete workload on w1"]

    def test_a_job_that_a_kueue_has_started_is_copied_as_if_it_had_not(self) -> None:
        """Somebody pasted what was shown of one that ran, or the manager's Kueue has not put it back yet.

        It once waited for ever: admitted on a worker, without a word, with quota held on both.
        """
        label = ("spec", "template", "metadata", "labels", STARTED_LABELS[0])
        template = {"metadata": {"labels": {"app": "train"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        local = workload(nominated=("w1",), spec={"podSets": [{"name": "main", "count": 1, "template": template}]})
        started = with_value(job(suspended=False), label, "main")
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), job=started)
        seen = carry_out(seen, decide(seen))
        created = sole(CreateJob, decide(seen).effects)
        assert created.object["spec"] == ADAPTER.copy(job(), Stamp("", "", ""))["spec"]

    def test_a_job_that_is_being_deleted_is_not_started(self) -> None:
        """Its Workload goes with it."""
        local, leaving = workload(nominated=("w1",)), job()
        leaving["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        assert words(snapshot(local, worker("w1", copy_of(local, admitted=True)), job=leaving)) == []

    def test_a_loser_out_of_reach_does_not_delay_the_winner(self) -> None:
        """Its copy goes when it is back (item 31)."""
        seen = snapshot(
            OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), worker("w2", copy_of(OFFERED), reach=Lost())
        )
        assert words(seen) == ["record w1"]

    def test_a_copy_of_an_earlier_attempt_never_wins(self) -> None:
        """Kueue evicts and reserves again within 300 ms: the copy still says Admitted, for the attempt before."""
        local = workload(nominated=("w1",), evictions=1)
        stale = worker("w1", copy_of(local, admitted=True, attempt=EARLIER), job_copy_of(local, attempt=EARLIER))
        assert words(snapshot(local, stale))[1:] == ["stop on w1", "delete job on w1 unless it is stopped"]

    def test_a_stale_job_is_removed_before_its_worker_is_recorded(self) -> None:
        """The stale job may have run with another spec."""
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True), job_copy_of(local, attempt=EARLIER)))
        assert words(seen)[1:] == ["delete job on w1"]

    def test_a_stale_job_that_stays_is_told_of_on_its_worker(self) -> None:
        """Nobody waits for ever, and the other offers stay until one is recorded (found in review)."""
        local = workload(nominated=("w1", "w2"))
        left = job_copy_of(local, attempt=EARLIER, deleting=True)
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True), left), worker("w2", copy_of(local)))
        (said,) = words(seen)
        assert said.startswith('say Waiting for worker cluster "w1": Job "train"')
        assert decide(seen).look_again == 90
        late = attrs.evolve(seen, quiet_for=timedelta(seconds=90))
        assert words(late)[0].startswith("give back: Waiting for")

    def test_nobody_wins_while_a_leftover_is_seen_elsewhere_though_it_has_stopped(self) -> None:
        """Its pods may still end, whatever holds it: a person may give it up."""
        held = job_copy_of(OFFERED, attempt=EARLIER, deleting=True, status={"active": 0})
        left = worker("w1", copy_of(OFFERED, admitted=True, uid="a"), held)
        seen = snapshot(OFFERED, left, worker("w2", copy_of(OFFERED, admitted=True, uid="b")))
        assert decide(seen).row.startswith("earlier run: ")

    @pytest.mark.parametrize(
        "spoiled",
        [CopyFacts(admitted=True, deleting=True), CopyFacts(admitted=True, evicted=True)],
        ids=["deleted", "evicted"],
    )
    def test_a_copy_that_is_evicted_or_being_deleted_does_not_win(self, spoiled: CopyFacts) -> None:
        """A job created there would be stopped at once, and the manager's quota lost for a round."""
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local, **spoiled)))
        assert decide(seen).effects == ()

    def test_a_job_that_has_run_already_is_not_run_again(self) -> None:
        """It ended, and its TTL removed it, before we could record who had it (item 14)."""
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True, finished="Succeeded")))
        assert words(seen) == ADMIT_W1

    def test_a_job_that_ended_before_its_worker_was_recorded_counts(self) -> None:
        """The worker's retention removed the Workload already; without this the job would be deleted and run again."""
        local = workload(nominated=("w1", "w2"))
        ended = job_copy_of(local, status={"conditions": [{"type": "Complete", "status": "True"}]})
        seen = snapshot(local, worker("w2", copy_of(local)), worker("w1", None, ended))
        assert words(seen) == [*ADMIT_W1, "delete workload on w2"]
        seen = carry_out(seen, decide(seen))
        assert words(seen) == ["copy job status"]

    @pytest.mark.parametrize("attempt", [EARLIER, UNMARKED], ids=["earlier", "not marked"])
    def test_the_end_of_another_attempt_does_not(self, attempt: str) -> None:
        """What ran before the eviction has been given up; the job is to run once more."""
        local = workload(nominated=("w1",))
        ended = job_copy_of(local, status={"conditions": [{"type": "Complete", "status": "True"}]}, attempt=attempt)
        assert words(snapshot(local, worker("w1", None, ended))) == ["delete job on w1"]

    def test_an_admitted_copy_of_another_spec_does_not_win(self) -> None:
        """The worker would run what the user has not asked for."""
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True, spec={"queueName": "other"})))
        assert words(seen) == ["delete workload on w1"]

    def test_a_copy_its_worker_found_out_of_sync_is_recorded_so_that_the_user_hears_of_it(self) -> None:
        """Once it is assigned, the check turns Retry with a warning; deleted here it would be made again in silence."""
        local = workload(nominated=("w1",))
        refused = copy_of(local, admitted=True, finished="OutOfSync")
        assert words(snapshot(local, worker("w1", refused, job_copy_of(local)))) == ADMIT_W1

    def test_a_copy_that_its_worker_gave_up_for_another_reason_does_not_win(self) -> None:
        """Its worker did not find the job that is there now: it will not run it for this copy."""
        local = workload(nominated=("w1",))
        refused = copy_of(local, admitted=True, finished="OwnerNotFound")
        seen = snapshot(local, worker("w1", refused, job_copy_of(local)))
        assert words(seen) == ["delete job on w1"]

    def test_a_copy_without_a_proof_does_not_win(self) -> None:
        """Whoever may create objects on the worker could have made it; see `test_unproven_copies`."""
        local = workload(nominated=("w1",))
        there = worker("w1", copy_of(local, admitted=True, attempt=UNMARKED), job_copy_of(local, attempt=UNMARKED))
        assert words(snapshot(local, there)) == ["stop on w1", "delete job on w1 unless it is stopped"]

    def test_a_kind_that_ready_would_start_is_recorded_in_kueues_words(self) -> None:
        """Its check stays Pending for good, so the record is all that is written."""
        pods = attrs.evolve(ADAPTER, keeps_check_pending=True)
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), adapter=pods)
        assert words(seen) == ["admit on w1 as Pending", "tell", "count cq w1"]

    def test_a_kind_that_ready_would_start_keeps_its_check_pending(self) -> None:
        """Ready would ungate pods on the manager as well (D14)."""
        pods = attrs.evolve(ADAPTER, keeps_check_pending=True)
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True), job_copy_of(local)), adapter=pods)
        assert words(seen) == ["admit on w1 as Pending", "tell", "count cq w1"]

    def test_a_job_of_another_name_is_not_the_job(self) -> None:
        """Another object that names this Workload does not stand for the owner's job."""
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True), job_copy_of(local, name="other")))
        assert words(seen) == ["record w1"]


def test_a_worker_that_refused_is_asked_again_after_its_back_off() -> None:
    """Nobody tells when a block ends: it is a time."""
    for left in (timedelta(seconds=120), timedelta(seconds=7)):
        decided = decide(snapshot(OFFERED, worker("w1", refusal=Refusal("denied", left))))
        assert decided.look_again == left.total_seconds()


def test_a_deactivated_workload_is_not_offered() -> None:
    """Its copies would say so, too, and be of no use: they were made and removed as fast as the worker took it."""
    local = workload(nominated=("w1",), spec={"active": False})
    assert decide(snapshot(local, worker("w1"))).effects == ()


class TestRefusing:
    """Workers that refuse it are left alone for a while; their words are told."""

    DENIED = Refusal('admission webhook "policy" denied the request', timedelta(minutes=5))

    def test_while_all_refuse_it_stays_pending_with_the_reasons(self) -> None:
        waits = job(status={"conditions": [SUSPENDED]})
        seen = snapshot(OFFERED, *(worker(name, refusal=self.DENIED) for name in ("w1", "w2")), job=waits)
        seen = attrs.evolve(seen, workload=workload())
        write = sole(ApplyStatus, decide(seen).effects)
        (entry,) = write.object["status"]["admissionChecks"]
        assert entry["state"] == "Pending"
        why = f"refuses it, is asked again at 2026-11-21T12:05:00Z: {self.DENIED.why}"
        assert entry["message"] == f"No worker cluster takes it — w1: {why} · w2: {why}"
        again = decide(carry_out(seen, decide(seen)))
        assert (again.effects, again.telling) == ((), ())

    def test_the_others_are_offered_it(self) -> None:
        seen = snapshot(workload(), worker("w1", refusal=self.DENIED), worker("w2"))
        assert words(seen) == ["nominate w2", "create workload on w2"]

    def test_the_reasons_are_taken_back_once_one_may_be_asked_again(self) -> None:
        refused = snapshot(workload(), worker("w1", refusal=self.DENIED))
        after = carry_out(refused, decide(refused))
        again = attrs.evolve(after, workers=(worker("w1"),))
        (write, _) = decide(again).effects
        assert isinstance(write, ApplyStatus)
        assert write.object["status"]["admissionChecks"][0]["message"] == "Offered to w1"
