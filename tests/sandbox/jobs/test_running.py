"""The job runner on a cluster in memory, with virtual time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from multikueue.core.model.kinds import EVENT, JOB, POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.sandbox.apiserver.direct import DirectClient
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.jobs import DURATION_ANNOTATION, TRAP_ANNOTATION, JobRunner, RunnerOptions
from multikueue.sandbox.kinds import AVAILABLE
from multikueue.sandbox.kinds.pods import POD as PODS
from multikueue.sandbox.objects import owned_by
from multikueue.testing import InMemoryCluster
from multikueue.testing import running as running_in_background
from tests.sandbox.kueue.objects import condition, is_true, job
from tests.sandbox.kueue.world import World, wall_clock, world

pytestmark = pytest.mark.looptime

TEMPLATE: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


def plain(name: str = "j1", duration: str = "10s", **spec: Any) -> Json:
    """A Job that no queue has to let in."""
    return job(name, queue=None, annotations={DURATION_ANNOTATION: duration}, **spec)


def active(job: Json) -> bool:
    return bool((job.get("status") or {}).get("active"))


async def test_a_job_runs_as_long_as_it_says(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain())
        await cluster.job_when(active)
        assert looptime == 0
        await cluster.job_when(lambda job: is_true(job, "Complete"))
        assert looptime == 10


async def test_without_a_word_the_dice_decide(looptime: Any) -> None:
    options = RunnerOptions(mean=7, minimum=6, maximum=8)
    async with world(queues=False, options=options) as cluster:
        await cluster.create(job(queue=None))
        await cluster.job_when(lambda job: is_true(job, "Complete"))
        assert 6 <= looptime <= 8


async def test_suspending_stops_a_job_and_resuming_starts_its_time_again(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain())
        await cluster.job_when(active)
        await cluster.settle(9)
        await cluster.patch(JOB, "j1", {"spec": {"suspend": True}})
        stopped = await cluster.job_when(lambda job: is_true(job, "Suspended"))
        assert (active(stopped), "startTime" in stopped["status"]) == (False, False)
        await cluster.settle(100)
        await cluster.patch(JOB, "j1", {"spec": {"suspend": False}})
        await cluster.job_when(lambda job: is_true(job, "Complete"))
        assert looptime == 119


async def test_a_failure_rate_of_one_fails_everything() -> None:
    async with world(queues=False, options=RunnerOptions(failure_rate=1)) as cluster:
        await cluster.create(job(queue=None))
        failed = await cluster.job_when(lambda job: is_true(job, "Failed"))
        assert (condition(failed, "Failed") or ("", ""))[1] == "BackoffLimitExceeded"


async def test_many_jobs_run_side_by_side(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(*[plain(f"j{number}") for number in range(20)])
        for number in range(20):
            await cluster.job_when(lambda job: is_true(job, "Complete"), f"j{number}")
        assert looptime == 10


async def test_the_story_is_told_in_events() -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain(suspend=True))
        await cluster.job_when(lambda job: is_true(job, "Suspended"))
        await cluster.patch(JOB, "j1", {"spec": {"suspend": False}})
        await cluster.job_when(lambda job: is_true(job, "Complete"))
        await cluster.settle()
        notes = [(event["reason"], event["note"]) for event in (await cluster.client.list(EVENT)).items]
        assert sorted(notes) == [
            ("Completed", "Job completed"),
            ("Resumed", "Job resumed"),
            ("Suspended", "Job suspended"),
        ]


async def test_jobs_that_own_each_other_run_and_so_do_all_others(looptime: Any) -> None:
    """API servers take it: whoever may change a Job's owners ended the runner of all jobs, by a RecursionError."""
    async with world(queues=False) as cluster:
        first, second = [(await cluster.create(plain(name)))[0] for name in ("first", "second")]
        for name, owner in (("first", second), ("second", first), ("first", first)):
            await cluster.patch(JOB, name, {"metadata": {"ownerReferences": [owned_by(JOB, owner, controller=False)]}})
        await cluster.create(plain("other"))
        for name in ("first", "second", "other"):
            await cluster.job_when(lambda job: is_true(job, "Complete"), name)
        assert looptime == 10


async def test_a_deleted_job_is_forgotten_and_its_successor_starts_afresh(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain())
        await cluster.job_when(active)
        await cluster.settle(9)
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Background")
        await cluster.create(plain())
        await cluster.job_when(lambda job: is_true(job, "Complete"))
        assert looptime == 19


async def test_a_runner_that_starts_late_finishes_what_another_began() -> None:
    """The time of a running job starts again: how long it ran before is not on the object."""
    registry = Registry(clock=wall_clock)
    client = DirectClient(registry)
    registry.create_object(plain())
    with anyio.move_on_after(5):
        async with anyio.create_task_group() as first:
            await first.start(JobRunner(client, clock=wall_clock).run)
    assert active(await client.get(JOB, ObjectKey("default", "j1")))
    with anyio.move_on_after(11):
        async with anyio.create_task_group() as second:
            await second.start(JobRunner(client, clock=wall_clock).run)
    assert is_true(await client.get(JOB, ObjectKey("default", "j1")), "Complete")


def slow(name: str = "j1", trap: str = "25s", grace: int = 40, **spec: Any) -> Json:
    """A Job whose pods go on after SIGTERM."""
    made = job(name, queue=None, annotations={DURATION_ANNOTATION: "1h", TRAP_ANNOTATION: trap}, **spec)
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = grace
    return made


def ending(job: Json) -> tuple[int, int]:
    """How many pods its status counts as active and as terminating."""
    return job["status"].get("active", 0), job["status"]["terminating"]


async def pods_of(cluster: World) -> list[Json]:
    return [pod for pod in (await cluster.client.list(POD)).items if pod["status"].get("phase") == "Running"]


async def running(cluster: World, pods: int = 1) -> None:
    await cluster.job_when(active)
    await cluster.settle()
    assert len(await pods_of(cluster)) == pods


@pytest.mark.parametrize(("trap", "grace", "seconds"), [("25s", 40, 25), ("25s", 10, 10), ("1h", 0, 0)])
async def test_a_suspended_job_says_how_many_pods_have_yet_to_end(trap: str, grace: int, seconds: int) -> None:
    """As kube-controller-manager does: not active at once, terminating until the last pod is gone."""
    async with world(queues=False) as cluster:
        await cluster.create(slow(trap=trap, grace=grace, parallelism=2, completions=2))
        await running(cluster, 2)
        begin = anyio.current_time()
        await cluster.patch(JOB, "j1", {"spec": {"suspend": True}})
        if seconds:
            stopped = await cluster.job_when(lambda job: is_true(job, "Suspended"))
            assert (ending(stopped), len(await pods_of(cluster))) == ((0, 2), 2)
            assert anyio.current_time() == begin
        await cluster.job_when(lambda job: ending(job) == (0, 0))
        assert (anyio.current_time() - begin, await pods_of(cluster)) == (seconds, [])


async def test_a_job_deleted_in_the_foreground_goes_when_its_pods_have_ended() -> None:
    async with world(queues=False) as cluster:
        await cluster.create(slow())
        await running(cluster)
        begin = anyio.current_time()
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Foreground")
        await cluster.job_when(lambda job: ending(job) == (0, 1))
        await cluster.gone(JOB, "j1")
        assert (anyio.current_time() - begin, await pods_of(cluster)) == (25, [])


async def test_a_job_deleted_in_the_background_leaves_pods_that_end_later() -> None:
    async with world(queues=False) as cluster:
        await cluster.create(slow())
        await running(cluster)
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Background")
        await cluster.gone(JOB, "j1")
        assert len(await pods_of(cluster)) == 1
        await cluster.settle(26)
        assert await pods_of(cluster) == []


async def test_without_blocking_references_nothing_but_the_pods_tells() -> None:
    """As of controllers that do not set `blockOwnerDeletion`."""
    async with world(queues=False, options=RunnerOptions(trap=25, blocking=False)) as cluster:
        await cluster.create(plain(duration="1h"))
        await running(cluster)
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Foreground")
        await cluster.gone(JOB, "j1")
        assert len(await pods_of(cluster)) == 1


async def test_a_finalizer_keeps_pods_running_until_the_job_is_deleted_in_the_foreground() -> None:
    """Nobody ends the pods of a Job that was deleted in the background and is still there; a second deletion does."""
    async with world(queues=False) as cluster:
        held = slow()
        held["metadata"]["finalizers"] = ["example.com/slow"]
        await cluster.create(held)
        await running(cluster)
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Background")
        await cluster.settle(100)
        assert (ending(await cluster.job()), len(await pods_of(cluster))) == ((1, 0), 1)
        begin = anyio.current_time()
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Foreground")
        await cluster.job_when(lambda job: ending(job) == (0, 1))
        await cluster.job_when(lambda job: ending(job) == (0, 0))
        assert (anyio.current_time() - begin, await pods_of(cluster)) == (25, [])
        await cluster.patch(JOB, "j1", {"metadata": {"finalizers": None}})
        await cluster.gone(JOB, "j1")


@pytest.mark.parametrize(("policy", "seconds"), [("TerminatingOrFailed", 0), ("Failed", 25)])
async def test_a_job_that_is_resumed_waits_for_old_pods_if_it_says_so(policy: str, seconds: int) -> None:
    async with world(queues=False) as cluster:
        await cluster.create(slow(podReplacementPolicy=policy))
        await running(cluster)
        begin = anyio.current_time()
        await cluster.patch(JOB, "j1", {"spec": {"suspend": True}})
        await cluster.job_when(lambda job: is_true(job, "Suspended"))
        await cluster.patch(JOB, "j1", {"spec": {"suspend": False}})
        await cluster.job_when(active)
        assert anyio.current_time() - begin == seconds


async def test_on_a_dead_node_nothing_ends_until_it_is_back() -> None:
    registry = Registry(clock=wall_clock)
    client = DirectClient(registry)
    registry.create_object(slow())
    runner = JobRunner(client, clock=wall_clock)
    async with running_in_background(registry.run_collector, runner.run):
        await anyio.sleep(1)
        runner.node_is_dead = True
        await client.delete(JOB, ObjectKey("default", "j1"), propagation="Foreground")
        await anyio.sleep(49)
        assert PODS.course.pods_ready((await client.list(POD)).items[0])
        await anyio.sleep(1000)
        (pod,) = (await client.list(POD)).items
        assert not PODS.course.pods_ready(pod)
        assert (pod["status"]["phase"], ending((await client.list(JOB)).items[0])) == ("Running", (0, 1))
        runner.node_is_dead = False
        await anyio.sleep(24)
        assert (await client.list(JOB)).items
        await anyio.sleep(2)
        assert not (await client.list(JOB)).items


async def test_a_job_of_no_completions_is_complete_while_it_is_suspended() -> None:
    async with world(queues=False) as cluster:
        await cluster.create(
            job("none", queue=None, completions=0, suspend=True), job("now", queue=None, completions=0)
        )
        done = await cluster.job_when(lambda job: is_true(job, "Complete"), "none")
        assert "startTime" not in done["status"]
        await cluster.job_when(lambda job: is_true(job, "Complete"), "now")


async def test_a_job_of_no_parallelism_waits_for_some() -> None:
    async with world(queues=False) as cluster:
        await cluster.create(plain(parallelism=0))
        await cluster.settle(100)
        assert not is_true(await cluster.job(), "Complete")
        await cluster.patch(JOB, "j1", {"spec": {"parallelism": 1}})
        await cluster.job_when(lambda job: is_true(job, "Complete"))


async def test_a_jobsets_pods_belong_to_jobs_and_deleted_in_the_foreground_it_goes_after_both() -> None:
    (kind,) = (kind for kind in AVAILABLE if kind.name == "jobset")
    cluster = InMemoryCluster(kinds=[kind])
    made = kind.example("s", TEMPLATE, queue="", delegated=False)
    del made["metadata"]["labels"]
    await cluster.put(kind.with_suspend(made, False))
    async with cluster.kueue(runner=RunnerOptions(mean=1000, minimum=1000, maximum=1000, trap=25)):
        await anyio.sleep(1)
        client = cluster.client()
        jobs, pods = (await client.list(JOB)).items, (await client.list(POD)).items
        assert sorted(name_of(job) for job in jobs) == ["s-leader-0", "s-workers-0"]
        assert sorted(pod["metadata"]["ownerReferences"][0]["name"] for pod in pods) == [
            "s-leader-0",
            "s-workers-0",
            "s-workers-0",
        ]
        await client.delete(kind.resource, ObjectKey("default", "s"), propagation="Foreground")
        await anyio.sleep(24)
        assert [len((await client.list(resource)).items) for resource in (kind.resource, JOB, POD)] == [1, 2, 3]
        await anyio.sleep(2)
        assert [len((await client.list(resource)).items) for resource in (kind.resource, JOB, POD)] == [0, 0, 0]


async def test_kinds_say_in_their_own_words_that_their_pods_end() -> None:
    """A RayCluster is ready until they have gone; a JobSet says nothing."""
    jobset, raycluster = (kind for kind in AVAILABLE if kind.name in ("raycluster", "jobset"))
    kinds = (jobset, raycluster)
    cluster = InMemoryCluster(kinds=kinds)
    for kind in kinds:
        made = kind.example(kind.name, TEMPLATE, queue="", delegated=False)
        del made["metadata"]["labels"]
        await cluster.put(kind.with_suspend(made, False))
    async with cluster.kueue(runner=RunnerOptions(mean=1000, minimum=1000, maximum=1000, trap=25)):
        await anyio.sleep(1)
        for kind in kinds:
            stored = await cluster.get(kind.resource, kind.name)
            await cluster.client().replace(kind.resource, kind.with_suspend(stored or {}, True))
        await anyio.sleep(1)
        jobs, ray = [await cluster.get(kind.resource, kind.name) or {} for kind in kinds]
        assert (ray["status"]["state"], is_true(ray, "RayClusterSuspending")) == ("ready", True)
        assert (raycluster.course.is_active(ray), jobset.course.is_active(jobs)) == (True, False)
        assert len((await cluster.client().list(POD)).items) == 2 + 3
        await anyio.sleep(25)
        ray = await cluster.get(raycluster.resource, "raycluster") or {}
        assert (ray["status"]["state"], is_true(ray, "RayClusterSuspending")) == ("suspended", False)
        assert (await cluster.client().list(POD)).items == []


async def test_a_job_past_its_deadline_fails_when_its_pods_have_gone(looptime: Any) -> None:
    async with world(queues=False, options=RunnerOptions(trap=5)) as cluster:
        await cluster.create(plain(activeDeadlineSeconds=3))
        late = await cluster.job_when(lambda job: is_true(job, "FailureTarget"))
        assert (looptime, is_true(late, "Failed")) == (3, False)
        failed = await cluster.job_when(lambda job: is_true(job, "Failed"))
        assert (looptime, condition(failed, "Failed")) == (8, condition(late, "FailureTarget"))
        assert (await cluster.client.list(POD)).items == []


@pytest.mark.parametrize("manager", ["", "kueue.x-k8s.io/multikueue"])
async def test_a_job_with_a_time_to_live_is_deleted_after_its_end_whoever_runs_it(looptime: Any, manager: str) -> None:
    async with world(queues=False) as cluster:
        spec = {"managedBy": manager} if manager else {}
        await cluster.create(plain(ttlSecondsAfterFinished=7, **spec))
        if manager:
            ended = [
                {
                    "type": kind,
                    "status": "True",
                    "reason": "r",
                    "message": "m",
                    "lastTransitionTime": "2026-11-21T04:00:10Z",
                }
                for kind in ("SuccessCriteriaMet", "Complete")
            ]
            times = {"startTime": "2026-11-21T04:00:00Z", "completionTime": "2026-11-21T04:00:10Z"}
            made = await cluster.job()
            await cluster.client.replace(JOB, {**made, "status": {"conditions": ended, **times}}, subresource="status")
        await cluster.gone(JOB, "j1")
        assert looptime == 17


async def test_a_pod_past_its_deadline_fails(looptime: Any) -> None:
    async with world(queues=False) as cluster:
        pod = {**plain(), "apiVersion": "v1", "kind": "Pod", "spec": {**TEMPLATE["spec"], "activeDeadlineSeconds": 3}}
        await cluster.create(pod)
        failed = await cluster.when(POD, lambda pod: (pod.get("status") or {}).get("phase") == "Failed")
        assert (looptime, failed["status"]["reason"]) == (3, "DeadlineExceeded")
        assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1


async def test_pods_of_a_set_have_a_volume_for_each_claim_that_it_makes() -> None:
    """Their containers mount it by name: without it the server refused each pod, and the set waited without end."""
    cluster = InMemoryCluster(kinds=[kind for kind in AVAILABLE if kind.name in ("statefulset", "pod")])
    container = {**TEMPLATE["spec"]["containers"][0], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": [container]}}
    spec = {
        "serviceName": "s",
        "selector": {"matchLabels": {"app": "s"}},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
    }
    await cluster.put(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "s", "namespace": "default"},
            "spec": spec,
        }
    )
    async with cluster.kueue(runner=RunnerOptions()):
        await anyio.sleep(2)
        (pod,) = (await cluster.client().list(POD)).items
        assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-s-0"}}]
        assert pod["status"]["phase"] == "Running"
