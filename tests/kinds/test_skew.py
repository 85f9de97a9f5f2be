"""A manager and workers whose versions of a kind are of different age: the API server keeps what it knows.

What is refused, what is passed over, and what the user is told: the table in `docs/kinds.md` names these tests.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, dig
from multikueue.protocols import Subresource
from multikueue.sandbox.apiserver import DirectClient, Registry
from tests.kinds import journeys, sandbox_ground
from tests.kinds.cases import Case, cases
from tests.kinds.ground import Ground

pytestmark = pytest.mark.looptime

Change = Callable[[Json], None]
SAYING: Final = [
    pytest.param(case, id=case.name, marks=() if case.name == "jobset" else pytest.mark.gate)
    for case in cases()
    if case.adapter.delegation.heeding is not None and case.name not in ("job", "taskrun")
]
"""The kinds with a definition of their own whose jobs say who runs them. A TaskRun cannot be suspended: the manager's
own controller starts one without the field at once, whatever Kueue and we do."""


def _case(name: str) -> Case:
    return next(case for case in cases() if case.name == name)


def _without(*path: str) -> Change:
    """What makes a definition one of an older version: all that is below a field is not known."""

    def change(version: Json) -> None:
        schema: Any = dig(version, "schema", "openAPIV3Schema")
        for step in path[:-1]:
            schema = schema["properties"][step]
        del schema["properties"][path[-1]]

    return change


def _aged(monkeypatch: pytest.MonkeyPatch, older: str, case: Case, change: Change) -> None:
    """Have the clusters whose names begin so serve a kind in an older version."""
    registry, name = sandbox_ground.new_registry, case.adapter.resource.qualified

    def aged(cluster: str, crds: list[Json], clock: Callable[[], datetime]) -> Registry:
        changed: list[Json] = clone(crds) if cluster.startswith(older) else crds
        for crd in changed:
            if cluster.startswith(older) and crd["metadata"]["name"] == name:
                for version in crd["spec"]["versions"]:
                    change(version)
        return registry(cluster, changed, clock)

    monkeypatch.setattr(sandbox_ground, "new_registry", aged)


def _dispatched(ground: Ground) -> list[str]:
    """The names of all Workloads that a worker ever had."""
    return [name for worker in ground.workers.values() for kind, name in worker.last if kind == WORKLOAD]


@pytest.mark.parametrize("case", SAYING)
async def test_a_manager_whose_version_lacks_managed_by_refuses_its_jobs(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server drops the field that the user has set: the manager's own controller would run the job."""
    path, heeding = case.adapter.delegation.path, case.adapter.delegation.heeding
    assert path is not None
    assert heeding is not None
    _aged(monkeypatch, "manager", case, _without(*path))
    async with sandbox_ground.sandbox_ground(case) as ground:
        await ground.submit(case.kind, "s")
        await ground.until_told(case.kind, "s", f"{'.'.join(path)} to be")
        await ground.until_told(case.kind, "s", f"({heeding.of_missing})")
        await anyio.sleep(120)
        assert _dispatched(ground) == []


@pytest.mark.parametrize("case", [case for case in SAYING if case.id != "pipelinerun"])
async def test_a_manager_whose_controller_ignores_managed_by_gets_no_job_twice(case: Case) -> None:
    """The API has the field. A controller that acts on the job writes its status, before Kueue lets anything run.

    Of declared kinds nobody knows who else writes the status, and what for.
    """
    heeding = case.adapter.delegation.heeding
    assert heeding is not None
    ignoring = attrs.evolve(case.kind, managed_by=None, managed_by_label="")
    async with sandbox_ground.sandbox_ground(case, at_home=ignoring) as ground:
        await ground.submit(case.kind, "s")
        await ground.until_told(case.kind, "s", '"manager" has written its status')
        await ground.until_told(case.kind, "s", heeding.advice)
        await anyio.sleep(120)
        assert ground.ran_on(case.kind, "s") == []
        assert ground.copies(case.kind, "s") == []


@pytest.mark.parametrize("name", ["appwrapper", "jobset", "mpijob", "rayjob"])
async def test_a_worker_whose_version_lacks_managed_by_runs_jobs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy does not say who runs it: its worker's own controller does."""
    case = _case(name)
    assert case.adapter.delegation.path is not None
    _aged(monkeypatch, "worker", case, _without(*case.adapter.delegation.path))
    async with sandbox_ground.sandbox_ground(case) as ground:
        await journeys.finishes(ground, case)


async def test_what_a_workers_version_drops_of_a_job_is_told_and_the_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer manager fills in defaults for fields that an older worker does not have: to refuse them all would stop
    every upgrade that begins with the manager."""
    case = _case("jobset")
    _aged(monkeypatch, "worker", case, _without("spec", "failurePolicy"))
    async with sandbox_ground.sandbox_ground(case) as ground:
        await ground.submit(case.kind, "s", spec={"failurePolicy": {"maxRestarts": 3}})
        await ground.ended(case.kind, "s", "Succeeded")
        (worker,) = ground.ran_on(case.kind, "s")
        words = f'worker cluster "{worker}" has left .spec.failurePolicy out of JobSet "s", which runs there without'
        await ground.until_told(case.kind, "s", words)


async def test_a_worker_whose_version_refuses_a_value_is_told_of_and_another_runs_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An enum had fewer values, a number was bounded: the API server answers 422."""

    def bounded(version: Json) -> None:
        properties = dig(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
        properties["failurePolicy"]["properties"]["maxRestarts"]["maximum"] = 10

    case = _case("jobset")
    _aged(monkeypatch, "worker1", case, bounded)
    async with sandbox_ground.sandbox_ground(case) as ground:
        await ground.queue_on("s", "worker1")
        await ground.submit(case.kind, "s", queue="s", spec={"failurePolicy": {"maxRestarts": 86400}})
        await ground.until_told(case.kind, "s", 'worker cluster "worker1" refuses jobsets.jobset.x-k8s.io "default/s"')
        await ground.open_queue("worker2", "s")
        await ground.ended(case.kind, "s", "Succeeded")
        assert ground.ran_on(case.kind, "s") == ["worker2"]


@pytest.mark.parametrize(
    ("older", "name", "field"),
    [("worker", "rayjob", "failed"), ("manager", "rayjob", "endTime"), ("manager", "mpijob", "completionTime")],
)
async def test_a_status_the_manager_keeps_only_in_part_is_written_once_and_holds_nothing_up(
    older: str, name: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copies stayed for ever, and the same patch was sent each minute: every answer to it was 200."""
    patch, sent, case = DirectClient.merge_patch, [], _case(name)

    async def spied(
        client: DirectClient, resource: Resource, key: ObjectKey, body: Json, *, subresource: Subresource = ""
    ) -> Any:
        sent.append((resource, repr(body)))
        return await patch(client, resource, key, body, subresource=subresource)

    _aged(monkeypatch, older, case, _without("status", field))
    monkeypatch.setattr(DirectClient, "merge_patch", spied)
    async with sandbox_ground.sandbox_ground(case) as ground:
        await ground.submit(case.kind, "s")
        await ground.ended(case.kind, "s", "Succeeded")
        await anyio.sleep(600)
        assert not ground.copies(case.kind, "s")
    of_jobs = [body for resource, body in sent if resource == case.adapter.resource]
    assert len(of_jobs) == len(set(of_jobs)) < 10
