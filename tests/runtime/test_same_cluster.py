"""Several MultiKueueClusters that lead to one cluster: a job there has one of its names, and nothing takes it away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.machinery.connection_facts import connection_facts
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, NAMESPACE, SECRET, WORKLOAD
from multikueue.core.model.labels import DIFFERENT_ANNOTATION
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.second_names import Because, second_name
from multikueue.core.model.workloads import check, cluster_name, is_finished
from multikueue.sandbox.apiserver.faults import Match, Refuse
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import CHECK, cluster, kubeconfig_secret
from tests.runtime.fleet import Fleet, is_active, kubeconfig, now, until

pytestmark = pytest.mark.looptime


async def with_two_accounts() -> Fleet:
    fleet = await Fleet.connected("worker1")
    tokens = fleet.workers["worker1"].tokens
    assert tokens is not None
    tokens["again-token"] = "multikueue:again"
    return fleet


@asynccontextmanager
async def running(*, restarted: bool = False) -> AsyncIterator[Fleet]:
    """A worker that has a job of 300 s; a second account there is for a second MultiKueueCluster.

    Args:
        restarted: whether another process follows, which the first account's token is unknown to: nothing may change.
    """
    fleet = await with_two_accounts()
    async with fleet.kueues(RunnerOptions(minimum=300.0, maximum=300.0)):
        async with fleet.dispatching():
            await fleet.submit()
            await until(fleet.running_on)
            await anyio.sleep(2)  # the second one is younger: times have whole seconds
            yield fleet
        if not restarted:
            return
        before, made = await fleet.running_on(), written(fleet)
        await fleet.write_secret("worker1", kubeconfig("worker1", "unknown-token"))
        async with fleet.running():
            await until(is_active(fleet, "again"))
            await anyio.sleep(60)
            assert (await fleet.running_on(), written(fleet)) == (before, made)


async def add(fleet: Fleet, name: str, *listed: str, different: str = "") -> None:
    """Make a second MultiKueueCluster for the worker, and list these; it may say that it is another cluster."""
    await fleet.admin.create(SECRET, kubeconfig_secret(name, kubeconfig("worker1", "again-token")))
    made = cluster(name)
    made["metadata"]["annotations"] = {DIFFERENT_ANNOTATION: different} if different else {}
    await fleet.admin.create(MULTIKUEUE_CLUSTER, made)
    await say_config(fleet, *listed)
    await until(is_active(fleet, name))


async def say_config(fleet: Fleet, *listed: str) -> None:
    (config,) = (await fleet.admin.list(MULTIKUEUE_CONFIG)).items
    await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey.of(config), {"spec": {"clusters": [*listed]}})


async def placed(fleet: Fleet, job: str) -> str:
    """The worker that has a job's Workload, once the check is Ready."""
    workloads = (await fleet.admin.list(WORKLOAD)).items
    ready = (workload for workload in workloads if (check(workload, CHECK) or {}).get("state") == "Ready")
    return next(
        (
            cluster_name(workload) or ""
            for workload in ready
            if workload["metadata"]["ownerReferences"][0]["name"] == job
        ),
        "",
    )


async def second_of(fleet: Fleet, name: str) -> str:
    """The first of the names of its cluster, as a MultiKueueCluster says."""
    second = second_name(await fleet.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", name)))
    return second.first if second is not None else ""


def written(fleet: Fleet) -> int:
    return sum(fleet.requests("worker1", verb, kind) for verb in ("create", "delete") for kind in (JOB, WORKLOAD))


@pytest.mark.parametrize(
    ("name", "listed"),
    [("again", ("worker1", "again")), ("again", ("again",)), ("a", ("a", "worker1")), ("again", ("worker1",))],
    ids=["the older one of both", "the listed one", "the older one, whatever the order", "the only one that is listed"],
)
async def test_another_name_of_a_worker_takes_no_job_from_it(name: str, listed: tuple[str, ...]) -> None:
    """It would see a copy with another worker's mark, and remove it, as often as it is made."""
    async with running() as fleet:
        before, made = await fleet.running_on(), written(fleet)
        await add(fleet, name, *listed)
        await anyio.sleep(60)
        assert (await fleet.running_on(), written(fleet)) == (before, made)
        await fleet.submit("next")
        await until(lambda: placed(fleet, "next"))
        first, other = ("worker1", name) if "worker1" in listed else (name, "worker1")
        assert (await placed(fleet, "job"), await placed(fleet, "next")) == ("worker1", first)
        assert written(fleet) - made == 2, "the copy and its job"
        assert {(await fleet.active(name))["message"] for name in (first, other)} == {"Connected"}
        assert (await second_of(fleet, first), await second_of(fleet, other)) == ("", first)


async def test_a_restart_takes_no_job_though_only_the_other_name_connects() -> None:
    async with running(restarted=True) as fleet:
        await add(fleet, "again", "worker1", "again")


async def test_a_process_that_starts_knows_the_second_name_before_the_first_answers() -> None:
    """It got all new jobs, and lost them to the first one once that was back."""
    fleet = await with_two_accounts()
    async with fleet.kueues():
        async with fleet.dispatching():
            await anyio.sleep(2)
            await add(fleet, "again", "worker1", "again")
            await until(lambda: _is_second(fleet, "again"))
        await fleet.write_secret("worker1", kubeconfig("worker1", "unknown-token"))
        async with fleet.running():
            await until(is_active(fleet, "again"))
            await fleet.submit("next")
            await anyio.sleep(60)
            assert (await second_of(fleet, "again"), written(fleet)) == ("worker1", 0)
            await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
            await until(lambda: written(fleet) == 2)
            assert (await second_of(fleet, "again"), await placed(fleet, "next")) == ("", "again")


async def _is_second(fleet: Fleet, name: str) -> bool:
    return bool(await second_of(fleet, name))


async def test_who_says_that_they_are_different_is_not_believed_where_one_shows_what_the_other_has() -> None:
    async with running() as fleet:
        made = written(fleet)
        await add(fleet, "again", "worker1", "again", different="worker1")
        await until(lambda: _is_second(fleet, "again"))
        second = second_name(await fleet.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", "again")))
        assert second is not None
        assert (second.first, second.because) == ("worker1", Because.NOT_DIFFERENT)
        await fleet.submit("next")
        await until(lambda: placed(fleet, "next"))
        assert (await placed(fleet, "next"), written(fleet) - made) == ("worker1", 2), "nothing was deleted"
        message = "it leads to the same cluster as worker1, and gets nothing beside it: "
        assert any(reason == "NotDifferent" and note.startswith(message) for _, reason, note in await fleet.events())


@pytest.mark.parametrize("different", ["", "worker1"])
async def test_clusters_made_from_one_image_are_two_once_somebody_says_so(different: str) -> None:
    fleet = await Fleet.connected("worker1", "worker2", cpu=1)
    for worker in fleet.workers.values():
        row = worker.registry.type_of(NAMESPACE)
        worker.registry.cluster.entry(row, "", "kube-system").obj["metadata"]["uid"] = "image"
    if different:
        await say_different(fleet, "worker2", different)
    async with fleet.kueues(), fleet.dispatching():
        for name in ("one", "two"):
            await fleet.submit(name, pods=2)
        await anyio.sleep(60)
        assert sorted(await fleet.running_on()) == (["worker1", "worker2"] if different else ["worker1"])
        assert await second_of(fleet, "worker2") == ("" if different else "worker1")
        if not different:
            await say_different(fleet, "worker2", "worker1")
            await until(lambda: _run_on(fleet, "worker1", "worker2"))


async def _run_on(fleet: Fleet, *workers: str) -> bool:
    return sorted(await fleet.running_on()) == [*workers]


async def say_different(fleet: Fleet, name: str, different: str) -> None:
    metadata = {"annotations": {DIFFERENT_ANNOTATION: different}}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), {"metadata": metadata})


async def test_a_cluster_that_could_not_say_yet_which_it_is_gets_nothing_and_loses_nothing() -> None:
    async with running() as fleet:
        tokens = fleet.workers["worker1"].tokens
        assert tokens is not None
        tokens["again-token"] = "less"
        fleet.workers["worker1"].faults.add(Refuse(503), on=Match(("get",), "namespaces", user="less"), times=5)
        before, made = await fleet.running_on(), written(fleet)
        await add(fleet, "again", "again")
        await fleet.submit("next")
        await anyio.sleep(20)
        assert (await fleet.running_on(), written(fleet)) == (before, made)
        await until(lambda: placed(fleet, "next"))
        assert (await placed(fleet, "job"), await placed(fleet, "next")) == ("worker1", "again")


async def test_a_worker_gets_another_name_and_its_jobs_end_under_the_one_they_have() -> None:
    async with running() as fleet:
        await add(fleet, "again", "again")
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        await anyio.sleep(100)
        await fleet.submit("next")
        await until(lambda: placed(fleet, "next"))
        assert (await placed(fleet, "job"), await placed(fleet, "next")) == ("worker1", "again")
        await until(lambda: _alone(fleet), 600)
        assert not await _ended(fleet), "the earlier name is not kept for what has the other one"
        await until(lambda: _ended(fleet), 600)
        assert fleet.requests("worker1", "create", JOB) == 2


async def _ended(fleet: Fleet) -> bool:
    return all(map(is_finished, (await fleet.admin.list(WORKLOAD)).items))


async def _alone(fleet: Fleet) -> bool:
    listed = await fleet.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", "again"))
    facts = connection_facts(listed)
    return facts is not None and not facts.same_as


async def test_what_was_evicted_is_stopped_under_its_name_and_starts_under_the_first() -> None:
    async with running() as fleet:
        await add(fleet, "again", "again")
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
        await until(lambda: _is_placed(fleet, "again"))
        assert fleet.requests("worker1", "create", JOB) == 2


async def _is_placed(fleet: Fleet, worker: str) -> bool:
    return await placed(fleet, "job") == worker


async def test_credentials_that_may_not_ask_which_cluster_it_is_take_no_job_either() -> None:
    async with running() as fleet:
        await add(fleet, "again", "worker1", "again")
        tokens = fleet.workers["worker1"].tokens
        assert tokens is not None
        tokens["less-token"] = "less"
        fleet.workers["worker1"].faults.add(Refuse(403), on=Match(("get",), "namespaces", user="less"))
        before, made = await fleet.running_on(), written(fleet)
        await fleet.write_secret("again", kubeconfig("worker1", "less-token"))
        await anyio.sleep(150)
        assert "again-token" in fleet.closed
        assert (await fleet.running_on(), written(fleet)) == (before, made)
        assert await second_of(fleet, "again") == "worker1"


@pytest.mark.parametrize("status", [403, 503])
async def test_a_name_that_nobody_could_ask_for_its_cluster_takes_no_job_either(status: int) -> None:
    """One request that failed, as one without the permission, made it another cluster: it removed what ran."""
    async with running() as fleet:
        tokens = fleet.workers["worker1"].tokens
        assert tokens is not None
        tokens["again-token"] = "less"
        fleet.workers["worker1"].faults.add(Refuse(status), on=Match(("get",), "namespaces", user="less"))
        before, made = await fleet.running_on(), written(fleet)
        await add(fleet, "again", "worker1", "again")
        await anyio.sleep(30)
        assert (await fleet.running_on(), written(fleet)) == (before, made)
        await fleet.submit("next")
        await until(lambda: placed(fleet, "next"))
        await anyio.sleep(30)
        assert (await placed(fleet, "job"), await placed(fleet, "next")) == ("worker1", "worker1")
        assert sum(fleet.requests("worker1", verb, JOB) for verb in ("create", "delete")) == 2


async def test_what_has_ended_under_a_name_that_is_gone_does_not_run_again() -> None:
    """Its MultiKueueCluster was made anew under another name while no daemon ran: its job counted as lost, and ran
    again on the same cluster, which showed that it had ended."""
    fleet = await with_two_accounts()
    async with fleet.kueues(RunnerOptions(minimum=300.0, maximum=300.0)):
        async with fleet.dispatching():
            await fleet.submit()
            await until(fleet.running_on)
            await until(fleet.ready)
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), propagation="Background")
        async with fleet.running():
            await add(fleet, "again", "again")
            await until(fleet.finished, within=2000)
            assert fleet.requests("worker1", "create", JOB) == 1
