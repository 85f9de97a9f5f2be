"""One tenant's group of many pods leaves the event loop to others: a namespace has a fifth of it for all of its own."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from multikueue.core.model.kinds import POD, WORKLOAD
from multikueue.core.model.labels import GROUP_WORKLOAD_ANNOTATION, POD_GROUP_NAME
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.runtime.loop import loop_time
from multikueue.runtime.reconcilers import workload as reconcilers
from multikueue.runtime.reconcilers.long_looks import MANY, MOST_REST, REST, LongLooks
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from multikueue.testing import until
from tests.runtime.test_pods import GROUP, Bench

pytestmark = pytest.mark.looptime

TAKES = 0.03
"""Seconds of a look at a group, as a test sees it: nothing takes time on its clock."""


def key(name: str, namespace: str = "attacker") -> ObjectKey:
    return ObjectKey(namespace, name)


async def test_all_large_ones_of_a_namespace_rest_for_four_times_as_long_as_one_took() -> None:
    looks = LongLooks()
    for name in ("first", "second"):
        looks.looked(key(name), MANY + 1, loop_time() - TAKES)
    assert [looks.rest(key(name)) for name in ("first", "second")] == pytest.approx([REST * TAKES] * 2)
    assert looks.rest(key("small")) == looks.rest(key("first", "victim")) == 0
    await anyio.sleep(REST * TAKES)
    assert looks.rest(key("first")) == pytest.approx(0)


async def test_a_machine_that_was_busy_with_something_else_costs_a_second() -> None:
    looks = LongLooks()
    looks.looked(key("group"), MANY + 1, loop_time() - 60.0)
    assert looks.rest(key("group")) == MOST_REST


async def test_one_that_has_become_small_or_is_gone_leaves_nothing_behind() -> None:
    looks = LongLooks()
    for jobs in (MANY + 1, MANY):
        looks.looked(key("group"), jobs, loop_time() - 1.0)
    assert looks.rest(key("group")) == 0
    assert not looks._large
    assert not looks._rests_until


@pytest.mark.parametrize(("pods", "few"), [(MANY + 10, True), (3, False)])
async def test_a_large_group_that_changes_all_the_time_is_looked_at_a_fifth_of_it(
    monkeypatch: pytest.MonkeyPatch, pods: int, few: bool
) -> None:
    """With a thousand pods each change was a look of 35 ms, and another tenant's job Ready after 1 to 5 s."""
    looks = list[float]()
    look = SnapshotReader.look

    def noted(reader: SnapshotReader, of: ObjectKey) -> Any:
        looks.append(loop_time())
        return look(reader, of)

    monkeypatch.setattr(SnapshotReader, "look", noted)
    monkeypatch.setattr(reconcilers, "loop_time", lambda: loop_time() - TAKES)
    bench = await Bench.of("worker1", "worker2")
    async with bench.fleet.dispatching(bench.manager()):
        owners = [await bench.make_pod(f"p{number}") for number in range(pods)]
        await bench.make_workload(GROUP, owners, {GROUP_WORKLOAD_ANNOTATION: "true"})
        await anyio.sleep(5)
        looks.clear()
        for number in range(200):
            name = f"p{number % pods}"
            await bench.client().merge_patch(
                POD, ObjectKey("default", name), {"metadata": {"labels": {"x": f"{number}"}}}
            )
            await anyio.sleep(0.02)
        assert len(looks) <= 4 / (REST * TAKES) + 2 if few else len(looks) >= 200

        await bench.client().merge_patch(
            POD, ObjectKey("default", "p0"), {"metadata": {"labels": {POD_GROUP_NAME: GROUP}}}
        )
        await bench.admit(GROUP, "worker1")
        await bench.placed(GROUP, "worker1")

        async def all_there() -> bool:
            return len(await bench.pods("worker1")) == pods

        await until(all_there)
        assert dig(await bench.get(WORKLOAD, GROUP) or {}, "status", "clusterName") == "worker1"
