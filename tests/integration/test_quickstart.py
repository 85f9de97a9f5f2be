"""The quick start, walked: from bare clusters to a finished job, with the commands that the page has."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.integration.planes import Planes
from tests.integration.walking import Ground, Walker, commands, kueue_installed, kueues_arguments

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="session")]

PAGE: Final = "quickstart.md"
WITH_DOCKER: Final = ("kind create cluster", "docker build", "kind load")
KUEUES_MANIFESTS: Final = "kueue/releases/latest/download/manifests.yaml"
_MARKS: Final = ObjectKey(KUEUE_NAMESPACE, "multikueue-marks")


async def test_from_bare_clusters_to_a_finished_job(planes: Planes, walker: Walker) -> None:
    """And then the chart, which takes over from the daemon on the laptop."""
    first, second, kueue, gate, rollout, *queues, run, add, create, status, explain = commands(PAGE)[:12]
    assert all(line.startswith(WITH_DOCKER) for line in (first, second))
    assert KUEUES_MANIFESTS in kueue
    async with kueue_installed(planes) as ground:
        for command in (gate, rollout, *queues):
            await walker.run(command)
        assert (await kueues_arguments(ground))[-1] == "--feature-gates=MultiKueue=false"
        async with walker.in_another_terminal(run):
            said = await walker.run(add)
            assert "worker1 is connected, and MultiKueueConfig multikueue lists it." in said
            await walker.run(create)
            await ground.running("sample")
            assert "worker1  Connected" in await walker.run(status)
            assert 'It runs on worker cluster "worker1".' in await walker.run(explain)
            ground.kubelet.end("sample", "Succeeded")
            await ground.ended("sample")
            assert "finished" in (await walker.run(explain)).lower()
            await the_worker_gets_another_address(walker, add, planes.workers["worker1"].url)
        assert set(ground.workers["worker1"].pods_made.values()) == {"sample"}
        assert not ground.manager.pods_made
        await the_chart_takes_over(walker, ground)


async def the_worker_gets_another_address(walker: Walker, add: str, url: str) -> None:
    """What the page's last command does; the name that it has is one of Docker's network."""
    other = url.replace("127.0.0.1", "localhost")
    assert other != url
    assert "worker1 is connected" in await walker.run(f"{add} --server {other}")
    get = "kubectl --context kind-manager -n kueue-system get secret worker1-kubeconfig"
    assert other in await walker.run(get + " -o jsonpath='{.data.kubeconfig}' | base64 -d")


async def the_chart_takes_over(walker: Walker, ground: Ground) -> None:
    """A real API server takes all that it makes, and the key of marks stays what it was."""
    image, load, install, address = commands(PAGE)[12:]
    assert all(line.startswith(WITH_DOCKER) for line in (image, load))
    assert address.endswith("--server https://worker1-control-plane:6443")
    made = (await ground.manager.client.get(SECRET, _MARKS))["data"]
    try:
        await walker.run(install)
        assert (await ground.manager.client.get(SECRET, _MARKS))["data"] == made
    finally:
        await walker.run("helm uninstall multikueue --kube-context kind-manager --namespace multikueue")


@pytest.fixture
def walker(planes: Planes, tmp_path: Path) -> Walker:
    """Somebody with the contexts that kind makes."""
    return Walker.at(tmp_path, planes, context="kind-{}")
