"""The daemon with declared kinds: a name is enough; a kind that a cluster lacks is left out on that cluster only."""

from __future__ import annotations

from pathlib import Path

from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import CUSTOM_RESOURCE_DEFINITION, JOB, MULTIKUEUE_CLUSTER
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxKind, SandboxOptions
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.testing import until
from tests.daemon.test_running import daemon

QUICK = SandboxOptions(runner=RunnerOptions(mean=0.2, minimum=0.1, maximum=0.3))
BUS = SandboxKind(resource=Resource(GVK("example.com", "v1", "Bus"), "busses"))
"""A kind whose plural nobody would guess."""
TEMPLATE: Json = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    }
}
SETTINGS: Json = {
    "integrations": {"frameworks": ["batch/job"], "externalFrameworks": ["Bus.v1.example.com"]},
    "multiKueue": {"externalFrameworks": [{"name": "Bus.v1.example.com"}, {"name": "Tram.v1.example.com"}]},
}


async def test_a_kind_declared_by_name_is_dispatched_to_workers_that_serve_it(tmp_path: Path) -> None:
    """With settings as Kueue has them. One kind is served nowhere, another not on the first worker."""
    async with Sandbox(workers=2, kinds=[BATCH_JOB, BUS], options=QUICK) as sandbox:
        await (
            sandbox.workers["worker1"]
            .client("admin")
            .delete(CUSTOM_RESOURCE_DEFINITION, ObjectKey("", "busses.example.com"))
        )
        async with daemon(tmp_path, sandbox.manager.server.kubeconfig("multikueue"), **SETTINGS) as running:
            manager = sandbox.manager.client("admin")
            await manager.create(BUS.resource, BUS.example("line-1", TEMPLATE, queue="user-queue"))
            await manager.create(JOB, BATCH_JOB.example("plain", TEMPLATE, queue="user-queue"))
            seen: set[str] = set()

            async def both_ended() -> bool:
                for name, worker in sandbox.workers.items():
                    if name != "worker1" and (await worker.client("admin").list(BUS.resource)).items:
                        seen.add(name)
                bus = await manager.get(BUS.resource, ObjectKey("default", "line-1"))
                job = await manager.get(JOB, ObjectKey("default", "plain"))
                return BUS.ending(bus) is not None and BATCH_JOB.ending(job) is not None

            await until(both_ended)
            told = await running.logged("job kinds that the manager does not serve")
            assert seen == {"worker2"}
            assert (told["kinds"], told["level"]) == (["trams.example.com"], "info")
            assert (await running.logged("job kinds"))["kinds"] == ["jobs.batch", "busses.example.com"]

            async def degraded() -> bool:
                active = condition(await manager.get(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1")), "Active") or {}
                message = active.get("message", "")
                return active.get("status") == "True" and "Bus.v1.example.com" in message and "Tram" not in message

            await until(degraded)
