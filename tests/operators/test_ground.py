"""What is seen of a cluster: enough to tell that something ran twice, or that a status is not the last one."""

from __future__ import annotations

from typing import Any, cast

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.protocols import ApiClient
from tests.integration.view import POD
from tests.operators.ground import Recorded
from tests.operators.kinds.ray_journeys import CLUSTERS


def _seen(*objects: tuple[Resource, Json]) -> Recorded:
    """A cluster that showed these one after the other."""
    cluster = Recorded("worker1", cast(ApiClient, None))
    for number, (resource, obj) in enumerate(objects, 1):
        obj["metadata"]["resourceVersion"] = str(number)
        cluster.observe(resource, ObjectKey("default", obj["metadata"]["name"]), None, obj)
    return cluster


def _cluster(own: str, state: str = "", **metadata: Any) -> tuple[Resource, Json]:
    return CLUSTERS, {"metadata": {"name": f"a-{own}", "uid": own, **metadata}, "status": {"state": state}}


def _pod(own: str, of: str) -> tuple[Resource, Json]:
    owner = {"uid": of, "name": f"a-{of}", "kind": "RayCluster", "controller": True}
    return POD, {"metadata": {"name": f"a-{own}", "uid": own, "ownerReferences": [owner]}}


async def test_the_pods_of_each_cluster_are_counted_until_it_is_deleted() -> None:
    """What is made for one that is gone does not count: its controller has not heard of that yet."""
    seen = _seen(_cluster("x"), _pod("1", "x"), _pod("2", "x"), _cluster("x", "ready"), _pod("3", "x"))
    assert seen.pods_of(CLUSTERS, "a") == [2]
    assert seen.pods_of(CLUSTERS, "b") == []


async def test_a_second_run_is_seen() -> None:
    """As another cluster, or as more pods of the same."""
    first = (_cluster("x"), _pod("1", "x"), _cluster("x", "ready"))
    assert _seen(*first, _cluster("y"), _pod("2", "y"), _cluster("y", "ready")).pods_of(CLUSTERS, "a") == [1, 1]
    assert _seen(*first, _pod("2", "x"), _cluster("x", "ready")).pods_of(CLUSTERS, "a") == [2]


async def test_only_the_last_status_before_the_deletion_is_the_one_to_show() -> None:
    """An earlier one is not, nor what a finalizer has the controller write afterwards."""
    seen = _seen(_cluster("x"), _cluster("x", "ready"), _cluster("x", "", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert seen.showed(CLUSTERS, "a-x", {"state": "ready"})
    assert not seen.showed(CLUSTERS, "a-x", {"state": ""})


async def test_what_tells_of_the_worker_is_not_to_be_shown() -> None:
    made, head = _cluster("x", "ready"), {"podName": "head", "podIP": "10.0.0.1", "serviceIP": "None"}
    made[1]["status"] |= {"observedGeneration": 2, "head": head}
    seen = _seen(made)
    assert seen.showed(CLUSTERS, "a-x", {"state": "ready", "observedGeneration": 1, "head": {"podName": "head"}})
    assert not seen.showed(CLUSTERS, "a-x", {"state": "ready", "head": {"podName": "another"}})


async def test_where_a_controller_writes_on_any_status_that_tells_the_end_is_one_to_show() -> None:
    seen = _seen(_cluster("x", "runs"), _cluster("x", "ended"), _cluster("x", "ended, and counted"))
    assert not seen.showed(CLUSTERS, "a-x", {"state": "ended"})
    seen.writes_on[CLUSTERS] = lambda status: status["state"].startswith("ended")
    assert seen.showed(CLUSTERS, "a-x", {"state": "ended"})
    assert not seen.showed(CLUSTERS, "a-x", {"state": "runs"})
