"""KubeRay's own controller, on the manager and on both workers. Ray itself is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.planes import Planes
from tests.operators.cases import KUBERAY, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.recording import record
from tests.operators.walking import all_ways

pytestmark = [pytest.mark.operators, pytest.mark.timeout(400), pytest.mark.asyncio(loop_scope="session")]

_WORKER = {"ray.io/node-type": "worker"}
_PODS = {"rayjob": 3, "raycluster": 2, "rayservice": 2}
"""A head and a worker; a RayJob has one more that submits it."""


async def test_ray_jobs_clusters_and_services_go_all_ways(planes: Planes, tmp_path: Path) -> None:
    """RayJobs with a RayCluster of their own, RayClusters, and RayServices."""
    cases = [
        case
        for case in operators_cases(KUBERAY)
        if case.name in __import__("os").environ.get("RAY", "rayjob").split(",")
    ]
    rows = [Row(case=case, pods=_PODS[case.name], robust={}, victim=_WORKER) for case in cases]
    async with operators_ground(planes, KUBERAY, cases, tmp_path) as ground:
        await all_ways(ground, rows)
        record(ground, KUBERAY, rows)
