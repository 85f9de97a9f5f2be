"""`multikueue api-server` behind a real kube-apiserver with its aggregation layer on, asked by kubectl and by us.

The worker is a sandbox: a real API server has logs from kubelets alone.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import anyio
import anyio.abc
import attrs
import pytest
import trustme
import yaml
from click.testing import CliRunner

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import KubeClient, load_kubeconfig
from multikueue.sandbox.apiserver import ApiServer
from multikueue.sandbox.kinds import BATCH_JOB, define
from multikueue.sandbox.kueue import statuses
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, connect_workers, namespace
from multikueue.testing import NOW, job, workload
from multikueued.api_answers import API_SERVICE_NAME, GROUP, PARTS, VERSION, WHOLE
from multikueued.cli import main
from tests.controlplane.binaries import find_kubectl
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.credentials import kubeconfig, write_kubeconfig
from tests.controlplane.interface import Cluster, ClusterFactory
from tests.controlplane.polling import poll_until
from tests.controlplane.ports import free_port
from tests.integration.planes import kueue_crds
from tests.logserver.stage import KEY, PROXY, secret
from tests.remote.test_on_servers import Workers
from tests.runtime.fleet import CRDS

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

_NAMESPACE: Final = "multikueue"
_NAME: Final = "multikueue-logs"
_LOG: Final = f"/apis/{GROUP}/{VERSION}/namespaces/default/remotejobs/job.train/log"
_READ_LOGS: Final[Json] = {"apiGroups": [GROUP], "resources": ["remotejobs/log"], "verbs": ["get"]}
_PARTS: Final = ("remotejobs", *(f"remotejobs/{part}" for part in PARTS), *WHOLE, "fleet", "remotenamespaces")
_READ_JOBS: Final[Json] = {"apiGroups": [GROUP], "resources": [*_PARTS], "verbs": ["get", "list", "watch"]}
_LINES: Final = ["started", "step 1", "step 2", "ended with exit code 0"]


def aggregating(folder: Path, proxies: trustme.CA) -> Sequence[str]:
    """Flags that turn the aggregation layer on, with a certificate of its front proxy."""
    certificate = proxies.issue_cert(common_name=PROXY)
    proxies.cert_pem.write_to_path(folder / "proxies.pem")
    (folder / "proxy.pem").write_bytes(certificate.cert_chain_pems[0].bytes())
    (folder / "proxy.key").write_bytes(certificate.private_key_pem.bytes())
    return (
        f"--requestheader-client-ca-file={folder / 'proxies.pem'}",
        f"--requestheader-allowed-names={PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={folder / 'proxy.pem'}",
        f"--proxy-client-key-file={folder / 'proxy.key'}",
    )


def objects(port: int, *permitted: str) -> list[Json]:
    """What the chart makes beside the Deployment; the Service leads to this machine."""
    permissions = CliRunner().invoke(main, ["rbac", "api-server", "--secret", "logs-worker1", *permitted])
    assert permissions.exit_code == 0, permissions.output
    service = {"type": "ExternalName", "externalName": "localhost"}
    place = {"name": _NAME, "namespace": _NAMESPACE}
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {**place, "port": port},
    }
    metadata = {"name": API_SERVICE_NAME}
    return [
        *yaml.safe_load_all(permissions.stdout),
        {"apiVersion": "v1", "kind": "Secret", "metadata": place},
        {"apiVersion": "v1", "kind": "Service", "metadata": place, "spec": service},
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec},
        secret("multikueue-marks", KUEUE_NAMESPACE, key=KEY),
    ]


@attrs.define(eq=False)
class Setting:
    manager: Cluster
    client: KubeClient
    workers: Workers
    folder: Path
    port: int

    async def kubectl(self, *arguments: str, user: str = "tenant", code: int | None = 0) -> str:
        """What kubectl prints, as a user of the manager."""
        command = [str(find_kubectl()), *arguments]
        done = await anyio.run_process(command, env=self.environ(user), check=False, stderr=subprocess.STDOUT)
        assert code in (None, done.returncode), done.stdout.decode()
        return done.stdout.decode()

    def environ(self, user: str) -> dict[str, str]:
        """For a process of that user."""
        file = self.folder / f"kubeconfig-of-{user}"
        if not file.exists():
            write_kubeconfig(file, self.manager.kubeconfig(user))
        return {**os.environ, "KUBECONFIG": str(file), "HOME": str(self.folder)}

    async def is_discovered(self) -> bool:
        """Whether kubectl finds the resources by their names: the API server reads them some time after it is
        available."""
        command = ("api-resources", "--api-group", GROUP, "-o", "name")
        return f"remotejobs.{GROUP}" in await self.kubectl(*command, code=None)

    async def run_job(self) -> Json:
        """A job of the manager that worker1 has, and the pod there has ended; the manager's Workload."""
        stored = await self.client.create(JOB, job("train"))
        made = workload(stored, cluster="worker1")
        status = made.pop("status")
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            made["metadata"].pop(field)
        local = await self.client.create(WORKLOAD, made)
        local = await self.client.merge_patch(WORKLOAD, ObjectKey.of(local), {"status": status}, subresource="status")
        copy = await self.workers.copies(local, stored)
        await self.workers.pod("train-a", copy)
        await self.workers.pod("train-b", None)
        return local

    async def finish(self, local: Json) -> None:
        """Finish the manager's Workload."""
        made = statuses.finished(local, "Succeeded", "done", NOW)
        await self.client.merge_patch(WORKLOAD, ObjectKey.of(local), {"status": made["status"]}, subresource="status")


@asynccontextmanager
async def setting(
    folder: Path, *, permitted: Sequence[str] = (), arguments: Sequence[str] = (), flags: Sequence[str] = ()
) -> AsyncIterator[Setting]:
    """A manager with the server behind it, as its operator would install it, and a worker.

    Args:
        folder: for files.
        permitted: further arguments of `multikueue rbac api-server`.
        arguments: further ones of the server.
        flags: further ones of the manager's API server.
    """
    proxies, port = trustme.CA(), free_port()
    async with AsyncExitStack() as stack:
        manager = ControlPlane(
            "manager",
            crds=kueue_crds(),
            users={"tenant": [_READ_LOGS], "nobody": [], "reader": [_READ_JOBS]},
            apiserver_flags=(*aggregating(folder, proxies), *flags),
        )
        worker = ApiServer("worker1", tokens={"worker-token": "multikueue"})
        await stack.enter_async_context(manager)
        await stack.enter_async_context(worker)
        define(worker.registry, (BATCH_JOB,), CRDS)
        for name in (_NAMESPACE, KUEUE_NAMESPACE):
            await manager.admin.apply(namespace(name))
        reached = json.dumps(worker.kubeconfig("multikueue")).encode()
        for obj in (*objects(port, *permitted), secret("logs-worker1", _NAMESPACE, kubeconfig=reached)):
            await manager.admin.apply(obj)
        await stack.enter_async_context(serving(folder, manager, port, *arguments))
        file = write_kubeconfig(folder / "admin", manager.kubeconfig())
        client = await stack.enter_async_context(KubeClient(load_kubeconfig(file), name="manager"))
        await poll_until(lambda: is_available(manager), seconds=90, otherwise="the APIService is not available")
        here = Setting(manager, client, Workers({"worker1": worker}, mark_key=KEY), folder, port)
        await poll_until(here.is_discovered, seconds=90, otherwise="the API server's discovery does not show it")
        yield here


@asynccontextmanager
async def serving(folder: Path, manager: Cluster, port: int, *arguments: str) -> AsyncIterator[None]:
    """The server's process, with its own account; it is stopped as kubelet stops it."""
    path = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/{_NAME}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
    token = str((await manager.admin.call("POST", path, request))["status"]["token"])
    own = kubeconfig("manager", url=manager.url, ca_pem=manager.ca_pem, user=_NAME, token=token)
    file = write_kubeconfig(folder / "server", own)
    command = [sys.executable, "-m", "multikueued", "api-server", "--kubeconfig", str(file), "-n", _NAMESPACE]
    command += ["--worker", "worker1=logs-worker1", "--port", str(port), *arguments]
    with (folder / "log").open("ab") as log:
        process = await anyio.open_process(command, stdout=log, stderr=log)
    async with process:
        try:
            yield
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(20):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()


async def is_available(manager: Cluster) -> bool:
    """Whether the API server can reach the server, and trusts its certificate."""
    service = await manager.admin.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE_NAME}")
    conditions = (service.get("status") or {}).get("conditions") or []
    return any(condition["type"] == "Available" and condition["status"] == "True" for condition in conditions)


async def test_tenants_read_logs_with_kubectl_and_without_access_to_secrets(
    clusters: ClusterFactory, tmp_path: Path
) -> None:
    del clusters  # it says what is missing where there are no binaries
    async with setting(tmp_path) as here:
        local = await here.run_job()
        assert GROUP in await here.kubectl("api-versions")
        assert (
            await here.kubectl("auth", "can-i", "get", f"remotejobs.{GROUP}/job.train", "--subresource=log") == "yes\n"
        )
        assert (await here.kubectl("get", "--raw", _LOG)).splitlines() == _LINES
        assert (await here.kubectl("get", "--raw", f"{_LOG}?tailLines=1")).splitlines() == _LINES[-1:]
        with_group = _LOG.replace("job.train", "job.batch:train")
        assert (await here.kubectl("get", "--raw", with_group)).splitlines() == _LINES
        assert "forbidden" in await here.kubectl("get", "--raw", _LOG, user="nobody", code=1)
        missing = await here.kubectl("get", "--raw", _LOG.replace("train", "other"), code=1)
        assert "there is no Workload of job/other in namespace default" in missing
        await through_the_command(here)
        await followed(here, local)
        await asked_directly(here)
        audit = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
        read = [entry for entry in audit if entry["event"] == "log read"]
        assert read[0]["user"] == "tenant"
        assert (read[0]["job"], read[0]["worker"], read[0]["bytes"]) == (
            "job.train",
            "worker1",
            len("\n".join(_LINES)) + 1,
        )


async def through_the_command(here: Setting) -> None:
    """Our own command finds the API by itself: the tenant may read nothing else."""
    command = [sys.executable, "-m", "multikueued", "logs", "job/train"]
    done = await anyio.run_process(command, env=here.environ("tenant"), check=False)
    assert (done.returncode, done.stdout.decode().splitlines()) == (0, _LINES), done.stderr.decode()
    refused = await anyio.run_process(command, env=here.environ("nobody"), check=False)
    assert refused.returncode == 4
    assert "you may not get jobs.batch" in refused.stderr.decode()


async def followed(here: Setting, local: Json) -> None:
    """A log that is followed comes as it is written, and ends with the job."""
    command = [str(find_kubectl()), "get", "--raw", f"{_LOG}?follow=true"]
    async with await anyio.open_process(command, env=here.environ("tenant")) as process:
        assert process.stdout is not None
        assert (await process.stdout.receive()).startswith(b"started\n")
        await here.finish(local)
        with anyio.fail_after(60):
            assert await process.wait() == 0


async def asked_directly(here: Setting) -> None:
    """Who reaches the port without the front proxy's certificate is nobody, whatever they say."""
    service = await here.manager.admin.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE_NAME}")
    trusted = base64.b64decode(service["spec"]["caBundle"]).decode()
    forged = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"https://localhost:{here.port}{_LOG}",
            headers=forged,
            ssl=ssl.create_default_context(cadata=trusted),
            server_hostname=f"{_NAME}.{_NAMESPACE}.svc",
        ) as response,
    ):
        assert response.status == 401


async def test_kubectl_gets_watches_and_explains_jobs(clusters: ClusterFactory, tmp_path: Path) -> None:
    del clusters
    async with setting(tmp_path) as here:
        await connect_workers(here.client, {"worker1": here.workers.workers["worker1"].kubeconfig("multikueue")})
        await here.run_job()
        base = f"/apis/{GROUP}/{VERSION}"

        async def listed() -> bool:
            return "job.train" in await here.kubectl("get", "remotejobs", user="reader")

        await poll_until(listed, seconds=30, otherwise="the job is not listed")
        table = await here.kubectl("get", "rj", "-o", "wide", user="reader")
        whole = yaml.safe_load(await here.kubectl("get", "remotejob", "job.train", "-o", "yaml", user="reader"))
        raw = {
            part: json.loads(await here.kubectl("get", "--raw", f"{base}/{part}", user="reader"))
            for part in (
                *(
                    f"namespaces/default/remotejobs/job.train/{subresource}"
                    for subresource in ("explain", "events", "pods")
                ),
                *(f"namespaces/default/{resource}" for resource in WHOLE),
                *WHOLE,
                "fleet",
                "remotenamespaces",
            )
        }
        watched = await here.kubectl(
            "get", "remotejobs", "--watch", "--request-timeout=3s", "-o", "name", user="reader", code=None
        )
        waited = await here.kubectl(
            "wait", "remotejob/job.train", "--for=jsonpath={.status.cluster}=worker1", "--timeout=10s", user="reader"
        )
        documented = await here.kubectl("explain", "remotejobs.status", user="reader")
        refused = [await here.kubectl("get", "remotejobs", user=user, code=1) for user in ("tenant", "nobody")]
        elsewhere = await here.kubectl("get", "--raw", f"{base}/fleet", user="tenant", code=1)

    assert "worker1" in table
    assert "REASON" in table.splitlines()[0]
    assert whole["status"]["cluster"] == "worker1"
    assert [raw[part]["status"]["jobs"]["running"] for part in ("overview", "namespaces/default/overview")] == [1, 1]
    assert [job["job"] for job in raw["timeline"]["status"]["jobs"]] == ["job/train"]
    assert [pod["name"] for pod in raw["namespaces/default/remotejobs/job.train/pods"]["pods"]] == ["train-a"]
    assert raw["remotenamespaces"]["items"] == [{"metadata": {"name": "default"}}]
    assert "remotejob.remote.multikueue.dev/job.train" in watched
    assert "condition met" in waited
    assert "state" in documented
    assert all("forbidden" in error.lower() for error in (*refused, elsewhere))
