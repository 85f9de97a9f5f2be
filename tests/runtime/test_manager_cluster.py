"""The manager's own caches."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
import structlog

from multikueue.adapters import BUILTIN
from multikueue.core.dispatchers.dispatcher import AllAtOnce
from multikueue.core.machinery.backoff import WATCH_BACKOFF
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, SECRET
from multikueue.core.model.names import ObjectKey, Resource
from multikueue.errors import Forbidden, NotFound, Unreachable
from multikueue.protocols import ObjectList
from multikueue.sandbox.apiserver import DirectClient
from multikueue.testing import running
from tests.runtime.fleet import Fleet, is_active, until

pytestmark = pytest.mark.looptime


NEEDED = [
    "workloads.kueue.x-k8s.io",
    "admissionchecks.kueue.x-k8s.io",
    "multikueueconfigs.kueue.x-k8s.io",
    "multikueueclusters.kueue.x-k8s.io",
    "secrets",
]
QUEUES = frozenset({CLUSTER_QUEUE, LOCAL_QUEUE})


class Away(DirectClient):
    """An API server that lists nothing, or no queues; notes when it was asked in vain for what."""

    only_queues: bool
    asked: defaultdict[Resource, list[float]]

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        if self.only_queues and resource not in QUEUES:
            return await super().list(resource, namespace=namespace, label_selector=label_selector, limit=limit)
        self.asked[resource].append(anyio.current_time())
        raise Unreachable("down")


@pytest.mark.parametrize("only_queues", [False, True])
async def test_every_cache_of_the_manager_has_jitter_in_its_back_off(only_queues: bool) -> None:
    """All daemons of a site must not come back to an API server in step."""
    fleet = Fleet.of()
    client = Away(fleet.manager)
    client.only_queues, client.asked = only_queues, defaultdict(list)
    manager = attrs.evolve(fleet.build(quota_automation=True), client=client, fraction=lambda: 0.5)
    with anyio.move_on_after(1):
        await manager.run()

    expected = WATCH_BACKOFF.delay(1, 0.5)
    assert expected > WATCH_BACKOFF.delay(1)
    assert len(client.asked) == 2 if only_queues else len(client.asked) > 5
    assert {asked[1] - asked[0] for asked in client.asked.values()} == {expected}


class Bare(DirectClient):
    """An API server without Kueue's definitions, which does not let Secrets be read either; `healed` in the end."""

    healed: bool = False

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        if resource == SECRET and not self.healed:
            raise Forbidden('secrets is forbidden: User "daemon" cannot list them', status=403)
        if resource.gvk.group == "kueue.x-k8s.io" and not self.healed:
            raise NotFound("the server could not find the requested resource", status=404)
        return await super().list(resource, namespace=namespace, label_selector=label_selector, limit=limit)


async def test_what_the_manager_does_not_give_is_told_once_with_what_to_look_for() -> None:
    """A cluster without Kueue looks like one where nothing is to be done. A job kind may be missing."""
    fleet = Fleet.of()
    client = Bare(fleet.manager)
    manager = attrs.evolve(fleet.build(), client=client)
    with structlog.testing.capture_logs() as lines:
        async with running(manager.run):
            await anyio.sleep(600)
            assert [str(resource) for resource in manager.cluster.unread] == NEEDED
            client.healed = True
            await anyio.sleep(600)
            assert manager.cluster.unread == []

    warnings = {line["resource"]: line for line in lines if line["log_level"] == "warning"}
    assert list(warnings) == NEEDED
    assert len([line for line in lines if line["log_level"] == "warning"]) == len(NEEDED)
    assert warnings["workloads.kueue.x-k8s.io"] == {
        "event": "cannot work without it",
        "log_level": "warning",
        "resource": "workloads.kueue.x-k8s.io",
        "error": "the server could not find the requested resource",
        "advice": "is Kueue installed there, with its CRDs, and may this identity list and watch them?",
    }
    assert warnings["secrets"]["advice"] == "may this identity list and watch them?"


async def test_the_workers_of_each_queue_with_workloads_have_a_status() -> None:
    """For Kueue's metric `multikueue_cluster_status`."""
    fleet = Fleet.of("worker1", "worker2")
    manager = fleet.build()
    async with fleet.kueues(), fleet.running(manager):
        await fleet.connect()
        await until(is_active(fleet))
        await until(is_active(fleet, "worker2"))
        assert list(manager.cluster.worker_statuses()) == []
        await fleet.submit()
        await until(lambda: bool(list(manager.cluster.worker_statuses())))
        (queue,) = {queue for queue, _, _ in manager.cluster.worker_statuses()}
        assert list(manager.cluster.worker_statuses()) == [(queue, "worker1", "True"), (queue, "worker2", "True")]
        await fleet.admin.delete(SECRET, ObjectKey("kueue-system", "worker2-secret"))

        def lost() -> bool:
            return (queue, "worker2", "False") in manager.cluster.worker_statuses()

        await until(lost)


@pytest.mark.parametrize("given", ["/root/.kube/config", Path("kubeconfig"), {"clusters": []}])
async def test_a_manager_of_a_file_names_the_parameter(given: Any) -> None:
    """It was taken for a client, and failed when it was run."""
    with pytest.raises(TypeError, match=f"not {type(given).__name__}: load_kubeconfig makes one of a file"):
        Fleet.of().build(client=given)


@pytest.mark.parametrize(
    ("argument", "given", "why"),
    [
        ("adapters", BUILTIN, "'adapters' must be <class 'multikueue.adapters.registry.AdapterRegistry'>"),
        ("settings", None, "'settings' must be <class 'multikueue.runtime.manager.ManagerSettings'>"),
        ("connect", "worker1", "'connect' must be callable"),
        (
            "dispatcher",
            AllAtOnce,
            "dispatcher: <class .*>, whose nominate does not take a workload, the candidates and",
        ),
        (
            "dispatcher",
            "all-at-once",
            "dispatcher: 'all-at-once', which has no method nominate: make it a multikueue.D",
        ),
    ],
)
async def test_a_manager_of_what_it_cannot_use_names_the_argument(argument: str, given: Any, why: str) -> None:
    """It was an attribute that lacks, or failed for each Workload that was to be offered."""
    whole = Fleet.of().build()
    with pytest.raises(TypeError, match=why):
        attrs.evolve(whole, **{argument: given})
