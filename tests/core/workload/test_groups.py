"""Several Workloads of one job: all of them on one worker, found by the first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.adapters import Membership, SafeAdapter, SyncRules
from multikueue.core.dispatchers.dispatcher import AllAtOnce
from multikueue.core.model.labels import PREBUILT_WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from tests.core.building import ADAPTER, EARLIER, NAMESPACE, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import AnnounceWorkload, Plan, Snapshot, Worker, decide
from tests.core.wording import words

GROUP = attrs.evolve(ADAPTER, membership=Membership(workloads=lambda job: 3))


def part(place: int | str, **facts: Any) -> Json:
    """A Workload of the group that says already what it waits for."""
    return workload(
        **{"said": "Waiting for the other parts of its group"} | facts, name=f"set-{place}", index=str(place)
    )


def group(local: Json, *workers: Worker, siblings: tuple[Json, ...]) -> Snapshot:
    return snapshot(local, *workers, siblings=siblings, adapter=GROUP)


class TestWaiting:
    def test_no_part_is_offered_until_all_exist(self) -> None:
        """A group that cannot be complete should not hold quota."""
        seen = group(part(0), worker("w1"), siblings=(part(1),))
        decided = decide(seen)
        assert (decided.effects, decided.row) == ((), "waiting group")

    def test_the_first_is_offered_once_all_exist(self) -> None:
        """It looks for a worker as any Workload does."""
        seen = group(part(0), worker("w1"), siblings=(part(1), part(2)))
        assert words(seen) == ["nominate w1", "create workload on w1"]

    @pytest.mark.parametrize("index", [1, 2, "odd"])
    def test_the_others_wait_for_it(self, index: int | str) -> None:
        """A part that does not say where it stands never goes first."""
        siblings = tuple(part(other) for other in (0, 1, 2, 3) if other != index)
        assert words(group(part(index), worker("w1"), siblings=siblings)) == []

    @pytest.mark.parametrize("over", [{"spec": {"active": False}}, {"finished": "Succeeded"}])
    def test_nobody_waits_for_a_part_that_will_not_come(self, over: dict[str, Any]) -> None:
        """One that is off gets no worker until somebody makes it active, and a replica runs without the others."""
        seen = group(part(1), worker("w1"), siblings=(part(0, **over), part(2)))
        assert words(seen) == ["nominate w1", "create workload on w1"]

    def test_a_part_without_an_index_is_never_the_first(self) -> None:
        """The known ones go without it."""
        assert words(group(part(1), worker("w1"), siblings=(part("odd"), part(2)))) == [
            "nominate w1",
            "create workload on w1",
        ]

    def test_copies_of_earlier_attempts_are_removed_while_parts_wait(self) -> None:
        """Waiting is no reason to hold a worker's quota."""
        local = part(1)
        seen = group(local, worker("w1", copy_of(local, attempt=EARLIER)), siblings=(part(0), part(2)))
        assert words(seen) == ["delete workload on w1"]

    def test_a_part_that_is_being_deleted_does_not_count(self) -> None:
        """Nor does one of an earlier job of the same name."""
        other = part(1)
        other["metadata"]["ownerReferences"][0]["uid"] = "uid-of-the-job-before"
        assert words(group(part(0), worker("w1"), siblings=(part(2, deleting=True), other))) == []

    def test_a_workload_without_a_group_does_not_wait(self) -> None:
        """Two Workloads of one plain job have nothing to do with each other."""
        seen = snapshot(workload(), worker("w1"), siblings=(workload(name="other", cluster="w2"),))
        assert words(seen) == ["nominate w1", "create workload on w1"]


class TestFollowing:
    PLACED = (part(0, cluster="w2", check="Ready"), part(2))

    def test_the_others_go_where_the_first_is(self) -> None:
        """Nominated for exactly that worker, or Kueue's webhook would refuse it as clusterName."""
        seen = group(part(1), worker("w1"), worker("w2"), siblings=self.PLACED)
        assert words(seen) == ["nominate w2", "create workload on w2"]

    def test_a_first_one_that_was_evicted_follows_the_others(self) -> None:
        """The group stays where most of it is."""
        siblings = (part(1, cluster="w2", check="Ready"), part(2))
        seen = group(part(0), worker("w1"), worker("w2"), siblings=siblings)
        assert words(seen) == ["nominate w2", "create workload on w2"]

    def test_it_shares_the_job_that_is_there(self) -> None:
        """The first part has made it; a second one of that name cannot be."""
        local = part(1, nominated=("w2",))
        running = job_copy_of(part(0), of=None)
        seen = group(local, worker("w2", copy_of(local, admitted=True), shared=running), siblings=self.PLACED)
        assert words(seen) == ["admit on w2 as Ready", "tell", "count cq w2"]

    def test_it_is_not_taken_by_another_worker(self) -> None:
        """A copy made before the group had a worker is removed."""
        local = part(1, nominated=("w1", "w2"))
        seen = group(local, worker("w1", copy_of(local, admitted=True)), worker("w2"), siblings=self.PLACED)
        assert sorted(words(seen)) == ["create workload on w2", "delete workload on w1", "nominate w2"]

    def test_a_group_on_a_worker_that_left_the_config_is_joined(self) -> None:
        """It is one job: with a part of it missing the others would wait, and never leave their worker."""
        seen = group(part(1), worker("w1"), worker("w2", configured=False), siblings=self.PLACED)
        assert words(seen) == ["nominate w2", "create workload on w2"]
        local = part(1, nominated=("w2",))
        gone = worker("w2", copy_of(local, admitted=True), configured=False, shared=job_copy_of(part(0), of=None))
        assert words(group(local, worker("w1"), gone, siblings=self.PLACED))[0] == "admit on w2 as Ready"

    def test_a_group_on_a_worker_that_is_removed_is_not_joined(self) -> None:
        """It is kept for what it runs, and gets nothing more."""
        seen = group(part(1), worker("w1"), worker("w2", configured=False, removed=True), siblings=self.PLACED)
        assert words(seen) == ["say Offered to no worker cluster — w1: not nominated yet"]

    def test_nothing_else_goes_to_a_worker_that_left_the_config(self) -> None:
        seen = group(part(0), worker("w1"), worker("w2", configured=False), siblings=(part(1), part(2)))
        assert words(seen) == ["nominate w1", "create workload on w1"]

    def test_a_split_group_is_told_and_left_alone(self) -> None:
        """An operator must evict one of the two parts."""
        siblings = (part(0, cluster="w2", check="Ready"), part(2, cluster="w1", check="Ready"))
        decided = decide(group(part(1), worker("w1"), worker("w2"), siblings=siblings))
        warning = 'Component workloads are assigned to different clusters: "w1" and "w2"'
        assert decided == Plan((AnnounceWorkload("Warning", warning),), row="split group")


class TestSharing:
    """The job of a group goes with its last part (adapters.md H3: Kueue's controller deletes it with the first)."""

    HERE = part(0, cluster="w1", check="Ready")

    @pytest.mark.parametrize(
        "leaving", [part(1, finished="Succeeded"), part(1, quota=False), part(1, deleting=True)], ids=lambda _: ""
    )
    def test_a_part_that_leaves_takes_only_its_own_workload(self, leaving: Json) -> None:
        """The other replicas run on."""
        made = copy_of(part(1), admitted=True)
        named = job_copy_of(part(1))
        seen = group(leaving, worker("w1", made, named), siblings=(self.HERE,))
        assert words(seen) == ["delete workload on w1"]

    def test_the_last_one_takes_the_job_along(self) -> None:
        """The Workload that created it is gone, or has another worker."""
        leaving = part(1, quota=False)
        for siblings in ((), (part(0, quota=False, deleting=True),)):
            seen = group(leaving, worker("w1", copy_of(part(1)), shared=job_copy_of(part(1))), siblings=siblings)
            assert words(seen) == ["delete job on w1"]  # the Workload copy keeps its quota until that is gone

    def test_a_job_that_names_no_workload_is_carried_by_the_first_of_those_left(self) -> None:
        """Kueue's own copies of a LeaderWorkerSet do not say whose they are."""
        unnamed = job_copy_of(part(0))
        unnamed["metadata"] |= {"annotations": {}, "labels": {}}
        away = worker("w1", copy_of(part(1)), shared=unnamed)
        assert words(group(part(1, quota=False), away, siblings=(part(2, quota=False),))) == ["delete job on w1"]
        assert words(group(part(1, quota=False), away, siblings=(part(0, quota=False),))) == ["delete workload on w1"]

    def test_a_deleted_part_leaves_the_job_to_the_others(self) -> None:
        """The LeaderWorkerSet was made smaller."""
        seen = snapshot(
            None, worker("w1", copy_of(part(1)), job_copy_of(part(0))), siblings=(self.HERE,), check=None, job={}
        )
        assert words(seen) == ["delete workload on w1"]

    def test_the_last_one_to_be_deleted_takes_the_job_along(self) -> None:
        """Its copy tells that it was part of a group; the part that the job names may have been deleted before."""
        made = worker("w1", copy_of(part(1)), shared=job_copy_of(part(0)))
        seen = attrs.evolve(snapshot(None, made, check=None, job={}), key=ObjectKey(NAMESPACE, "set-1"))
        assert words(seen) == ["delete job on w1"]

    def test_an_evicted_part_does_not_hold_its_quota_for_the_others_pods(self) -> None:
        """Once its own copy is removed, the job there is the others'."""
        leaving = part(1, evicted="Preempted", evictions=1)
        seen = group(leaving, worker("w1", shared=job_copy_of(self.HERE)), siblings=(self.HERE,))
        assert words(seen) == []

    def test_an_evicted_part_shows_what_still_stops_on_its_worker(self) -> None:
        """While its own copy is there, the job there is its, too: its quota is not free yet."""
        leaving = part(1, evicted="Preempted", evictions=1)
        stopping = worker("w1", copy_of(part(1), evicted=True), shared=job_copy_of(self.HERE))
        seen = snapshot(leaving, stopping, siblings=(self.HERE,), adapter=GROUP, job=job(status={"active": 2}))
        assert words(seen) == ["copy job status"]

    def test_a_part_with_quota_again_joins_the_job_of_the_others(self) -> None:
        """The copy is of its own earlier attempt, but the others' replicas run in it."""
        local = part(0, nominated=("w1",), evictions=1)
        others = (part(1, cluster="w1", check="Ready"), part(2, cluster="w1", check="Ready"))
        running = job_copy_of(local, attempt=EARLIER)
        seen = group(local, worker("w1", copy_of(local, admitted=True), running), siblings=others)
        assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1"]

    @pytest.mark.parametrize(
        "others", [(part(1, cluster="w1"), part(2, cluster="w1")), (part(1, quota=False, evictions=1),), ()], ids=len
    )
    @pytest.mark.parametrize("keeps_check_pending", [True, False])
    def test_a_part_that_has_joined_keeps_the_job(self, others: tuple[Json, ...], keeps_check_pending: bool) -> None:
        """It carries the job that it made in an earlier attempt, and goes on with it though the others leave."""
        local = part(0, cluster="w1", evictions=2)
        running = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local, attempt=EARLIER))
        seen = attrs.evolve(
            group(local, running, siblings=others),
            adapter=SafeAdapter(attrs.evolve(GROUP, keeps_check_pending=keeps_check_pending)),
            quiet_for=timedelta(hours=1),
        )
        assert words(seen)[:1] == (["copy job status"] if keeps_check_pending else ["admit on w1 as Ready"])

    def test_a_part_that_has_joined_waits_for_a_run_elsewhere(self) -> None:
        """On no other worker its group has a job."""
        local = part(0, cluster="w1", evictions=2)
        running = worker("w1", copy_of(local, admitted=True, owned=True), job_copy_of(local, attempt=EARLIER))
        left = worker("w2", None, job_copy_of(local, attempt=EARLIER))
        assert words(group(local, running, left, siblings=())) == ["copy job status", "delete job on w2"]

    @pytest.mark.parametrize(("index", "expected"), [(0, ["patch job on w1"]), (1, [])])
    def test_one_part_changes_the_job_for_all(self, index: int, expected: list[str]) -> None:
        """adapters.md H3: the copy follows the number of replicas, and is written once."""
        sized = attrs.evolve(GROUP, sync=SyncRules(forwarded=(("spec", "parallelism"),)))
        local = part(index, cluster="w1", check="Ready")
        rest = part(1 - index, cluster="w1", check="Ready")
        made = job_copy_of(part(0), of=job(parallelism=9))
        made["metadata"]["annotations"].pop(PREBUILT_WORKLOAD)
        made["metadata"]["labels"].pop(PREBUILT_WORKLOAD)
        seen = snapshot(
            local,
            worker("w1", copy_of(local, admitted=True), made),
            siblings=(rest,),
            adapter=sized,
            job=job(suspended=False, status={"active": 1}),
        )
        assert words(seen) == expected

    def test_a_job_left_from_an_earlier_attempt_of_all_is_stale(self) -> None:
        """Nobody runs on it: the first part removes it and makes it anew."""
        local = part(0, nominated=("w1",), evictions=1)
        seen = group(
            local,
            worker("w1", copy_of(local, admitted=True), job_copy_of(local, attempt=EARLIER)),
            siblings=(part(1), part(2)),
        )
        assert words(seen)[1:] == ["delete job on w1"]
        assert decide(seen).row.startswith("earlier run: ")


def test_the_group_decides_before_the_operators_dispatcher() -> None:
    """Whatever the operator's dispatcher would nominate."""
    seen = group(part(1), worker("w1"), worker("w2"), siblings=TestFollowing.PLACED)
    assert words(seen, AllAtOnce()) == ["nominate w2", "create workload on w2"]
