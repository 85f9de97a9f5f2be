"""What the executor asks of a worker is allowed by the role that is generated for the kind: W23 of the notes on OCM.

The role is that of `multikueue rbac worker`, of `multikueue worker add` and of ClusterPermissions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from multikueue.sandbox.apiserver import Faults, Refuse
from multikueued.rbac.making import merged, rule
from multikueued.rbac.rules import kind_rules_on_worker, worker_rules
from tests.integration.permissions import NotGranted, granted
from tests.kinds import journeys
from tests.kinds.cases import Case, cases
from tests.kinds.ground import Ground
from tests.kinds.sandbox_ground import sandbox_ground

pytestmark = pytest.mark.looptime

KUEUE_VERSION = rule("apps", ["deployments"], ["get"])
"""Asked for of every worker; where it is not granted, the version is unknown, which is no fault (docs/versions.md)."""


def _journeys(case: Case) -> Iterator[Callable[[Ground, Case], Awaitable[None]]]:
    """The ways of a kind in which requests of all sorts are sent."""
    yield journeys.finishes
    yield journeys.runs_again_after_eviction
    if case.adapter.resource == case.kind.resource:
        yield journeys.leaves_foreign_jobs_alone
    if case.adapter.sync.forwarded:
        yield journeys.follows
    if case.adapter.sync.resized is not None:
        yield journeys.scales
    if case.name == "leaderworkerset":
        yield journeys.shrinks


WAYS: list[Any] = [
    pytest.param(case, way, id=f"{case.name}-{way.__name__}") for case in cases() for way in _journeys(case)
]


@pytest.mark.parametrize(("case", "way"), WAYS)
async def test_the_role_on_workers_is_enough(case: Case, way: Callable[[Ground, Case], Awaitable[None]]) -> None:
    faults = Faults()
    role = granted(merged([*worker_rules(), *kind_rules_on_worker(case.adapter), KUEUE_VERSION]))
    refused = faults.add(Refuse(403), on=NotGranted(user="multikueue", granted=role))
    async with sandbox_ground(case, on_the_way=faults) as ground:
        await way(ground, case)
    assert refused.hits == 0
