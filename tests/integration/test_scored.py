"""The scored dispatcher on real servers: a manager and three workers that differ in what they have room for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

import attrs
import pytest
import pytest_asyncio

from multikueue.core.dispatchers.scored.penalties import FAILURES_ANNOTATION
from multikueue.core.dispatchers.scored.profile import SCORED, Profile
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    MULTIKUEUE_CLUSTER,
    RESOURCE_FLAVOR,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, name_of
from multikueue.core.model.workloads import checks, cluster_name, has_quota
from multikueue.core.workload.history import placements
from multikueue.sandbox.kueue.building import PRIORITY_CLASS_LABEL
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, admission_check, cluster_queue, resource_flavor
from multikueued.rbac.rules import ON_MANAGER, on_worker
from multikueued.settings.config import DispatcherSettings
from tests.controlplane.cluster import Cluster
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
NEVER, FULL, ROOM = "500m", "1", "8"
"""A quota that holds no job, one job, and all jobs of a test."""
OWN_CHECK: Final = "provisioning"
SAMPLE: Final = "sample"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_three(clusters: type[Cluster], shared_planes: Planes) -> AsyncIterator[Planes]:
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
    queue: Json = attrs.field(factory=dict)
    """More of the spec of worker2's ClusterQueue."""
    figures: bool = True
    """Whether workers let their queues be read."""
    priority: str = ""
    """The priority class of the Job."""
    template: Json = attrs.field(factory=dict)
    """More of the spec of its pods."""
    before: Callable[[Fleet], Awaitable[None]] = nothing
    """What is there before the daemon starts."""
    running: tuple[str, ...] = ()
    """The Jobs that run before it."""
    after: Callable[[Fleet], Awaitable[None]] = nothing
    """What has to happen once it is submitted, until it runs."""
    finally_: Callable[[Fleet], Awaitable[None]] = nothing
    """What can be seen once it runs."""


async def full_with_jobs_of_others(real: Fleet) -> None:
    full = [real.workers[name] for name in ("worker1", "worker3")]
    for view in full:
        await view.client.create(JOB, job("theirs", managed_by=None))
    await real.changes.until(
        lambda: all(is_ready(view.get(JOB, "theirs")) for view in full), otherwise="the others do not run"
    )


async def the_other_waits_on_the_manager(real: Fleet) -> None:
    def waits() -> bool:
        workload = real.manager.workload_of("low") or {}
        return has_quota(workload) and cluster_name(workload) is None and not real.pods("worker2", "low")

    await real.changes.until(waits, otherwise=lambda: f"low does not wait: {real.story('low')}")
    assert real.pods("worker2", SAMPLE)


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
    assert first["fault"] == "worker"
    assert cluster_name(real.manager.workload_of(SAMPLE) or {}) not in (None, first["worker"])

    def noted() -> bool:
        worker = real.manager.get(MULTIKUEUE_CLUSTER, first["worker"])
        return FAILURES_ANNOTATION in annotations_of(worker or {})

    await real.changes.until(noted, otherwise=f"the failure is not noted on {first['worker']}")


async def own_check(real: Fleet) -> None:
    """A check of the worker's own, with somebody who answers it."""
    client = real.workers["worker2"].client
    check = admission_check("example.com/provisioning", OWN_CHECK)
    await client.create(ADMISSION_CHECK, check)
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": NOW}
    await client.merge_patch(
        ADMISSION_CHECK, ObjectKey("", OWN_CHECK), {"status": {"conditions": [active]}}, subresource="status"
    )


async def own_check_passes(real: Fleet) -> None:
    view = real.workers["worker2"]

    def provisioned() -> Json | None:
        copy = next((one for one in view.all(WORKLOAD) if has_quota(one)), None)
        return copy if copy is not None and checks(copy) else None

    copy = await real.changes.until(provisioned, otherwise="worker2 reserves no quota")
    ready = {**checks(copy)[0], "state": "Ready", "message": "provisioned", "lastTransitionTime": NOW}
    patch = {"status": {"admissionChecks": [ready]}}
    await view.client.merge_patch(WORKLOAD, ObjectKey.of(copy), patch, subresource="status")


async def a_queue_that_lends(real: Fleet) -> None:
    spec = {"cohortName": "all"}
    lender = cluster_queue({"cpu": "1", "memory": "16Gi"}, name="lender")
    await real.workers["worker2"].client.create(CLUSTER_QUEUE, {**lender, "spec": {**lender["spec"], **spec}})


async def nothing_more_can_be_borrowed(real: Fleet) -> None:
    await real.submit("more")

    def held() -> bool:
        workload = real.manager.workload_of("more")
        return workload is not None and "held since" in told(workload)

    await real.changes.until(held, otherwise=lambda: f"more is not held: {real.story('more')}")
    assert asked(real, "more") == frozenset()


async def only_worker2_has_room_in_the_flavor_it_selects(real: Fleet) -> None:
    """The others have room in another one."""
    for name, view in real.workers.items():
        queue = await view.client.get(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME))
        group, flavors = queue["spec"]["resourceGroups"][0], list[Json]()
        for flavor in ("t4", "a100"):
            made = {**resource_flavor(), "metadata": {"name": flavor}, "spec": {"nodeLabels": {"gpu": flavor}}}
            await view.client.create(RESOURCE_FLAVOR, made)
            nothing_of_it = {} if (flavor == "a100") is (name == "worker2") else {"nominalQuota": "0"}
            resources = [{**one, **nothing_of_it} for one in group["flavors"][0]["resources"]]
            flavors.append({"name": flavor, "resources": resources})
        spec = {"resourceGroups": [{**group, "flavors": flavors}]}
        await view.client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"spec": spec})


NOW: Final = "2026-01-01T00:00:00Z"
SCENARIOS: Final[Mapping[str, Scenario]] = {
    "fits on one of three only": Scenario((NEVER, ROOM, NEVER)),
    "must preempt there": Scenario(
        (FULL, FULL, FULL),
        queue={"preemption": {"withinClusterQueue": "LowerPriority"}},
        before=full_with_jobs_of_others,
        running=("low",),
        priority="high",
        finally_=the_other_waits_on_the_manager,
    ),
    "pods never ready": Scenario((ROOM, ROOM, ROOM), 2, after=no_pods_start_at_first, finally_=it_runs_elsewhere),
    "figures forbidden": Scenario(
        (ROOM, ROOM, ROOM), MOST, figures=False, before=nobody_admits, after=raced_until_one_admits
    ),
    "a check of the worker's own": Scenario(
        (NEVER, ROOM, NEVER),
        queue={"admissionChecksStrategy": {"admissionChecks": [{"name": OWN_CHECK}]}},
        before=own_check,
        after=own_check_passes,
    ),
    "fits in a flavor of one of three only": Scenario(
        (ROOM, ROOM, ROOM),
        before=only_worker2_has_room_in_the_flavor_it_selects,
        template={"nodeSelector": {"gpu": "a100"}},
    ),
    "borrows in its cohort": Scenario(
        (NEVER, NEVER, NEVER),
        queue={"cohortName": "all"},
        before=a_queue_that_lends,
        finally_=nothing_more_can_be_borrowed,
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_job_is_offered_where_it_has_a_chance_and_nowhere_else(three: Planes, name: str) -> None:
    scenario = SCENARIOS[name]
    async with arranged(three, scenario) as real:
        for other in scenario.running:
            await real.submit(other)
            await real.running(other)
        await submit(real, scenario.priority, scenario.template)
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
        for (name, view), cpu in zip(real.workers.items(), scenario.cpu, strict=True):
            spec = cluster_queue({"cpu": cpu, "memory": "16Gi"})["spec"]
            more = scenario.queue if name == "worker2" else {}
            await view.client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"spec": {**spec, **more}})
        await scenario.before(real)
        real.daemon.start()
        await real.daemon.connected()
        yield real


async def submit(real: Fleet, priority: str, template: Json) -> None:
    """Submit the Job that is looked at."""
    if priority:
        metadata = {"name": priority}
        version = WORKLOAD_PRIORITY_CLASS.gvk.api_version
        made = {"apiVersion": version, "kind": WORKLOAD_PRIORITY_CLASS.gvk.kind, "metadata": metadata, "value": 1000}
        await real.manager.client.create(WORKLOAD_PRIORITY_CLASS, made)
    wanted = job(SAMPLE)
    wanted["spec"]["template"]["spec"] |= template
    wanted["metadata"]["labels"] |= {PRIORITY_CLASS_LABEL: priority} if priority else {}
    await real.manager.client.create(JOB, wanted)


def asked(real: Fleet, name: str = SAMPLE) -> frozenset[str]:
    """The workers that ever had a copy of a Job's Workload."""
    workload = real.manager.workload_of(name)
    wanted = (WORKLOAD, name_of(workload)) if workload is not None else None
    return frozenset(name for name, view in real.workers.items() if wanted in view.last)


def history(real: Fleet) -> list[Json]:
    """Where the Job was before, as far as its Workload remembers."""
    return placements(real.manager.workload_of(SAMPLE) or {})


def told(workload: Json) -> str:
    """What our check says."""
    return next((str(check.get("message")) for check in checks(workload) if check["name"] == CHECK), "")


def is_ready(found: Json | None) -> bool:
    """Whether the pod of a Job runs."""
    return bool(dig(found or {}, "status", "ready"))
