"""LeaderWorkerSet's own manager and webhooks, on the manager and on both workers.

The StatefulSets that it makes of a set are kube-controller-manager's. There is no `managedBy`: the manager's own
controllers make pods as well, which wait at Kueue's gate and must never have got a node.
"""

from __future__ import annotations

from pathlib import Path

from tests.integration.planes import Planes
from tests.operators.cases import LWS, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.kinds import lws_journeys
from tests.operators.marks import EVERY_OPERATOR
from tests.operators.recording import record
from tests.operators.walking import all_ways

pytestmark = EVERY_OPERATOR


async def test_a_leaderworkerset_of_two_groups_goes_all_ways(planes: Planes, tmp_path: Path) -> None:
    """Each group a leader and a worker, with a Workload of its own."""
    (case,) = operators_cases(LWS)
    row = Row(case=case, pods=4, robust={}, more=(lws_journeys.grows_and_shrinks,))
    async with operators_ground(planes, LWS, [case], tmp_path) as ground:
        await all_ways(ground, [row])
        record(ground, LWS, [row])
