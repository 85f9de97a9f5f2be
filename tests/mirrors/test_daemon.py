"""The daemon as it is run, between clusters that speak HTTPS."""

from __future__ import annotations

import orjson

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.kube import parse_worker_kubeconfig
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxOptions
from multikueue.testing import job, until
from multikueue.testing.waiting import background
from multikueued.mirror_names import MIRROR
from multikueued.mirrors.node import NODE
from multikueued.rbac.mirrors import mirror_policy_objects
from multikueued.rbac.policies import POLICY, TAKING
from multikueued.run.daemon import work
from multikueued.settings.config import LeaderElectionSettings, ServingSettings, Settings
from multikueued.settings.sections import MirrorPodSettings

RUNNING = SandboxOptions(runner=RunnerOptions(minimum=60.0, maximum=60.0, trap=1.0))
SETTINGS = Settings(
    namespace="kueue-system",
    leader_election=LeaderElectionSettings(enabled=False),
    serving=ServingSettings(bind_address="127.0.0.1", port=0),
    mirror_pods=MirrorPodSettings(logs=True, address="127.0.0.1"),
)


async def test_it_shows_pods() -> None:
    async with Sandbox(workers=1, options=RUNNING) as sandbox, background() as tasks:
        admin = sandbox.manager.client("admin")
        objects = mirror_policy_objects(SETTINGS.mirrors_policy, "multikueue")
        for resource, one in zip((POLICY, TAKING), objects, strict=True):
            await admin.create(resource, one)
        config = parse_worker_kubeconfig(orjson.dumps(sandbox.manager.server.kubeconfig("multikueue")))
        tasks.start_soon(work, SETTINGS, config)
        await admin.create(JOB, job("train"))

        async def is_shown() -> bool:
            found = (await admin.list(POD, label_selector=MIRROR)).items
            return [dig(one, "status", "phase") for one in found] == ["Running"]

        await until(is_shown, 25)
        node = await admin.get(NODE, ObjectKey("", "multikueue-worker1"))
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.0-sandbox"
