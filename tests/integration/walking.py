"""A person who walks through a page: its commands, run one after the other in a shell, against real servers."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import attrs
import pytest
import yaml

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.kube import KubeClient
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, namespace
from tests.controlplane.binaries import find_helm, find_kubectl
from tests.controlplane.errors import BinariesMissing
from tests.integration.kubelet import Kubelet
from tests.integration.planes import Planes, connection
from tests.integration.view import Changes, View

ROOT: Final = Path(__file__).parents[2]
DEPLOYMENT: Final = Resource(GVK("apps", "v1", "Deployment"), "deployments")
KUEUE: Final = ObjectKey(KUEUE_NAMESPACE, "kueue-controller-manager")
_BLOCK: Final = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands(page: str, *, until: str | None = None) -> list[str]:
    """The commands of a page in `docs`, each as one text, in their order.

    Args:
        page: the file.
        until: the heading before which it ends.
    """
    text = (ROOT / "docs" / page).read_text()
    if until is not None:
        text = text[: text.index(f"\n## {until}\n")]
    joined = "".join(_BLOCK.findall(text)).replace("\\\n", " ")
    return [" ".join(line.split()) for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def kubeconfig(planes: Planes, context: str) -> Json:
    """All clusters, with an administrator's context for each, of this name once the cluster's is filled in."""
    merged: Json = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for plane in planes.all:
        config, name = plane.kubeconfig(), context.format(plane.name)
        merged["clusters"].append({**config["clusters"][0], "name": name})
        merged["users"].append({**config["users"][0], "name": name})
        merged["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    return {**merged, "current-context": context.format(planes.manager.name)}


@attrs.frozen
class Walker:
    """Somebody with a home folder, in the folder of the project, who has installed it, kubectl and Helm."""

    home: Path

    @classmethod
    def at(cls, home: Path, planes: Planes, *, context: str) -> Walker:
        """Prepare the home folder; `context` is how its kubeconfig names contexts: `kind-{}`."""
        needed = _programs()
        programs, file = home / "bin", home / ".kube" / "config"
        programs.mkdir()
        file.parent.mkdir()
        file.write_text(yaml.safe_dump(kubeconfig(planes, context)))
        file.chmod(0o600)
        ours = programs / "multikueue"
        ours.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m multikueued "$@"\n')
        ours.chmod(0o755)
        for program in needed:
            (programs / program.name).symlink_to(program)
        return cls(home)

    @property
    def environment(self) -> Mapping[str, str]:
        """Of the shell: nothing that leads to other clusters."""
        path = f"{self.home / 'bin'}:{os.environ['PATH']}"
        ours = f"{ROOT}:{ROOT / 'daemon'}"
        kept = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        return {**kept, "HOME": str(self.home), "PATH": path, "PYTHONPATH": ours, "COLUMNS": "80"}

    async def run(self, command: str) -> str:
        """What a command says; it must succeed."""
        with anyio.fail_after(120):
            done = await anyio.run_process(
                ["bash", "-euo", "pipefail", "-c", command],
                env=self.environment,
                cwd=ROOT,
                check=False,
                stderr=subprocess.STDOUT,
            )
        said = done.stdout.decode()
        assert done.returncode == 0, f"{command}\n{said}"
        return said

    @asynccontextmanager
    async def in_another_terminal(self, command: str) -> AsyncIterator[Path]:
        """Run a command until the block ends; gives the file with what it says. It must not end by itself."""
        log = self.home / "log"
        with log.open("wb") as file:
            process = await anyio.open_process(
                ["bash", "-c", f"exec {command}"], env=self.environment, cwd=ROOT, stdout=file, stderr=file
            )
        async with process:
            try:
                yield log
                assert process.returncode is None, log.read_text()
            finally:
                if process.returncode is None:
                    process.terminate()  # as Ctrl-C does, it lets go of the Lease


def _programs() -> list[Path]:
    """kubectl and Helm. Without them the test fails in CI and is skipped elsewhere, as without a control plane."""
    try:
        return [find_kubectl(), find_helm()]
    except BinariesMissing as error:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@attrs.frozen(eq=False)
class Ground:
    """Clusters with a Kueue and without any queue, and what their administrator sees."""

    manager: View
    workers: Mapping[str, View]
    kubelet: Kubelet
    changes: Changes

    async def running(self, name: str) -> None:
        """Wait until the manager shows that a Job's pod runs."""
        await self.changes.until(
            lambda: dig(self.manager.get(JOB, name), "status", "ready") == 1, otherwise=f"Job {name} does not run"
        )

    async def ended(self, name: str) -> None:
        """Wait until the manager shows that a Job has run, and Kueue its Workload as finished."""

        def look() -> bool:
            job, workload = self.manager.get(JOB, name) or {}, self.manager.workload_of(name) or {}
            return is_true(job, "Complete") and is_true(workload, "Finished")

        await self.changes.until(look, otherwise=f"Job {name} does not end")


def kueues_deployment() -> Json:
    """As Kueue's manifests have it, as far as the pages' commands touch it; it has no pods, which nobody would run."""
    labels = {"control-plane": "controller-manager"}
    container = {"name": "manager", "image": "kueue", "args": ["--config=/controller_manager_config.yaml"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    metadata = {"name": KUEUE.name, "namespace": KUEUE.namespace}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


async def kueues_arguments(ground: Ground) -> list[str]:
    """What Kueue on the manager would be started with."""
    (container,) = (await ground.manager.client.get(DEPLOYMENT, KUEUE))["spec"]["template"]["spec"]["containers"]
    arguments: list[str] = container["args"]
    return arguments


@asynccontextmanager
async def kueue_installed(planes: Planes) -> AsyncIterator[Ground]:
    """What the commands leave that make clusters with kind and install Kueue there."""
    async with bare_clusters(planes) as ground:
        clusters = [ground.manager, *ground.workers.values()]
        for plane, view in zip(planes.all, clusters, strict=True):
            await plane.admin.apply(namespace(KUEUE_NAMESPACE))
            await view.client.create(DEPLOYMENT, kueues_deployment())
        try:
            yield ground
        finally:
            for view in clusters:
                await view.client.delete(DEPLOYMENT, KUEUE)


@asynccontextmanager
async def bare_clusters(planes: Planes) -> AsyncIterator[Ground]:
    """The clusters with a small Kueue and kubelets, and nothing else."""
    changes = Changes()
    async with AsyncExitStack() as stack:
        views = {}
        for plane in planes.all:
            client = KubeClient(connection(plane.kubeconfig()), name=plane.name)
            views[plane.name] = View(await stack.enter_async_context(client), changes)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        for view in views.values():
            await tasks.start(view.run)
            await tasks.start(SmallKueue(view.client).run)
        kubelet = Kubelet(views, changes)
        tasks.start_soon(kubelet.run)
        workers = {name: view for name, view in views.items() if name != planes.manager.name}
        yield Ground(views[planes.manager.name], workers, kubelet, changes)
