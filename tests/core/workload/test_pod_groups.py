"""A pod group: one Workload, several pods, each with a copy of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import RETRY_ANNOTATION, STARTED_LABELS, WORKLOAD_FINALIZER
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import with_value
from multikueue.core.model.workloads import has_members
from tests.core.building import KEY, NAMESPACE, condition, copy_of, snapshot, workload
from tests.core.door import (
    END_SHOWN,
    FINISHING,
    NOW,
    STEADY,
    VANISHED,
    CreateJob,
    DeleteJob,
    Effect,
    Lost,
    PatchJobStatus,
    PatchWorkload,
    Plan,
    Snapshot,
    decide,
    sole,
    those,
)
from tests.core.pods import BROKEN, DONE, GROUP, PENDING, POD, RUNNING, copied, group, place, pod, seen
from tests.core.wording import words

NOMINATED = group("a", "b", nominated=("w1",))
PLACED = group("a", "b", cluster="w1")
W1 = ClusterName("w1")
QUIET = timedelta(minutes=1)


def names(decided: Plan, kind: type[Effect]) -> list[str]:
    """Which pods effects of one kind are about."""
    effects: list[Any] = [effect for effect in decided.effects if isinstance(effect, kind)]
    return [
        effect.object["metadata"]["name"] if isinstance(effect, CreateJob) else effect.key.name for effect in effects
    ]


def admitted(local: Json, **facts: Any) -> Json:
    return copy_of(local, admitted=True, **facts)


class TestHandingOver:
    def test_every_member_gets_a_copy(self) -> None:
        """The worker's Kueue starts the group when its pods are there."""
        decided = decide(seen(PLACED, [pod("b"), pod("a")], place("w1", admitted(PLACED))))
        assert names(decided, CreateJob) == ["a", "b"]
        assert len(decided.effects) == 2

    def test_its_worker_is_recorded_before_any_pod_is_made(self) -> None:
        assert words(seen(NOMINATED, [pod("a"), pod("b")], place("w1", admitted(NOMINATED)))) == [
            "admit on w1 as Pending",
            "tell",
            "count cq w1",
        ]

    def test_pods_that_are_there_already_are_taken_over_and_the_check_stays_pending(self) -> None:
        """Ready would open the gates on the manager (design D14)."""
        pods = [pod("a"), pod("b")]
        shown = seen(NOMINATED, pods, place("w1", admitted(NOMINATED), *(copied(NOMINATED, pod) for pod in pods)))
        assert words(shown) == ["admit on w1 as Pending", "tell", "count cq w1"]

    def test_only_what_is_missing_is_made(self) -> None:
        """A creation failed in the middle, or a process ended there."""
        decided = decide(seen(PLACED, [pod("a"), pod("b")], place("w1", admitted(PLACED), copied(PLACED, pod("a")))))
        assert names(decided, CreateJob) == ["b"]

    @pytest.mark.parametrize("other", [pod("b", DONE), pod("b", BROKEN), pod("b", deleting=True)], ids=lambda _: "")
    def test_what_has_ended_or_is_going_is_not_run_again(self, other: Json) -> None:
        """adapters.md H5: Kueue's controller makes copies of such pods, too."""
        decided = decide(seen(PLACED, [pod("a"), other], place("w1", admitted(PLACED))))
        assert names(decided, CreateJob) == ["a"]

    def test_pods_of_an_earlier_attempt_go_first(self) -> None:
        """They may have run; the names are free afterwards."""
        left = copied(PLACED, pod("a"), stale=True)
        shown = seen(PLACED, [pod("a")], place("w1", admitted(PLACED), left))
        assert words(shown) == ["delete job on w1"]

    def test_a_group_of_which_no_pod_can_be_seen_waits(self) -> None:
        """The Workload's watch was faster."""
        assert decide(seen(NOMINATED, [], place("w1", admitted(NOMINATED)))).row == "job unknown"

    def test_a_pod_that_is_not_noted_as_owner_counts_as_a_member_too(self) -> None:
        """Kueue adds owners as it goes; the first one may have been replaced."""
        decided = decide(seen(PLACED, [pod("z")], place("w1", admitted(PLACED))))
        assert names(decided, CreateJob) == ["z"]


class TestFollowing:
    def test_each_pod_shows_what_its_copy_does(self) -> None:
        """And one that shows it already is not written."""
        shown = seen(
            PLACED,
            [pod("a"), pod("b", RUNNING)],
            place("w1", admitted(PLACED), copied(PLACED, pod("a")), copied(PLACED, pod("b"))),
        )
        patch = sole(PatchJobStatus, decide(shown).effects)
        assert (patch.key.name, patch.patch["status"]) == ("a", {"phase": "Running"})

    def test_a_replacement_gets_its_copy(self) -> None:
        """The user replaced a pod that failed."""
        shown = seen(
            PLACED,
            [pod("a", BROKEN), pod("c")],
            place("w1", admitted(PLACED), copied(PLACED, pod("a"), BROKEN)),
        )
        assert names(decide(shown), CreateJob) == ["c"]

    @pytest.mark.parametrize("gone", [[], [pod("b", deleting=True)]], ids=["gone", "on its way out"])
    def test_a_pod_deleted_on_the_manager_takes_its_copy_along(self, gone: list[Json]) -> None:
        """Whoever deletes a pod wants it to stop."""
        both = copied(PLACED, pod("a")), copied(PLACED, pod("b"))
        decided = decide(seen(PLACED, [pod("a", RUNNING), *gone], place("w1", admitted(PLACED), *both)))
        assert decided.effects == (DeleteJob(W1, POD.resource, ObjectKey(NAMESPACE, "b"), "copy-b", "Background"),)

    @pytest.mark.parametrize("end", [BROKEN, DONE], ids=["failed", "exited with 0"])
    def test_a_pod_that_was_deleted_there_has_ended_as_on_one_cluster(self, end: Json) -> None:
        """A drained node does it. The Kueue there keeps it, and waits for one of another name: nobody made that."""
        going = copied(PLACED, pod("a"), end, deleting=True)
        shown = seen(PLACED, [pod("a"), pod("b")], place("w1", admitted(PLACED), going, copied(PLACED, pod("b"))))
        statuses = {
            effect.key.name: effect.patch["status"]["phase"] for effect in those(PatchJobStatus, decide(shown).effects)
        }
        assert statuses == {"a": end["phase"], "b": "Running"}
        assert names(decide(shown), CreateJob) == []

    def test_one_that_was_deleted_before_it_had_a_node_has_failed(self) -> None:
        """Kueue counts it as one to be replaced, and no kubelet ever says how it ended."""
        going = copied(PLACED, pod("a"), PENDING, deleting=True)
        shown = seen(PLACED, [pod("a")], place("w1", admitted(PLACED), going))
        patch = sole(PatchJobStatus, decide(shown).effects)
        assert patch.patch["status"]["phase"] == "Failed"

    def test_one_that_kueue_has_deleted_there_runs_again(self) -> None:
        """It says so on the pod, before the Workload copy may show that it is evicted."""
        stopped = {**BROKEN, "conditions": [condition("TerminationTarget", "Preempted")]}
        going = copied(PLACED, pod("a"), stopped, deleting=True)
        assert decide(seen(PLACED, [pod("a")], place("w1", admitted(PLACED), going))).effects == ()

    def test_a_replacement_of_a_pod_that_was_deleted_there_gets_its_copy(self) -> None:
        """The old one is not made again, whether the Kueue there has let go of it or not."""
        failed, new = pod("a", BROKEN), pod("a2")
        going = copied(PLACED, failed, BROKEN, deleting=True)
        before = place("w1", admitted(PLACED), going, copied(PLACED, pod("b")))
        assert names(decide(seen(PLACED, [failed, new, pod("b")], before)), CreateJob) == ["a2"]
        after = place("w1", admitted(PLACED), copied(PLACED, new), copied(PLACED, pod("b")))
        assert names(decide(seen(PLACED, [failed, new, pod("b")], after)), CreateJob) == []

    def test_a_pod_of_the_same_name_is_another_pod(self) -> None:
        """Its predecessor's copy goes first, and says nothing about it."""
        old, new = pod("b", uid="uid-before"), pod("b", uid="uid-now")
        both = copied(PLACED, pod("a")), copied(PLACED, old, BROKEN)
        decided = decide(seen(PLACED, [pod("a", RUNNING), new], place("w1", admitted(PLACED), *both)))
        assert decided.effects == (DeleteJob(W1, POD.resource, ObjectKey(NAMESPACE, "b"), "copy-b", "Background"),)

    def test_a_live_pod_whose_copy_vanished_is_made_again(self) -> None:
        """Somebody has taken Kueue's finalizer off it: the worker's group waits for it."""
        shown = seen(
            PLACED, [pod("a", RUNNING), pod("b", RUNNING)], place("w1", admitted(PLACED), copied(PLACED, pod("a")))
        )
        assert names(decide(shown), CreateJob) == ["b"]

    @pytest.mark.parametrize("other", [pod("b", DONE), pod("b", deleting=True)], ids=["ended", "on its way out"])
    def test_one_that_has_ended_or_is_going_is_not_made_again(self, other: Json) -> None:
        """adapters.md H5."""
        shown = seen(PLACED, [pod("a", RUNNING), other], place("w1", admitted(PLACED), copied(PLACED, pod("a"))))
        assert decide(shown).effects == ()

    def test_a_group_that_vanished_is_tried_again(self) -> None:
        """But not before its end may have been told."""
        shown = seen(PLACED, [pod("a", RUNNING)], place("w1", admitted(PLACED, owned=True)))
        assert decide(shown).look_again == VANISHED.total_seconds()
        assert words(attrs.evolve(shown, quiet_for=QUIET)) == ["retry: Admitting remote no longer exists"]

    def test_an_eviction_on_the_worker_sends_it_back(self) -> None:
        """As for any kind."""
        made = copy_of(PLACED, admitted=True, evicted=True)
        shown = seen(PLACED, [pod("a", RUNNING)], place("w1", made, copied(PLACED, pod("a"))))
        assert words(shown) == ['retry: Workload evicted on worker cluster: "w1"', "tell"]


class TestFinishing:
    def ended(self, *statuses: Json, **facts: Any) -> Snapshot:
        pods = [pod(name) for name in ("a", "b")]
        copies = [copied(PLACED, pod, status) for pod, status in zip(pods, statuses, strict=False)]
        return seen(PLACED, pods, place("w1", copy_of(PLACED, finished="Succeeded"), *copies), **facts)

    def test_every_status_is_synced_first(self) -> None:
        """The manager's Kueue finishes the group by them."""
        shown = self.ended(DONE, DONE)
        assert words(shown) == ["copy job status", "copy job status"]

    def test_a_pod_whose_watch_is_behind_is_waited_for(self) -> None:
        assert decide(self.ended(DONE, RUNNING)).look_again == END_SHOWN.total_seconds()

    def test_where_kueue_does_not_we_finish_it(self) -> None:
        """A pod that had run before the last eviction is not among the copies."""
        shown = seen(
            PLACED,
            [pod("a", DONE), pod("b", DONE)],
            place("w1", copy_of(PLACED, finished="Succeeded"), copied(PLACED, pod("b"), DONE)),
            quiet_for=QUIET,
        )
        assert words(shown) == ["finish Succeeded"]

    def test_a_finished_workload_takes_all_pods_along(self) -> None:
        """Once their last status is synced to the manager."""
        over = group("a", "b", cluster="w1", finished="Succeeded")
        copies = copied(over, pod("a"), DONE), copied(over, pod("b"), DONE)
        shown = seen(over, [pod("a", DONE)], place("w1", admitted(over), *copies))
        assert words(shown) == ["delete job on w1", "delete job on w1", "delete workload on w1"]
        behind = seen(over, [pod("a")], place("w1", admitted(over), *copies))
        assert words(behind) == ["copy job status"]

    def test_pods_of_a_finished_copy_go_before_it(self) -> None:
        """A pod made again as the group ended there bears Kueue's finalizer until Kueue has seen it beside that."""
        over = group("a", "b", cluster="w1", finished="Succeeded")
        copy = with_value(copy_of(over, finished="Succeeded"), ("metadata", "finalizers"), [])
        copies = copied(over, pod("a"), DONE), copied(over, pod("b"))
        assert words(seen(over, [pod("a", DONE)], place("w1", copy, *copies))) == ["delete job on w1"] * 2
        going = copied(over, pod("b"), deleting=True)
        assert words(seen(over, [pod("a", DONE)], place("w1", copy, going))) == []
        assert words(seen(over, [pod("a", DONE)], place("w1", copy))) == ["delete workload on w1"]

    def test_a_pod_that_is_deleted_on_both_sides_shows_its_end_with_that_of_the_group(self) -> None:
        """Nothing else tells the manager's Kueue, which began the group anew for ever: it retries no pod."""
        over = admitted(PLACED, finished="Failed")
        copies = copied(PLACED, pod("a"), BROKEN, deleting=True), copied(PLACED, pod("b"), BROKEN, deleting=True)
        shown = seen(PLACED, [pod("a", BROKEN), pod("b", RUNNING, deleting=True)], place("w1", over, *copies))
        patch = sole(PatchJobStatus, decide(shown).effects)
        assert (patch.key.name, patch.patch["status"]["phase"]) == ("b", "Failed")

    def test_pods_that_outlive_their_workload_there_tell_the_end(self) -> None:
        """The worker's retention removed it."""
        copies = copied(PLACED, pod("a"), DONE), copied(PLACED, pod("b"), DONE)
        shown = seen(PLACED, [pod("a", DONE), pod("b", DONE)], place("w1", None, *copies))
        assert words(attrs.evolve(shown, quiet_for=FINISHING)) == ["finish Succeeded"]

    def test_as_long_as_one_may_be_replaced_there_is_no_end(self) -> None:
        """The Workload is tried again."""
        copies = copied(PLACED, pod("a"), DONE), copied(PLACED, pod("b"), BROKEN)
        shown = seen(PLACED, [pod("a", DONE), pod("b", BROKEN)], place("w1", None, *copies))
        assert words(shown) == ["retry: Admitting remote no longer exists"]


class TestRemoving:
    COPIES = copied(PLACED, pod("a")), copied(PLACED, pod("b"))

    def test_every_pod_goes_though_the_managers_are_gone(self) -> None:
        """adapters.md H4: Kueue's controller looks for names among the manager's pods."""
        idle = group("a", "b", quota=False)
        shown = seen(idle, [], place("w1", copy_of(PLACED), *self.COPIES))
        assert words(shown) == ["delete job on w1", "delete job on w1"]  # the Workload copy goes after them

    def test_every_pod_goes_though_the_workload_is_gone(self) -> None:
        """adapters.md H6: deleted while the worker could not be reached."""
        shown = attrs.evolve(
            snapshot(None, place("w1", None, *self.COPIES), check=None, job={}), key=ObjectKey(NAMESPACE, GROUP)
        )
        assert words(shown) == ["delete job on w1", "delete job on w1"]

    def test_the_copy_of_an_older_daemon_gets_kueues_finalizer_first(self) -> None:
        """Without it the pods would stay for ever: Kueue lets go of them while it sees the copy being deleted (T9)."""
        idle = group("a", "b", quota=False)
        older = copy_of(PLACED)
        older["metadata"].pop("finalizers", None)
        ended = [copied(PLACED, pod(name), BROKEN, deleting=True) for name in ("a", "b")]
        patch = sole(PatchWorkload, decide(seen(idle, [], place("w1", older, *ended))).effects)
        assert patch.patch["metadata"]["finalizers"] == [WORKLOAD_FINALIZER]
        older["metadata"]["finalizers"] = [WORKLOAD_FINALIZER]
        assert words(seen(idle, [], place("w1", older, *ended))) == ["delete workload on w1"]

    def test_a_pod_that_is_going_is_not_deleted_again(self) -> None:
        going = copied(PLACED, pod("a"), deleting=True)
        shown = seen(group("a", quota=False), [pod("a")], place("w1", None, going))
        assert words(shown) == []


class TestDeletedByItsPods:
    """Kueue holds deleted pods of a group, as it waits for others in their place, and gives it quota again (E1)."""

    OFFERED = group("a", "b", nominated=("w1",))
    GOING: ClassVar = [pod("a", deleting=True), pod("b", deleting=True)]
    OVER = "finish Failed"

    @pytest.mark.parametrize(
        "local",
        [OFFERED, PLACED, group("a", "b", quota=False), group("a", "b", evicted="Preempted", evictions=1)],
        ids=["offered", "recorded", "without quota", "evicted"],
    )
    def test_one_that_runs_nowhere_is_finished(self, local: Json) -> None:
        """Then Kueue lets go of the pods, and they take the Workload along."""
        assert words(seen(local, self.GOING, place("w1", None), quiet_for=QUIET)) == [self.OVER]

    def test_it_gives_back_the_quota_of_workers_at_once(self) -> None:
        """And is finished a moment later: somebody may be about to create other pods."""
        shown = seen(self.OFFERED, self.GOING, place("w1", copy_of(self.OFFERED)))
        assert words(shown) == ["delete workload on w1"]
        assert decide(shown).look_again == STEADY.total_seconds()

    @pytest.mark.parametrize("staying", [pod("b"), pod("c")], ids=["one that stays", "one in the place of another"])
    def test_one_with_a_pod_that_stays_goes_on(self, staying: Json) -> None:
        shown = seen(self.OFFERED, [pod("a", deleting=True), staying], place("w1", None), quiet_for=QUIET)
        assert decide(shown).row == "pending: offer"

    def test_one_that_runs_goes_on_until_nothing_is_left_there(self) -> None:
        """As without us: pods may be replaced, also after they ran."""
        ends = copied(PLACED, pod("a"), deleting=True)
        shown = seen(PLACED, self.GOING, place("w1", admitted(PLACED), ends), quiet_for=QUIET)
        assert self.OVER not in words(shown)
        away = place("w1", None, reach=Lost())
        assert self.OVER not in words(seen(PLACED, self.GOING, away, quiet_for=QUIET))

    def test_it_is_finished_once(self) -> None:
        over = group("a", "b", finished="Failed")
        assert words(seen(over, self.GOING, place("w1", None), quiet_for=QUIET)) == []


class TestEvicting:
    LEAVING = group("a", "b", evicted="Preempted", evictions=1, cluster="w1")

    def test_it_is_stopped_as_a_whole(self) -> None:
        """By the worker's Kueue, which deletes the pods with their grace period."""
        copies = copied(PLACED, pod("a")), copied(PLACED, pod("b"))
        shown = seen(self.LEAVING, [pod("a", RUNNING), pod("b", RUNNING)], place("w1", admitted(PLACED), *copies))
        assert words(shown) == ["stop on w1", *["delete job on w1 unless it is stopped"] * 2]

    def test_each_pod_is_released_when_its_copy_is(self) -> None:
        """The manager's Kueue holds the quota while one shows that it runs."""
        stopping = copy_of(PLACED, admitted=True, evicted=True)
        shown = seen(
            self.LEAVING,
            [pod("a", RUNNING), pod("b", RUNNING)],
            place("w1", stopping, copied(PLACED, pod("b"), deleting=True)),
        )
        patch = sole(PatchJobStatus, decide(shown).effects)
        assert (patch.key.name, patch.patch["status"]) == ("a", {"phase": "Pending"})

    def test_without_copies_all_are_released(self) -> None:
        shown = seen(self.LEAVING, [pod("a", RUNNING), pod("b", DONE)], place("w1", None))
        patch = sole(PatchJobStatus, decide(shown).effects)
        assert patch.key.name == "a"

    def test_pods_that_lost_their_quota_do_not_look_as_if_they_ran(self) -> None:
        """Kueue takes a single pod's quota at once, whatever it shows."""
        idle = group("a", quota=False)
        shown = seen(idle, [pod("a", RUNNING)], place("w1", None))
        assert words(shown) == ["copy job status"]
        assert words(seen(idle, [pod("a")], place("w1", None))) == []

    def test_a_pod_that_runs_on_the_manager_is_left_alone(self) -> None:
        """It was started before its queue led to workers: it is neither copied nor told that it stands."""
        here, offered = pod("a", RUNNING), group("a", nominated=("w1",))
        here["metadata"]["labels"][STARTED_LABELS[0]] = "main"
        here["spec"]["schedulingGates"] = []
        assert words(seen(group("a", quota=False), [here], place("w1", None))) == []
        assert words(seen(offered, [here], place("w1", admitted(offered)))) == []

    def test_a_pod_made_from_what_was_shown_of_another_is_copied(self) -> None:
        """It has the labels of that one's start, and waits behind Kueue's gate; so does one that our own gate holds."""
        for gate in ("kueue.x-k8s.io/admission", "multikueue.dev/hold"):
            pasted, offered = pod("a"), group("a", nominated=("w1",))
            pasted["metadata"]["labels"][STARTED_LABELS[0]] = "main"
            pasted["spec"]["schedulingGates"] = [{"name": gate}]
            assert words(seen(offered, [pasted], place("w1", admitted(offered))))[0] == "admit on w1 as Pending"

    def test_not_while_one_may_still_run(self) -> None:
        """On a worker that cannot be reached."""
        idle = group("a", quota=False)
        away = place("w1", None, copied(PLACED, pod("a")), reach=Lost())
        assert words(seen(idle, [pod("a", RUNNING)], away)) == []


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, False),
        ({"kueue.x-k8s.io/is-group-workload": "true"}, True),
        (
            {"kueue.x-k8s.io/is-group-workload": "true", "kueue.x-k8s.io/job-owner-gvk": "apps/v1, Kind=StatefulSet"},
            False,
        ),
    ],
    ids=["a single pod", "a group", "the pods of a StatefulSet"],
)
def test_what_has_members(annotations: Json, expected: bool) -> None:
    """Sets of pods are one job, whose copy brings its own pods."""
    made = workload()
    made["metadata"]["annotations"] = annotations
    assert has_members(made) is expected
    assert ObjectKey.of(made) == KEY


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, []),
        ({"b": timestamp(NOW)}, [timestamp(NOW)]),
        ({"a": timestamp(NOW - timedelta(hours=1)), "b": timestamp(NOW)}, [timestamp(NOW)]),
        ({"a": timestamp(NOW - timedelta(hours=1))}, []),
        ({"a": "soon"}, []),
        ({"a": "soon", "b": timestamp(NOW)}, [timestamp(NOW)]),
    ],
    ids=["nobody", "on one pod", "the last counts", "before it was rejected", "no time", "one is no time"],
)
def test_one_that_a_check_has_rejected_is_active_again_once_a_pod_asks(
    asked: dict[str, str], expected: list[str]
) -> None:
    """Whoever submits the pods may patch them, and no Workload."""
    local = group("a", "b", quota=False, spec={"active": False})
    local["status"]["conditions"].append(condition("Evicted", "DeactivatedDueToAdmissionCheck"))
    pods = [pod("a"), pod("b")]
    for member in pods:
        if at := asked.get(member["metadata"]["name"]):
            member["metadata"]["annotations"][RETRY_ANNOTATION] = at
    patches = [effect.patch for effect in those(PatchWorkload, decide(seen(local, pods)).effects)]
    assert [patch["metadata"]["annotations"][RETRY_ANNOTATION] for patch in patches] == expected
    assert all(patch["spec"] == {"active": True} for patch in patches)
