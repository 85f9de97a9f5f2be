"""A real manager with definitions of older versions: it drops `managedBy`, and no job of such a kind goes anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from tests.adapters.test_managed_by_support import without_field
from tests.controlplane.cluster import Cluster
from tests.controlplane.crds import establish
from tests.controlplane.polling import poll_until
from tests.integration.planes import Planes
from tests.integration.test_kinds import real_ground
from tests.kinds.cases import Case, cases, definitions
from tests.kinds.ground import NAMESPACE, TEMPLATE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

_UNHELD = ("job", "taskrun")
"""Without a definition, and without a field that suspends it."""


def _older(case: Case) -> Json:
    (crd,) = definitions([case])
    assert case.adapter.delegation.path is not None
    return without_field(crd, case.adapter.delegation.path)


async def _drops(manager: Cluster, case: Case) -> bool:
    """Whether the server has no `managedBy` for a kind: it takes a definition over a moment after it was written."""
    resource, path = case.adapter.resource, case.adapter.delegation.path or ()
    url = f"/apis/{resource.gvk.api_version}/namespaces/{NAMESPACE}/{resource.plural}"
    sent = case.kind.example("asked", TEMPLATE, queue="none")
    assert dig(sent, *path) is not None
    return not dig(await manager.admin.call("POST", url, sent, query={"dryRun": "All"}), *path)


@asynccontextmanager
async def _older_definitions(manager: Cluster, rows: list[Case]) -> AsyncIterator[list[Json]]:
    """The definitions of older versions, in force while inside.

    Nobody may watch these kinds when they are written: a watch that the former definition serves goes on for an instant
    and shows a new job with that definition's defaults (a TrainJob has one for `managedBy`).
    """
    older = [_older(case) for case in rows]

    async def written(crds: list[Json], *, drops: bool) -> None:
        await establish(manager.admin, crds)
        for case in rows:

            async def in_force(case: Case = case) -> bool:
                return await _drops(manager, case) is drops

            await poll_until(in_force, seconds=60.0, otherwise=case.name)

    await establish(manager.admin, definitions(rows))
    try:
        await written(older, drops=True)
        yield older
    finally:
        await written(definitions(rows), drops=False)


async def test_jobs_whose_managed_by_the_manager_drops_are_refused_with_the_version_that_has_it(planes: Planes) -> None:
    """Each kind says for itself what it lacks; nothing of it gets to a worker."""
    rows = [case for case in cases() if case.adapter.delegation.heeding is not None and case.name not in _UNHELD]
    async with (
        _older_definitions(planes.manager, rows) as older,
        real_ground(planes, rows, of_manager=older) as ground,
    ):
        for case in rows:
            await ground.submit(case.kind, f"{case.name}-old")
        for case in rows:
            heeding = case.adapter.delegation.heeding
            assert heeding is not None
            await ground.told(case.kind, f"{case.name}-old", f'not "" ({heeding.of_missing})')
        sent = [name for worker in ground.workers.values() for kind, name in worker.last if kind == WORKLOAD]
        assert sent == []
        assert all(ground.ran_on(case.kind, f"{case.name}-old") == [] for case in rows)
