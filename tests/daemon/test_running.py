"""`multikueue run` as a process of its own, between sandbox clusters."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.abc
import attrs
import pytest
import yaml

from multikueue.core.conditions import is_true
from multikueue.core.kinds import CLUSTER_QUEUE, JOB, LEASE, WORKLOAD
from multikueue.core.names import Json, ObjectKey
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxOptions

LEASE_KEY = ObjectKey("kueue-system", "multikueue")
QUICK_JOBS = SandboxOptions(runner=RunnerOptions(mean=0.2, minimum=0.1, maximum=0.3))


@attrs.define(eq=False)
class Daemon:
    """A running daemon, as its supervisor sees it."""

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
        with anyio.fail_after(15):
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


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it holds, for at most 15 s."""
    with anyio.fail_after(15):
        while True:
            if await holds():
                return
            await anyio.sleep(0.05)


def delegated_job(name: str, queue: str) -> Json:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {
            "suspend": True,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


async def test_a_job_travels_and_sigterm_stops_in_order(tmp_path: Path) -> None:
    """The way of a deployment: start, work, be asked about it, be told to stop."""
    async with (
        Sandbox(workers=2, options=QUICK_JOBS) as sandbox,
        daemon(tmp_path, sandbox.manager.server.kubeconfig("multikueue")) as running,
    ):
        manager = sandbox.manager.client("admin")
        key = ObjectKey("default", "sample")
        await manager.create(JOB, delegated_job("sample", "user-queue"))

        async def complete() -> bool:
            return is_true(await manager.get(JOB, key), "Complete")

        async def clean() -> bool:
            lists = [await worker.client("admin").list(WORKLOAD) for worker in sandbox.workers.values()]
            return not any(found.items for found in lists)

        await eventually(complete)
        await eventually(clean)
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


async def test_a_second_replica_takes_over_from_the_first(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    times = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "200ms"}
    async with Sandbox(workers=1) as sandbox:
        kubeconfig = sandbox.manager.server.kubeconfig("multikueue")
        async with daemon(folders[0], kubeconfig, leaderElection=times) as first:
            await first.logged("working")
            async with daemon(folders[1], kubeconfig, leaderElection=times) as second:

                async def ready() -> bool:
                    return await second.get("/readyz") == (200, "ok\n")

                await eventually(ready)
                assert "multikueue_leading 0.0" in (await second.get("/metrics"))[1]

                first.process.send_signal(signal.SIGTERM)
                await second.logged("working")
                assert await first.process.wait() == 0


async def test_a_namespace_that_is_missing_is_told_and_does_not_stop_it(tmp_path: Path) -> None:
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


async def test_without_election_nothing_is_written_but_work(tmp_path: Path) -> None:
    async with (
        Sandbox(workers=1) as sandbox,
        daemon(tmp_path, sandbox.manager.kubeconfig, leaderElection={"enabled": False}) as running,
    ):
        await running.logged("working")
        assert (await sandbox.manager.client("admin").list(LEASE)).items == []

        async def active() -> bool:
            queues = await sandbox.manager.client("admin").list(CLUSTER_QUEUE)
            return all(is_true(queue, "Active") for queue in queues.items)

        await eventually(active)
        running.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(10):
            assert await running.process.wait() == 0


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


@pytest.mark.parametrize("text", ["", "clusters: []\n", "a: ["])
async def test_a_kubeconfig_that_is_none_ends_it_with_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    command = [sys.executable, "-m", "multikueued", "run", "--kubeconfig", str(path)]
    result = await anyio.run_process(command, check=False)

    assert result.returncode == 2
    assert result.stderr.decode().startswith(f"multikueue: error: {path}: ")
    assert result.stderr.count(b"\n") == 1
