"""The daemon as a process, and workers that it reaches by ClusterProfiles: jobs run there."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import yaml

from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    JOB,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    SECRET,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.protocols import ApiClient
from multikueue.sandbox import Sandbox
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE, config
from multikueue.testing import job, until
from tests.daemon.test_running import QUICK_JOBS, daemon
from tests.data.files import OCM_CRDS

V1 = "client.authentication.k8s.io/v1"
PLUGIN = f"""#!{sys.executable}
import json, os, pathlib, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
told = pathlib.Path(sys.argv[1])
with told.open("a") as file:
    print(json.dumps(info["spec"]["cluster"]["config"]), file=file)
print(json.dumps({{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": os.environ["TOKEN"]}}}}))
"""


@attrs.frozen
class Hub:
    """A manager with one worker in an inventory."""

    sandbox: Sandbox
    manager: ApiClient

    @property
    def cluster(self) -> Json:
        """How the worker is reached, without credentials."""
        (found,) = self._kubeconfig["clusters"]
        section: Json = found["cluster"]
        return section

    @property
    def token(self) -> str:
        """What the worker accepts."""
        return str(self._kubeconfig["users"][0]["user"]["token"])

    @property
    def _kubeconfig(self) -> Json:
        return self.sandbox.workers["worker1"].server.kubeconfig("multikueue")

    async def add_profile(self, provider: str) -> Json:
        """Put the worker into the inventory, as its manager does, and have a MultiKueueCluster name it."""
        profile = {
            "apiVersion": CLUSTER_PROFILE.gvk.api_version,
            "kind": CLUSTER_PROFILE.gvk.kind,
            "metadata": {"name": "worker1", "namespace": KUEUE_NAMESPACE},
            "spec": {"clusterManager": {"name": provider}},
        }
        made = await self.manager.create(CLUSTER_PROFILE, profile)
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "worker1"}}
        access = {"name": provider, "cluster": {**self.cluster, "extensions": [extension]}}
        patch = {"status": {"accessProviders": [access]}}
        await self.manager.merge_patch(CLUSTER_PROFILE, ObjectKey.of(made), patch, subresource="status")
        source = {"clusterSource": {"clusterProfileRef": {"name": "worker1"}}}
        kind = {"apiVersion": MULTIKUEUE_CLUSTER.gvk.api_version, "kind": "MultiKueueCluster"}
        await self.manager.create(MULTIKUEUE_CLUSTER, {**kind, "metadata": {"name": "worker1"}, "spec": source})
        return made

    async def runs_a_job(self) -> None:
        """Wait until the worker is connected and the check active; then until a job of the manager is complete."""
        key = ObjectKey("default", "sample")

        async def ready() -> bool:
            check = await self.manager.get(ADMISSION_CHECK, ObjectKey("", CHECK))
            return is_true(check, "Active")

        async def complete() -> bool:
            return is_true(await self.manager.get(JOB, key), "Complete")

        await until(ready)
        await self.manager.create(JOB, job("sample"))
        await until(complete)

    async def told(self) -> str:
        """What the MultiKueueCluster says of its connection."""
        cluster = await self.manager.get(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        return str((condition(cluster, "Active") or {}).get("message"))


@asynccontextmanager
async def a_hub() -> AsyncIterator[Hub]:
    definition: Json = yaml.safe_load((OCM_CRDS / "clusterprofile.yaml").read_text())
    options = attrs.evolve(QUICK_JOBS, join=False)
    async with Sandbox(workers=1, options=options, crds=[definition]) as sandbox:
        manager = sandbox.manager.client("admin")
        await manager.create(MULTIKUEUE_CONFIG, config(["worker1"]))
        yield Hub(sandbox, manager)


async def test_a_job_runs_on_a_worker_that_a_profile_and_a_plugin_reach(tmp_path: Path) -> None:
    plugin, told = tmp_path / "login", tmp_path / "told"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    async with a_hub() as hub:
        command = {
            "apiVersion": V1,
            "command": str(plugin),
            "args": [str(told)],
            "env": [{"name": "TOKEN", "value": hub.token}],
            "provideClusterInfo": True,
        }
        access = {"accessProviders": [{"name": "script", "execConfig": command}]}
        kubeconfig = hub.sandbox.manager.server.kubeconfig("multikueue")
        async with daemon(tmp_path, kubeconfig, multiKueue={"clusterProfile": access}):
            await hub.add_profile("script")
            await hub.runs_a_job()
            assert await hub.told() == "Connected"
        assert [json.loads(line) for line in told.read_text().splitlines()] == [{"clusterName": "worker1"}], (
            "it ran once"
        )


async def test_a_job_runs_on_a_worker_that_a_profile_of_ocm_reaches_without_a_plugin(tmp_path: Path) -> None:
    async with a_hub() as hub:
        access = {"accessProviders": [{"name": "open-cluster-management", "builtin": "cp-creds"}]}
        kubeconfig = hub.sandbox.manager.server.kubeconfig("multikueue")
        async with daemon(tmp_path, kubeconfig, multiKueue={"clusterProfile": access}):
            profile = await hub.add_profile("open-cluster-management")
            owner = {field: profile[field] for field in ("apiVersion", "kind")}
            owner |= {"name": "worker1", "uid": profile["metadata"]["uid"], "controller": True}
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": "worker1-multikueue",
                    "namespace": KUEUE_NAMESPACE,
                    "labels": {"authentication.open-cluster-management.io/synced-from": "worker1-multikueue"},
                    "ownerReferences": [owner],
                },
                "data": {"token": base64.b64encode(hub.token.encode()).decode(), "ca.crt": ""},
            }
            await hub.manager.create(SECRET, secret)
            await hub.runs_a_job()
            assert await hub.told() == "Connected"
