"""`multikueue sandbox`, as a process and in its parts."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from multikueue import Json, KubeClient, ObjectKey, parse_worker_kubeconfig
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
)
from multikueue.core.model.names import GVK, Resource
from multikueue.errors import Forbidden
from multikueue.kube import load_kubeconfig
from multikueue.protocols import ApiClient
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, KUEUE_NAMESPACE
from multikueued.cli import main
from multikueued.sandbox_command.command import DAEMON, daemon_settings, merged
from multikueued.settings.file import load_settings
from multikueued.settings.kinds import chosen_kinds

SANDBOX = [sys.executable, "-m", "multikueued", "sandbox"]
ACCOUNTS = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts")


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command, and what it has printed when all is up."""
    environ = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen([*SANDBOX, *arguments], stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line)
                if "for each cluster alone" in line:
                    break
            yield process, lines
        finally:
            process.kill()


def files(folder: Path) -> dict[str, Path]:
    """All files of the folder that the command has made below a folder; none if there is no such folder."""
    return {path.name: path for path in folder.glob("multikueue-sandbox-*/*")}


@pytest.mark.gate
async def test_a_kubeconfig_reaches_every_cluster_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """One context a cluster; Ctrl-C ends it with the folder, because that holds tokens."""
    with running(tmp_path, "--workers", "1") as (process, lines):
        written = files(tmp_path)
        file = written["kubeconfig.yaml"]
        assert f"  export KUBECONFIG={file}\n" in lines
        assert set(written) == {"daemon.yaml", "job.yaml", "kubeconfig.yaml", "manager.yaml", "worker1.yaml"}
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert load_settings(written["daemon.yaml"]).settings.namespace == KUEUE_NAMESPACE
        for context in (None, "manager", "worker1"):
            async with KubeClient(load_kubeconfig([file], context), name=str(context)) as client:
                assert await client.get(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME))
                clusters = (await client.list(MULTIKUEUE_CLUSTER)).items
                assert [cluster["metadata"]["name"] for cluster in clusters] == (
                    [] if context == "worker1" else ["worker1"]
                )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)

    assert process.returncode == 0
    assert os.listdir(tmp_path) == []


@pytest.mark.gate
async def test_bare_leaves_the_workers_to_be_added(tmp_path: Path) -> None:
    """The manager has a check and a namespace for Secrets; the commands that add the workers are printed."""
    with running(tmp_path, "--bare") as (_, lines):
        async with KubeClient(load_kubeconfig([files(tmp_path)["kubeconfig.yaml"]]), name="manager") as client:
            assert (await client.get(ADMISSION_CHECK, ObjectKey("", CHECK)))["spec"]["parameters"]["name"] == CHECK
            assert await client.get(NAMESPACE, ObjectKey("", KUEUE_NAMESPACE))
            assert (await client.list(MULTIKUEUE_CLUSTER)).items == []
            assert (await client.list(MULTIKUEUE_CONFIG)).items == []

    assert [line.strip() for line in lines if "worker add" in line] == [
        f"multikueue worker add {name} --worker-context {name} --outside" for name in ("worker1", "worker2")
    ]


@pytest.mark.gate
async def test_service_accounts_need_roles_there() -> None:
    """The sandbox's own users, Kueue and the job runner among them, need none."""

    async def refused(client: ApiClient) -> bool:
        try:
            await client.list(JOB)
        except Forbidden:
            return True
        return False

    async with Sandbox(workers=1, options=SandboxOptions(roles=True)) as sandbox:
        server = sandbox.workers["worker1"].server
        admin = sandbox.workers["worker1"].client("admin")
        account: Json = {"apiVersion": "v1", "kind": "ServiceAccount"}
        await admin.create(ACCOUNTS, {**account, "metadata": {"name": "robot", "namespace": "default"}})
        token = server.access.issuer.issue("default", "robot", {})["status"]["token"]
        kubeconfig = {**server.kubeconfig("admin"), "users": [{"name": "admin", "user": {"token": token}}]}
        text = yaml.safe_dump(kubeconfig).encode()
        async with KubeClient(parse_worker_kubeconfig(text), name="robot") as client:
            assert await refused(client)
        assert not await refused(admin)


def test_kubeconfigs_are_merged_as_kubectl_merges_them() -> None:
    """Users with one name are told apart; the first cluster's context is the current one."""

    def config_of(name: str) -> Json:
        return {
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": f"https://{name}"}}],
            "users": [{"name": "admin", "user": {"token": f"t-{name}"}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
        }

    merged_config = merged([config_of("a"), config_of("b")])

    assert merged_config["current-context"] == "a"
    assert [user["name"] for user in merged_config["users"]] == ["a-admin", "b-admin"]
    assert merged_config["contexts"][1] == {"name": "b", "context": {"cluster": "b", "user": "b-admin"}}
    assert [cluster["name"] for cluster in merged_config["clusters"]] == ["a", "b"]


@pytest.mark.parametrize("arguments", [["--workers", "0"], ["--port", "65001"], ["--port", "-1"]])
def test_what_cannot_be_is_refused(arguments: list[str]) -> None:
    """Before anything starts."""
    assert CliRunner().invoke(main, ["sandbox", *arguments]).exit_code == 2


@pytest.mark.gate
async def test_every_kind_can_be_practised_with_pods(tmp_path: Path) -> None:
    with running(tmp_path, "--pods", "--kind", "all"):
        made = files(tmp_path)
        settings = load_settings(made["daemon.yaml"]).settings
        async with KubeClient(load_kubeconfig([made["kubeconfig.yaml"]]), name="manager") as client:
            await client.create(JOB, yaml.safe_load(made["job.yaml"].read_text()))

    assert {"job.yaml", "rayjob.yaml", "deployment.yaml"} < set(made)
    assert len(chosen_kinds(settings)) >= 10


def test_the_daemons_settings_are_for_this_machine() -> None:
    """Its ports are not open to others."""
    assert DAEMON["serving"] == {"bindAddress": "127.0.0.1", "port": 0}


def test_two_sandboxes_have_their_pods_shown_by_daemons_side_by_side() -> None:
    """One port for both would have the Nodes of one lead to who answers for the logs of the other."""
    sandbox = Sandbox(options=SandboxOptions(pods=True))
    port = daemon_settings(sandbox)["mirrorPods"]["port"]
    with socket.create_server(("127.0.0.1", port)):
        assert daemon_settings(sandbox)["mirrorPods"]["port"] not in (0, port)
    assert "mirrorPods" not in daemon_settings(Sandbox())
