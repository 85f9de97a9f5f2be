"""What ends on a worker, or is held there, is shown with its own last words, whichever event comes first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from tests.core.building import CopyFacts, condition, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import AnnounceWorkload, ApplyStatus, Effect, PatchJobStatus, Snapshot, Worker, decide, only
from tests.core.wording import words

READY = workload(cluster="w1", check="Ready")
COMPLETE: Json = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True", "message": "All done"}]}
RUNNING = job(suspended=False, status={"active": 1})


def seen(copy: Json | None, status: Json, *, local: Json = READY, here: Json = RUNNING, **facts: Any) -> Snapshot:
    """The Workload on w1, with what is there."""
    return snapshot(local, worker("w1", copy, job_copy_of(local, status=status)), job=here, **facts)


class TestWhatHasEndedByItself:
    @pytest.mark.parametrize(
        "copy",
        [
            {"evicted": True},
            {"evicted": True, "finished": "Succeeded"},
            {"admitted": True, "deleting": True},
            {"admitted": True, "finished": "OutOfSync"},
            {"admitted": True, "finished": "OwnerNotFound"},
        ],
        ids=["evicted", "evicted, finished", "deleted", "out of sync", "owner not found"],
    )
    def test_is_not_sent_back_whatever_its_workload_copy_says(self, copy: CopyFacts) -> None:
        """It completed at the moment of its eviction, say: it would run twice."""
        made = copy_of(READY, **copy)
        assert words(seen(made, COMPLETE)) == ["copy job status"]
        shown = seen(made, COMPLETE, here=job(suspended=False, status=COMPLETE), quiet_for=timedelta(seconds=30))
        assert words(shown) == ["finish Succeeded"]

    @pytest.mark.parametrize("reason", ["OwnerNotFound", "OutOfSync"])
    @pytest.mark.parametrize("check", ["Pending", "Ready"])
    def test_a_finished_copy_of_another_reason_is_no_end(self, reason: str, check: str) -> None:
        local = workload(cluster="w1", check=check)
        steps = words(seen(copy_of(local, admitted=True, finished=reason), {"active": 1}, local=local))
        assert any(word.startswith("retry: ") for word in steps)

    def test_nor_is_one_that_was_evicted(self) -> None:
        """Pods of a group that exit well when they are told to end."""
        steps = words(seen(copy_of(READY, evicted=True, finished="Succeeded"), {"active": 1}))
        assert 'retry: Workload evicted on worker cluster: "w1"' in steps


LAST: Json = {"failed": 1}
SENT_BACK: dict[str, Worker] = {
    "evicted": worker("w1", copy_of(READY, evicted=True), job_copy_of(READY, status=LAST)),
    "gone": worker("w1", None, job_copy_of(READY, status=LAST)),
    "deleted": worker("w1", copy_of(READY, admitted=True, deleting=True), job_copy_of(READY, status=LAST)),
    "changed": worker("w1", copy_of(READY, admitted=True, spec={"queueName": "o"}), job_copy_of(READY, status=LAST)),
    "out of sync": worker("w1", copy_of(READY, finished="OutOfSync"), job_copy_of(READY, status=LAST)),
    "owner": worker("w1", copy_of(READY, finished="OwnerNotFound"), job_copy_of(READY, status=LAST)),
}


def is_last_status(effect: Effect) -> bool:
    return isinstance(effect, PatchJobStatus) and effect.patch["status"] == {"active": None, **LAST}


class TestTheLastStatus:
    @pytest.mark.parametrize("why", SENT_BACK)
    def test_is_written_before_the_workload_is_sent_back(self, why: str) -> None:
        """It may be why the worker's Kueue has acted; once the Workload is evicted nobody shows it any more."""
        first, then, *_ = decide(snapshot(READY, SENT_BACK[why], job=RUNNING)).effects
        assert is_last_status(first)
        assert getattr(then, "takes_away", False)

    def test_is_not_waited_for_long_where_the_managers_server_refuses_it(self) -> None:
        """The Workload would hold its quota for good."""
        late = snapshot(READY, SENT_BACK["gone"], job=RUNNING, refused_for=timedelta(seconds=30))
        assert words(late) == ["retry: Admitting remote no longer exists"]

    @pytest.mark.parametrize("copied", [copy_of(READY, finished="Succeeded"), None], ids=["finished", "gone"])
    def test_an_end_that_the_managers_server_has_refused_is_not_waited_for(self, copied: Json | None) -> None:
        ended = attrs.evolve(seen(copied, COMPLETE), quiet_for=timedelta(seconds=30))
        patch = only(PatchJobStatus, decide(ended).effects)
        refused = attrs.evolve(ended, in_vain={patch.key.name: patch.patch})
        assert words(refused) == ["finish Succeeded"]


def held(local: Json, **copy: Any) -> Json:
    """A copy that its worker's Kueue has put on hold."""
    made = copy_of(local, owned=True, **copy)
    hold = condition("QuotaReserved", "OnHold", status=False, message="Job is on hold")
    return with_value(made, ("status", "conditions"), [hold, *made["status"]["conditions"]])


WHY: Json = {"message": "name is too long"}


class TestHold:
    """The worker's Kueue has taken the quota, and nobody has evicted it."""

    def test_its_job_is_shown_first(self) -> None:
        assert words(seen(held(READY), WHY)) == ["copy job status"]
        recorded = workload(cluster="w1", check="Pending")
        steps = words(seen(held(recorded), WHY, local=recorded))
        assert steps == ["admit on w1 as Ready", "tell", "count cq w1", "copy job status"]

    @pytest.mark.parametrize("quiet", [0, 300])
    def test_it_stays_there_and_the_check_has_the_words_of_the_jobs_controller(self, quiet: int) -> None:
        here = job(suspended=False, status=WHY)
        plan = decide(seen(held(READY), WHY, here=here, quiet_for=timedelta(seconds=quiet)))
        assert plan.effects == ()
        said, warning = plan.telling
        assert isinstance(said, ApplyStatus)
        (entry,) = said.object["status"]["admissionChecks"]
        assert entry["state"] == "Ready"
        assert entry["message"].endswith("w1: holds it: Job is on hold: name is too long")
        assert warning == AnnounceWorkload("Warning", "w1 holds it: Job is on hold: name is too long")

    def test_it_is_said_once(self) -> None:
        local = workload(cluster="w1", check="Ready", said="On it — w1: holds it: Job is on hold: name is too long")
        plan = decide(seen(held(local), WHY, local=local, here=job(suspended=False, status=WHY)))
        assert (plan.effects, plan.telling) == ((), ())

    def test_an_eviction_of_it_counts(self) -> None:
        steps = words(seen(held(READY, evicted=True), WHY))
        assert 'retry: Workload evicted on worker cluster: "w1"' in steps

    def test_no_job_is_made_for_it(self) -> None:
        """It was recorded, and lost its quota before its job was created."""
        local = workload(cluster="w1", check="Pending")
        shown = snapshot(local, worker("w1", held(local)), quiet_for=timedelta(seconds=5))
        assert words(shown) == ["retry: Admitting remote no longer exists"]
