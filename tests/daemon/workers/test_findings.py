"""The leader looks at workers and publishes what it sees; who may read no credentials sees it there."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, CONFIG_MAP, LOCAL_QUEUE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import NotFound
from multikueue.sandbox.apiserver import Hang, Match, Refuse
from multikueue.sandbox.setting_up import (
    CLUSTER_QUEUE_NAME,
    LOCAL_QUEUE_NAME,
    cluster_queue,
    local_queue,
    set_up_queues,
)
from multikueued.doctor import publisher
from multikueued.rbac.objects import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from multikueued.rbac.rules import ON_WORKER
from multikueued.reports.published import Published, published_in
from multikueued.settings.config import DispatcherSettings
from multikueued.settings.sections import FindingsSettings
from tests.daemon.workers.ground import KUEUE_NAMESPACE, SETTINGS, Ground, ground, until

pytestmark = pytest.mark.timeout(120)

ACCOUNT = "system:serviceaccount:kueue-system:multikueue"
KEY = ObjectKey(KUEUE_NAMESPACE, "multikueue-findings")


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("TICK", 0.2), ("EVERY", 0.4)):
        monkeypatch.setattr(publisher, name, seconds)


async def config_map(here: Ground) -> Json:
    try:
        return await here.manager.get(CONFIG_MAP, KEY)
    except NotFound:
        return {}


async def seen(here: Ground, worker: str = "worker1") -> Published:
    """Wait until a worker has been looked at."""

    async def look() -> Published | None:
        return published_in(await config_map(here)).get(worker)

    published = await until(look)
    assert published is not None
    return published


async def without_secrets(here: Ground) -> None:
    """From now on the person at the terminal may read no Secrets on the manager."""
    here.sandbox.manager.server.faults.add(Refuse(403), on=Match(user="admin", resource="secrets"))


async def doctor(here: Ground) -> Json:
    result = await here.run("doctor", "--json")
    report: Json = json.loads(result.stdout)
    return report


async def status(here: Ground) -> Json:
    report: Json = json.loads((await here.run("status", "-o", "json", "-n", KUEUE_NAMESPACE)).stdout)
    return report


async def test_the_doctor_says_what_the_daemon_saw_where_secrets_may_not_be_read(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        there = here.worker("worker1")
        await there.delete(LOCAL_QUEUE, ObjectKey("default", LOCAL_QUEUE_NAME))

        async def noticed() -> bool:
            queues = (await seen(here)).facts.queues
            return queues is not None and not queues.local

        await until(noticed)
        await without_secrets(here)
        report = await doctor(here)
        text = (await here.run("doctor")).stdout

    (measured,) = report["workers"]
    assert measured["worker"] == "worker1"
    assert measured["seenAt"] is not None
    assert "worker-local-queue-missing" in [finding["id"] for finding in report["findings"]]
    assert "worker1: as the daemon saw it at 20" in text
    gaps = {gap["what"]: gap["why"] for gap in report["notChecked"]}
    (own,) = [what for what in gaps if what.startswith("worker1 from here, and the Secret with its kubeconfig (as the")]
    assert "you may not get the Secret" in gaps[own]


@pytest.mark.gate
async def test_who_may_read_secrets_asks_the_worker_itself(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await seen(here)
        (measured,) = (await doctor(here))["workers"]

    assert measured["seenAt"] is None


@pytest.mark.gate
async def test_what_the_daemon_may_not_see_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The role of a worker has no queues if it is added with --least. Its next read told the server's words."""
    monkeypatch.setattr(publisher, "SOON", 1.0)
    async with ground(tmp_path, workers=1) as here:
        await set_up_queues(here.worker("worker1"), {"cpu": "4"})
        await here.done("worker", "add", "worker1", "--worker-context", "worker1", "--outside", "--least")
        await seen(here)
        await without_secrets(here)
        gaps = {gap["what"]: gap["why"] for gap in (await doctor(here))["notChecked"]}
        (worker,) = (await status(here))["workers"]
        text = (await here.run("status")).stdout

        async def read_again() -> str:
            unseen = (await seen(here)).facts.queues_unseen
            return unseen if "localqueues" in unseen else ""

        again = await until(read_again)

    assert again == "the user of its kubeconfig may not list localqueues.kueue.x-k8s.io there"
    assert "may not list clusterqueues" in gaps["quotas of worker1"]
    assert "as the daemon saw it at" in gaps["quotas of worker1"]
    assert worker["quota"]["at"] is None
    assert "may not list clusterqueues" in worker["quota"]["notChecked"]
    assert "not checked" in text


async def test_status_has_the_quota_of_workers_and_what_is_used_of_it(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await here.submit("first", cpu="3")

        async def quota() -> Any:
            return (await status(here))["workers"][0]["quota"]

        figures = await until(quota, lambda figures: figures["used"] == {"cpu": "3"})
        text = (await here.run("status")).stdout

    assert figures["total"] == {"cpu": "4"}
    assert figures["at"] is not None
    assert "cpu 3/4" in text


@pytest.mark.gate
async def test_explain_says_what_could_never_fit_there(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        spec = (await here.worker("worker1").get(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME)))["spec"]
        spec["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "2"
        await here.worker("worker1").merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"spec": spec})
        await here.submit("large", cpu="3")

        async def reasons_of_workers() -> list[str]:
            result = await here.run("explain", "job/large", "-n", "default", "-o", "json")
            return [answer["told"] for answer in json.loads(result.stdout).get("workers", [])]

        assert await until(
            reasons_of_workers, lambda reasons: any("insufficient quota for cpu" in reason for reason in reasons)
        )


@pytest.mark.gate
async def test_a_worker_that_is_removed_is_not_told_of_any_more(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=2, joined=["worker1", "worker2"]) as here:
        await seen(here, "worker2")
        await here.done("worker", "remove", "worker2", "--worker-context", "worker2")

        async def known() -> set[str]:
            return set(published_in(await config_map(here)))

        await until(known, lambda places: places == {"worker1"})


async def test_nothing_is_written_while_nothing_changes(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await seen(here)
        server = here.sandbox.workers["worker1"].server

        def reads() -> int:
            return server.requests[
                "system:serviceaccount:kueue-system:multikueue", "list", "clusterqueues.kueue.x-k8s.io"
            ]

        before, version = reads(), (await config_map(here))["metadata"]["resourceVersion"]

        async def read_again() -> int:
            return reads() - before

        await until(read_again, lambda count: count > 3)
        assert (await config_map(here))["metadata"]["resourceVersion"] == version


NINE_CPUS = {"resourceGroups": cluster_queue({"cpu": "9"})["spec"]["resourceGroups"]}


@pytest.mark.gate
async def test_quotas_come_from_the_watches_of_a_dispatcher_that_looks_at_figures(tmp_path: Path) -> None:
    """What the watches bring is published; the queues are listed by them only. A watch that fails is no source."""
    scored = attrs.evolve(SETTINGS, dispatcher=DispatcherSettings(name="multikueue.dev/scored"))
    async with ground(tmp_path, workers=1, settings=scored) as here:
        await may_watch_queues(here)
        await here.join("worker1")
        await seen(here)
        server = here.sandbox.workers["worker1"].server
        asked = "system:serviceaccount:kueue-system:multikueue", "list", "clusterqueues.kueue.x-k8s.io"
        before = server.requests[asked]
        await here.worker("worker1").merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"spec": NINE_CPUS})
        await until(partial(quota_told, here), lambda quota: quota == "9")
        assert server.requests[asked] == before

        server.faults.add(Refuse(500), on=Match(resource="clusterqueues", verbs=("watch",)))
        server.faults.connections.drop()
        await until(lambda: _more(server.requests[asked], before + 3))


async def _more(count: int, than: int) -> bool:
    return count > than


async def quota_told(here: Ground) -> str:
    """The CPUs that the worker is said to have."""
    queues = (await seen(here)).facts.queues
    assert queues is not None
    (group,) = queues.cluster[CLUSTER_QUEUE_NAME]["spec"]["resourceGroups"]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


async def may_watch_queues(here: Ground) -> None:
    """Give the daemon's account on the worker what `multikueue rbac worker` gives it for this dispatcher."""
    version, name = "rbac.authorization.k8s.io/v1", {"name": "figures"}
    role = {"apiVersion": version, "kind": "ClusterRole", "metadata": name, "rules": [*ON_WORKER["figures"]]}
    binding = {
        "apiVersion": version,
        "kind": "ClusterRoleBinding",
        "metadata": name,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **name},
        "subjects": [{"kind": "ServiceAccount", "name": "multikueue", "namespace": KUEUE_NAMESPACE}],
    }
    await here.worker("worker1").create(CLUSTER_ROLE, role)
    await here.worker("worker1").create(CLUSTER_ROLE_BINDING, binding)


@pytest.mark.gate
async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    off = attrs.evolve(SETTINGS, findings=FindingsSettings(enabled=False))
    async with ground(tmp_path, workers=1, settings=off, joined=["worker1"]) as here:
        assert await config_map(here) == {}
        (worker,) = (await status(here))["workers"]
    assert worker["quota"]["at"] is None


@pytest.mark.gate
async def test_a_daemon_that_may_not_publish_says_so_and_dispatches(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1) as here:
        here.sandbox.manager.server.faults.add(Refuse(403), on=Match(user="multikueue", resource="configmaps"))
        await here.join("worker1")
        await here.submit("first")
        await until(here.runs_on, lambda places: places == {"first": ["worker1"]})

        async def warned() -> bool:
            return "what is seen of workers is not published" in (tmp_path / "log").read_text()

        await until(warned)


@pytest.mark.gate
async def test_a_worker_that_hangs_on_the_look_gets_its_jobs(tmp_path: Path) -> None:
    """What only the look asks for is never answered: the dispatching asks by connections and tasks of its own."""
    async with ground(tmp_path, workers=1) as here:
        faults = here.sandbox.workers["worker1"].server.faults
        for resource in ("selfsubjectaccessreviews", "localqueues", "clusterqueues"):
            faults.add(Hang(), on=Match(user=ACCOUNT, resource=resource))
        await here.join("worker1")
        await here.submit("first")
        await until(here.runs_on, lambda places: places == {"first": ["worker1"]})


@pytest.mark.gate
async def test_what_grows_beyond_measure_is_not_read_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "MOST_QUEUES", 1)
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        second = local_queue()
        second["metadata"]["name"] = "second"
        await here.worker("worker1").create(LOCAL_QUEUE, second)

        async def unpublished() -> str:
            (worker,) = (await status(here))["workers"]
            return str(worker["quota"]["notChecked"])

        await until(unpublished, lambda why: "there are more than" in why)
        before = here.sandbox.workers["worker1"].server.requests[ACCOUNT, "list", LOCAL_QUEUE.qualified]
        await here.submit("first")
        await until(here.runs_on, lambda places: places == {"first": ["worker1"]})
        assert here.sandbox.workers["worker1"].server.requests[ACCOUNT, "list", LOCAL_QUEUE.qualified] == before
