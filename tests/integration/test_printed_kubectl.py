"""The commands of kubectl in our remedies, run by kubectl as they are printed, with real names filled in."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import (
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    LOCAL_QUEUE,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    POD,
    WORKLOAD,
)
from multikueue.core.model.names import Json, Resource
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.crds import load_ocm_crds
from multikueue.testing import job, workload
from multikueued.mirrors.endpoint.certificate import REQUEST
from multikueued.mirrors.node import NODE
from tests.commands.remedies_printed import SOURCES, texts
from tests.controlplane.binaries import find_kubectl
from tests.integration import test_kubectl
from tests.integration.test_kubectl import terminal
from tests.webhook.test_registrar import DEFINITION as WEBHOOKS

pytestmark = pytest.mark.real
_has_kubectl = test_kubectl._has_kubectl

NAMES: Final = {
    "worker": "worker1",
    "namespace": "team",
    "namespace_there": "team",
    "ns": "team",
    "secrets": "team",
    "key": "kubeconfig",
    "secret": "new",
    "job": "job/it",
    "x": "team",
}
"""What is filled in; everything else is called `it`."""
KINDS: Final = ("ConfigMap", "LocalQueue")
"""What `{kind}` stands for."""
NO_REMEDIES: Final = ("demo", "sandbox_command", "value_types.py")
"""What there is to try in a sandbox or a demo, as `test_kubectl` does; how a selector is written."""
STOPS: Final = ("or", "shows", "and")
"""Words of the sentence that goes on behind a command."""
SIGNING_REQUESTS: Final[Json] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": REQUEST.qualified},
    "spec": {
        "group": REQUEST.gvk.group,
        "scope": "Cluster",
        "names": {"plural": REQUEST.plural, "kind": REQUEST.gvk.kind, "shortNames": ["csr"]},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
"""What a real server has without being told."""


@attrs.frozen
class Command:
    """A command as it is printed."""

    where: str
    text: str
    """From `kubectl` on, with `{name}` for what is filled in."""

    def filled(self) -> Iterator[str]:
        """With the names of what is there."""
        kinds = KINDS if "{kind}" in self.text else ("",)
        for kind in kinds:
            yield self.text.format_map(_Names(NAMES | {"kind": kind}))


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "it"


def commands() -> Iterator[Command]:
    for path in SOURCES:
        if not any(part in NO_REMEDIES for part in path.parts):
            for line, text in texts(path):
                for begin in re.finditer(r"(?<![|] )\bkubectl (?=-|get |delete |create |patch )", text):
                    command = _cut(text[begin.start() :])
                    if command.split()[-2:] != ["workload", "{name}"]:  # what it annotates is put behind it
                        yield Command(f"{path.name}:{line}", command)


def _cut(text: str) -> str:
    """The command alone: it ends with a stop, or before a word of the sentence."""
    kept: list[str] = []
    for word in re.findall(r"'[^']*'|\S+", text):
        if word in STOPS:
            break
        kept.append(word if word.startswith("'") else word.rstrip(",;:"))
        if word[-1] in ",;:":
            break
    return " ".join(kept)


FOUND: Final = tuple(commands())


def test_they_are_found() -> None:
    """A command that is read wrongly would be run wrongly."""
    assert len(FOUND) > 12
    assert all(shlex.split(command.text)[0] == "kubectl" for command in FOUND)


@pytest.mark.parametrize("command", FOUND, ids=lambda command: f"{command.where} {command.text[:60]}")
async def test_a_remedy_runs_as_it_is_printed(tmp_path: Path, command: Command) -> None:
    """Where there is what it is about; so for each kind that it may be about."""
    (tmp_path / "FILE").write_text("apiVersion: v1\nkind: Config\n")
    path = f"{Path(find_kubectl()).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig"), "HOME": str(tmp_path), "PATH": path}
    async with terminal(tmp_path) as at:
        for server in (at.manager, at.worker):
            await _furnish(server)
        for line in command.filled():
            done = await anyio.run_process(
                ["bash", "-o", "pipefail", "-c", line],
                env=environ,
                cwd=tmp_path,
                check=False,
                stderr=subprocess.STDOUT,
            )
            assert done.returncode == 0, f"{line}: {done.stdout.decode()}"


async def _furnish(server: ApiServer) -> None:
    """Make what commands are about, all by the name `it`."""
    admin = DirectClient(server)
    for definition in (*load_ocm_crds(), WEBHOOKS, SIGNING_REQUESTS):
        server.registry.create_object(definition)
    await admin.create(NAMESPACE, _object(NAMESPACE, {}, name="team", namespace=""))
    await admin.create(CONFIG_MAP, _object(CONFIG_MAP, {"data": {"a": "b"}}))
    await admin.create(LOCAL_QUEUE, _object(LOCAL_QUEUE, {"spec": {"clusterQueue": "cq"}}))
    await admin.create(CLUSTER_QUEUE, _object(CLUSTER_QUEUE, {"spec": {}}, namespace=""))
    await admin.create(MUTATING_WEBHOOKS, _object(MUTATING_WEBHOOKS, {"webhooks": []}, namespace=""))
    pods = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await admin.create(
        DEPLOYMENT, _object(DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pods}})
    )
    await admin.create(NODE, _object(NODE, {}, namespace=""))
    await admin.create(REQUEST, _object(REQUEST, {}, name="team", namespace=""))
    await admin.create(JOB, job("it", namespace="team"))
    await admin.create(POD, _object(POD, {"spec": {"containers": [{"name": "c", "image": "i"}]}}))
    made = workload(job("it", namespace="team"))
    await admin.create(WORKLOAD, _object(WORKLOAD, {"spec": {**made["spec"], "active": False}}))
    spec = {"displayName": "it", "clusterManager": {"name": "ocm"}}
    await admin.create(CLUSTER_PROFILE, _object(CLUSTER_PROFILE, {"spec": spec}))


def _object(resource: Resource, content: Json, *, name: str = "it", namespace: str = "team") -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "metadata": metadata, **content}
