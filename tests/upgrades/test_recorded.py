"""Today's daemon goes on with removals in whose middle one of 267d433b was killed: what that has left, as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import orjson
import pytest

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import name_of
from multikueue.sandbox.apiserver import Faults
from multikueue.sandbox.apiserver.faults import Delay, Match
from tests.data.files import LEFT
from tests.examples import shared
from tests.kinds.cases import Case
from tests.kinds.sandbox_ground import sandbox_ground
from tests.upgrades.removals import finish, rows

pytestmark = pytest.mark.looptime


def left(case: Case) -> Mapping[str, list[Json]]:
    """What there was of a kind on each cluster."""
    by_cluster: dict[str, list[Json]] = {}
    for cluster, obj in map(orjson.loads, LEFT.read_bytes().splitlines()):
        if name_of(obj).startswith(f"{case.name}-"):
            by_cluster.setdefault(cluster, []).append(obj)
    return by_cluster


def last(by_cluster: Mapping[str, list[Json]]) -> datetime:
    """When it was recorded, about: the newest of the times in statuses."""
    texts = (
        c["lastTransitionTime"]
        for objects in by_cluster.values()
        for obj in objects
        for c in (obj.get("status") or {}).get("conditions", [])
    )
    return max(filter(None, map(parse_timestamp, texts)))


@pytest.mark.parametrize("case", shared(rows(), lambda case: case.name))
async def test_each_removal_is_finished_and_what_runs_runs_on(case: Case) -> None:
    """After its start the daemon knows Workloads before it knows jobs: nothing is to follow from that."""
    recorded, slow = left(case), Faults()
    slow.add(Delay(2.0), on=Match(verbs=("list",), resource=case.kind.resource.plural))
    async with sandbox_ground(case, left=recorded, start=last(recorded), on_the_way=slow) as ground:
        assert await finish(ground, case) == {}
