"""Nodes: quota is not room for a pod."""

from __future__ import annotations

import pytest

from tests.dispatch.kueue import Copy
from tests.dispatch.load import Flavor, Job, Load, Worker
from tests.dispatch.manager import Settings
from tests.dispatch.nodes import Nodes, nodes_of
from tests.dispatch.policies import POLICIES
from tests.dispatch.simulation import simulate


def copy(gpus: int) -> Copy:
    return Copy(None, (gpus, 0), (0,), 0, 0.0)


def test_pods_wait_for_a_node_that_holds_them_though_there_is_quota() -> None:
    nodes, small, gang = Nodes(nodes_of(20, 8)), [copy(2), copy(2)], copy(16)
    assert nodes.free == [8, 8, 4]
    assert [nodes.start(pod) for pod in small] == [True, True]
    assert nodes.free == [6, 6, 4]

    assert not nodes.start(gang)
    assert nodes.stop(small[0]) == []
    assert nodes.waits(gang)
    assert nodes.stop(small[1]) == [gang]
    assert (nodes.free, nodes.waits(gang)) == ([0, 0, 4], False)
    nodes.stop(gang)
    assert nodes.free == [8, 8, 4]


@pytest.mark.parametrize("policy", ["all-at-once", "scored"])
def test_a_job_without_a_node_starts_when_one_is_free_and_that_is_told(policy: str) -> None:
    jobs = (
        *(Job(f"small-{i}", float(i), "tenant", (1, 0), 600.0) for i in range(2)),
        Job("big", 5.0, "tenant", (8, 0), 60.0),
    )
    load = Load(jobs, (Worker("w", (Flavor("a100", 16, 0, node=8),)),))

    measures = simulate(load, POLICIES[policy], Settings())

    assert measures["hung_h"] * 3600 == pytest.approx(595, abs=2)
    assert measures["unfinished"] == 0
