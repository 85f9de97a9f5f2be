"""KubeRay's last minor version without `managedBy`, v1.2: first on the manager, then on the workers.

What is older is its definitions and its controller. The other side has the version of `rows.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from multikueue.core.model.kinds import EVENT, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.workloads import checks
from tests.controlplane.crds import establish
from tests.controlplane.interface import Cluster
from tests.controlplane.polling import poll_until
from tests.integration.planes import Planes
from tests.integration.view import POD
from tests.kinds.cases import Case
from tests.kinds.ground import NAMESPACE, TEMPLATE
from tests.operators import journeys
from tests.operators.cases import KUBERAY, definitions, operators_cases
from tests.operators.ground import OperatorsGround, operators_ground
from tests.operators.journeys import Row
from tests.operators.kinds.ray_journeys import CLUSTERS
from tests.operators.marks import EVERY_OPERATOR
from tests.operators.table import OLD_KUBERAY

pytestmark = EVERY_OPERATOR

_NEW_FIELD: Final = "preRunningDeadlineSeconds"
"""Of a RayJob; v1.2 does not have it."""


@asynccontextmanager
async def _older(*planes: Cluster) -> AsyncIterator[None]:
    """Have clusters serve Ray's kinds as the old version defines them, until the end."""
    try:
        await _serve(OLD_KUBERAY.older, *planes)
        yield
    finally:
        await _serve(False, *planes)


async def _serve(older: bool, *planes: Cluster) -> None:
    """Establish one version's definitions, and wait until the servers go by them."""

    async def drops(plane: Cluster, case: Case) -> bool:
        resource, path = case.adapter.resource, case.adapter.delegation.path or ()
        url = f"/apis/{resource.gvk.api_version}/namespaces/{NAMESPACE}/{resource.plural}"
        sent = case.kind.example("asked", TEMPLATE, queue="none")
        stored = await plane.admin.call("POST", url, sent, query={"dryRun": "All"})
        return (dig(stored, *path) is None) is older

    for plane in planes:
        await establish(plane.admin, definitions([OLD_KUBERAY if older else KUBERAY]))
        for case in operators_cases(KUBERAY):
            await poll_until(partial(drops, plane, case), seconds=60.0, otherwise=f"{plane.name}: {case.name}")


async def test_jobs_are_refused_where_the_managers_kuberay_is_older_than_managed_by(
    planes: Planes, tmp_path: Path
) -> None:
    """The check says which field is missing, and which version has it; nothing runs, neither there nor on a worker."""
    rows = operators_cases(KUBERAY)
    manager = {planes.manager.name: OLD_KUBERAY}
    async with (
        _older(planes.manager),
        operators_ground(planes, KUBERAY, rows, tmp_path, instead=manager) as ground,
    ):
        for case in rows:
            await ground.submit(case.kind, f"{case.name}-old", duration="1h")
        for case in rows:
            await _refused(ground, case, f"{case.name}-old")
        await _works_there(ground, rows[0])
        for case in rows:
            _nothing_ran(ground, case, f"{case.name}-old")


async def _refused(ground: OperatorsGround, case: Case, name: str) -> None:
    """Wait until Kueue has deactivated a job whose check was `Rejected`; the user is told the field and the version."""
    since = "v1.6.0" if case.name == "rayservice" else "v1.3.0"
    words = (
        f'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "" (KubeRay before {since} drops the field)'
    )
    await ground.until_told(case.kind, name, words)
    await ground.until(
        lambda: [dig(workload, "spec", "active") for workload in ground.workloads_of(case.kind, name)] == [False],
        lambda: ground.story(case.kind, name),
    )
    (workload,) = ground.workloads_of(case.kind, name)
    history = ground.recorded[ground.manager.name].history
    versions = [obj for kind, own, obj in history if (kind, own) == (WORKLOAD, name_of(workload))]
    states = [
        (check.get("state"), words in check.get("message", "")) for version in versions for check in checks(version)
    ]
    assert ("Rejected", True) in states  # Kueue has it Pending again once the Workload is deactivated


async def _works_there(ground: OperatorsGround, case: Case) -> None:
    """Somebody's own job of no queue runs on the manager: its controller is there and acts."""
    own = case.kind.example("somebodys", TEMPLATE, queue="none", delegated=False)
    own["metadata"]["labels"] = {}
    await ground.manager.client.create(case.kind.resource, case.kind.with_suspend(own, False))
    await ground.until(
        lambda: ground.running_pods("manager", "somebodys"), lambda: ground.story(case.kind, "somebodys")
    )


def _nothing_ran(ground: OperatorsGround, case: Case, name: str) -> None:
    assert ground.pods_made(name) == {}
    assert ground.ran_on(case.kind, name) == []
    assert [own for worker in ground.workers.values() for kind, own in worker.last if kind in (WORKLOAD, POD)] == []
    if case.name == "rayjob":  # KubeRay makes a suspended cluster of a RayService that Kueue holds, in every version
        made = [own for cluster in ground.clusters for kind, own in cluster.last if kind == CLUSTERS]
        assert [own for own in made if own.startswith(name)] == []


async def test_workers_whose_kuberay_is_older_run_jobs_without_the_fields_that_it_lacks(
    planes: Planes, tmp_path: Path
) -> None:
    """RayJobs go all their ways there, and a RayCluster runs. A field that is dropped is told; of others nothing is."""
    rows = {case.name: case for case in operators_cases(KUBERAY)}
    job = Row(case=rows["rayjob"], pods=3, counted="batch.kubernetes.io/job-name", starts=1, made_of=CLUSTERS)
    cluster = Row(case=rows["raycluster"], pods=2, counted="ray.io/node-type")
    old = dict.fromkeys(planes.workers, OLD_KUBERAY)
    async with (
        _older(*planes.workers.values()),
        operators_ground(planes, KUBERAY, list(rows.values()), tmp_path, instead=old) as ground,
        anyio.create_task_group() as tasks,
    ):
        for way in (journeys.finishes, journeys.fails, journeys.deleted, journeys.moves, journeys.pauses):
            tasks.start_soon(way, ground, job)
        tasks.start_soon(_tells_what_is_dropped, ground, job)
        tasks.start_soon(_shows_its_state, ground, cluster)


async def _tells_what_is_dropped(ground: OperatorsGround, row: Row) -> None:
    kind, name = row.case.kind, row.job("newer")
    await ground.submit(kind, name, spec={_NEW_FIELD: 600})
    (job,) = await ground.ended(kind, name, "Succeeded")
    assert dig(job, "spec", _NEW_FIELD) == 600
    (worker,) = ground.ran_on(kind, name)
    left = f'worker cluster "{worker}" has left .spec.{_NEW_FIELD} out of RayJob "{name}", which runs there without'
    await ground.until_told(kind, name, left)
    await ground.cleaned(kind, name)
    notes = [str(obj.get("note")) for (resource, _), obj in ground.manager.now.items() if resource == EVENT]
    assert [note for note in notes if "which runs there without" in note and left not in note] == []
    copy = ground.workers[worker].last[kind.resource, name]
    assert ObjectKey.of(copy) == ObjectKey.of(job)
    row.ran_to_its_end(ground, name, worker)


async def _shows_its_state(ground: OperatorsGround, row: Row) -> None:
    """The old version writes no conditions of a RayCluster, which newer ones have: what it writes is shown."""
    kind, name = row.case.kind, row.job("stateful")
    jobs = await ground.submit(kind, name, duration="1h")

    def ready() -> bool:
        return bool(dig(ground.manager.get(kind.resource, name), "status", "state") == "ready")

    await ground.until(ready, lambda: ground.story(kind, name))
    (worker,) = ground.ran_on(kind, name)
    await ground.shown(kind, name, worker)
    assert dig(ground.manager.get(kind.resource, name), "status", "conditions") is None
    assert len(ground.running_pods(worker, name)) == row.pods
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    row.ran(ground, name, **{worker: 1})
    await journeys.nothing_left(ground, row, name)
