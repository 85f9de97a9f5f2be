"""Who writes ClusterPermissions can grant what the daemon needs on a spoke, and nothing else: an API server says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from multikueue.core.inventory.names import CLUSTER_PERMISSION
from multikueue.core.inventory.ocm_workers.objects import permission_spec
from multikueue.core.model.kinds import NAMESPACE
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import Forbidden, Invalid, NotFound
from multikueue.kube import ClientOptions, KubeClient
from multikueue.sandbox.crds import load_ocm_crds
from multikueued.rbac.objects import granting_account, granting_objects
from multikueued.rbac.rules import on_worker
from multikueued.settings.file import parse_settings
from tests.controlplane.polling import poll_until
from tests.integration.planes import Planes, connection

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

SETTINGS = parse_settings(
    """
    namespace: kueue-system
    integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset]}
    externalFrameworks: [PipelineRun.v1.tekton.dev]
    ocm: {enabled: true, clusterPermissions: {enabled: true}}
    """
)
SPOKE = "spoke"
KEY = ObjectKey(SPOKE, "multikueue")
GOOD = permission_spec(on_worker(SETTINGS))
_PLURALS = {
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def resource_of(obj: Json) -> Resource:
    namespaced = "namespace" in obj["metadata"]
    return Resource(GVK.of(obj["apiVersion"], obj["kind"]), _PLURALS[obj["kind"]], namespaced)


def permission(spec: Json, name: str = "multikueue") -> Json:
    api = {"apiVersion": CLUSTER_PERMISSION.gvk.api_version, "kind": "ClusterPermission"}
    return {**api, "metadata": {"name": name, "namespace": SPOKE}, "spec": spec}


@asynccontextmanager
async def granting(planes: Planes) -> AsyncIterator[KubeClient]:
    """A client that acts as the account, on a server with what `multikueue rbac manager` prints for it."""
    printed = granting_objects(SETTINGS)
    for definition in load_ocm_crds():
        if definition["spec"]["names"]["kind"] == "ClusterPermission":
            await planes.manager.admin.apply(definition)
    await planes.manager.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPOKE}})
    config = connection(planes.manager.kubeconfig())
    acting = ClientOptions(impersonate=granting_account(SETTINGS).user)
    async with KubeClient(config, name="admin") as admin, KubeClient(config, name="acting", options=acting) as client:
        try:
            for obj in printed:
                await planes.manager.admin.apply(obj)
            await poll_until(lambda: _in_force(client), seconds=60, otherwise="the policy is not in force after 60 s")
            yield client
        finally:
            for obj in reversed(printed):
                with suppress(NotFound):
                    await admin.delete(resource_of(obj), ObjectKey.of(obj))


async def _in_force(client: KubeClient) -> bool:
    """Servers read roles and policies from watches of their own: whether both are known."""
    try:
        made = await client.create(CLUSTER_PERMISSION, permission({"clusterRole": {"rules": []}}))
    except (Forbidden, NotFound):
        return False
    except Invalid:
        return True
    await client.delete(CLUSTER_PERMISSION, ObjectKey.of(made))
    return False


async def test_nothing_but_what_was_printed_can_be_granted(planes: Planes) -> None:
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    admin = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"}
    somebody = {"subject": {"kind": "User", "name": "somebody"}}
    others: list[Json] = [
        {**GOOD, "clusterRole": {"rules": everything}},
        {**GOOD, "clusterRole": {"rules": [*GOOD["clusterRole"]["rules"], *everything]}},
        {**GOOD, "clusterRoleBinding": somebody},
        {**GOOD, "clusterRoleBinding": {**GOOD["clusterRoleBinding"], "roleRef": admin}},
        {**GOOD, "roles": [{"namespace": "kube-system", "rules": everything}]},
        {**GOOD, "roleBindings": [{"namespace": "kube-system", "roleRef": admin, **somebody}]},
        {"clusterRoleBinding": {**GOOD["clusterRoleBinding"], "roleRef": admin}},
    ]
    async with granting(planes) as client:
        for spec in others:
            with pytest.raises(Invalid, match="may only grant what"):
                await client.create(CLUSTER_PERMISSION, permission(spec))
        with pytest.raises(Invalid, match="may only write ClusterPermissions named multikueue"):
            await client.create(CLUSTER_PERMISSION, permission(GOOD, "another"))
        await client.create(CLUSTER_PERMISSION, permission(GOOD))
        for spec in others:
            with pytest.raises(Invalid, match="may only grant what"):
                await client.merge_patch(CLUSTER_PERMISSION, KEY, {"spec": {"clusterRole": None, **spec}})
        await client.merge_patch(CLUSTER_PERMISSION, KEY, {"metadata": {"labels": {"multikueue.dev/managed-by": "x"}}})
        with pytest.raises(Forbidden):
            await client.list(NAMESPACE)
        await client.delete(CLUSTER_PERMISSION, KEY)


async def test_others_are_not_bound_by_the_policy(planes: Planes) -> None:
    """An administrator grants what he likes."""
    async with granting(planes), KubeClient(connection(planes.manager.kubeconfig()), name="admin") as admin:
        made = await admin.create(CLUSTER_PERMISSION, permission({"clusterRole": {"rules": []}}, "mine"))
        await admin.delete(CLUSTER_PERMISSION, ObjectKey.of(made))
