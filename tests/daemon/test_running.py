"""`multikueue run` as a process of its own, between sandbox clusters."""

from __future__ import annotations

import base64
import json
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.abc
import attrs
import pytest
import yaml

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, LEASE, SECRET, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxOptions
from multikueue.testing import job, until

LEASE_KEY = ObjectKey("kueue-system", "multikueue")
QUICK_JOBS = SandboxOptions(runner=RunnerOptions(mean=0.2, minimum=0.1, maximum=0.3))


@attrs.define(eq=False)
class Daemon:
    """A running daemon as a process."""

    process: anyio.abc.Process
    log: list[dict[str, Any]] = attrs.field(factory=list)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    async def read_log(self) -> None:
        assert self.process.stderr is not None
        rest = ""
        async for chunk in self.process.stderr:
            *lines, rest = (rest + chunk.decode()).split("\n")
            self.log += [json.loads(line) for line in lines]
            self._changed.set()
            self._changed = anyio.Event()

    async def logged(self, event: str) -> dict[str, Any]:
        """Wait for a line of the log."""
        with anyio.fail_after(30):
            while True:
                for line in self.log:
                    if line["event"] == event:
                        return line
                await self._changed.wait()

    async def get(self, path: str) -> tuple[int, str]:
        port = (await self.logged("serving"))["port"]
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
            return response.status, await response.text()


@asynccontextmanager
async def daemon(folder: Path, kubeconfig: Json, **settings: object) -> AsyncIterator[Daemon]:
    (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    serving = {"bindAddress": "127.0.0.1", "port": 0}
    (folder / "config.yaml").write_text(yaml.safe_dump({"serving": serving, **settings}))
    command = [sys.executable, "-m", "multikueued", "run"]
    command += ["--config", str(folder / "config.yaml"), "--kubeconfig", str(folder / "kubeconfig")]
    async with await anyio.open_process(command) as process, anyio.create_task_group() as tasks:
        running = Daemon(process)
        tasks.start_soon(running.read_log)
        try:
            yield running
        finally:
            if process.returncode is None:
                process.kill()


async def test_a_job_is_dispatched_and_sigterm_stops_in_order(tmp_path: Path) -> None:
    """As in a Deployment: start, work, answer probes, stop."""
    async with (
        Sandbox(workers=2, options=QUICK_JOBS) as sandbox,
        daemon(tmp_path, sandbox.manager.server.kubeconfig("multikueue")) as running,
    ):
        manager = sandbox.manager.client("admin")
        key = ObjectKey("default", "sample")
        await manager.create(JOB, job("sample"))

        async def complete() -> bool:
            return is_true(await manager.get(JOB, key), "Complete")

        async def clean() -> bool:
            lists = [await worker.client("admin").list(WORKLOAD) for worker in sandbox.workers.values()]
            return not any(listed.items for listed in lists)

        await until(complete)
        await until(clean)
        assert await running.get("/healthz") == (200, "ok\n")
        assert await running.get("/readyz") == (200, "ok\n")
        metrics = (await running.get("/metrics"))[1]
        assert 'multikueue_workloads_admitted_total{cluster="worker' in metrics
        assert "multikueue_leading 1.0" in metrics

        running.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(10):
            assert await running.process.wait() == 0
        assert (await manager.get(LEASE, LEASE_KEY))["spec"]["holderIdentity"] == ""
        assert [line["event"] for line in running.log][-2:] == ["stopping", "stopped"]


@pytest.mark.gate
async def test_a_second_replica_takes_over_from_the_first(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    times = {"leaseDuration": "3s", "renewDeadline": "2s"}
    async with Sandbox(workers=1) as sandbox:
        kubeconfig = sandbox.manager.server.kubeconfig("multikueue")
        async with daemon(folders[0], kubeconfig, leaderElection=times) as first:
            await first.logged("working")
            async with daemon(folders[1], kubeconfig, leaderElection=times) as second:

                async def ready() -> bool:
                    return await second.get("/readyz") == (200, "ok\n")

                await until(ready)
                assert "multikueue_leading 0.0" in (await second.get("/metrics"))[1]

                first.process.send_signal(signal.SIGTERM)
                await second.logged("working")
                assert await first.process.wait() == 0


@pytest.mark.gate
async def test_a_missing_namespace_is_reported_and_does_not_stop_the_daemon(tmp_path: Path) -> None:
    async with (
        Sandbox(workers=1) as sandbox,
        daemon(tmp_path, sandbox.manager.kubeconfig, namespace="nowhere") as running,
    ):
        line = await running.logged("cannot hold the lease")
        assert 'namespaces "nowhere" not found' in line["error"]
        assert (await running.get("/healthz"))[0] == 200

        running.process.send_signal(signal.SIGINT)
        with anyio.fail_after(10):
            assert await running.process.wait() == 0


@pytest.mark.gate
async def test_without_election_no_lease_is_written(tmp_path: Path) -> None:
    async with (
        Sandbox(workers=1) as sandbox,
        daemon(tmp_path, sandbox.manager.kubeconfig, leaderElection={"enabled": False}) as running,
    ):
        await running.logged("working")
        assert (await sandbox.manager.client("admin").list(LEASE)).items == []

        async def active() -> bool:
            queues = await sandbox.manager.client("admin").list(CLUSTER_QUEUE)
            return all(is_true(queue, "Active") for queue in queues.items)

        await until(active)
        running.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(10):
            assert await running.process.wait() == 0


@pytest.mark.gate
async def test_a_port_in_use_ends_it_with_one_line(tmp_path: Path) -> None:
    async with Sandbox(workers=1) as sandbox:
        port = sandbox.manager.server.port
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(sandbox.manager.kubeconfig))
        (tmp_path / "config.yaml").write_text(f"serving: {{bindAddress: 127.0.0.1, port: {port}}}\n")
        command = [sys.executable, "-m", "multikueued", "run", "--config", str(tmp_path / "config.yaml")]
        result = await anyio.run_process([*command, "--kubeconfig", str(tmp_path / "kubeconfig")], check=False)

    assert result.returncode == 2
    assert result.stderr.decode() == (
        f"multikueue: error: cannot listen on 127.0.0.1:{port}: it is in use; set serving.port to a free one\n"
    )


@pytest.mark.gate
@pytest.mark.parametrize("text", ["", "clusters: []\n", "a: ["])
async def test_an_invalid_kubeconfig_ends_the_daemon_with_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    command = [sys.executable, "-m", "multikueued", "run", "--kubeconfig", str(path)]
    result = await anyio.run_process(command, check=False)

    assert result.returncode == 2
    assert result.stderr.decode().startswith(f"multikueue: error: {path}: ")
    assert result.stderr.count(b"\n") == 1


@pytest.mark.gate
async def test_every_replica_serves_the_webhook_with_the_certificate_that_the_first_one_made(tmp_path: Path) -> None:
    """Ready means that API servers can call it; the sandbox's do not call webhooks."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    webhook = {"enabled": True, "bindAddress": "127.0.0.1", "port": 0, "url": "https://127.0.0.1:9443"}
    key = ObjectKey("kueue-system", "multikueue-webhook")
    async with (
        Sandbox(workers=1) as sandbox,
        daemon(folders[0], sandbox.manager.server.kubeconfig("multikueue"), webhook=webhook) as first,
        daemon(folders[1], sandbox.manager.server.kubeconfig("multikueue"), webhook=webhook) as second,
    ):
        for replica in (first, second):

            async def ready(replica: Daemon = replica) -> bool:
                return await replica.get("/readyz") == (200, "ok\n")

            await until(ready)
            port = (await replica.logged("serving webhook"))["port"]
            secret = await sandbox.manager.client("admin").get(SECRET, key)
            tls = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"https://127.0.0.1:{port}/managed-by", json=new_job("user-queue"), ssl=tls) as response,
            ):
                patch = json.loads(base64.b64decode((await response.json())["response"]["patch"]))
            assert patch == [{"op": "add", "path": "/spec/managedBy", "value": "kueue.x-k8s.io/multikueue"}]
            assert 'multikueue_webhook_reviews_total{outcome="delegated"} 1.0' in (await replica.get("/metrics"))[1]
        assert not any("BEGIN" in str(line) for line in (*first.log, *second.log))


def new_job(queue: str) -> Json:
    made = job("sample", queue=queue, delegated=False)
    kind = {"group": "batch", "version": "v1", "kind": "Job"}
    request = {"uid": "u", "kind": kind, "namespace": "default", "operation": "CREATE", "object": made}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@pytest.mark.gate
async def test_a_replica_is_not_ready_before_its_webhook_has_a_certificate(tmp_path: Path) -> None:
    """No certificate is made where its Secret cannot be: the Service must not send API servers here."""
    webhook = {"enabled": True, "bindAddress": "127.0.0.1", "port": 0}
    async with (
        Sandbox(workers=1) as sandbox,
        daemon(tmp_path, sandbox.manager.kubeconfig, namespace="nowhere", webhook=webhook) as running,
    ):

        async def waits_for_it() -> bool:
            answer = await running.get("/readyz")
            return answer == (
                503,
                "webhook: there is no certificate in Secret nowhere/multikueue-webhook yet: the replica that leads "
                "makes it\n",
            )

        await until(waits_for_it)
        assert (await running.get("/healthz"))[0] == 200


@pytest.mark.gate
@pytest.mark.parametrize(
    ("webhook", "told"),
    [
        (
            {"certDir": "/nowhere"},
            "webhook.certDir: cannot read /nowhere/tls.crt: No such file or directory; put tls.crt and tls.key there, "
            "or leave certDir out to have a certificate made and renewed",
        ),
        (
            {"bindAddress": "203.0.113.1"},
            "cannot listen on 203.0.113.1:9443: Cannot assign requested address; set webhook.bindAddress and "
            "webhook.port to an address of this machine and a port this user may open",
        ),
    ],
)
async def test_a_webhook_that_cannot_be_served_ends_it_with_one_line(
    tmp_path: Path, webhook: dict[str, str], told: str
) -> None:
    async with Sandbox(workers=1) as sandbox:
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(sandbox.manager.kubeconfig))
        (tmp_path / "config.yaml").write_text(yaml.safe_dump({"webhook": {"enabled": True, **webhook}}))
        command = [sys.executable, "-m", "multikueued", "run", "--config", str(tmp_path / "config.yaml")]
        result = await anyio.run_process([*command, "--kubeconfig", str(tmp_path / "kubeconfig")], check=False)

    assert result.returncode == 2
    last = result.stderr.decode().splitlines()[-1]
    assert last == f"multikueue: error: {told}"
