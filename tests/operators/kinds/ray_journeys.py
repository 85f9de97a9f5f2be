"""Ways of Ray's kinds alone: a service is given another application, a cluster other sizes, a job has a cluster."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import ELASTIC_ANNOTATION, ORIGIN_LABEL, PREBUILT_WORKLOAD
from multikueue.core.model.names import GVK, ObjectKey, Resource
from multikueue.core.model.objects import controller_of, dig, labels_of, uid
from tests.kinds.journeys import SIZES
from tests.operators.ground import OperatorsGround
from tests.operators.journeys import Row, nothing_left, runs, shows_the_last

CLUSTERS: Final = Resource(GVK("ray.io", "v1", "RayCluster"), "rayclusters")
SECOND: Final = "applications:\n- name: second\n  import_path: second.app\n"
_ORIGINATED: Final = "ray.io/originated-from-cr-name"


async def serves_another_application(ground: OperatorsGround, row: Row) -> None:
    """A changed `serveConfigV2` reaches the worker's Ray, and the manager shows what runs then; no pod is made anew."""
    kind, name = row.case.kind, row.job("edited")
    jobs = await ground.submit(kind, name, duration="1h")
    worker = await runs(ground, row, name)
    (before,) = ground.jobs(ground.workers[worker], kind, name)

    def serving() -> list[str]:
        job = ground.manager.get(kind.resource, name)
        return list(dig(job, "status", "activeServiceStatus", "applicationStatuses") or ())

    await ground.until(lambda: serving() == ["first"], lambda: ground.story(kind, name))
    await ground.manager.client.merge_patch(kind.resource, ObjectKey.of(jobs[0]), {"spec": {"serveConfigV2": SECOND}})
    await ground.until(lambda: serving() == ["second"], lambda: ground.story(kind, name))
    await ground.shown(kind, name, worker)
    (after,) = ground.jobs(ground.workers[worker], kind, name)
    assert after["spec"] == {**before["spec"], "serveConfigV2": SECOND}
    assert uid(after) == uid(before)
    row.ran(ground, name, **{worker: 1})
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await nothing_left(ground, row, name)


async def grows_and_shrinks(ground: OperatorsGround, row: Row) -> None:
    """Pods of an elastic cluster come and go on its worker as its groups say; those that need not go stay."""
    kind, name = row.case.kind, row.job("elastic")
    jobs = await ground.submit(kind, name, duration="1h", annotations={ELASTIC_ANNOTATION: "true"})
    worker = await runs(ground, row, name)
    first = {uid(pod) for pod in ground.pods(worker, name)}
    (before,) = ground.jobs(ground.workers[worker], kind, name)

    async def sized(size: int) -> set[str]:
        await ground.resize(kind, name, SIZES[row.case.name], size)

        def look() -> set[str]:
            ready = dig(ground.manager.get(kind.resource, name), "status", "readyWorkerReplicas")
            pods = {uid(pod) for pod in ground.pods(worker, name)}
            return pods if ready == size and len(pods) == size + 1 else set()

        return await ground.until(look, lambda: ground.story(kind, name))

    grown = await sized(3)
    assert grown > first
    shrunk = await sized(1)
    assert shrunk < grown
    await ground.shown(kind, name, worker)
    (after,) = ground.jobs(ground.workers[worker], kind, name)
    assert uid(after) == uid(before)
    assert await ground.running(kind, name) == worker
    assert ground.pods_made(name) == {worker: len(grown)}
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await nothing_left(ground, row, name)


async def has_a_cluster_that_is_no_copy(ground: OperatorsGround, row: Row) -> None:
    """KubeRay gives the RayCluster of a RayJob the labels of our copy, our mark among them.

    It is nobody's copy nevertheless: no Workload is made for it, nothing of it is on the manager, and it runs for as
    long as the job does.
    """
    kind, name = row.case.kind, row.job("parent")
    await ground.submit(kind, name, duration="10s")
    worker = await runs(ground, row, name)
    (copy,) = ground.jobs(ground.workers[worker], kind, name)
    clusters = [obj for (resource, _), obj in ground.workers[worker].now.items() if resource == CLUSTERS]
    (cluster,) = (obj for obj in clusters if labels_of(obj).get(_ORIGINATED) == name)
    labels = labels_of(cluster)
    assert [labels[label] for label in (ORIGIN_LABEL, PREBUILT_WORKLOAD)] == [
        labels_of(copy)[label] for label in (ORIGIN_LABEL, PREBUILT_WORKLOAD)
    ]
    assert (controller_of(cluster) or {}).get("uid") == uid(copy)
    (shown,) = await ground.ended(kind, name, "Succeeded")
    await ground.cleaned(kind, name)

    shows_the_last(ground, row, name, shown)
    own = cluster["metadata"]["name"]
    for place in ground.clusters:
        workloads = [obj for (resource, _), obj in place.last.items() if resource == WORKLOAD]
        owners = {owner["name"] for obj in workloads for owner in dig(obj, "metadata", "ownerReferences") or ()}
        assert own not in owners, f"{place.name} has a Workload for it"
    assert (CLUSTERS, own) not in ground.manager.last
    row.ran(ground, name, **{worker: 1})
    await nothing_left(ground, row, name)
