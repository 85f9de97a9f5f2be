"""kubectl as a process against a sandbox: what a person types to practise."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
import yaml

from multikueue.sandbox.apiserver import ApiServer
from multikueue.sandbox.crds import load_crds
from multikueue.testing import contains
from multikueued.sandbox_command.command import merged
from tests.controlplane.binaries import find_kubectl
from tests.controlplane.errors import BinariesMissing

pytestmark = pytest.mark.real
ROBOT = "system:serviceaccount:default:robot"


@pytest.fixture(scope="module", autouse=True)
def _has_kubectl() -> None:
    """Without it the tests fail in CI and are skipped elsewhere, as without a control plane."""
    try:
        find_kubectl()
    except BinariesMissing as error:
        (pytest.fail if os.environ.get("CI", "").lower() == "true" else pytest.skip)(str(error))


@attrs.frozen
class Terminal:
    """Where a person types."""

    folder: Path
    manager: ApiServer
    worker: ApiServer

    async def kubectl(self, *arguments: str, code: int = 0) -> str:
        """What kubectl prints; fails if it ends with another code."""
        environ = {**os.environ, "KUBECONFIG": str(self.folder / "kubeconfig"), "HOME": str(self.folder)}
        done = await anyio.run_process(
            [str(find_kubectl()), *arguments], env=environ, check=False, stderr=subprocess.STDOUT
        )
        assert done.returncode == code, done.stdout.decode()
        return done.stdout.decode()


@asynccontextmanager
async def terminal(folder: Path) -> AsyncIterator[Terminal]:
    """A terminal with two clusters that enforce roles, `manager` and `worker1`."""
    async with (
        ApiServer("manager", tokens={"m": "admin"}) as manager,
        ApiServer("worker1", tokens={"w": "admin"}) as worker,
    ):
        for server in (manager, worker):
            server.access.enforce_roles()
            for definition in load_crds():
                server.registry.create_object(definition)
        text = json.dumps(merged([manager.kubeconfig(), worker.kubeconfig()]))
        await anyio.Path(folder / "kubeconfig").write_text(text)
        yield Terminal(folder, manager, worker)


def without_nulls(value: Any) -> Any:
    """What a server makes of fields that are null; kubectl prints times that are not set so."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


async def test_what_create_makes_is_there(tmp_path: Path) -> None:
    """Each of the commands that send protobuf; what is stored is what the same command prints without a server."""
    commands = {
        "namespace/team": ("namespace", "team"),
        "job/hello": ("job", "hello", "--image=busybox", "--", "echo", "hi"),
        "cronjob/tick": ("cronjob", "tick", "--image=busybox", "--schedule=* * * * *"),
        "secret/s": ("secret", "generic", "s", "--from-literal=a=b"),
        "serviceaccount/robot": ("sa", "robot"),
        "configmap/c": ("configmap", "c", "--from-literal=a=b"),
        "deployment/d": ("deployment", "d", "--image=busybox", "--replicas=2"),
        "clusterrole/r": ("clusterrole", "r", "--verb=get,list", "--resource=jobs.batch,pods"),
    }
    async with terminal(tmp_path) as at:
        for place, command in commands.items():
            printed = json.loads(await at.kubectl("create", "--dry-run=client", "-o=json", *command))
            assert "created" in await at.kubectl("create", *command)
            stored = json.loads(await at.kubectl("get", place, "-o", "json"))
            assert contains(stored, without_nulls(printed)), stored
        job = json.loads(await at.kubectl("get", "job/hello", "-o", "json"))
        secret = json.loads(await at.kubectl("get", "secret/s", "-o", "json"))

    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["command"]) == ("busybox", ["echo", "hi"])
    assert (secret["type"], secret["data"]) == ("Opaque", {"a": "Yg=="})


async def test_practising_with_a_service_account(tmp_path: Path) -> None:
    """A token, who it is, what it may do, and the role that lets it do more."""
    async with terminal(tmp_path) as at:
        await at.kubectl("create", "sa", "robot")
        token = (await at.kubectl("create", "token", "robot", "--duration=1h")).strip()
        assert await at.kubectl("auth", "can-i", "list", "jobs") == "yes\n"
        assert await at.kubectl("auth", "can-i", "list", "jobs", "--as", ROBOT, code=1) == "no\n"
        refused = await at.kubectl("get", "jobs", "--as", ROBOT, code=1)
        assert f'User "{ROBOT}" cannot list resource "jobs" in API group "batch"' in refused
        await at.kubectl("create", "role", "lists", "--verb=list", "--resource=jobs.batch")
        await at.kubectl("create", "rolebinding", "lists", "--role=lists", "--serviceaccount=default:robot")
        assert await at.kubectl("auth", "can-i", "list", "jobs", "--as", ROBOT) == "yes\n"
        assert "jobs.batch" in await at.kubectl("auth", "can-i", "--list", "--as", ROBOT)
        await as_the_account(at, token)


async def as_the_account(at: Terminal, token: str) -> None:
    """The same with the token itself, in a kubeconfig that has nothing else."""
    config = json.loads(await anyio.Path(at.folder / "kubeconfig").read_text())
    config["users"] = [{**user, "user": {"token": token}} for user in config["users"]]
    await anyio.Path(at.folder / "kubeconfig").write_text(yaml.safe_dump(config))

    assert ROBOT in await at.kubectl("auth", "whoami")
    assert "No resources found" in await at.kubectl("get", "jobs")
    assert "is forbidden" in await at.kubectl("create", "job", "mine", "--image=busybox", code=1)
    assert "must be logged in" in await at.kubectl("get", "jobs", "--context", "worker1", code=1)


async def test_explain_knows_builtin_and_custom_kinds(tmp_path: Path) -> None:
    """Their fields with types and descriptions."""
    async with terminal(tmp_path) as at:
        job = await at.kubectl("explain", "job.spec")
        containers = await at.kubectl("explain", "pod.spec.containers")
        workload = await at.kubectl("explain", "workload.spec.queueName")
        unknown = await at.kubectl("explain", "job.spec.nonsense", code=1)

    assert "ttlSecondsAfterFinished\t<integer>" in job
    assert "Specifies the maximum desired number of pods" in " ".join(job.split())
    assert "volumeMounts\t<[]VolumeMount>" in containers
    assert "FIELD: queueName <string>" in workload
    assert 'field "nonsense" does not exist' in unknown


async def test_apply_and_the_other_context(tmp_path: Path) -> None:
    """A strategic patch of a builtin kind, by kubectl's own types; `--context` reaches the other cluster."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": {"a": "1"}}}
    container = {"name": "c", "image": "busybox"}
    job["spec"] = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    file = tmp_path / "job.yaml"
    async with terminal(tmp_path) as at:
        for label, said in (("1", "created"), ("2", "configured"), ("2", "unchanged")):
            job["metadata"] = {"name": "j", "labels": {"a": label}}
            await anyio.Path(file).write_text(yaml.safe_dump(job))
            assert said in await at.kubectl("apply", "-f", str(file))
        assert "No resources found" in await at.kubectl("get", "jobs", "--context", "worker1")
        assert "forbidden" in await at.kubectl("apply", "-f", str(file), "--server-side", "--as", ROBOT, code=1)
