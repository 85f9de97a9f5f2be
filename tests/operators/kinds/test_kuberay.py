"""KubeRay's own controller, on the manager and on both workers. Ray itself is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.planes import Planes
from tests.kinds.cases import Case
from tests.operators.cases import KUBERAY, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.kinds import ray_journeys
from tests.operators.recording import record
from tests.operators.walking import all_ways

pytestmark = [pytest.mark.operators, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="session")]

_CLUSTERS = {"rayjob": ray_journeys.CLUSTERS}
"""What pods other than the submitter are made of: one per run, with a head and a worker. KubeRay may make pods for one
that was just deleted, so what is counted is what a RayCluster had while it was there."""
_STARTED = {"rayjob": "batch.kubernetes.io/job-name"}
"""What a RayJob's submitter has."""
_PODS = {"rayjob": 3, "raycluster": 2, "rayservice": 2}
"""A head and a worker; a RayJob has one more that submits it."""
_MORE = {
    "rayjob": ray_journeys.has_a_cluster_that_is_no_copy,
    "raycluster": ray_journeys.grows_and_shrinks,
    "rayservice": ray_journeys.serves_another_application,
}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in operators_cases(KUBERAY)])
async def test_a_ray_kind_goes_all_ways(case: Case, planes: Planes, tmp_path: Path) -> None:
    """RayJobs with a RayCluster of their own, RayClusters, and RayServices."""
    row = Row(
        case=case,
        pods=_PODS[case.name],
        counted=_STARTED.get(case.name, "ray.io/node-type"),
        starts=1 if case.name in _STARTED else 0,
        made_of=_CLUSTERS.get(case.name),
        robust={},
        more=(_MORE[case.name],),
        victim={"ray.io/node-type": "worker"},
        defaulted=True,
        # While its cluster is suspended, KubeRay writes no status of a RayService ("found 0 head"): it may stay Ready.
        tells_of_stops=case.name != "rayservice",
    )
    async with operators_ground(planes, KUBERAY, operators_cases(KUBERAY), tmp_path) as ground:
        await all_ways(ground, [row])
        record(ground, KUBERAY, [row])
