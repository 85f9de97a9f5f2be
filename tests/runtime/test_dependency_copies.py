"""What a job needs comes along: made before it, shared, gone after it; what is somebody else's stays as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from multikueue.core.model.dependencies import RESOURCE_CLAIM_TEMPLATE
from multikueue.core.model.kinds import CONFIG_MAP, EVENT, JOB, SECRET, WORKLOAD
from multikueue.core.model.kinds import NAMESPACE as NAMESPACES
from multikueue.core.model.labels import FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.workloads import check, cluster_name
from multikueue.errors import NotFound
from multikueue.kube import ClusterConfig
from multikueue.sandbox.apiserver import DirectClient, Refuse
from multikueue.sandbox.apiserver.faults import Match
from multikueue.sandbox.setting_up import CHECK
from tests.runtime.fleet import Fleet, until

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "settings")
MOUNTS: Json = {"volumes": [{"name": "v", "configMap": {"name": "settings"}}]}


def config_map(text: str) -> Json:
    metadata = {"name": "settings", "namespace": "default", "labels": {"app": "x"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def named(kind: str, name: str) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}}


@asynccontextmanager
async def fleet(*workers: str, cpu: int = 4, kinds: Collection[str] = ("ConfigMap",)) -> AsyncIterator[Fleet]:
    made = await Fleet.connected(*(workers or ("worker1",)), cpu=cpu)
    async with made.kueues(), made.running(made.build(dependencies=kinds)):
        yield made


def worker(fleet: Fleet, name: str = "worker1") -> DirectClient:
    return DirectClient(fleet.workers[name])


async def text(client: DirectClient, key: ObjectKey = KEY) -> str | None:
    try:
        return str((await client.get(CONFIG_MAP, key))["data"]["text"])
    except NotFound:
        return None


def becomes(client: DirectClient, wanted: str | None, key: ObjectKey = KEY) -> Callable[[], Any]:
    async def holds() -> bool:
        return await text(client, key) == wanted

    return holds


async def runs(fleet: Fleet, *jobs: str) -> None:
    """Until these jobs have a worker."""

    async def placed() -> bool:
        by_job = {
            workload["metadata"]["ownerReferences"][0]["name"]: workload
            for workload in (await fleet.admin.list(WORKLOAD)).items
        }
        return all(job in by_job and cluster_name(by_job[job]) is not None for job in jobs) and bool(
            await fleet.running_on()
        )

    await until(placed)


async def delete(fleet: Fleet, job: str = "job") -> None:
    await fleet.admin.delete(JOB, ObjectKey("default", job), propagation="Background")


async def says(fleet: Fleet, wanted: str) -> None:
    """Until our check says this."""

    async def is_said() -> bool:
        workloads = (await fleet.admin.list(WORKLOAD)).items
        return any(wanted in str((check(workload, CHECK) or {}).get("message")) for workload in workloads)

    await until(is_said)


async def test_a_config_map_is_made_before_the_job_goes_with_it_and_is_owned_by_both() -> None:
    async with fleet() as here:
        await here.admin.create(CONFIG_MAP, config_map("hello"))
        await here.submit(template=MOUNTS)
        await runs(here)
        copy = await worker(here).get(CONFIG_MAP, KEY)
        assert copy["data"] == {"text": "hello"}
        assert "app" not in copy["metadata"]["labels"]

        async def owned() -> bool:
            owners = (await worker(here).get(CONFIG_MAP, KEY))["metadata"]["ownerReferences"]
            assert not any("controller" in owner or "blockOwnerDeletion" in owner for owner in owners)
            return {owner["kind"] for owner in owners} == {"Workload", "Job"}

        await until(owned)
        assert here.requests("worker1", "patch", CONFIG_MAP) == 1
        await delete(here)
        await until(becomes(worker(here), None))
        assert await text(here.admin) == "hello"


async def test_without_the_setting_nobody_is_asked() -> None:
    async with fleet(kinds=()) as here:
        await here.admin.create(CONFIG_MAP, config_map("hello"))
        await here.submit(template=MOUNTS)
        await runs(here)
        assert await text(worker(here)) is None
        assert here.requests("worker1", "get", CONFIG_MAP) == here.requests("worker1", "create", CONFIG_MAP) == 0


async def test_jobs_with_one_content_share_it_and_the_last_takes_it_along() -> None:
    async with fleet() as here:
        await here.admin.create(CONFIG_MAP, config_map("hello"))
        for name in ("a", "b"):
            await here.submit(name, template=MOUNTS)
        await runs(here, "a", "b")
        await anyio.sleep(5)
        before = await worker(here).get(CONFIG_MAP, KEY)
        assert len(before["metadata"]["ownerReferences"]) == 4
        await delete(here, "a")
        await anyio.sleep(60)
        after = await worker(here).get(CONFIG_MAP, KEY)
        assert (after["metadata"]["uid"], after["data"]) == (before["metadata"]["uid"], before["data"])
        await delete(here, "b")
        await until(becomes(worker(here), None))


async def test_with_another_content_a_job_goes_elsewhere_while_the_first_one_runs() -> None:
    async with fleet("worker1", "worker2", cpu=1) as here:
        await here.admin.create(CONFIG_MAP, config_map("old"))
        await here.submit("a", template=MOUNTS)
        await runs(here, "a")
        (first,) = await here.running_on()
        (second,) = set(here.workers) - {first}
        await anyio.sleep(5)
        await here.admin.merge_patch(CONFIG_MAP, KEY, {"data": {"text": "new"}})
        await here.submit("b", template=MOUNTS)
        await runs(here, "a", "b")
        assert (await text(worker(here, first)), await text(worker(here, second))) == ("old", "new")
        assert here.requests(first, "create", JOB) == here.requests(second, "create", JOB) == 1


async def test_where_there_is_no_other_worker_it_waits_says_why_and_runs_after_the_first() -> None:
    async with fleet() as here:
        await here.admin.create(CONFIG_MAP, config_map("old"))
        await here.submit("a", template=MOUNTS)
        await runs(here, "a")
        await here.admin.merge_patch(CONFIG_MAP, KEY, {"data": {"text": "new"}})
        await here.submit("b", template=MOUNTS)
        await says(here, 'ConfigMap "settings" has other content there, which Workload "')
        assert await text(worker(here)) == "old"
        await delete(here, "a")
        await runs(here, "b")
        await until(becomes(worker(here), "new"))


async def test_what_is_somebody_elses_is_never_changed_adopted_or_removed() -> None:
    async with fleet() as here:
        await here.admin.create(CONFIG_MAP, config_map("ours"))
        theirs = await worker(here).create(CONFIG_MAP, config_map("theirs"))
        await here.submit(template=MOUNTS)
        await says(here, 'ConfigMap "settings" there is not a copy of ours, or was changed, and has other content')
        assert not await here.running_on()
        events = [event["note"] for event in (await here.admin.list(EVENT)).items if event["action"] == "Refused"]
        assert any('worker cluster "worker1" cannot run the job: ConfigMap "settings"' in note for note in events)
        await here.admin.merge_patch(CONFIG_MAP, KEY, {"data": {"text": "theirs"}})
        await runs(here)  # it is used as it is
        await delete(here)
        await anyio.sleep(120)
        assert await worker(here).get(CONFIG_MAP, KEY) == theirs


async def test_a_config_map_that_is_nowhere_is_told_and_taken_once_it_is_there() -> None:
    async with fleet() as here:
        await here.submit(template=MOUNTS)
        await says(here, 'ConfigMap "settings" is neither on the manager cluster nor there')
        assert not (await worker(here).list(WORKLOAD)).items
        await here.admin.create(CONFIG_MAP, config_map("late"))
        await runs(here)
        assert await text(worker(here)) == "late"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"serviceAccountName": "robot"}, 'ServiceAccount "robot"'),
        ({"volumes": [{"name": "v", "secret": {"secretName": "token"}}]}, 'Secret "token"'),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}]},
            'PersistentVolumeClaim "disk"',
        ),
    ],
)
async def test_what_is_never_copied_is_missed_before_anything_is_offered(spec: Json, name: str) -> None:
    kinds = ("Secret", "ServiceAccount", "PersistentVolumeClaim")
    async with fleet(kinds=kinds) as here:
        await here.submit(template=spec)
        await says(here, f"{name} is not there, and is never copied")
        assert here.requests("worker1", "create", WORKLOAD) == 0


class Shy(DirectClient):
    """A daemon's client that is given no Secret, only whether there is one."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        assert resource != SECRET, "its content is nobody's business"
        return await super().get(resource, key)

    async def exists(self, resource: Resource, key: ObjectKey) -> bool:
        objects = (await self.list(resource, namespace=key.namespace)).items
        return key in map(ObjectKey.of, objects)


async def test_of_a_secret_that_is_never_copied_nothing_is_read() -> None:
    here = await Fleet.connected("worker1")

    @asynccontextmanager
    async def connect(name: str, _: ClusterConfig) -> AsyncIterator[DirectClient]:
        yield Shy(here.workers[name], user="multikueue")

    async with here.kueues(), here.running(here.build(dependencies=("Secret",), connect=connect)):
        await here.submit(template={"volumes": [{"name": "v", "secret": {"secretName": "token"}}]})
        await says(here, 'Secret "token" is not there, and is never copied')
        await worker(here).create(SECRET, named("Secret", "token"))
        await runs(here)


async def test_a_manager_that_starts_has_it_owned_by_a_job_that_another_has_made() -> None:
    here = await Fleet.connected("worker1")
    async with here.kueues():
        async with here.running(here.build(dependencies=("ConfigMap",))):
            await here.admin.create(CONFIG_MAP, config_map("hello"))
            await here.submit(template=MOUNTS)
            await runs(here)
            await anyio.sleep(5)
        copy = await worker(here).get(CONFIG_MAP, KEY)
        kept = [owner for owner in copy["metadata"]["ownerReferences"] if owner["kind"] == "Workload"]
        await worker(here).merge_patch(CONFIG_MAP, KEY, {"metadata": {"ownerReferences": kept}})
        async with here.running(here.build(dependencies=("ConfigMap",))):
            await anyio.sleep(10)
            owners = (await worker(here).get(CONFIG_MAP, KEY))["metadata"]["ownerReferences"]
            assert {owner["kind"] for owner in owners} == {"Workload", "Job"}


GPU = ObjectKey("default", "gpu")
CLAIMS: Json = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpu"}]}


async def claim_template(fleet: Fleet) -> Json | None:
    try:
        return await worker(fleet).get(RESOURCE_CLAIM_TEMPLATE, GPU)
    except NotFound:
        return None


async def test_a_claim_template_is_there_while_the_job_waits_for_quota_and_gone_after_it() -> None:
    """A worker's Kueue reads it before it gives quota."""
    async with fleet(cpu=1, kinds=("ResourceClaimTemplate",)) as here:
        for name in ("theirs1", "theirs2"):
            await here.submit(name, worker="worker1")
        spec = await submit_with_claim(here)

        async def is_there() -> bool:
            return await claim_template(here) is not None

        await until(is_there)
        template = await claim_template(here) or {}
        assert template["spec"] == spec
        assert [owner["kind"] for owner in template["metadata"]["ownerReferences"]] == ["Workload"]
        assert [job["metadata"]["name"] for job in (await worker(here).list(JOB)).items] == ["theirs1", "theirs2"]
        await delete(here)

        async def is_gone() -> bool:
            return not await is_there()

        await until(is_gone)


async def submit_with_claim(here: Fleet) -> Json:
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
    gvk, metadata = RESOURCE_CLAIM_TEMPLATE.gvk, {"name": "gpu", "namespace": "default"}
    made = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}
    await here.admin.create(RESOURCE_CLAIM_TEMPLATE, made)
    await here.submit(template=CLAIMS)
    return spec


async def test_a_claim_template_whose_creation_failed_is_made_while_the_copy_waits() -> None:
    async with fleet(cpu=1, kinds=("ResourceClaimTemplate",)) as here:
        failing = Match(verbs=("create",), resource=str(RESOURCE_CLAIM_TEMPLATE))
        here.workers["worker1"].faults.add(Refuse(503), on=failing, times=3)
        for name in ("theirs1", "theirs2"):
            await here.submit(name, worker="worker1")
        await submit_with_claim(here)
        await anyio.sleep(5)
        assert await claim_template(here) is not None
        assert here.requests("worker1", "create", WORKLOAD) == 1


async def test_a_worker_that_may_not_be_written_to_is_told_with_the_words_of_its_server() -> None:
    async with fleet() as here:
        here.workers["worker1"].faults.add(Refuse(403), on=Match(resource="configmaps", user="multikueue"))
        await here.admin.create(CONFIG_MAP, config_map("hello"))
        await here.submit(template=MOUNTS)
        await says(here, 'ConfigMap "settings" cannot be had there: ')
        assert here.requests("worker1", "create", WORKLOAD) == 0


async def test_a_manager_that_may_not_be_read_is_told() -> None:
    async with fleet() as here:
        here.manager.faults.add(Refuse(403), on=Match(resource="configmaps", user="multikueue"))
        await here.submit(template=MOUNTS)
        await says(here, 'ConfigMap "settings" cannot be read on the manager cluster: ')


async def test_what_may_not_be_looked_for_is_not_missed() -> None:
    async with fleet(kinds=("Secret",)) as here:
        here.workers["worker1"].faults.add(Refuse(403), on=Match(resource="secrets", user="multikueue"))
        await here.submit(template={"volumes": [{"name": "v", "secret": {"secretName": "token"}}]})
        await runs(here)


async def test_copies_say_where_they_come_from_if_their_manager_has_a_name() -> None:
    """Else a worker's namespace could not take them: see `rbac worker --binding`."""
    here = await Fleet.connected("worker1")
    async with here.kueues(), here.running(here.build(dependencies=("ConfigMap",), name="prod-eu")):
        await here.admin.create(CONFIG_MAP, config_map("hello"))
        await here.submit(template=MOUNTS)
        await runs(here)
        copy = await worker(here).get(CONFIG_MAP, KEY)
        uid = (await here.admin.get(NAMESPACES, ObjectKey("", "default")))["metadata"]["uid"]
        assert copy["metadata"]["annotations"][FROM_ANNOTATION] == f"prod-eu/default/{uid}"


async def test_more_than_is_copied_is_told() -> None:
    async with fleet() as here:
        volumes = [{"name": f"v{number}", "configMap": {"name": f"c{number}"}} for number in range(65)]
        await here.submit(template={"volumes": volumes})
        await says(here, "it names more than 64 objects that would have to be copied")
        await here.admin.create(CONFIG_MAP, config_map("x" * (1 << 20)))
        await here.submit("large", template=MOUNTS)
        await says(here, 'ConfigMap "settings" is larger than 1 MiB and is not copied')


async def test_size_is_counted_in_bytes_that_are_sent() -> None:
    """600 kB of text in other letters than Latin ones were refused as more than 1 MiB."""
    async with fleet() as here:
        await here.admin.create(CONFIG_MAP, config_map("\u4e2d" * 200_000))
        await here.submit(template=MOUNTS)
        await runs(here)


async def test_a_worker_is_asked_for_so_many_objects_and_not_for_thousands() -> None:
    """Nobody is refused for it: what is not looked for, the pods wait for there."""
    async with fleet(kinds=("Secret", "PersistentVolumeClaim")) as here:
        secrets = [{"name": f"v{number}", "secret": {"secretName": f"s{number}"}} for number in range(100)]
        for number in range(100):
            await worker(here).create(SECRET, named("Secret", f"s{number}"))
        await here.submit(template={"volumes": secrets})
        await runs(here)
        assert here.requests("worker1", "get", SECRET) == 64


async def test_its_own_earlier_copy_is_no_other_jobs() -> None:
    """The content changes after it was copied, before the job could be made: the job gets the new one."""
    async with fleet() as here:
        failing = Match(verbs=("create",), resource=str(JOB), user="multikueue")
        fault = here.workers["worker1"].faults.add(Refuse(503), on=failing)
        await here.admin.create(CONFIG_MAP, config_map("old"))
        await here.submit(template=MOUNTS)
        await until(becomes(worker(here), "old"))
        await here.admin.merge_patch(CONFIG_MAP, KEY, {"data": {"text": "new"}})
        await anyio.sleep(5)
        here.workers["worker1"].faults.remove(fault)
        await runs(here)
        assert (await text(worker(here)), here.requests("worker1", "create", WORKLOAD)) == ("new", 1)
