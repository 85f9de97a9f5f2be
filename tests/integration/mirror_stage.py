"""The stage of tests of mirrors' endpoint: a real API server that asks it as the kubelet of our Nodes, and a worker.

The worker is played: a real API server has logs from kubelets alone.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import EllipsisType
from typing import Any, Final

import aiohttp
import anyio
import attrs
import trustme

from multikueue.core.model.kinds import LEASE, POD, SECRET
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import NotFound
from multikueue.kube import KubeClient
from multikueued.mirror_names import MIRROR, PROOF, WORKER, WORKER_POD, WORKER_POD_UID, node_name
from multikueued.mirrors.endpoint.running import run_endpoint
from multikueued.mirrors.proof import proof
from multikueued.rbac.logs import api_server_rules
from multikueued.rbac.mirrors import (
    endpoint_rules,
    endpoint_secret_rules,
    mirror_policy_objects,
    mirroring_rules,
    node_lease_rules,
)
from multikueued.rbac.role_rule import rule
from multikueued.settings.config import Settings
from multikueued.settings.sections import MirrorPodSettings
from tests.controlplane.binaries import find_kubectl
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.credentials import write_kubeconfig
from tests.controlplane.polling import poll_until
from tests.integration.planes import connection
from tests.logserver.stage import secret
from tests.mirrors.endpoint.worker import PlayedWorker, PlayedWorkers, outer_address

KEY: Final = b"k" * 32
NAMESPACE: Final = "multikueue"
KUBELET_CLIENT: Final = "kube-apiserver-kubelet-client"
DAEMON: Final = "daemon"
NODE: Final = Resource(GVK("", "v1", "Node"), "nodes", namespaced=False)
TENANT: Final = [
    rule("", ["pods"], ["create", "delete", "get", "list", "patch", "update"]),
    rule("", ["pods/log", "pods/exec", "pods/attach", "pods/portforward"], ["create", "get"]),
    rule("", ["pods/binding"], ["create"]),
]
MORE: Final = ["bindings", "pods/eviction", "pods/ephemeralcontainers", "pods/resize", "pods/status"]
"""What some clusters grant to tenants as well."""
ATTACKER: Final = "attacker"
"""A tenant with these."""


@attrs.frozen
class AskingKubelets:
    """An API server that asks kubelets, with the users of the tests."""

    manager: ControlPlane
    callers: trustme.CA
    """Signs what it shows itself with."""


def asking_kubelets(folder: Path, callers: trustme.CA) -> list[str]:
    """Flags by which the API server shows itself to kubelets."""
    certificate = callers.issue_cert(common_name=KUBELET_CLIENT)
    callers.cert_pem.write_to_path(folder / "callers.pem")
    (folder / "kubelet.pem").write_bytes(certificate.cert_chain_pems[0].bytes())
    (folder / "kubelet.key").write_bytes(certificate.private_key_pem.bytes())
    return [
        f"--client-ca-file={folder / 'callers.pem'}",
        f"--kubelet-client-certificate={folder / 'kubelet.pem'}",
        f"--kubelet-client-key={folder / 'kubelet.key'}",
    ]


@asynccontextmanager
async def asking(folder: Path, *flags: str, shows_itself: bool = True) -> AsyncIterator[AskingKubelets]:
    """Start such kubelets; each account may do what it is granted.

    Args:
        folder: for its certificates.
        flags: further ones of the API server.
        shows_itself: whether it has a certificate for kubelets.
    """
    callers = trustme.CA()
    settings = Settings(namespace=NAMESPACE)
    endpoint = [*api_server_rules("none"), *endpoint_rules(signed=True)]
    endpoint += endpoint_secret_rules(settings.mirrors_secret, settings.mirrors_certificate_secret, brought=False)
    # Kubernetes' own role for this, which binds it in kube-system.
    endpoint += [rule("", ["configmaps"], ["get"], ["extension-apiserver-authentication"])]
    users = {
        "tenant": TENANT,
        ATTACKER: [*TENANT, rule("", MORE, ["create", "get", "patch", "update"])],
        "endpoint": endpoint,
        DAEMON: [*mirroring_rules(settings.mirrors_policy), *node_lease_rules()],
        KUBELET_CLIENT: [rule("", ["nodes/proxy"], ["*"])],
        "prober": [rule("", ["nodes/proxy"], ["get"], ["multikueue-w1"])],
    }
    authority, *shown = asking_kubelets(folder, callers)
    own = [authority, *(shown if shows_itself else ())]
    async with ControlPlane("manager", users=users, apiserver_flags=[*own, *flags]) as manager:
        await manager.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        account = {"namespace": "default", "name": "default"}
        await manager.admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        yield AskingKubelets(manager, callers)


def pod(name: str, *, node: str = "", **annotations: str) -> Json:
    """A pod as mirrors are made."""
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "0", "memory": "0"}},
    }
    spec: Json = {"containers": [container], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    spec |= {"nodeName": node} if node else {}
    metadata = {"namespace": "default", "name": name, "annotations": annotations, "labels": {MIRROR: "multikueue"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def lease(name: str) -> Json:
    """Of a Node."""
    metadata = {"namespace": "kube-node-lease", "name": name}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}


def node(name: str) -> Json:
    """A Node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


@attrs.define(eq=False)
class Stage:
    manager: ControlPlane
    admin: KubeClient
    daemon: KubeClient
    worker: PlayedWorker
    folder: Path
    callers: trustme.CA
    address: str
    workers: PlayedWorkers
    user: str
    """Of kubectl where no other is named."""
    port: int = 0

    async def kubectl(
        self, *arguments: str, user: str = "", stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """The exit code, and what kubectl prints, as a user of the manager."""
        user = user or self.user
        file = self.folder / f"kubeconfig-of-{user}"
        if not file.exists():
            write_kubeconfig(file, self.manager.kubeconfig(user))
        environ = {**os.environ, "KUBECONFIG": str(file), "HOME": str(self.folder), **(env or {})}
        command = [str(find_kubectl()), *arguments]
        with anyio.fail_after(60):
            done = await anyio.run_process(
                command, env=environ, check=False, stderr=subprocess.STDOUT, input=stdin or None
            )
        return done.returncode, done.stdout.decode()

    async def ask(
        self,
        path: str,
        name: str,
        headers: Mapping[str, str] | None = None,
        *,
        authority: trustme.CA | EllipsisType | None = ...,
    ) -> tuple[int, str]:
        """Ask the endpoint itself, with a certificate of this name; `authority` None: without one."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if authority is not None:
            signer = self.callers if isinstance(authority, EllipsisType) else authority
            signer.issue_cert(common_name=name).configure_cert(context)
        url = f"https://{self.address}:{self.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=context) as response:
            return response.status, await response.text()

    async def mirror(self, name: str = "train-x", node: str = "multikueue-w1", pod_uid: str = "") -> Json:
        """A mirror as the daemon makes it, of a pod of the worker."""
        there, uid = f"default/{name}", pod_uid or f"uid-of-{name}"
        self.worker.uids[there] = uid
        said = {WORKER: "w1", WORKER_POD: there, WORKER_POD_UID: uid}
        made = await self.daemon.create(POD, pod(name, node=node, **said))
        sign = proof(KEY, mirror_uid=made["metadata"]["uid"], worker="w1", worker_pod=there, worker_pod_uid=uid)
        key = ObjectKey.of(made)
        running = {"name": "main", "ready": True, "restartCount": 0, "image": "", "imageID": ""}
        state = {"state": {"running": {"startedAt": "2026-11-28T10:00:00Z"}}}
        status = {"phase": "Running", "containerStatuses": [running | state]}
        patch = {"metadata": {"uid": made["metadata"]["uid"], "annotations": {PROOF: sign}}, "status": status}
        return await self.daemon.merge_patch(POD, key, patch, subresource="status")


@asynccontextmanager
async def stage(
    kubelets: AskingKubelets,
    folder: Path,
    *,
    user: str = "tenant",
    meanwhile: Callable[[ControlPlane], Coroutine[Any, Any, None]] | None = None,
    **mirrors: Any,
) -> AsyncIterator[Stage]:
    """A Node of ours on that API server, as it was at first, the endpoint, and a worker.

    Args:
        kubelets: the manager.
        folder: for kubeconfigs.
        user: of kubectl where no other is named.
        meanwhile: what else goes on on the manager.
        mirrors: settings.
    """
    manager, worker, address = kubelets.manager, PlayedWorker(), outer_address()
    settings = Settings(
        namespace=NAMESPACE, mirror_pods=MirrorPodSettings(logs=True, address=address, port=0, **mirrors)
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(worker.running())
        admin, ours, daemon = [
            await stack.enter_async_context(KubeClient(connection(manager.kubeconfig(name)), name="manager"))
            for name in ("admin", "endpoint", DAEMON)
        ]
        await _clear(admin, settings)
        for obj in (
            secret(settings.mirrors_secret, NAMESPACE, key=KEY),
            secret(settings.mirrors_certificate_secret, NAMESPACE),
            *mirror_policy_objects(settings.mirrors_policy, DAEMON),
        ):
            await manager.admin.apply(obj)
        workers = PlayedWorkers({"w1": connection(worker.kubeconfig())})
        here = Stage(manager, admin, daemon, worker, folder, kubelets.callers, address, workers, user)
        opened = anyio.Event()

        def on_open(port: int) -> None:
            here.port = port
            opened.set()

        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(run_endpoint, ours, workers, settings, on_open)
        if meanwhile is not None:
            tasks.start_soon(meanwhile, manager)
        with anyio.fail_after(60):
            await opened.wait()
        await add_node(here)
        await poll_until(lambda: _is_bounded(here), seconds=60, otherwise="the policy is not in force")
        yield here


async def _clear(admin: KubeClient, settings: Settings) -> None:
    """Take away what the test before has left, however it ended."""
    for resource, namespace in ((POD, ""), (NODE, ""), (LEASE, "kube-node-lease")):
        for obj in (await admin.list(resource, namespace=namespace)).items:
            with suppress(NotFound):
                await admin.delete(resource, ObjectKey.of(obj), grace=0)
    with suppress(NotFound):
        await admin.delete(SECRET, ObjectKey(NAMESPACE, settings.mirrors_certificate_secret))


async def add_node(here: Stage) -> None:
    """Our Node of the worker."""
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node_name("w1")}, "spec": {"unschedulable": True}}
    await here.daemon.create(NODE, made)
    status = {
        "addresses": [{"type": "InternalIP", "address": here.address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": here.port}},
    }
    await here.daemon.merge_patch(NODE, ObjectKey("", node_name("w1")), {"status": status}, subresource="status")


async def _is_bounded(here: Stage) -> bool:
    code, output = await here.kubectl(
        "create", "-f", "-", "--dry-run=server", stdin=as_json(pod("a", node="multikueue-w1"))
    )
    return code == 1 and "multikueue alone puts pods" in output


def as_json(obj: Json) -> bytes:
    """For kubectl's standard input."""
    return json.dumps(obj).encode()


async def refused(here: Stage, obj: Json, *arguments: str, user: str = "") -> str:
    """What the manager says to a write that it refuses."""
    code, output = await here.kubectl(*(arguments or ("create",)), "-f", "-", user=user, stdin=as_json(obj))
    assert code == 1, output
    return output


async def is_open(here: Stage) -> bool:
    """Whether anybody puts pods on our Nodes: the policy is not in force."""
    obj = pod("a", node="multikueue-w1")
    return (await here.kubectl("create", "-f", "-", "--dry-run=server", stdin=as_json(obj)))[0] == 0
