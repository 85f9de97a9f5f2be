"""Mirrors of the pods of runs, on virtual time: made, kept like what they show, and taken away."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import anyio
import attrs
import pytest
from structlog.testing import capture_logs

from multikueue import PlanSettings
from multikueue.core.model.kinds import EVENT, JOB, LEASE, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, NAMESPACE, POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, name_of, uid
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import KeyQueue
from multikueue.sandbox import RunnerOptions
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.sandbox.setting_up import local_queue, namespace
from multikueue.testing import until
from multikueued.mirror_names import MIRROR, PROOF, WORKER, WORKER_POD, WORKER_POD_UID
from multikueued.mirrors.node import NODE, REACHABLE
from multikueued.mirrors.reconciler import MirrorReconciler
from multikueued.mirrors.status import LONGEST
from multikueued.reports.worker_facts import ShownPods
from multikueued.settings.config import Settings
from tests.mirrors.objects import a_pod
from tests.mirrors.showing import LONG, OFF, ON, Shown, prepared, showing
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime


def phase(pod: Json) -> str:
    """A pod's."""
    return str(dig(pod, "status", "phase"))


async def test_the_pods_of_a_run_are_shown() -> None:
    async with showing() as shown:
        await shown.fleet.submit(pods=2)
        mirrors = await shown.count(2)
        pods = {name_of(pod): pod for pod in await shown.pods()}
        job = await shown.fleet.admin.get(JOB, ObjectKey("default", "job"))

        for mirror in mirrors:
            pod = pods[name_of(mirror)]
            owner = mirror["metadata"]["ownerReferences"][0]
            assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", uid(job), True)
            assert dig(mirror, "spec", "nodeName") == "multikueue-worker1"
            assert phase(mirror) == phase(pod) == "Running"
            assert annotations_of(mirror)[WORKER_POD] == f"default/{name_of(pod)}"
            assert (annotations_of(mirror)[WORKER], annotations_of(mirror)[WORKER_POD_UID]) == ("worker1", uid(pod))
            assert labels_of(mirror)["batch.kubernetes.io/job-name"] == "job"
        assert await shown.nodes() == ["multikueue-worker1"]
        assert await shown.fleet.admin.get(LEASE, ObjectKey("kube-node-lease", "multikueue-worker1"))
        assert shown.refused == []


async def test_a_change_of_status_is_one_write_and_no_more_than_one_a_second() -> None:
    async with showing() as shown:
        await shown.fleet.submit()
        await shown.count(1)
        await anyio.sleep(5)
        assert (shown.writes("create"), shown.writes("patch")) == (1, 1)
        (pod,) = await shown.pods()
        for number in range(10):
            await shown.write(pod, message=f"step {number}")
            await anyio.sleep(0.1)

        async def shows_the_last() -> bool:
            (mirror,) = await shown.mirrors()
            return bool(dig(mirror, "status", "message") == "step 9")

        await until(shows_the_last)
        assert shown.writes("patch") <= 4
        before = shown.writes("patch")
        await anyio.sleep(300)
        assert shown.writes("patch") == before, "what is as it should be is not written"


async def test_what_others_write_on_a_mirror_is_put_right() -> None:
    """The node controller says Ready: False of all pods of a node that was silent."""
    async with showing() as shown:
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
        wrong = {"status": {"phase": "Failed", "reason": "NodeLost"}}
        await shown.fleet.admin.merge_patch(POD, ObjectKey.of(mirror), wrong, subresource="status")

        async def is_right() -> bool:
            (now,) = await shown.mirrors()
            return phase(now) == "Running" and dig(now, "status", "reason") is None

        await until(is_right, 5)


async def test_a_mirror_goes_with_its_pod() -> None:
    async with showing() as shown:
        await shown.fleet.submit()
        await shown.count(1)
        await shown.fleet.admin.delete(JOB, ObjectKey("default", "job"), propagation="Orphan")
        await shown.count(0)


async def test_what_a_pod_says_while_it_is_stopped_can_be_read_and_then_its_mirror_goes() -> None:
    async with showing(jobs=attrs.evolve(LONG, trap=25.0)) as shown:
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
        (pod,) = await shown.pods()
        await shown.evict()
        await until(lambda: _terminates(shown))
        await anyio.sleep(10)
        await shown.write(pod, message="last words")

        async def said() -> bool:
            (now,) = await shown.mirrors()
            return dig(now, "status", "message") == "last words" and uid(now) == uid(mirror)

        await until(said, 5)
        await shown.count(0)


async def test_a_pod_that_has_ended_and_stays_is_not_shown_any_more() -> None:
    """Somebody's finalizer may hold it for ever."""
    async with showing() as shown:
        await shown.fleet.submit()
        await shown.count(1)
        (pod,) = await shown.pods()
        await DirectClient(shown.fleet.workers["worker1"]).merge_patch(
            POD, ObjectKey.of(pod), {"metadata": {"finalizers": ["example.com/slow"]}}
        )
        await shown.evict()
        await until(shown.fleet.idle)
        await shown.count(0)
        assert len(await shown.pods()) == 1


async def _terminates(shown: Shown) -> bool:
    return all(map(is_terminating, await shown.pods()))


@pytest.mark.parametrize("grace", [None, 600])
async def test_somebodys_deletion_stands_until_the_pods_status_changes(grace: int | None) -> None:
    """With whatever grace, no kubelet is there to end it. Drain, podgc and users look the same: a mirror is a view, and
    we do not fight."""
    async with showing() as shown:
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
        await shown.fleet.admin.delete(POD, ObjectKey.of(mirror), grace=grace)
        await shown.count(0, 5)
        await anyio.sleep(200)
        assert await shown.mirrors() == []
        (pod,) = await shown.pods()
        assert phase(pod) == "Running", "the run goes on"
        await shown.write(pod, message="on")
        await shown.count(1, 10)


async def test_what_a_large_pod_says_takes_little_memory_and_no_room_on_the_manager() -> None:
    """One job of a tenant may have a thousand pods, with a megabyte of arguments in each."""
    async with showing() as shown:
        await shown.fleet.submit()
        await shown.count(1)
        worker = DirectClient(shown.fleet.workers["worker1"])
        job = await worker.get(JOB, ObjectKey("default", "job"))
        for name, field, value in (("args", "args", ["x" * 500_000]), ("ports", "ports", _ports(5_000))):
            pod = a_pod(name, job)
            pod["spec"]["containers"][0][field] = value
            await worker.create(POD, pod)
        mirrors = {name_of(mirror): mirror for mirror in await shown.count(2)}
        assert "args" not in mirrors["args"]["spec"]["containers"][0]
        assert shown.refused == ["NoPlace"]
        assert shown.counted() == {"worker1": ShownPods(2, 1)}
        (pod,) = [pod for pod in await shown.pods() if name_of(pod) == "args"]
        await shown.write(pod, phase="Running", message="x" * 100_000)

        async def runs() -> bool:
            (mirror,) = [mirror for mirror in await shown.mirrors() if name_of(mirror) == "args"]
            return phase(mirror) == "Running" and len(dig(mirror, "status", "message")) == LONGEST

        await until(runs, 10)


def _ports(count: int) -> list[Json]:
    return [{"name": f"p{number}", "containerPort": number + 1} for number in range(count)]


async def _refused(shown: Shown, seconds: float) -> None:
    """Submit a job whose mirror the manager refuses, and wait."""
    shown.fleet.manager.faults.add(Refuse(403), on=Match(user="mirrors", verbs=("create",), resource="pods"))
    await shown.fleet.submit()
    await until(shown.pods)
    await anyio.sleep(seconds)


async def test_a_refused_mirror_costs_one_request_for_each_status_and_the_job_nothing() -> None:
    """As by a quota on pods: one event on the job, a metric, and no more requests while nothing changes."""
    async with showing() as shown:
        await _refused(shown, 300)
        assert shown.writes("create") == 1
        assert len(shown.refused) == 1
        assert shown.counted() == {"worker1": ShownPods(0, 1)}
        assert await _events(shown) == [("Warning", "Job", "job", None)]
        job = await shown.fleet.admin.get(JOB, ObjectKey("default", "job"))
        assert (dig(job, "status", "active"), dig(job, "spec", "suspend")) == (1, False)
        (pod,) = await shown.pods()
        shown.fleet.manager.faults.clear()
        await shown.write(pod, message="on")
        await shown.count(1, 10)
        assert shown.counted() == {"worker1": ShownPods(1, 0)}


async def _events(shown: Shown) -> list[tuple[str, str, str, int | None]]:
    """Type, kind and name of the job, and how often it was said, of each that says that a pod is not shown."""
    events = [event for event in (await shown.fleet.admin.list(EVENT)).items if event["reason"] == "PodNotShown"]
    about = [(event, event["regarding"]) for event in events]
    return [(event["type"], of["kind"], of["name"], dig(event, "series", "count")) for event, of in about]


async def test_what_was_refused_is_tried_again_after_ten_minutes_whatever_its_status() -> None:
    """A quota has room by then; a pod that runs for days may not change its status meanwhile."""
    async with showing() as shown:
        await _refused(shown, 1500)
        assert shown.writes("create") == 3
        assert shown.counted() == {"worker1": ShownPods(0, 1)}
        shown.fleet.manager.faults.clear()
        await shown.count(1, 700)
        assert shown.counted() == {"worker1": ShownPods(1, 0)}


async def test_a_status_that_is_refused_costs_one_more_request_for_the_proof_and_one_event() -> None:
    async with showing() as shown:
        faults, patches = shown.fleet.manager.faults, Match(user="mirrors", verbs=("patch",), resource="pods")
        faults.add(Refuse(422), on=patches, times=1)
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
        assert phase(mirror) == "Pending"
        await anyio.sleep(200)
        assert (shown.writes("patch"), shown.refused) == (2, ["Invalid"])
        assert shown.counted() == {"worker1": ShownPods(1, 1)}
        (pod,) = await shown.pods()
        await shown.write(pod, message="on")
        await until(lambda: _says(shown, "on"), 10)
        assert shown.counted() == {"worker1": ShownPods(1, 0)}


async def test_what_is_not_proven_yet_is_proven_for_what_it_was_made_for_alone() -> None:
    """A tenant may change the annotations of a mirror before it has its proof, where no policy keeps them."""
    async with showing() as shown:
        patches = Match(user="mirrors", verbs=("patch",), resource="pods")
        shown.fleet.manager.faults.add(Refuse(403), on=patches)
        await shown.fleet.submit("a")
        await shown.fleet.submit("b")
        await until(lambda: _so_many(shown, 2))
        first, second = await shown.mirrors()
        said = {name: annotations_of(second)[name] for name in (WORKER, WORKER_POD, WORKER_POD_UID)}
        await shown.fleet.admin.merge_patch(POD, ObjectKey.of(first), {"metadata": {"annotations": said}})
        shown.fleet.manager.faults.clear()
        for pod in await shown.pods():
            await shown.write(pod, message="on")
        await shown.count(2)
        names = [annotations_of(mirror)[WORKER_POD] for mirror in await shown.mirrors()]
        assert len(set(names)) == 2
        assert uid(first) not in {uid(mirror) for mirror in await shown.mirrors()}


async def _so_many(shown: Shown, count: int) -> bool:
    return len(await shown.mirrors()) == count


async def test_more_pods_than_may_be_shown_are_told_once() -> None:
    few = attrs.evolve(ON, mirror_pods=attrs.evolve(ON.mirror_pods, max_pods=3, max_pods_per_job=2))
    async with showing(settings=few) as shown:
        await shown.fleet.submit("a", pods=3)
        await shown.count(2)
        await shown.fleet.submit("b", pods=2)
        await shown.count(3)
        await anyio.sleep(200)
        assert len(await shown.mirrors()) == 3
        assert shown.refused == ["NoPlace", "NoPlace"]
        assert shown.counted() == {"worker1": ShownPods(3, 2)}
        await shown.fleet.admin.delete(JOB, ObjectKey("default", "a"), propagation="Background")
        await shown.count(2)
        assert shown.counted() == {"worker1": ShownPods(2, 0)}


async def test_a_lost_worker_is_told_and_forgotten_when_it_is_back() -> None:
    async with showing() as shown:
        await shown.fleet.submit()
        await shown.count(1)
        faults = shown.fleet.workers["worker1"].faults

        async def unreachable() -> Json | None:
            (mirror,) = await shown.mirrors()
            listed = dig(mirror, "status", "conditions") or []
            return next((condition for condition in listed if condition["type"] == REACHABLE), None)

        faults.partition("reset")
        await until(unreachable)
        condition = await unreachable()
        assert condition is not None
        assert condition["status"] == "False"
        (node,) = (await shown.fleet.admin.list(NODE)).items
        conditions = {condition["type"]: condition for condition in node["status"]["conditions"]}
        assert conditions["Ready"]["status"] == "True"
        faults.heal()

        async def is_back() -> bool:
            return await unreachable() is None

        await until(is_back)


async def test_a_node_that_somebody_deletes_is_made_again() -> None:
    async with showing() as shown:
        await until(shown.nodes)
        await shown.fleet.admin.delete(NODE, ObjectKey("", "multikueue-worker1"))
        await until(shown.nodes, 25)


async def test_the_node_of_a_worker_that_is_removed_goes_after_its_mirrors() -> None:
    async with showing("worker1", "worker2") as shown:
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
        worker = annotations_of(mirror)[WORKER]
        await shown.fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", worker))
        await until(lambda: _only(shown, worker))


async def _only(shown: Shown, removed: str) -> bool:
    nodes = await shown.nodes()
    return len(nodes) == 1 and f"multikueue-{removed}" not in nodes


async def test_a_node_of_somebody_else_is_left_alone() -> None:
    fleet = await Fleet.connected("worker1")
    other: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "multikueue-worker1", "labels": {"a": "b"}}}
    await fleet.admin.create(NODE, other)
    shown = await prepared(fleet)
    async with fleet.kueues(LONG), fleet.dispatching(shown.manager()):
        await anyio.sleep(60)
        (node,) = (await fleet.admin.list(NODE)).items
        assert labels_of(node) == {"a": "b"}
        assert "addresses" not in (node.get("status") or {})


async def test_another_process_goes_on_with_the_mirrors_of_the_one_before() -> None:
    shown = await prepared(await Fleet.connected("worker1"))
    async with shown.fleet.kueues(LONG):
        async with shown.fleet.dispatching(shown.manager()):
            await shown.fleet.submit()
            (before,) = await shown.count(1)
        async with shown.fleet.dispatching(shown.manager()):
            await anyio.sleep(90)
            (after,) = await shown.mirrors()
            assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
            (pod,) = await shown.pods()
            await shown.write(pod, message="on")
            await until(lambda: _says(shown, "on"), 5)
            assert [uid(mirror) for mirror in await shown.mirrors()] == [uid(before)]


async def _says(shown: Shown, message: str) -> bool:
    return [dig(mirror, "status", "message") for mirror in await shown.mirrors()] == [message]


async def test_what_nobody_has_proven_is_made_anew() -> None:
    """A process that ends between the creation and the first status leaves one; a tenant may make one."""
    shown = await prepared(await Fleet.connected("worker1"))
    async with shown.fleet.kueues(LONG):
        async with shown.fleet.dispatching(shown.manager()):
            await shown.fleet.submit()
            (before,) = await shown.count(1)
        unproven = {"metadata": {"annotations": {PROOF: None}}}
        await shown.fleet.admin.merge_patch(POD, ObjectKey.of(before), unproven)
        async with shown.fleet.dispatching(shown.manager()):
            await until(lambda: _another(shown, before))
            await shown.count(1)


async def _another(shown: Shown, before: Json) -> bool:
    return all(uid(mirror) != uid(before) for mirror in await shown.mirrors()) and bool(await shown.mirrors())


async def test_with_the_setting_off_all_is_taken_away_and_the_pods_of_others_stay() -> None:
    shown = await prepared(await Fleet.connected("worker1"))
    other: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": "theirs", "labels": {MIRROR: "multikueue"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await shown.fleet.admin.create(POD, other)
    async with shown.fleet.kueues(LONG):
        async with shown.fleet.dispatching(shown.manager()):
            await shown.fleet.submit()
            await until(lambda: _mirrored(shown))
        async with shown.fleet.dispatching(shown.manager(OFF)):
            await until(lambda: _nothing(shown))
            assert [name_of(mirror) for mirror in await shown.mirrors()] == ["theirs"]
            assert await shown.pods(), "the run goes on"


async def _mirrored(shown: Shown) -> bool:
    return len(await shown.mirrors()) == 2


async def _nothing(shown: Shown) -> bool:
    return not await shown.nodes() and len(await shown.mirrors()) == 1


async def test_without_the_policy_nothing_is_made() -> None:
    """It says why, and looks again."""
    fleet = await Fleet.connected("worker1")
    shown = await prepared(fleet)
    why: list[str | None] = ["the policy is not there"]

    async def guard(_client: ApiClient) -> str | None:
        return why[0]

    with capture_logs() as logs:
        async with fleet.kueues(LONG), fleet.dispatching(shown.manager(guard=guard)):
            await fleet.submit()
            await anyio.sleep(100)
            assert (await shown.nodes(), await shown.mirrors()) == ([], [])
            why[0] = None
            await shown.count(1)
    assert [line["why"] for line in logs if line["event"] == "pods of runs are not shown"] == [
        "the policy is not there"
    ]


async def test_without_an_address_nothing_is_made() -> None:
    """Pods whose logs nobody can read are worse than none."""
    nowhere = attrs.evolve(ON, mirror_pods=attrs.evolve(ON.mirror_pods, address=""))
    with capture_logs() as logs:
        async with showing(settings=nowhere) as shown:
            await shown.fleet.submit()
            await anyio.sleep(60)
            assert (await shown.nodes(), await shown.mirrors()) == ([], [])
    assert [line["why"] for line in logs if line["event"] == "pods of runs are not shown"] == [
        "mirrorPods.address is not set, so nobody could read their logs: set the IP address by which the manager's API "
        "server reaches multikueue api-server"
    ]


async def test_off_by_default_nothing_is_asked() -> None:
    shown = await prepared(await Fleet.connected("worker1"))
    async with shown.fleet.kueues(LONG), shown.fleet.dispatching(shown.manager(OFF)):
        await shown.fleet.submit()
        await until(shown.pods)
        await anyio.sleep(300)
    assert not [user for user, *_ in shown.fleet.manager.access.requests if user == "mirrors"]


async def test_the_pods_of_a_job_that_has_ended_are_shown_as_long_as_its_copy_is_kept() -> None:
    """Else whoever reads logs at the end, as Airflow does, finds none."""
    shown = await prepared(await Fleet.connected("worker1"))
    plan = PlanSettings(finished_retention=timedelta(minutes=10))
    brief = RunnerOptions(minimum=20.0, maximum=20.0, trap=1.0)
    async with shown.fleet.kueues(brief):
        manager = shown.manager()
        manager = attrs.evolve(manager, settings=attrs.evolve(manager.settings, plan=plan))
        async with shown.fleet.dispatching(manager):
            await shown.fleet.submit()
            await shown.count(1)
            await until(shown.fleet.finished)
            await anyio.sleep(300)
            (mirror,) = await shown.mirrors()
            assert phase(mirror) == "Succeeded"
            await shown.count(0, 700)


@pytest.mark.parametrize(
    ("busy", "least", "most"), [(False, 1.5, 8.0), pytest.param(True, 9.0, 40.0, marks=pytest.mark.gate)]
)
async def test_a_burst_has_a_pace_and_a_pod_few_requests(busy: bool, least: float, most: float) -> None:
    """A slower one while Workloads are looked at, or wait for that."""
    many = attrs.evolve(ON, mirror_pods=attrs.evolve(ON.mirror_pods, max_pods_per_job=200))
    async with showing(settings=many, cpu=500) as shown:
        await shown.fleet.submit(pods=100)
        began = anyio.current_time()
        with mock.patch.object(KeyQueue, "idle", property(lambda _: not busy)):
            await shown.count(100)
        assert least < anyio.current_time() - began < most, "a hundred requests a second, or ten"
        assert shown.writes("create") == 100
        assert shown.writes("patch") <= 200


async def test_a_pod_costs_six_requests_and_ten_looks_at_most_from_its_beginning_to_its_end() -> None:
    """With three changes of its status, the last by its end: it is made, written four times at most, and deleted. What
    our own writes come back as, and each status of its job, is no reason to look: a look takes as long as a write."""
    many = attrs.evolve(ON, mirror_pods=attrs.evolve(ON.mirror_pods, max_pods_per_job=50))
    look = mock.patch.object(MirrorReconciler, "_seen", autospec=True, side_effect=MirrorReconciler._seen)
    with look as looks:
        await _live(many)
    assert looks.call_count <= 10 * 20


async def _live(settings: Settings) -> None:
    async with showing(settings=settings, cpu=50) as shown:
        await shown.fleet.submit(pods=20)
        await shown.count(20)
        for change in range(2):
            for pod in await shown.pods():
                await shown.write(pod, message=f"step {change}")
            await anyio.sleep(5)
        await shown.fleet.admin.delete(JOB, ObjectKey("default", "job"), propagation="Orphan")
        await shown.count(0)
        assert sum(map(shown.writes, ("create", "patch", "delete"))) <= 6 * 20
        assert shown.writes("get") == 0


async def test_a_burst_of_one_namespace_delays_the_pods_of_another_by_a_turn() -> None:
    """All came in the order of their changes: at five requests a second, behind a hundred pods of somebody else."""
    many = attrs.evolve(ON, mirror_pods=attrs.evolve(ON.mirror_pods, max_pods_per_job=200))
    async with showing(settings=many, cpu=500) as shown:
        for server in (shown.fleet.manager, *shown.fleet.workers.values()):
            await DirectClient(server).create(NAMESPACE, namespace("other"))
            await DirectClient(server).create(LOCAL_QUEUE, local_queue("other"))
        with mock.patch.object(KeyQueue, "idle", property(lambda _: False)):
            await shown.fleet.submit(pods=100)
            await until(shown.mirrors)
            await shown.fleet.submit("one", namespace="other")

            async def there() -> bool:
                return any(dig(mirror, "metadata", "namespace") == "other" for mirror in await shown.mirrors())

            await until(there)
            assert len(await shown.mirrors()) < 50


@pytest.mark.parametrize("said", [{}, {WORKER: "worker1"}, {WORKER_POD: "default/x"}])
async def test_what_says_that_it_is_a_mirror_and_not_of_what_goes(said: dict[str, str]) -> None:
    """Made on a Node of ours before the policy kept it away: it would keep a place, and hang once it is deleted."""
    shown = await prepared(await Fleet.connected("worker1"))
    other = a_pod("theirs", None, **{MIRROR: "multikueue"})
    other["metadata"]["annotations"] = said
    other["spec"]["nodeName"] = "multikueue-worker1"
    await shown.fleet.admin.create(POD, other)
    async with shown.fleet.kueues(LONG), shown.fleet.dispatching(shown.manager()):
        await shown.count(0)
