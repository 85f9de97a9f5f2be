"""A pod group is taken away while it runs: whatever its pods say on their way out, nothing stays, and it runs again.

Its pods are held by Kueue's finalizer on the worker, which lets go of them only once it sees that their Workload is
deleted (T9 and T2 of the notes on how runs end; found E6).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from multikueue.sandbox.kinds.pods import POD_GROUP
from tests.kinds import ends
from tests.kinds.cases import Case, cases
from tests.kinds.ends import Ending
from tests.kinds.ground import Ground
from tests.kinds.sandbox_ground import sandbox_ground

pytestmark = pytest.mark.looptime

Way = Callable[[Ground, Case, Ending], Awaitable[None]]
(GROUP,) = [case for case in cases() if case.kind is POD_GROUP]
ENDINGS = {
    "exits with 0": Ending("3s", (False, False)),
    "one fails": Ending("3s", (True, False)),
    "all fail": Ending("3s", (True, True)),
    "is killed": Ending("1h", (True, True)),
}
WAYS = (
    ends.evicted_by_the_manager,
    ends.evicted_by_the_worker,
    ends.deactivated,
    ends.moved,
    ends.ended_by_its_workload,
)


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(ending, id=name, marks=() if name == "exits with 0" else pytest.mark.gate)
        for name, ending in ENDINGS.items()
    ],
)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_group_leaves_nothing_however_its_pods_end(way: Way, ending: Ending) -> None:
    async with sandbox_ground(GROUP) as ground:
        await way(ground, GROUP, ending)


async def test_a_pod_that_was_deleted_on_its_worker_is_replaced_from_the_manager() -> None:
    """It hung beside a real Kueue v0.19.2, which keeps the pod: ours needed its name."""
    async with sandbox_ground(GROUP) as ground:
        await ends.member_deleted_there(ground, GROUP)
