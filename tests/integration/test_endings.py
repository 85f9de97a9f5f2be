"""How runs end on real servers, for every reason and kind.

kube-controller-manager runs Jobs, Deployments and StatefulSets, and collects the garbage. The sandbox's job runner
plays the controllers of the other kinds, the scheduler and the kubelets: pods get a node and their SIGTERM, go on for
a while, and are gone once their kubelet has said so.
"""

from __future__ import annotations

import pytest

from tests.integration.planes import Planes
from tests.integration.test_kinds import all_go, real_ground
from tests.kinds.cases import cases
from tests.kinds.endings import (
    decisive,
    is_not_alike,
    is_taken_away_in_turn,
    no_quota_is_held,
    waits_for_dead_nodes,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="session")]


async def test_no_run_begins_before_the_last_pod_of_another_has_gone_whatever_ends_it(planes: Planes) -> None:
    """Of any kind, for what real servers decide of each, and of kinds of each sort for any reason.

    Nor while nobody knows whether pods have gone, as no kubelet answers. The kinds that go as PyTorchJobs do end in the
    sandbox alone: to a server and its garbage collector all of them are custom resources of one group.
    """
    rows = [case for case in cases() if is_not_alike(case)]
    async with real_ground(planes, rows, renamed=["worker1"]) as ground:
        ground.seconds = 120.0  # all kinds go at the same time
        assert await all_go(ground, [(is_taken_away_in_turn, case) for case in rows]) == {}
        await waits_for_dead_nodes(ground, [case for case in rows if case.is_copied and decisive(case)])
        await no_quota_is_held(ground)
