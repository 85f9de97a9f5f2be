"""The worker is recorded, and its job is created there: once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.adapters import JobKind, Membership
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import ATTEMPT_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of
from multikueue.errors import RuleError
from tests.core.building import ADAPTER, EARLIER, copy_of, job, job_copy_of, mark_on, snapshot, worker, workload
from tests.core.door import (
    NOW,
    Created,
    CreateJob,
    Creating,
    Creation,
    Lost,
    NothingSent,
    Refusal,
    Unanswered,
    Unserved,
    Untracked,
    Unusable,
    Worker,
    decide,
    sole,
)
from tests.core.wording import words


class TestCreatingOnce:
    """The worker is recorded, and its job is made there: once."""

    RECORDED = workload(cluster="w1")

    def words(self, where: Worker, **facts: Any) -> list[str]:
        seen = snapshot(self.RECORDED, where, **facts)
        return words(seen)

    def admitted(self, *jobs: Json, **facts: Any) -> Worker:
        copied = {name: facts.pop(name) for name in ("owned", "attempt") if name in facts}
        return worker("w1", copy_of(self.RECORDED, admitted=True, **copied), *jobs, **facts)

    def test_the_job_is_created_on_the_recorded_worker(self) -> None:
        """What is created is what the kind's row says, with the marks of this attempt."""
        made = sole(CreateJob, decide(snapshot(self.RECORDED, self.admitted())).effects)
        assert made.cluster == "w1"
        assert "managedBy" not in made.object["spec"]
        assert annotations_of(made.object)[ATTEMPT_ANNOTATION] == mark_on("w1", self.RECORDED)

    def test_ready_comes_last(self) -> None:
        assert self.words(self.admitted(job_copy_of(self.RECORDED)))[0] == "admit on w1 as Ready"

    def test_a_job_that_has_ended_before_its_check_is_ready_is_admitted_all_the_same(self) -> None:
        """A job of a second: who counts admissions, or waits for the check, must not miss it."""
        ended = worker("w1", copy_of(self.RECORDED, admitted=True, finished="Succeeded"), job_copy_of(self.RECORDED))
        assert self.words(ended) == ["admit on w1 as Ready", "tell", "count cq w1"]

    def test_a_job_whose_workload_has_had_an_owner_is_not_made_again(self) -> None:
        """It has run: its TTL has passed, or somebody deleted it."""
        seen = snapshot(self.RECORDED, self.admitted(owned=True))
        assert (decide(seen).effects, decide(seen).look_again) == ((), 5)
        late = attrs.evolve(seen, quiet_for=timedelta(seconds=5))
        assert words(late) == ["retry: Admitting remote no longer exists"]

    def test_nor_one_that_was_created_and_is_not_adopted_yet(self) -> None:
        """The watch of Workloads may be behind that of jobs, which saw it come and go."""
        assert self.words(self.admitted(creation=Created())) == []

    @pytest.mark.parametrize("creation", [Unanswered(timedelta(seconds=1)), NothingSent(), Untracked()], ids=repr)
    def test_one_without_an_answer_is_tried_again(self, creation: Creation) -> None:
        """There is one name for it: a second one is refused."""
        assert self.words(self.admitted(creation=creation)) == ["create job on w1"]

    def test_a_copy_of_an_earlier_attempt_gets_no_job(self) -> None:
        assert "create job on w1" not in self.words(self.admitted(attempt=EARLIER))

    def test_a_job_of_an_earlier_attempt_goes_first(self) -> None:
        left = job_copy_of(self.RECORDED, attempt=EARLIER)
        assert self.words(self.admitted(left)) == ["delete job on w1"]

    def test_a_worker_that_cannot_let_go_of_it_is_given_up(self) -> None:
        """A finalizer that nobody takes off would hold the quota for ever."""
        left = job_copy_of(self.RECORDED, attempt=EARLIER, deleting=True)
        seen = snapshot(self.RECORDED, self.admitted(left))
        assert (decide(seen).effects, decide(seen).look_again) == ((), 90)
        late = attrs.evolve(seen, quiet_for=timedelta(seconds=90))
        assert words(late)[-1].startswith('give back: Waiting for worker cluster "w1"')

    def test_nothing_is_created_while_it_is_unclear_who_runs_the_job(self) -> None:
        """A rule that fails cannot tell whether the manager's controllers would run it as well."""

        def fails(job: Json, controller_name: str) -> str | None:
            raise RuleError("unclear")

        class Unclear(JobKind):
            def not_delegated(self, job: Json, controller_name: str) -> str | None:
                return fails(job, controller_name)

        unclear = Unclear(**{field.name: getattr(ADAPTER, field.name) for field in attrs.fields(JobKind)})
        assert "create job on w1" not in self.words(self.admitted(), adapter=unclear)

    def test_a_job_that_the_worker_refuses_is_retried_with_its_reason(self) -> None:
        denied = Refusal('admission webhook "policy" denied the request: no', timedelta(minutes=5))
        assert self.words(self.admitted(refusal=denied)) == [
            'retry: Worker cluster "w1" refuses the job: admission webhook "policy" denied the request: no'
        ]

    def test_a_kind_found_unusable_after_the_record_gets_no_job(self) -> None:
        """A copy without the field would run before its Kueue lets it."""
        assert self.words(self.admitted(kind=Unusable("its CRD has no spec.managedBy"))) == [
            'retry: Worker cluster "w1" cannot run the job: its CRD has no spec.managedBy'
        ]
        running = self.admitted(job_copy_of(self.RECORDED), kind=Unusable("no field"), owned=True)
        assert self.words(running)[0] == "admit on w1 as Ready"

    def test_a_worker_lost_before_anything_was_sent_is_retried_at_once(self) -> None:
        """Nobody waits for a job that cannot be there."""
        lost = self.admitted(reach=Lost(NOW), creation=NothingSent())
        assert self.words(lost) == ["retry: Admitting remote lost"]
        assert self.words(self.admitted(kind=Unserved(), creation=NothingSent())) == ["retry: Admitting remote lost"]

    @pytest.mark.parametrize("creation", [Unanswered(timedelta(seconds=1)), Created(), Untracked()], ids=repr)
    def test_otherwise_it_keeps_the_job_for_a_while(self, creation: Creation) -> None:
        assert self.words(self.admitted(reach=Lost(NOW), creation=creation)) == []

    def test_a_job_that_others_sent_keeps_its_worker_for_a_while_too(self) -> None:
        """Of a group one Workload sends the job; a job may be there before the record; one may be on its way."""
        nothing: dict[str, Any] = {"reach": Lost(NOW), "creation": NothingSent()}
        assert self.words(self.admitted(job_copy_of(self.RECORDED), **nothing)) == []
        assert self.words(self.admitted(owned=True, **nothing)) == []
        assert self.words(self.admitted(in_flight=Creating(), **nothing)) == []
        part = workload(name="part-1", index="1", cluster="w1")
        shares = attrs.evolve(ADAPTER, membership=Membership(workloads=lambda _: 2), keeps_check_pending=True)
        seen = snapshot(part, worker("w1", copy_of(part, admitted=True), **nothing), adapter=shares)
        assert words(seen) == []

    def test_a_loss_noted_before_the_attempt_began_is_over(self) -> None:
        """The worker has admitted this attempt; a process ended before it could write that the worker was back."""
        began = timestamp(NOW - timedelta(minutes=1))
        local = workload(cluster="w1", reserved_at=began)
        lost = worker("w1", copy_of(local, admitted=True), reach=Lost(NOW - timedelta(hours=1), seen=False))
        decided = decide(snapshot(local, lost))
        assert (decided.effects, decided.look_again) == ((), 14 * 60)

    def test_a_first_slice_of_an_elastic_job_is_created_like_any_job(self) -> None:
        """Only a replacement has a job to take over; its annotation tells."""
        local = workload(cluster="w1", elastic=True)
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), job=job(elastic=True))
        assert decide(seen).row == "recorded: create"
        assert words(seen) == ["create job on w1"]

    def test_of_a_group_the_first_on_the_worker_creates_the_job(self) -> None:
        """The others share it."""
        first, second = (workload(name=f"part-{index}", index=str(index), cluster="w1") for index in (0, 1))
        two = attrs.evolve(ADAPTER, membership=Membership(workloads=lambda _: 2), keeps_check_pending=True)
        for local, other, expected in ((first, second, ["create job on w1"]), (second, first, [])):
            seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), adapter=two, siblings=(other,))
            assert words(seen) == expected
