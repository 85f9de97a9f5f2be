"""Each worker's reason in the check's message, and what is told about a worker that is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.dispatchers.dispatcher import Dispatcher, External, Facts
from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.model.labels import LAST_WORKER_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import with_value
from tests.core.applying import carry_out
from tests.core.building import CHECK, RESERVED_AT, condition, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    NOW,
    SETTINGS,
    AnnounceWorkload,
    ApplyStatus,
    Connecting,
    Lost,
    Opaque,
    Plan,
    Refusal,
    Served,
    ShareUsedUp,
    Snapshot,
    Unserved,
    Worker,
    decide,
    those,
)

MINUTES_AGO = NOW - timedelta(minutes=5)
TOO_SMALL = (
    "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered "
    "podsets requests (0) + current podset request (3) > maximum capacity (1)"
)


def saying(message: str, **facts: Any) -> Json:
    """A Workload whose check says this."""
    local = workload(**facts)
    local["status"]["admissionChecks"][0]["message"] = message
    return local


def offered(*workers: Worker, names: tuple[str, ...] = ("w1",), head: str = "Offered to w1") -> Snapshot:
    """What the caches show of a Workload that is offered to these workers."""
    return snapshot(saying(head, nominated=names), *workers)


def waiting(message: str, **facts: Any) -> Json:
    """A copy of which its Kueue says this."""
    made = copy_of(workload(nominated=("w1",)), **facts)
    made["status"]["conditions"].append(condition("QuotaReserved", "Pending", status=False, message=message))
    return made


def message_of(write: object) -> str:
    """What a write says in our check; it changes neither its state nor since when it has that."""
    assert isinstance(write, ApplyStatus)
    (entry,) = [check for check in write.object["status"]["admissionChecks"] if check["name"] == CHECK]
    assert entry["lastTransitionTime"] == RESERVED_AT
    return str(entry["message"])


def new_message(seen: Snapshot, dispatcher: Dispatcher | None = None) -> str:
    """What a decision would have the check say, if only words change; empty if nothing."""
    decided = decide(seen, dispatcher)
    assert not [effect for effect in those(ApplyStatus, decided.effects) if not effect.cluster]
    return next(map(message_of, worded(decided)), "")


def worded(decided: Plan) -> list[ApplyStatus]:
    """What a decision would write on the Workload, if only words change."""
    return those(ApplyStatus, decided.telling)


class TestWaiting:
    def test_a_copy_that_its_kueue_has_given_up_says_why(self) -> None:
        """It will never run there; one that has ended there has nothing to say."""
        copies = (copy_of(workload(nominated=("w1", "w2")), finished=reason) for reason in ("OutOfSync", "Succeeded"))
        words = [new_message(offered(worker("w1", copy))) for copy in copies]
        assert [word.startswith("Offered to w1 — w1: has ended its copy: ") for word in words] == [True, False]

    def test_each_worker_speaks_for_itself(self) -> None:
        """The example of the documentation: quota too small, no LocalQueue, unreachable."""
        seen = offered(
            worker("w1", waiting(TOO_SMALL)),
            worker("w2", waiting('LocalQueue "user-queue" doesn\'t exist', uid="two")),
            worker("w3", reach=Lost(MINUTES_AGO)),
            names=("w1", "w2", "w3"),
            head="Offered to w1, w2, w3",
        )
        assert new_message(seen) == (
            "Offered to w1, w2, w3 — w1: insufficient quota for cpu in flavor default (3 > 1) · "
            'w2: LocalQueue "user-queue" doesn\'t exist · w3: unreachable since 2026-11-21T11:55:00Z'
        )

    @pytest.mark.parametrize(
        ("facts", "why"),
        [
            ({"reach": Connecting()}, "connecting"),
            ({"reach": Opaque()}, "answers with more than may be read"),
            ({"kind": Unserved(timedelta(minutes=2))}, "does not serve the job's kind"),
            (
                {"refusal": Refusal("denied by 10.0.0.1:443", timedelta(minutes=1))},
                "refuses it, is asked again at 2026-11-21T12:01:00Z: denied by [address]",
            ),
            (
                {"refusal": ShareUsedUp('namespace "team" has its share', timedelta(minutes=1))},
                'has no room for it, is asked again at 2026-11-21T12:01:00Z: namespace "team" has its share',
            ),
        ],
        ids=["connecting", "unreadable", "unserved", "refused", "share"],
    )
    def test_one_that_cannot_take_it_says_why(self, facts: Json, why: str) -> None:
        seen = offered(worker("w1", **facts), worker("w2", waiting("")), names=("w1", "w2"), head="Offered to w1, w2")
        assert new_message(seen).startswith(f"Offered to w1, w2 — w1: {why}")

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ([condition("Evicted", "Preempted", message="Preempted to accommodate a workload")], "Preempted to acc"),
            ([condition("BlockedOnPreemptionGates", "Gated")], "may not preempt there yet: no room"),
        ],
        ids=["evicted", "gated"],
    )
    def test_a_copy_that_goes_no_further_says_why(self, change: list[Json], why: str) -> None:
        copy = waiting("no room")
        copy["status"]["conditions"] += change
        assert f"w1: {why}" in new_message(offered(worker("w1", copy)))

    def test_the_workers_own_checks_are_waited_for(self) -> None:
        copy = copy_of(workload(nominated=("w1",)))
        copy["status"] = {
            "conditions": [condition("QuotaReserved", "QuotaReserved")],
            "admissionChecks": [{"name": "prov", "state": "Pending", "message": "no capacity"}],
        }
        assert (
            new_message(offered(worker("w1", copy)))
            == 'Offered to w1 — w1: admission check "prov" is Pending no capacity'
        )

    @pytest.mark.parametrize(
        "facts",
        [{"reach": Lost(NOW - timedelta(seconds=20))}, {"kind": Unserved(timedelta(seconds=20))}],
        ids=["lost", "kind not served"],
    )
    def test_a_short_loss_rewrites_nothing(self, facts: Json) -> None:
        """What the worker said last holds for a minute; then it is told, without any event."""
        local = saying("Offered to w1 — w1: no room", nominated=("w1",))
        decided = decide(snapshot(local, worker("w1", waiting("no room"), **facts)))
        assert (worded(decided), decided.look_again) == ([], 40.0)

    def test_one_that_was_just_asked_says_nothing(self) -> None:
        """So the usual case costs no write."""
        assert new_message(offered(worker("w1", copy_of(workload(nominated=("w1",)))))) == ""

    def test_what_is_no_longer_so_is_taken_back(self) -> None:
        local = saying("Offered to w1 — w1: no room", nominated=("w1",))
        assert new_message(snapshot(local, worker("w1", copy_of(local)))) == "Offered to w1"

    def test_a_message_of_somebody_else_gives_way(self) -> None:
        """As Kueue's, after an eviction: a wait is not without a word."""
        seen = offered(worker("w1", waiting("no room")), head="Reset to Pending after eviction. Previously: Retry")
        assert [message_of(effect) for effect in decide(seen).effects] == ["Offered to w1 — w1: no room"]

    def test_control_characters_and_length_are_the_workers_and_not_ours(self) -> None:
        said = new_message(offered(worker("w1", waiting("a\x1b[31m\nb" + "x" * 1_000))))
        assert said.isprintable()
        assert len(said) == len("Offered to w1 — w1: ") + 256

    def test_said_once_it_is_not_said_again(self) -> None:
        seen = offered(worker("w1", waiting("no room")))
        decided = decide(seen)
        said = carry_out(seen, attrs.evolve(decided, effects=decided.telling))
        assert (decide(said).effects, decide(said).telling) == ((), ())

    def test_another_check_is_waited_for_first(self) -> None:
        local = saying("Waiting for the other admission checks", other_checks={"other": "Pending"})
        assert new_message(snapshot(local, worker("w1", reach=Lost(MINUTES_AGO)))) == ""


class TestRounds:
    ROUND = "The workload is offered to [w1], round 1 since 2026-11-21T11:58:00.000Z"

    def test_the_round_stays_an_unchanged_prefix(self) -> None:
        seen = offered(worker("w1", waiting("no room")), worker("w2"), head=self.ROUND)
        said = new_message(seen, Incremental(step=1))
        assert said == f"{self.ROUND} — w1: no room · w2: not nominated yet"

    def test_a_dispatcher_that_says_itself_why_is_not_contradicted(self) -> None:
        facts = Facts(workers={ClusterName("w2"): "its figures"})
        seen = attrs.evolve(offered(worker("w1"), worker("w2"), worker("w3")), dispatcher_facts=facts)
        assert new_message(seen, External()) == "Offered to w1 — w3: not nominated yet"

    @pytest.mark.parametrize("tail", ["", " — w1: no room", " — w1: unreachable since 2026-11-21T11:55:00Z"])
    def test_what_stands_behind_it_never_restarts_it(self, tail: str) -> None:
        """It goes on for as long as it would have, and ends as it would have."""
        seen = offered(worker("w1", waiting("no room")), worker("w2"), head=self.ROUND + tail)
        assert decide(seen, Incremental(step=1)).look_again == 180.0
        later = offered(
            worker("w1", waiting("no room")), worker("w2"), head=self.ROUND.replace("11:58", "11:55") + tail
        )
        (write, _) = decide(later, Incremental(step=1)).effects
        assert message_of(write).startswith("The workload is offered to [w1 w2], round 2 since 2026-11-21T12:00")


class TestLosses:
    """A job on a worker that cannot be seen: the message has the deadline, and so has an event."""

    ADMITTED = 'The workload was admitted on "w1"'

    def seen(self, message: str = ADMITTED, **facts: Any) -> Snapshot:
        said = saying(message, check="Ready", cluster="w1")
        local = with_value(said, ("metadata", "annotations", LAST_WORKER_ANNOTATION), "w1")
        return snapshot(local, worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local), **facts))

    def test_the_deadline_is_told_in_the_message_and_in_an_event(self) -> None:
        decided = decide(self.seen(reach=Lost(MINUTES_AGO)))
        say, warn = decided.telling
        text = "unreachable since 2026-11-21T11:55:00Z; moves at 2026-11-21T12:10:00Z"
        assert message_of(say) == f"{self.ADMITTED} — w1: {text}"
        assert warn == AnnounceWorkload("Warning", f"w1 {text}")

    def test_a_short_loss_is_not_told(self) -> None:
        """An API server that is restarted is back within a minute."""
        decided = decide(self.seen(reach=Lost(NOW - timedelta(seconds=20))))
        assert (decided.telling, decided.look_again) == ((), 40.0)

    def test_with_a_short_timeout_it_is_told_at_once(self) -> None:
        settings = attrs.evolve(SETTINGS, worker_lost_timeout=timedelta(seconds=90))
        decided = decide(self.seen(reach=Lost(NOW)), settings=settings)
        assert "moves at 2026-11-21T12:01:30Z" in message_of(decided.telling[0])

    def test_a_worker_that_comes_back_takes_it_back(self) -> None:
        seen = self.seen(f"{self.ADMITTED} — w1 unreachable since 2026-11-21T11:55:00Z; moves at ...", kind=Served())
        assert message_of(decide(seen).telling[0]) == self.ADMITTED

    def test_while_it_is_connected_to_what_was_said_stays(self) -> None:
        """A restart takes nothing back that it does not know."""
        seen = self.seen(f"{self.ADMITTED} — w1 unreachable since 2026-11-21T11:55:00Z; moves at ...")
        connecting = attrs.evolve(seen, workers=(attrs.evolve(seen.workers[0], reach=Connecting()),))
        assert decide(connecting).telling == ()

    def test_one_that_cannot_be_read_keeps_its_job(self) -> None:
        decided = decide(self.seen(reach=Opaque()))
        assert message_of(decided.telling[0]).endswith("w1: answers with more than may be read; stays there")

    def test_a_cluster_that_was_deleted_by_hand_is_told(self) -> None:
        lost = decide(self.seen(reach=Lost(MINUTES_AGO, seen=False), removed=True))
        assert message_of(lost.telling[0]).endswith("moves at 2026-11-21T12:10:00Z; its MultiKueueCluster is gone")
        runs = decide(self.seen(removed=True))
        assert "w1: has no MultiKueueCluster any more" in message_of(runs.telling[0])
