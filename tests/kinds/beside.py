"""One job on one cluster, and the same on a manager whose worker runs it: what programs read at each stage of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import anyio
import attrs

from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.core.model.kinds import CLUSTER_QUEUE, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.kube import Informer
from multikueue.protocols import ApiClient
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.crds import load_crds
from multikueue.sandbox.jobs import DURATION_ANNOTATION, OUTCOME_ANNOTATION, JobRunner
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.declared import kind_of_row
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME, set_up_queues
from multikueue.testing import until
from tests.kinds.cases import Case, cases, definitions
from tests.kinds.ground import TEMPLATE
from tests.kinds.journeys import NO_RETRIES
from tests.kinds.sandbox_ground import START, new_registry, sandbox_ground

Stages: TypeAlias = Mapping[str, list[Json]]
"""By stage, the versions of its objects that were seen: one of each, but all of them while it `starts`."""

STAGES: Final = ("waits", "starts", "runs", "stops", "ended")
_SETTLES: Final = 10.0
"""Seconds after which nothing changes any more."""
_RUNS: Final = 30.0
_DECLARED: Final = Declaration(
    name="Training.v1.example.com",
    suspend_path=".spec.suspend",
    template_paths=(".spec.template",),
)


def compared() -> list[Case]:
    """Every kind, and one that is declared without a profile."""
    row = declared_kind(_DECLARED)
    return [*cases(), Case(row, kind_of_row(row))]


async def on_one_cluster(case: Case, *, fails: bool) -> Stages:
    """What a cluster shows that has Kueue and the kind's own controller, and nobody else."""
    kind = attrs.evolve(case.kind, always_delegated=False)
    began = anyio.current_time()

    def now() -> datetime:
        return START + timedelta(seconds=anyio.current_time() - began)

    server = new_registry("alone", [*load_crds(), *definitions([case])], now)
    await set_up_queues(DirectClient(server), {"cpu": "8", "memory": "8Gi"})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run_collector)
        kueue, runner = (DirectClient(server, user=user) for user in ("kueue", "manager"))
        await tasks.start(SmallKueue(kueue, clock=now, kinds=[kind], events=False).run)
        await tasks.start(JobRunner(runner, clock=now, kinds=[kind], events=False).run)
        seen = await _stages(DirectClient(server), kind, _jobs(kind, delegated=False, fails=fails))
        tasks.cancel_scope.cancel()
    return seen


async def on_a_manager(case: Case, *, fails: bool) -> Stages:
    """What a manager shows of the job that one of two workers runs."""
    async with sandbox_ground(case) as ground:
        return await _stages(ground.manager.client, case.kind, _jobs(case.kind, delegated=True, fails=fails))


def _jobs(kind: SandboxKind, *, delegated: bool, fails: bool) -> list[Json]:
    noted = {DURATION_ANNOTATION: f"{_RUNS}s", OUTCOME_ANNOTATION: "fail" if fails else "complete"}
    template = {**TEMPLATE, "metadata": {"annotations": noted}}
    made = kind.examples(kind.name, template, queue=LOCAL_QUEUE_NAME)
    if not delegated and not kind.gated:
        made = [kind.example(kind.name, template, queue=LOCAL_QUEUE_NAME, delegated=False)]
    for job in made:
        job["metadata"]["annotations"] = {**(job["metadata"].get("annotations") or {}), **noted}
        job["spec"] |= NO_RETRIES.get(kind.name, {})
    return made


@asynccontextmanager
async def _versions(client: ApiClient, kind: SandboxKind) -> AsyncIterator[dict[str, list[Json]]]:
    """Of every object of the kind; of one that is gone there are none."""
    versions: dict[str, list[Json]] = {}

    def observe(key: ObjectKey, _old: Json | None, new: Json | None) -> None:
        if new is None:
            versions.pop(key.name, None)
        else:
            versions.setdefault(key.name, []).append(new)

    informer = Informer(client, kind.resource, on_change=observe)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.wait_synced()
        yield versions
        tasks.cancel_scope.cancel()


async def _stages(client: ApiClient, kind: SandboxKind, jobs: list[Json]) -> Stages:
    """Play it. What is stopped runs again, and ends; pods that are stopped never do."""
    seen: dict[str, list[Json]] = {}
    names = [name_of(job) for job in jobs]
    async with _versions(client, kind) as versions:

        def newest() -> list[Json]:
            return [versions[name][-1] for name in names if name in versions]

        def all_are(so: Callable[[Json], object]) -> Callable[[], bool]:
            return lambda: len(newest()) == len(names) and all(map(so, newest()))

        await _hold(client, "Hold")
        for job in jobs:
            await client.create(kind.resource, job)
        await anyio.sleep(_SETTLES)
        seen["waits"] = newest()
        before = {name: len(objects) for name, objects in versions.items()}
        await _hold(client, "None")
        await (until(all_are(kind.course.pods_ready)) if kind.reports else anyio.sleep(_SETTLES))
        seen["starts"] = [version for name in names for version in versions[name][before[name] :]]
        await anyio.sleep(_SETTLES)
        seen["runs"] = newest()
        if not kind.gated:
            await _activate(client, False)
            await anyio.sleep(2 * _SETTLES)
            seen["stops"] = newest()
            await _activate(client, True)
        if kind.course.ends:
            await until(all_are(kind.ending))
            await anyio.sleep(_SETTLES)
            seen["ended"] = newest()
    return seen


async def _hold(client: ApiClient, policy: str) -> None:
    """With the checks that its Workloads get, but no quota."""
    await client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"spec": {"stopPolicy": policy}})


async def _activate(client: ApiClient, active: bool) -> None:
    for workload in (await client.list(WORKLOAD)).items:
        await client.merge_patch(WORKLOAD, ObjectKey.of(workload), {"spec": {"active": active}})


_OWN = "the manager's set is not shown its copy's status: its own controller writes that, and its pods wait here"
_NOBODY_KNOWS = "no declaration tells what the controller of its kind says of one that waits"
_DIFFERENCES: Final = {
    ("training", "waits"): _NOBODY_KNOWS,
    ("taskrun", "waits"): "a TaskRun cannot wait: the sandbox holds it by an annotation of its own",
    ("workflow", "waits"): "Argo calls a Workflow that waits Running, and here it would be taken for one that runs",
    ("leaderworkerset", "runs"): _OWN,
}
"""By kind and stage, why the manager's job says something else, or nothing."""


def differs(case: Case, stage: str) -> bool:
    """Whether what the manager shows then is known to be something else."""
    return (case.name, stage) in _DIFFERENCES
