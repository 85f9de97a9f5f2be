"""The daemon as a process, and workers that it reaches by ClusterProfiles: jobs run there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import yaml

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    JOB,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
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


async def add_profile(manager: ApiClient, cluster: Json) -> None:
    """Put worker1 into the inventory, as its manager does, and have a MultiKueueCluster name it."""
    profile = {
        "apiVersion": CLUSTER_PROFILE.gvk.api_version,
        "kind": CLUSTER_PROFILE.gvk.kind,
        "metadata": {"name": "worker1", "namespace": KUEUE_NAMESPACE},
        "spec": {"clusterManager": {"name": "script"}},
    }
    made = await manager.create(CLUSTER_PROFILE, profile)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "worker1"}}
    access = {"name": "script", "cluster": {**cluster, "extensions": [extension]}}
    patch = {"status": {"accessProviders": [access]}}
    await manager.merge_patch(CLUSTER_PROFILE, ObjectKey.of(made), patch, subresource="status")
    source = {"clusterSource": {"clusterProfileRef": {"name": "worker1"}}}
    kind = {"apiVersion": MULTIKUEUE_CLUSTER.gvk.api_version, "kind": "MultiKueueCluster"}
    await manager.create(MULTIKUEUE_CLUSTER, {**kind, "metadata": {"name": "worker1"}, "spec": source})


async def test_a_job_runs_on_a_worker_that_a_profile_and_a_plugin_reach(tmp_path: Path) -> None:
    plugin, told = tmp_path / "login", tmp_path / "told"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    definition: Json = yaml.safe_load((OCM_CRDS / "clusterprofile.yaml").read_text())
    options = attrs.evolve(QUICK_JOBS, join=False)
    async with Sandbox(workers=1, options=options, crds=[definition]) as sandbox:
        manager = sandbox.manager.client("admin")
        await manager.create(MULTIKUEUE_CONFIG, config(["worker1"]))
        reached = sandbox.workers["worker1"].server.kubeconfig("multikueue")
        command = {
            "apiVersion": V1,
            "command": str(plugin),
            "args": [str(told)],
            "env": [{"name": "TOKEN", "value": reached["users"][0]["user"]["token"]}],
            "provideClusterInfo": True,
        }
        access = {"accessProviders": [{"name": "script", "execConfig": command}]}

        async def ready() -> bool:
            return is_true(await manager.get(ADMISSION_CHECK, ObjectKey("", CHECK)), "Active")

        async def complete() -> bool:
            return is_true(await manager.get(JOB, ObjectKey("default", "sample")), "Complete")

        kubeconfig = sandbox.manager.server.kubeconfig("multikueue")
        async with daemon(tmp_path, kubeconfig, multiKueue={"clusterProfile": access}):
            await add_profile(manager, reached["clusters"][0]["cluster"])
            await until(ready)
            await manager.create(JOB, job("sample"))
            await until(complete)
        assert [json.loads(line) for line in told.read_text().splitlines()] == [{"clusterName": "worker1"}], (
            "it ran once"
        )
