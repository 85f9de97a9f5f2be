"""The daemon as it is run, between clusters that speak HTTPS."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import orjson
import pytest

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig, with_value
from multikueue.kube import parse_worker_kubeconfig
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxOptions
from multikueue.testing import job, until
from multikueue.testing.waiting import background
from multikueued.doctor import publisher
from multikueued.mirror_names import MIRROR
from multikueued.mirrors.node import NODE
from multikueued.rbac.mirrors import mirror_policy_objects
from multikueued.rbac.policies import POLICY, TAKING
from multikueued.run.daemon import work
from multikueued.settings.config import LeaderElectionSettings, ServingSettings, Settings
from multikueued.settings.sections import MirrorPodSettings
from tests.commands.test_on_servers import Shell

RUNNING = SandboxOptions(runner=RunnerOptions(minimum=60.0, maximum=60.0, trap=1.0))
SETTINGS = Settings(
    namespace="kueue-system",
    leader_election=LeaderElectionSettings(enabled=False),
    serving=ServingSettings(bind_address="127.0.0.1", port=0),
    mirror_pods=MirrorPodSettings(logs=True, address="127.0.0.1"),
)


async def test_it_shows_pods_and_status_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what it publishes: the command asks no worker, and lists no pods. One of the job's two has no place."""
    monkeypatch.setattr(publisher, "EVERY", 0.5)
    settings = attrs.evolve(SETTINGS, mirror_pods=attrs.evolve(SETTINGS.mirror_pods, max_pods_per_job=1))
    async with Sandbox(workers=1, options=RUNNING) as sandbox, background() as tasks:
        admin = sandbox.manager.client("admin")
        objects = mirror_policy_objects(SETTINGS.mirrors_policy, "multikueue")
        for resource, policy in zip((POLICY, TAKING), objects, strict=True):
            await admin.create(resource, policy)
        config = parse_worker_kubeconfig(orjson.dumps(sandbox.manager.server.kubeconfig("multikueue")))
        tasks.start_soon(work, settings, config)
        await admin.create(JOB, with_value(job("train"), ("spec", "parallelism"), 2))

        async def is_shown() -> bool:
            mirrors = (await admin.list(POD, label_selector=MIRROR)).items
            return [dig(mirror, "status", "phase") for mirror in mirrors] == ["Running"]

        await until(is_shown, 25)
        node = await admin.get(NODE, ObjectKey("", "multikueue-worker1"))
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.0-sandbox"

        shell = Shell(sandbox.manager.server, tmp_path / "kubeconfig")
        shell.file.write_text(json.dumps(sandbox.manager.server.kubeconfig("admin")))

        async def is_counted() -> bool:
            return "Pods shown: 1 (1 refused; events PodNotShown" in (await shell.run("status")).stdout

        await until(is_counted, 25)
