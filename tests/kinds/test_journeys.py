"""Every kind goes its ways over the sandbox, with no more than the role that is generated for it on workers.

The role is that of `multikueue rbac worker`, of `multikueue worker add` and of ClusterPermissions (W23 of the notes on
OCM). The definitions are the kinds' own where they are beside the checkout.
"""

from __future__ import annotations

import pytest

from multikueue.sandbox.apiserver import Faults, Refuse
from multikueued.rbac.role_rule import merged, rule
from multikueued.rbac.rules import ON_WORKER, kind_rules_on_worker
from tests.integration.permissions import NotGranted, granted
from tests.kinds.cases import Case, cases, of_each_sort
from tests.kinds.journeys import Journey, finishes
from tests.kinds.sandbox_ground import sandbox_ground
from tests.kinds.ways import WAYS

pytestmark = pytest.mark.looptime

KUEUE_VERSION = rule("apps", ["deployments"], ["get"])
"""Asked for of every worker; where it is not granted, the version is unknown, which is no fault (docs/versions.md)."""
ALIKE = pytest.mark.gate
"""What a kind does as all others do, as their rows say nothing of it: `nox` has it of the kinds that a way names."""
GONE = [
    pytest.param(case, way.journey, id=f"{case.name}-{way.journey.__name__}", marks=() if is_own else ALIKE)
    for way in WAYS
    for case in cases()
    if way.concerns(case)
    for is_own in [way.journey is finishes or way.shows(case)]
]


@pytest.mark.parametrize(("case", "journey"), GONE)
async def test_a_kind_goes_its_way_with_the_role_that_is_granted_on_workers(case: Case, journey: Journey) -> None:
    """On worker1 the namespace and the queue have other names."""
    faults = Faults()
    role = granted(merged([*ON_WORKER["worker"], *kind_rules_on_worker(case.adapter), KUEUE_VERSION]))
    refused = faults.add(Refuse(403), on=NotGranted(user="multikueue", granted=role))
    async with sandbox_ground(case, on_the_way=faults, renamed=["worker1"]) as ground:
        await journey(ground, case)
    assert refused.hits == 0


@pytest.mark.parametrize("renamed", [[], ["worker1", "worker2"]], ids=["the same names", "other names"])
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=() if of_each_sort(case) else ALIKE) for case in cases()]
)
async def test_a_kind_is_copied_where_all_workers_name_alike(case: Case, renamed: list[str]) -> None:
    async with sandbox_ground(case, renamed=renamed) as ground:
        await finishes(ground, case)
