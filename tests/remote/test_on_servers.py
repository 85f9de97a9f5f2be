"""`multikueue pods` and `logs` over HTTPS: a manager, two workers, and a person with the manager's kubeconfig."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
import yaml

from multikueue.adapters.job import KINDS
from multikueue.core.model.conditions import new_condition
from multikueue.core.model.kinds import CLUSTER_PROFILE, JOB, MULTIKUEUE_CLUSTER, POD, SECRET, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of, uid
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.kinds import BATCH_JOB, define
from multikueue.sandbox.kueue import statuses
from multikueue.sandbox.setting_up import connect_workers, kubeconfig_secret
from multikueue.testing import NOW, copy_of, job_copy_of
from multikueue.testing.waiting import until
from multikueued.settings.file import parse_settings
from multikueued.workers.move_targets import MoveTargets
from multikueued.workers.places import ManagerAccess
from tests.commands.test_on_servers import Shell, shell
from tests.data.files import OCM_CRDS
from tests.remote.objects import owned_by
from tests.runtime.fleet import CRDS, kubeconfig

STARTED = "2026-01-01T00:00:00Z"
ENDED = "2026-01-01T00:00:02Z"
PLACE = {"name": "spoke", "namespace": "kueue-system"}
SECRET_KEY = ObjectKey("kueue-system", "worker1-secret")


@attrs.define(eq=False)
class Workers:
    """What is on workers."""

    workers: dict[str, ApiServer]
    mark_key: bytes = attrs.field(default=b"", kw_only=True)
    """By which copies are marked."""

    async def copies(self, local: Json, job: Json, worker: str = "worker1", origin: str = "multikueue") -> Json:
        """The copies of a Workload and its job on a worker; that of the job."""
        there = DirectClient(self.workers[worker], user="multikueue")
        made: dict[str, Any] = {"cluster": worker, "origin": origin, "mark_key": self.mark_key}
        await there.create(WORKLOAD, _new(copy_of(local, **made)))
        return await there.create(JOB, _new(job_copy_of(KINDS[0], job, local, **made)))

    async def pod(self, name: str, owner: Json | None, worker: str = "worker1", *, running: bool = False) -> Json:
        """A pod on a worker that has said something."""
        there = DirectClient(self.workers[worker], user="multikueue")
        containers = [{"name": "main", "image": "example.com/train"}]
        spec = {"restartPolicy": "Never", "containers": containers, "nodeName": "node-1"}
        metadata: Json = {"name": name, "namespace": "default"}
        if owner is not None:
            metadata["ownerReferences"] = [owned_by(owner)]
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        stored = await there.create(POD, made)
        done = {"terminated": {"exitCode": 0, "finishedAt": ENDED}}
        state = {"running": {"startedAt": STARTED}} if running else done
        status = {
            "phase": "Running" if running else "Succeeded",
            "startTime": STARTED,
            "containerStatuses": [{"name": "main", "ready": running, "restartCount": 0, "state": state}],
        }
        return await there.merge_patch(POD, ObjectKey.of(stored), {"status": status}, subresource="status")


@attrs.define(eq=False)
class Fleet(Workers):
    """With somebody who uses the manager."""

    person: Shell

    async def run_job(
        self, worker: str = "worker1", origin: str = "multikueue", *, needs: Sequence[str] = ()
    ) -> tuple[Json, Json]:
        """A job that a worker has, and a Secret that it mounts: the manager's Workload, the copy of the job there."""
        local = await self.person.submit(offered=False, cluster=worker, needs=needs)
        return local, await self.copy(local, worker, origin)

    async def run_with_pod(self) -> tuple[Json, Json]:
        """The same, and the pod `train-a` that it runs in."""
        local, copy = await self.run_job()
        await self.pod("train-a", copy)
        return local, copy

    async def copy(self, local: Json, worker: str = "worker1", origin: str = "multikueue") -> Json:
        """The copies on a worker."""
        job = await self.person.admin.get(JOB, ObjectKey("default", "train"))
        return await self.copies(local, job, worker, origin)

    async def move(self, local: Json, worker: str) -> None:
        """Evict it, offer it to another worker, and record that one."""
        steps: tuple[Json, ...] = (
            {"clusterName": None},
            {"nominatedClusterNames": [worker]},
            {"clusterName": worker, "nominatedClusterNames": None},
        )
        for status in steps:
            key = ObjectKey.of(local)
            await self.person.admin.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")

    async def finish(self, local: Json, *, reason: str = "Succeeded") -> None:
        """Finish the manager's Workload."""
        now = await self.person.admin.get(WORKLOAD, ObjectKey.of(local))
        made = statuses.finished(now, reason, "done", NOW)
        await self.person.admin.merge_patch(
            WORKLOAD, ObjectKey.of(local), {"status": made["status"]}, subresource="status"
        )


def _new(made: Json) -> Json:
    kept = {field: value for field, value in made["metadata"].items() if field not in ("uid", "resourceVersion")}
    return {**made, "metadata": kept}


@asynccontextmanager
async def fleet(folder: Path) -> AsyncIterator[Fleet]:
    """A manager and two workers, whose kubeconfigs are in Secrets."""
    async with AsyncExitStack() as stack:
        person = await stack.enter_async_context(shell(folder))
        workers = {}
        for name in ("worker1", "worker2"):
            server = await stack.enter_async_context(ApiServer(name, tokens={f"{name}-token": "multikueue"}))
            define(server.registry, (BATCH_JOB,), CRDS)
            workers[name] = server
            secret = kubeconfig_secret(name, server.kubeconfig("multikueue"))
            await connect_workers(person.admin, {name: server.kubeconfig("multikueue")})
            await person.admin.merge_patch(SECRET, ObjectKey.of(secret), {"data": secret["data"]})
        yield Fleet(workers, person)


async def test_pods_and_logs_of_the_remote_run(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        _, copy = await here.run_with_pod()
        await here.pod("train-b", copy)
        await here.pod("web", None)
        pods = await here.person.run("pods", "job/train")
        as_json = await here.person.run("pods", "train", "-o", "json")
        of_one_pod = await here.person.run("logs", "job/train")
        everything = await here.person.run("logs", "job/train", "--all-pods", "--tail", "1")
        recent = await here.person.run("logs", "job/train", "--since", "1h")
        wrong = await here.person.run("logs", "job/train", "-c", "other")

    assert pods.exit_code == 0, pods.output
    assert [line.split()[:3] for line in pods.stdout.splitlines()[3:]] == [
        ["train-a", "Succeeded", "0/1"],
        ["train-b", "Succeeded", "0/1"],
    ]
    listed = json.loads(as_json.stdout)
    assert (listed["worker"], [pod["name"] for pod in listed["pods"]]) == ("worker1", ["train-a", "train-b"])
    assert of_one_pod.stdout.splitlines() == ["started", "step 1", "step 2", "ended with exit code 0"]
    assert "2 pods; this is the log of train-a" in of_one_pod.stderr
    assert everything.stdout.splitlines() == [
        "[worker1/train-a] ended with exit code 0",
        "[worker1/train-b] ended with exit code 0",
    ]
    assert (recent.exit_code, recent.stdout) == (0, "")
    assert wrong.exit_code == 3
    assert 'pod train-a has no container "other", but main' in wrong.stderr


async def test_a_second_origins_copy_is_not_shown(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        _, copy = await here.run_job(origin="other-manager")
        await here.pod("train-a", copy)
        logs = await here.person.run("logs", "job/train")
        named = await here.person.run("logs", "job/train", "--origin", "other-manager")

    assert (logs.exit_code, logs.stdout) == (3, "")
    assert named.stdout.splitlines()[0] == "started"


async def test_a_job_without_a_worker_says_why(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        local = await here.person.submit()
        waiting = await here.person.run("logs", "job/train")
        await here.finish(local)
        ended = await here.person.run("pods", "job/train")

    assert waiting.exit_code == ended.exit_code == 3
    assert "job/train has no pods: no worker has it; it is Offered" in waiting.stderr
    assert "Finished copies vanish; set retention.finished to keep them" in ended.stderr


async def test_finished_copies_vanish(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        local = await here.person.submit(offered=False, cluster="worker1")
        await here.finish(local)
        logs = await here.person.run("logs", "job/train")
        followed = await here.person.run("logs", "-f", "job/train")

    assert logs.exit_code == 3
    assert "Finished copies vanish; set retention.finished to keep them" in logs.stderr
    assert (followed.exit_code, followed.stdout) == (3, "")


async def test_credentials_that_cannot_be_used(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        await here.run_job()
        insecure = kubeconfig_secret("worker1", kubeconfig("worker1", server="http://worker1"))
        await here.person.admin.merge_patch(SECRET, SECRET_KEY, {"data": insecure["data"]})
        refused = await here.person.run("logs", "job/train")
        away = kubeconfig_secret("worker1", kubeconfig("worker1", server="https://127.0.0.1:1"))
        await here.person.admin.merge_patch(SECRET, SECRET_KEY, {"data": away["data"]})
        unreachable = await here.person.run("pods", "job/train")
        await here.person.admin.delete(SECRET, SECRET_KEY)
        missing = await here.person.run("pods", "job/train")

    assert refused.exit_code == 1
    assert 'the kubeconfig of worker cluster "worker1" cannot be used' in refused.stderr
    assert unreachable.exit_code == 4
    assert 'worker cluster "worker1" cannot be reached from this machine' in unreachable.stderr
    assert missing.exit_code == 3
    assert "name the daemon's namespace with --daemon-namespace" in missing.stderr


async def test_a_worker_that_a_cluster_profile_describes(tmp_path: Path) -> None:
    """By the Secret that is for the profile; without one only the daemon can reach it."""
    async with fleet(tmp_path) as here:
        await here.run_with_pod()
        await refer_to_a_profile(here)
        missing = await here.person.run("pods", "job/train")
        await write_the_profile(here)
        none = await here.person.run("pods", "job/train")
        await write_its_secret(here)
        pods = await here.person.run("pods", "job/train")

    assert missing.exit_code == 1
    assert 'ClusterProfile.multicluster.x-k8s.io "spoke" not found: multikueue explain JOB says' in missing.stderr
    assert none.exit_code == 4
    assert 'is reached by ClusterProfile "kueue-system/spoke": only the daemon has its credentials' in none.stderr
    assert pods.exit_code == 0, pods.stderr
    assert "train-a" in pods.stdout


async def test_a_worker_that_a_cluster_profile_describes_may_take_what_is_moved(tmp_path: Path) -> None:
    """`worker drain --move` found no place in a fleet of ClusterProfiles: it asked for the Secret "-"."""
    async with fleet(tmp_path) as here, AsyncExitStack() as stack:
        admin = here.person.admin
        await refer_to_a_profile(here)
        await write_the_profile(here)
        connected = {"status": {"conditions": [new_condition("Active", True, "Active", "Connected", now=NOW)]}}
        await admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), connected, subresource="status")
        settings = parse_settings("namespace: kueue-system")
        workload = {"metadata": {"name": "w", "namespace": "default"}, "spec": {"queueName": "nowhere"}}

        async def why_not() -> str:
            targets = MoveTargets(ManagerAccess(admin, settings), stack)
            return await targets.why_not("worker1", workload, None, KINDS[0])

        without = await why_not()
        await write_its_secret(here)
        seen = await why_not()

    assert "only the daemon has its credentials" in without
    assert seen == 'LocalQueue "default/nowhere" does not exist'


async def refer_to_a_profile(here: Fleet) -> None:
    definition = yaml.safe_load((OCM_CRDS / "clusterprofile.yaml").read_text())
    cluster = {"clusterSource": {"clusterProfileRef": {"name": "spoke"}, "kubeConfig": None}}
    define(here.person.server.registry, (), (definition,))
    await here.person.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), {"spec": cluster})


async def write_the_profile(here: Fleet) -> None:
    server = here.workers["worker1"].kubeconfig("multikueue")["clusters"][0]["cluster"]
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "spoke"}}
    kind = {"apiVersion": CLUSTER_PROFILE.gvk.api_version, "kind": "ClusterProfile"}
    profile = {**kind, "metadata": PLACE, "spec": {"clusterManager": {"name": "m"}}}
    made = await here.person.admin.create(CLUSTER_PROFILE, profile)
    status = {"accessProviders": [{"name": "any", "cluster": {**server, "extensions": [extension]}}]}
    key = ObjectKey.of(made)
    await here.person.admin.merge_patch(CLUSTER_PROFILE, key, {"status": status}, subresource="status")


async def write_its_secret(here: Fleet) -> None:
    labels = {"multikueue.dev/cluster-profile": "spoke"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {**PLACE, "labels": labels}}
    await here.person.admin.create(SECRET, {**secret, "stringData": {"token": "worker1-token"}})


async def test_following_a_job_to_another_worker(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job()
        await here.pod("train-a", copy, running=True)
        outcome = []

        async def follow() -> None:
            outcome.append(await here.person.run("logs", "job/train", "-f", "--all-pods", "--tail", "2"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await until(lambda: here.workers["worker1"].requests["multikueue", "get", "pods"])
            await here.move(local, "worker2")
            moved = await here.copy(local, "worker2")
            await here.pod("train-a", moved, "worker2")
            await here.finish(local)

    (done,) = outcome
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("[worker1/train-a] step ")
    assert lines[-2:] == ["[worker2/train-a] step 2", "[worker2/train-a] ended with exit code 0"]
    assert 'job/train has moved from worker cluster "worker1" to "worker2"' in done.stderr
    assert uid(copy) != uid(moved)
    assert name_of(copy) == name_of(moved)


@pytest.mark.parametrize("arguments", [["--since", "soon"], ["--tail", "-1"]])
async def test_options_that_mean_nothing(tmp_path: Path, arguments: list[str]) -> None:
    async with shell(tmp_path) as person:
        result = await person.run("logs", "job/train", *arguments)
    assert result.exit_code == 2
