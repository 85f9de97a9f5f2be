"""`multikueue api-server` with mirrors on: a second port of the same process, with the same accounts on workers."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from click.testing import CliRunner

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueued.api_server.running import Options
from multikueued.cli import main
from multikueued.mirror_names import PROOF, WORKER, WORKER_POD, WORKER_POD_UID, node_name
from multikueued.mirrors.proof import proof
from multikueued.rbac.objects import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from multikueued.settings.config import Settings
from multikueued.settings.sections import MirrorPodSettings
from tests.logserver.stage import HOST, KEY, Stage, stage

API_SERVER = "kube-apiserver-kubelet-client"


async def granted(here: Stage, *verbs: str) -> None:
    """Let the API server ask our Node's kubelet."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "kubelets"}}
    rule = {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": [*verbs]}
    await here.admin.create(CLUSTER_ROLE, {**role, "kind": "ClusterRole", "rules": [rule]})
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": API_SERVER}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubelets"}
    bound = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
    await here.admin.create(CLUSTER_ROLE_BINDING, bound)


async def mirrored(here: Stage, pod: Json) -> None:
    """A mirror of a worker's pod."""
    there = f"default/{pod['metadata']['name']}"
    said = {WORKER: "worker1", WORKER_POD: there, WORKER_POD_UID: uid(pod)}
    spec = {"nodeName": node_name("worker1"), "containers": [{"name": "main", "image": "a"}]}
    metadata = {"namespace": "default", "name": pod["metadata"]["name"], "annotations": said}
    made = await here.admin.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    sign = proof(KEY, mirror_uid=uid(made), worker="worker1", worker_pod=there, worker_pod_uid=uid(pod))
    await here.admin.merge_patch(POD, ObjectKey.of(made), {"metadata": {"annotations": {PROOF: sign}}})


async def test_it_answers_for_mirrors_with_what_rbac_logs_worker_grants(tmp_path: Path) -> None:
    opened, ports = anyio.Event(), list[int]()

    def on_mirrors(port: int) -> None:
        ports.append(port)
        opened.set()

    mirrors = Settings(namespace="kueue-system", mirror_pods=MirrorPodSettings(logs=True, address=HOST, port=0))
    async with stage(tmp_path, mirrors=mirrors, on_mirrors=on_mirrors) as here:
        with anyio.fail_after(20):
            await opened.wait()
        await granted(here, "get")
        _, copy = await here.fleet.run_with_pod()
        await mirrored(here, await here.fleet.pod("train-c", copy))
        tls = here.tls(API_SERVER)
        tls.check_hostname, tls.verify_mode = (
            False,
            ssl.CERT_NONE,
        )  # as an API server without --kubelet-certificate-authority
        url = f"https://{HOST}:{ports[0]}/containerLogs/default/train-c/main?tailLines=1"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=tls) as response:
            assert (response.status, await response.text()) == (200, "ended with exit code 0\n")
        assert (await here.ask("/readyz", tls=here.tls(None)))[0] == 200


@pytest.mark.parametrize("on", [True, False])
def test_the_settings_say_whether(on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[Options] = []

    def run(serve: Any, options: Options) -> None:
        del serve
        chosen.append(options)

    monkeypatch.setattr("multikueued.api_server.command.anyio.run", run)
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"mirrorPods: {{logs: {str(on).lower()}, exec: {str(on).lower()}, address: 10.0.0.7}}")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: 'https://a'}}], "
        "contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: t}}]}"
    )
    arguments = ["api-server", "--kubeconfig", str(kubeconfig), "--config", str(settings), "--daemon-name", "other"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    mirrors = chosen[0].mirrors
    assert (mirrors is not None) is on
    if mirrors is not None:
        assert (mirrors.mirrors_secret, mirrors.mirror_pods.exec) == ("other-mirrors", True)
