"""`python -m tests.benchmarks.stand_in`: asks the servers for what a controller asks them for with a large job.

The controller under test has nothing to do with these jobs. So it shows what the servers' work with them costs the
others, whoever asks for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import KubeClient
from tests.benchmarks.acting import client
from tests.benchmarks.answering import Answer, run


@asynccontextmanager
async def stand_in(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """Ask the manager of `config["manager"]` and all of `config["workers"]`, one job after the other."""
    async with AsyncExitStack() as stack:

        async def connected(name: str, kubeconfig: Json) -> KubeClient:
            return await stack.enter_async_context(client(name, kubeconfig))

        manager = await connected("manager", config["manager"])
        workers = [await connected(name, kubeconfig) for name, kubeconfig in config["workers"].items()]

        async def answer(request: Json) -> Json:
            await _copy(manager, workers, ObjectKey(*request["job"]), ObjectKey(*request["workload"]))
            return {}

        yield {}, answer


async def _copy(manager: KubeClient, workers: list[KubeClient], job: ObjectKey, name: ObjectKey) -> None:
    """Read both objects, write the status of both, and create the Workload on each worker."""
    await manager.get(JOB, job)
    workload = await manager.get(WORKLOAD, name)
    await manager.merge_patch(JOB, job, {"status": {"ready": 0}}, subresource="status")
    offered = {"nominatedClusterNames": [worker.name for worker in workers]}
    await manager.merge_patch(WORKLOAD, name, {"status": offered}, subresource="status")
    copy = {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": WORKLOAD.gvk.kind,
        "metadata": {"namespace": name.namespace, "name": name.name},
        "spec": workload["spec"],
    }
    for worker in workers:
        await worker.create(WORKLOAD, copy)


if __name__ == "__main__":
    run(stand_in)
