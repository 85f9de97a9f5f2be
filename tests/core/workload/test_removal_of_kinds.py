"""How the removal and its gate treat what is no plain job: groups, hidden kinds, slices, sets, what is another's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import attrs
import pytest

from multikueue import PlanSettings
from multikueue.adapters import AVAILABLE
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    ORIGIN_UID_ANNOTATION,
    PREBUILT_WORKLOAD,
    WORKLOAD_FINALIZER,
)
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import dig, with_value
from multikueue.core.model.workload_names import workload_name
from multikueue.core.model.workloads import SLICE_REPLACED, attempt, check
from tests.core.building import ADAPTER, CHECK, EARLIER, JOB_NAME, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    FINALIZER,
    HELD_UP,
    NAME_TAKEN,
    NOW,
    STOP,
    ApplyStatus,
    PatchJobStatus,
    PatchWorkload,
    Served,
    Snapshot,
    Syncing,
    Unserved,
    Worker,
    decide,
    notes,
    sole,
    those,
)
from tests.core.pods import BROKEN, DONE, RUNNING, copied, group, place, pod, seen
from tests.core.wording import words

STOPPING: Final = ["stop on w1", "delete job on w1 unless it is stopped"]


class TestPodGroups:
    """Kueue frees the pods of a group while it sees their Workload being deleted with its finalizer, and not later."""

    PLACED = group("a", "b", cluster="w1")
    PODS = (pod("a"), pod("b"))

    def words(self, status: Json | None, *, deleting: bool = False, **facts: Any) -> list[str]:
        return words(self.seen(status, deleting=deleting, **facts))

    def seen(self, status: Json | None, *, deleting: bool = False, **facts: Any) -> Snapshot:
        copy = copy_of(self.PLACED, admitted=True, owned=True, **facts)
        pods = [copied(self.PLACED, pod, status, deleting=deleting) for pod in self.PODS] if status else []
        return seen(group("a", "b", deleting=True), [], place("w1", copy, *pods))

    def test_one_that_runs_is_stopped_and_its_workload_copy_waits_for_the_pods(self) -> None:
        assert self.words(RUNNING, held=True) == [STOPPING[0], *[STOPPING[1]] * 2]
        assert self.words(RUNNING, held=True, stopping=True, deleting=True) == []

    @pytest.mark.parametrize("status", [DONE, BROKEN], ids=["succeeded", "failed"])
    def test_the_workload_copy_goes_once_all_pods_have_ended_and_not_after_they_are_gone(self, status: Json) -> None:
        assert self.words(status, held=True, stopping=True, deleting=True) == ["delete workload on w1"]

    @pytest.mark.parametrize("status", [RUNNING, DONE, BROKEN], ids=["runs", "succeeded", "failed"])
    def test_the_copy_of_an_older_daemon_gets_kueues_finalizer_before_anything_is_deleted(self, status: Json) -> None:
        shown = self.seen(status)
        (there,) = shown.workers
        made_before = with_value(there.copy or {}, ("metadata", "finalizers"), [])
        effect = sole(
            PatchWorkload, decide(attrs.evolve(shown, workers=(attrs.evolve(there, copy=made_before),))).effects
        )
        assert effect.patch["metadata"]["finalizers"] == [WORKLOAD_FINALIZER]

    def test_without_pods_it_needs_none(self) -> None:
        assert self.words(None) == ["delete workload on w1"]

    @pytest.mark.parametrize(
        ("status", "ago", "expected"),
        [(DONE, 3600, []), (None, 9, []), (None, 10, ["patch workload on w1"])],
        ids=["a pod is there", "in time", "over"],
    )
    def test_kueue_takes_its_finalizer_off_and_we_do_only_where_it_does_not(
        self, status: Json | None, ago: int, expected: list[str]
    ) -> None:
        shown = self.seen(status, deleting=True, held=True)
        (there,) = shown.workers
        deleted = with_value(
            there.copy or {}, ("metadata", "deletionTimestamp"), timestamp(NOW - timedelta(seconds=ago))
        )
        copy = with_value(deleted, ("metadata", "finalizers"), [WORKLOAD_FINALIZER])
        shown = attrs.evolve(shown, workers=(attrs.evolve(there, copy=copy),))
        assert words(shown) == expected
        if not (status or expected):
            assert decide(shown).look_again == FINALIZER.total_seconds() - ago
        unread = attrs.evolve(shown.workers[0], jobs=(), kind=Syncing())
        assert words(attrs.evolve(shown, workers=(unread,))) == [], (
            "a process that has just begun has not read its pods"
        )

    @pytest.mark.parametrize(("kind", "expected"), [(Served(), ["patch workload on w1"]), (Syncing(), [])])
    def test_a_process_that_has_just_begun_reads_its_pods_first(
        self, kind: Served | Syncing, expected: list[str]
    ) -> None:
        copy = copy_of(self.PLACED, evicted=True, held=True, deleting=True)
        deleted = with_value(copy, ("metadata", "deletionTimestamp"), timestamp(NOW - FINALIZER))
        there = place("w1", with_value(deleted, ("metadata", "finalizers"), [WORKLOAD_FINALIZER]))
        shown = seen(group("a", "b", deleting=True), [], attrs.evolve(there, kind=kind))
        assert words(shown) == expected


class TestUnseenJobs:
    BEFORE = workload(cluster="w1", check="Ready")

    @pytest.mark.parametrize("how", ["hidden", "moved by another controller"])
    def test_it_is_stopped_before_its_workload_copy_goes(self, how: str) -> None:
        """Without the copy nothing would stop the job, or say whether it runs."""
        hidden: dict[str, Any] = {"kind": Unserved(timedelta(days=1))} if how == "hidden" else {}
        adapter = ADAPTER if hidden else attrs.evolve(ADAPTER, workload_only=True)

        def shown(quiet: timedelta = timedelta(0), **facts: Any) -> list[str]:
            there = worker("w1", copy_of(self.BEFORE, admitted=True, owned=True, **facts), **hidden)
            local = workload(deleting=True, cluster="w1")
            return words(snapshot(local, there, job={}, adapter=adapter, quiet_for=quiet))

        assert shown() == ["stop on w1"]
        assert shown(stopping=True) == []
        assert shown(evicted=True, finished="Failed") == ["delete workload on w1"]
        over = [] if hidden else ["delete workload on w1"]
        assert shown(STOP, stopping=True) == over, "what is hidden may run for as long as its Kueue has not said more"

    def test_what_its_worker_has_stopped_by_itself_is_asked_only_if_nothing_comes_of_the_deletion(self) -> None:
        there = worker("w1", copy_of(self.BEFORE, evicted=True), job_copy_of(self.BEFORE, deleting=True))
        for quiet, expected in ((timedelta(0), []), (HELD_UP, ["stop on w1"])):
            assert words(snapshot(workload(deleting=True), there, job={}, quiet_for=quiet)) == expected

    def test_a_job_that_somebody_deletes_is_stopped_once_its_workload_is_gone_here(self) -> None:
        there = worker("w1", copy_of(self.BEFORE, admitted=True, owned=True), job_copy_of(self.BEFORE, deleting=True))
        assert words(snapshot(None, there, job={}, check=None)) == ["stop on w1"]


class TestRayClusters:
    """KubeRay says `suspended` of a cluster once its pods are gone, and no more of one that is being deleted: that one
    outlives its pods by minutes where GCS fault tolerance cleans up after it.
    """

    KIND = next(kind for kind in AVAILABLE if kind.resource.gvk.kind == "RayCluster")
    LOCAL = workload(deleting=True, cluster="w1", owner=(KIND.resource.gvk.api_version, "RayCluster"))
    ENDS: Final[Json] = {"state": "ready", "conditions": [{"type": "RayClusterSuspending", "status": "True"}]}

    @pytest.mark.parametrize(
        ("suspended", "ago", "expected"),
        [(False, 9, []), (False, 10, ["delete job on w1"]), (True, 39, []), (True, 40, ["delete job on w1"])],
    )
    def test_one_that_its_kueue_has_suspended_has_its_pods_grace_before_it_is_deleted(
        self, suspended: bool, ago: int, expected: list[str]
    ) -> None:
        asked = copy_of(self.LOCAL, admitted=True, stopping=True)
        asked["status"]["conditions"][-1]["lastTransitionTime"] = timestamp(NOW - timedelta(seconds=ago))
        cluster = with_value(job_copy_of(self.LOCAL, status=self.ENDS), ("spec", "suspend"), suspended)
        there = worker("w1", asked, cluster)
        there = attrs.evolve(there, jobs=tuple(attrs.evolve(job, resource=self.KIND.resource) for job in there.jobs))
        quiet = timedelta(seconds=ago)
        shown = snapshot(self.LOCAL, there, job={}, adapter=self.KIND, quiet_for=quiet)
        assert words(shown) == expected
        if not expected:
            assert decide(shown).look_again == (40 if suspended else 10) - ago


class TestSlices:
    OLD, NEW = (workload_name(JOB.gvk, JOB_NAME, "uid-of-job", str(generation)) for generation in (1, 3))

    def old(self, **facts: Any) -> Json:
        return workload(name=self.OLD, elastic=True, cluster="w1", check="Ready", **facts)

    def test_a_job_that_runs_for_the_slice_before_does_not_wait_for_the_request_to_stop(self) -> None:
        """It names another Workload copy, so that request does not reach it."""
        new = workload(name=self.NEW, elastic=True, cluster="w1", evicted="Preempted")
        there = worker("w1", copy_of(new, admitted=True, owned=True), job_copy_of(self.old(), of=job(elastic=True)))
        shown = snapshot(new, there, job=job(elastic=True), siblings=(self.old(finished=SLICE_REPLACED),))
        assert [word for word in words(shown) if "job on" in word or "stop" in word] == [
            "stop on w1",
            "delete job on w1",
        ]


NEXT = workload(nominated=("w1", "w2"), evictions=1)


class TestGate:
    """What is seen on a worker, and is no earlier run of the job."""

    def row(self, there: Worker, local: Json = NEXT, **facts: Any) -> str:
        return decide(snapshot(local, there, worker("w2"), **facts)).row.partition(": ")[0]

    def test_while_one_is_seen_it_is_shut(self) -> None:
        assert self.row(worker("w1", None, job_copy_of(NEXT, attempt=EARLIER))) == "earlier run"

    def test_an_elastic_job_that_the_next_slice_takes_over(self) -> None:
        old = workload(name=TestSlices.OLD, elastic=True, cluster="w1", check="Ready")
        new = workload(name=TestSlices.NEW, elastic=True, replaces=TestSlices.OLD, evictions=1)
        there = worker("w1", copy_of(old, admitted=True, owned=True), job_copy_of(old, of=job(elastic=True)))
        assert self.row(there, new, job=job(elastic=True), siblings=(old,)) != "earlier run"

    def test_a_set_that_several_workloads_share(self) -> None:
        first = workload(name="first", index="0", cluster="w1", check="Ready")
        second = workload(name="second", index="1", evictions=1)
        there = worker("w1", None, shared=job_copy_of(first))
        assert self.row(there, second, siblings=(first,)) != "earlier run"

    @pytest.mark.parametrize("index", [0, 1])
    def test_a_set_of_an_earlier_attempt_shuts_it_for_all_that_share_it(self, index: int) -> None:
        """One of them carries and deletes it; it is no stale job of the other's own, and runs all the same."""
        parts = [
            workload(name=f"part-{number}", index=str(number), nominated=("w1", "w2"), evictions=1) for number in (0, 1)
        ]
        left = job_copy_of(parts[0], attempt=EARLIER)
        others = (parts[1 - index],)
        assert self.row(worker("w1", None, shared=left), parts[index], siblings=others) == "earlier run"
        deleted = {"deletionTimestamp": timestamp(NOW - timedelta(hours=1)), "finalizers": ["example.com/slow"]}
        ending = worker("w1", None, shared={**left, "metadata": {**left["metadata"], **deleted}})
        (note,) = notes(decide(snapshot(parts[index], ending, worker("w2"), siblings=others)))
        assert "should have ended by now: held by the finalizer example.com/slow" in note

    def test_a_copy_that_is_retained(self) -> None:
        done: Json = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
        copy = copy_of(NEXT, attempt=EARLIER, finished="Succeeded")
        assert self.row(worker("w1", copy, job_copy_of(NEXT, attempt=EARLIER, status=done))) != "earlier run"

    def test_another_managers(self) -> None:
        mark = Marks(b"of another manager").of(NEXT, attempt(NEXT), "w1")
        theirs = with_value(job_copy_of(NEXT), ("metadata", "annotations", ATTEMPT_ANNOTATION), mark)
        assert self.row(worker("w1", None, theirs)) != "earlier run"

    @pytest.mark.parametrize("elastic", [False, True])
    @pytest.mark.parametrize("deleting", [False, True])
    def test_a_job_that_had_the_name_before_keeps_its_worker_and_no_other(self, deleting: bool, elastic: bool) -> None:
        """It was deleted, and made again: the new one is another run, and cannot be created beside it."""
        local = workload(nominated=("w1", "w2"), evictions=1, elastic=elastic)
        named = ("metadata", "annotations", PREBUILT_WORKLOAD)
        before = with_value(job_copy_of(local, attempt=EARLIER, deleting=deleting), named, "before")
        before = with_value(before, ("metadata", "annotations", ORIGIN_UID_ANNOTATION), "of the job before")
        shown = snapshot(local, worker("w1", None, shared=before), worker("w2"))
        assert decide(shown).row == "pending: offer"
        assert [word for word in words(shown) if word.startswith("create")] == ["create workload on w2"]
        alone = attrs.evolve(shown, workers=shown.workers[:1])
        (written,) = (effect.object for effect in those(ApplyStatus, decide(alone).effects))
        assert NAME_TAKEN.why in (check(written, CHECK) or {})["message"]

    def test_one_that_has_ended_meanwhile_is_finished_and_never_ready(self) -> None:
        """A check that is Ready would have Kueue count it as running beside what still ends."""
        local = workload(cluster="w2", evictions=1)
        done = worker("w2", copy_of(local, admitted=True, owned=True, finished="Succeeded"))
        earlier = worker("w1", None, job_copy_of(local, attempt=EARLIER, deleting=True))
        assert "finish Succeeded" in words(snapshot(local, earlier, done))
        assert "admit on w2 as Ready" in words(snapshot(local, worker("w1"), done))

    def test_the_next_attempt_is_not_ready_before_it_is_open(self) -> None:
        local = workload(cluster="w2", evictions=1)
        runs = worker("w2", copy_of(local, admitted=True, owned=True), job_copy_of(local))
        earlier = worker("w1", None, job_copy_of(local, attempt=EARLIER, deleting=True))
        for before, ready in ((earlier, False), (worker("w1"), True)):
            assert ("admit on w2 as Ready" in words(snapshot(local, before, runs))) is ready


class TestHeldQuota:
    """Quota has a bound, the gate has none: neither a dead node nor a grace of a year keeps a preemptor waiting."""

    @pytest.mark.parametrize(
        ("grace", "limit", "seconds"),
        [(None, 300, 90), (40, 300, 100), (40, 20, 80), (365 * 86400, 3600, 360)],
        ids=["the usual", "grace", "the setting", "five minutes"],
    )
    def test_an_evicted_job_is_shown_to_have_stopped_though_its_copy_still_ends(
        self, grace: int | None, limit: int, seconds: int
    ) -> None:
        settings = PlanSettings(pod_grace_limit=timedelta(seconds=limit))
        pods = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": grace or 30}
        spec = {"podSets": [{"name": "main", "count": 1, "template": {"spec": pods}}]}

        def released(ago: int) -> bool:
            local = workload(cluster="w1", check="Ready", evicted="Preempted", evictions=1, spec=spec)
            local["status"]["conditions"][-1]["lastTransitionTime"] = timestamp(NOW - timedelta(seconds=ago))
            ends = job_copy_of(local, suspended=True, status={"active": 0, "terminating": 1}, deleting=True)
            there = worker("w1", copy_of(local, evicted=True), ends)
            quiet, shows_run = timedelta(seconds=ago), job(status={"active": 1})
            shown = snapshot(local, there, job=shows_run, last_worker=there.name, quiet_for=quiet)
            shows = those(PatchJobStatus, decide(shown, settings=settings).effects)
            return any(dig(effect.patch, "status", "active") == 0 for effect in shows)

        assert (released(seconds - 1), released(seconds)) == (False, True)
        again = workload(evictions=1, spec=spec)
        left = worker("w1", None, job_copy_of(again, attempt=EARLIER, deleting=True))
        assert decide(snapshot(again, left, worker("w2"), quiet_for=timedelta(days=1)), settings=settings).row == (
            "earlier run: give back"
        )

    def test_a_change_every_few_seconds_holds_nothing(self) -> None:
        """Its user annotates it, say, or something writes the copy again and again."""
        local = workload(cluster="w1", check="Ready", evicted="Preempted", evictions=1)
        local["status"]["conditions"][-1]["lastTransitionTime"] = timestamp(NOW - timedelta(hours=2))
        ends = job_copy_of(local, suspended=True, status={"active": 0, "terminating": 1}, deleting=True)
        seen = snapshot(local, worker("w1", copy_of(local, evicted=True), ends), job=job(status={"active": 1}))
        for quiet in (0, 9, 11):
            decided = decide(attrs.evolve(seen, quiet_for=timedelta(seconds=quiet), last_worker=ClusterName("w1")))
            assert [dig(effect.patch, "status", "active") for effect in those(PatchJobStatus, decided.effects)] == [0]

    def test_what_shows_that_it_has_stopped_is_not_shown_to_run_again(self) -> None:
        """It was sent back for what still ends: another bound would begin, and its quota is about to be free."""
        local = workload(evicted="Preempted", evictions=2)
        ends = job_copy_of(local, suspended=True, status={"active": 1, "terminating": 1}, deleting=True)
        seen = snapshot(local, worker("w1", None, ends), job=job(status={"active": 0}), last_worker="w1")
        assert not those(PatchJobStatus, decide(seen).effects)
