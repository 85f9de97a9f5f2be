"""The daemon on a hub over HTTPS, with the permissions that `multikueue rbac manager` prints and roles enforced."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest

from multikueue.core.inventory.names import CLUSTER_PERMISSION
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    MULTIKUEUE_CLUSTER,
    PLACEMENT,
    SECRET,
)
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import NotFound
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, KUEUE_NAMESPACE, admission_check
from multikueue.testing import job
from multikueued.rbac.objects import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT, Account, manager_objects
from multikueued.rbac.rules import RBAC_GROUP
from multikueued.run.daemon import work
from multikueued.settings.file import parse_settings
from tests.examples import shared

pytestmark = pytest.mark.timeout(120)

ACCOUNT = Account(KUEUE_NAMESPACE, "multikueue")
GRANTING = f"system:serviceaccount:{KUEUE_NAMESPACE}:multikueue-permissions"
ROLE = Resource(GVK(RBAC_GROUP, "v1", "Role"), "roles")
ROLE_BINDING = Resource(GVK(RBAC_GROUP, "v1", "RoleBinding"), "rolebindings")
KINDS = {
    resource.gvk.kind: resource
    for resource in (SERVICE_ACCOUNT, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING)
}
"""What the sandbox serves of what is printed: it has no admission policies (`tests/integration/test_granting.py`)."""


def settings_text(source: str) -> str:
    return f"""
        namespace: {KUEUE_NAMESPACE}
        serving: {{bindAddress: 127.0.0.1, port: 0}}
        ocm:
          enabled: true
          clusters: {{source: {source}}}
          clusterPermissions: {{enabled: true}}
    """


async def when(client: ApiClient, resource: Resource, key: ObjectKey, condition: str) -> Json:
    """An object, once it has a condition that is true."""
    with anyio.fail_after(100):
        while True:
            with suppress(NotFound):
                obj = await client.get(resource, key)
                if is_true(obj, condition):
                    return obj
            await anyio.sleep(0.05)


async def prepare(hub: ApiClient, objects: list[Json]) -> None:
    """What an administrator does: grant what is printed, and make the guide's checks and a Placement of all."""
    for obj in objects:
        if obj["kind"] in KINDS:
            await hub.create(KINDS[obj["kind"]], obj)
    marks = {"name": "multikueue-marks", "namespace": KUEUE_NAMESPACE}
    await hub.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": marks})
    check = {**admission_check("open-cluster-management.io/placement"), "metadata": {"name": "placed"}}
    check["spec"]["parameters"] = {"apiGroup": PLACEMENT.gvk.group, "kind": PLACEMENT.gvk.kind, "name": CHECK}
    await hub.create(ADMISSION_CHECK, check)
    both = {"admissionChecks": [{"name": CHECK}, {"name": "placed"}]}
    queue = {"spec": {"admissionChecksStrategy": both}}
    await hub.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), queue)
    metadata = {"name": CHECK, "namespace": KUEUE_NAMESPACE}
    api = {"apiVersion": PLACEMENT.gvk.api_version, "kind": PLACEMENT.gvk.kind}
    await hub.create(PLACEMENT, {**api, "metadata": metadata, "spec": {}})


@pytest.mark.parametrize("source", shared(["clusterProfile", "kubeconfig"]))
async def test_a_job_runs_on_a_cluster_that_nobody_connected(source: str) -> None:
    """From two ManagedClusters and a Placement to a finished job; permissions are written by another account."""
    settings = parse_settings(settings_text(source))
    options = SandboxOptions(ocm=True, join=False, roles=True)
    async with Sandbox(workers=2, options=options) as sandbox, anyio.create_task_group() as tasks:
        server, hub = sandbox.manager.server, sandbox.manager.client("admin")
        await prepare(hub, manager_objects(settings, "multikueue", ACCOUNT))
        token = server.access.issuer.issue(ACCOUNT.namespace, ACCOUNT.name, {})["status"]["token"]
        tasks.start_soon(work, settings, ClusterConfig(server.url, ca_pem=server.ca_pem or "", token=token))
        for name in sandbox.workers:
            await when(hub, MULTIKUEUE_CLUSTER, ObjectKey("", name), "Active")
        await hub.create(JOB, job("train"))
        ended = await when(hub, JOB, ObjectKey("default", "train"), "Complete")
        tasks.cancel_scope.cancel()
        assert ended["spec"]["managedBy"] == "kueue.x-k8s.io/multikueue"
        writers = {
            user for (user, verb, what) in server.requests if (verb, what) == ("create", str(CLUSTER_PERMISSION))
        }
        assert writers == {GRANTING}
