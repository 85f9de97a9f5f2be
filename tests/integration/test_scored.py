"""The scored dispatcher on real servers: a manager and three workers that differ in what they have room for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

import attrs
import pytest
import pytest_asyncio

from multikueue.core.dispatchers.dispatcher import SCORED
from multikueue.core.dispatchers.scored.penalties import FAILURES_ANNOTATION
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.model.kinds import (
    CLUSTER_QUEUE,
    JOB,
    MULTIKUEUE_CLUSTER,
    RESOURCE_FLAVOR,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, name_of
from multikueue.core.model.placements import FAULT, placements
from multikueue.core.model.workloads import cluster_name
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME, cluster_queue, resource_flavor
from multikueued.rbac.rules import ON_MANAGER, on_worker
from multikueued.settings.config import DispatcherSettings
from tests.controlplane.interface import ClusterFactory
from tests.integration.clearing import as_at_first
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import Fleet, fleet, job
from tests.integration.permissions import WORKER_RULES, grant_daemon
from tests.integration.planes import WORKER_USER, Planes, kueue_crds

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

MOST: Final = 2
SCORED_SETTINGS: Final = attrs.evolve(
    SETTINGS, dispatcher=DispatcherSettings(name=SCORED, profiles={"default": Profile(most=MOST)})
)
NEVER, ROOM = "500m", "8"
"""A quota that holds no job, and all jobs of a test."""
SAMPLE: Final = "sample"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_three(clusters: ClusterFactory, shared_planes: Planes) -> AsyncIterator[Planes]:
    """The servers that all tests share, and a third worker."""
    async with clusters("worker3", controller_manager=True, crds=kueue_crds()) as third:
        await third.service_account(WORKER_USER, WORKER_RULES)
        yield attrs.evolve(shared_planes, workers={**shared_planes.workers, third.name: third})


@pytest_asyncio.fixture(loop_scope="session")
async def three(shared_three: Planes) -> Planes:
    """A manager and three workers as they were at first."""
    await as_at_first(shared_three)
    return shared_three


async def nothing(real: Fleet) -> None:
    """Nothing more to do."""


@attrs.frozen
class Scenario:
    """Workers, and where a Job goes to."""

    cpu: tuple[str, str, str]
    """The quota of each worker."""
    asked: frozenset[str] | int = frozenset({"worker2"})
    """Who gets a copy of the Job, or how many of them."""
    figures: bool = True
    """Whether workers let their queues be read."""
    template: Json = attrs.field(factory=dict)
    """More of the spec of its pods."""
    before: Callable[[Fleet], Awaitable[None]] = nothing
    """What is there before the daemon starts."""
    after: Callable[[Fleet], Awaitable[None]] = nothing
    """What has to happen once it is submitted, until it runs."""
    finally_: Callable[[Fleet], Awaitable[None]] = nothing
    """What can be seen once it runs."""


async def nobody_admits(real: Fleet) -> None:
    for name in real.workers:
        await real.hold(name, on=True)


async def raced_until_one_admits(real: Fleet) -> None:
    await real.changes.until(lambda: len(asked(real)) == MOST, otherwise=lambda: f"asked: {asked(real)}")
    await real.hold(min(asked(real)), on=False)


async def no_pods_start_at_first(real: Fleet) -> None:
    real.kubelet.broken.update(real.workers)
    await real.changes.until(
        lambda: history(real) or None, otherwise=lambda: f"it is not evicted: {real.story(SAMPLE)}"
    )
    real.kubelet.broken.clear()


async def it_runs_elsewhere(real: Fleet) -> None:
    first = history(real)[0]
    assert first.get("fault") == FAULT, first
    assert cluster_name(real.manager.workload_of(SAMPLE) or {}) not in (None, first["worker"])

    def noted() -> bool:
        worker = real.manager.get(MULTIKUEUE_CLUSTER, first["worker"])
        return FAILURES_ANNOTATION in annotations_of(worker or {})

    await real.changes.until(noted, otherwise=f"the failure is not noted on {first['worker']}")


async def only_worker2_has_room_in_the_flavor_it_selects(real: Fleet) -> None:
    """The others have room in another flavor."""
    for name, view in real.workers.items():
        queue = await view.client.get(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME))
        group, flavors = queue["spec"]["resourceGroups"][0], list[Json]()
        for flavor in ("t4", "a100"):
            made = {**resource_flavor(), "metadata": {"name": flavor}, "spec": {"nodeLabels": {"gpu": flavor}}}
            await view.client.create(RESOURCE_FLAVOR, made)
            nothing_of_it = {} if (flavor == "a100") is (name == "worker2") else {"nominalQuota": "0"}
            resources = [{**resource, **nothing_of_it} for resource in group["flavors"][0]["resources"]]
            flavors.append({"name": flavor, "resources": resources})
        spec = {"resourceGroups": [{**group, "flavors": flavors}]}
        await view.client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"spec": spec})


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "fits on one of three only": Scenario((NEVER, ROOM, NEVER)),
    "pods never ready": Scenario((ROOM, ROOM, ROOM), 2, after=no_pods_start_at_first, finally_=it_runs_elsewhere),
    "figures forbidden": Scenario(
        (ROOM, ROOM, ROOM), MOST, figures=False, before=nobody_admits, after=raced_until_one_admits
    ),
    "fits in a flavor of one of three only": Scenario(
        (ROOM, ROOM, ROOM),
        before=only_worker2_has_room_in_the_flavor_it_selects,
        template={"nodeSelector": {"gpu": "a100"}},
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_job_is_offered_where_it_has_a_chance_and_nowhere_else(three: Planes, name: str) -> None:
    scenario = SCENARIOS[name]
    async with arranged(three, scenario) as real:
        await submit(real, scenario.template)
        await scenario.after(real)
        where = await real.running(SAMPLE)
        await scenario.finally_(real)
        assert where in asked(real)
        assert scenario.asked in (asked(real), len(asked(real)))


@asynccontextmanager
async def arranged(three: Planes, scenario: Scenario) -> AsyncIterator[Fleet]:
    """A fleet whose daemon works, on workers that allow it what `multikueue rbac worker` prints."""
    for worker in three.workers.values():
        await worker.grant(WORKER_USER, on_worker(SCORED_SETTINGS if scenario.figures else SETTINGS))
    await grant_daemon(three.manager, ON_MANAGER["penalty"])
    async with fleet(three, daemon=False, settings=SCORED_SETTINGS, pods_ready_timeout=timedelta(seconds=2)) as real:
        for view, cpu in zip(real.workers.values(), scenario.cpu, strict=True):
            spec = cluster_queue({"cpu": cpu, "memory": "16Gi"})["spec"]
            await view.client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"spec": spec})
        await scenario.before(real)
        real.daemon.start()
        await real.daemon.connected()
        yield real


async def submit(real: Fleet, template: Json) -> None:
    """Submit the Job that is looked at."""
    wanted = job(SAMPLE)
    wanted["spec"]["template"]["spec"] |= template
    await real.manager.client.create(JOB, wanted)


def asked(real: Fleet, name: str = SAMPLE) -> frozenset[str]:
    """The workers that ever had a copy of a Job's Workload."""
    workload = real.manager.workload_of(name)
    wanted = (WORKLOAD, name_of(workload)) if workload is not None else None
    return frozenset(name for name, view in real.workers.items() if wanted in view.last)


def history(real: Fleet) -> list[Json]:
    """Where the Job was before, as far as its Workload remembers."""
    return placements(real.manager.workload_of(SAMPLE) or {})
