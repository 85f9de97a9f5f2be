"""kubectl's own binary on a manager whose pods run elsewhere: our daemon, the endpoint, and a sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, name_of
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.testing import until
from multikueued.mirror_names import node_name
from tests.clients.__main__ import manifest
from tests.conformance.kubelet import played_kubelet
from tests.controlplane.binaries import find_kubectl
from tests.mirrors.sandboxes import mirrored

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


@attrs.frozen
class Fleet:
    """A manager whose daemon shows pods, and somebody with kubectl."""

    sandbox: Sandbox
    folder: Path

    async def runs(self, name: str, seconds: float) -> Json:
        """A job that runs for so long, and the pod that the manager has of it, once that runs."""
        admin = self.sandbox.manager.client("admin")
        await admin.create(JOB, manifest(name, seconds))

        async def running() -> list[Json]:
            pods = (await admin.list(POD, label_selector=f"job-name={name}")).items
            return [pod for pod in pods if dig(pod, "status", "phase") == "Running"]

        await until(running)
        (pod,) = await running()
        return pod

    async def kubectl(self, *arguments: str) -> tuple[int, str]:
        """The exit code, and what it prints."""
        file = self.folder / "kubeconfig"
        file.write_text(json.dumps(self.sandbox.manager.kubeconfig))
        environment = {**os.environ, "KUBECONFIG": str(file), "HOME": str(self.folder)}
        with anyio.fail_after(40):
            command = [str(find_kubectl()), *arguments]
            ran = await anyio.run_process(command, env=environment, check=False, stderr=subprocess.STDOUT)
        return ran.returncode, ran.stdout.decode()


@asynccontextmanager
async def fleet(folder: Path) -> AsyncIterator[Fleet]:
    """With one worker, whose Jobs have pods with logs."""
    async with Sandbox(workers=1, options=SandboxOptions(pods=True, roles=True)) as sandbox, mirrored(sandbox):
        yield Fleet(sandbox, folder)


async def test_logs_of_a_run_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    """As of a job that runs here: by the Job, by its label, followed, and when it has ended."""
    async with fleet(tmp_path) as here:
        await here.runs("train", 5)
        listed = await here.kubectl("get", "pods", "-o", "wide", "--no-headers")
        logs = await here.kubectl("logs", "job/train")
        none = await here.kubectl("logs", "job/train", "-c", "other")
        followed = await here.kubectl("logs", "-f", "job/train", "--timestamps")
        after = await here.kubectl("logs", "-l", "job-name=train", "--tail=1")
        waited = await here.kubectl("wait", "job/train", "--for=condition=complete", "--timeout=20s")
    assert [field for field in listed[1].split() if field in ("Running", node_name("worker1"))] == [
        "Running",
        node_name("worker1"),
    ]
    assert (logs[0], logs[1].splitlines()[0]) == (0, "started")
    assert (none[0], "container other is not valid for pod" in none[1]) == (1, True)
    lines = followed[1].splitlines()
    assert (followed[0], lines[0].split()[1], lines[-1].split(" ", 1)[1]) == (0, "started", "ended with exit code 0")
    assert after == (0, "ended with exit code 0\n")
    assert waited[0] == 0


async def test_a_stream_goes_all_the_way_into_a_container(tmp_path: Path) -> None:
    """Through both API servers to the kubelet of the worker's node; what is refused there is told here."""
    async with fleet(tmp_path) as here, played_kubelet() as kubelet:
        pod = await here.runs("train", 30)
        refused = await here.kubectl("exec", "job/train", "--", "ls")
        here.sandbox.workers["worker1"].server.registry.create_object(kubelet.node("node-1"))
        path = f"/api/v1/namespaces/default/pods/{name_of(pod)}/exec?command=sh&stdin=true"
        assert await echoed(here, path, b"ping") == b"ping"
        await here.sandbox.manager.client("admin").delete(JOB, ObjectKey("default", "train"), propagation="Background")
    assert (refused[0], "there is nothing to enter" in refused[1]) == (1, True)
    (asked,) = kubelet.asked
    assert (asked.method, asked.target) == ("POST", f"/exec/default/{name_of(pod)}/main?command=sh&input=1")


async def echoed(here: Fleet, path: str, sent: bytes) -> bytes:
    """What comes back of a connection that the manager's API server gives away."""
    server = here.sandbox.manager.server
    trusted = ssl.create_default_context(cadata=server.ca_pem)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusted)
    token = server.access.token_of("admin")
    head = f"Host: x\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    try:
        with anyio.fail_after(20):
            writer.write(f"POST {path} HTTP/1.1\r\n{head}X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n".encode())
            assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            return await reader.readexactly(len(sent))
    finally:
        writer.transport.abort()
