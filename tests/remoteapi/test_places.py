"""The places of the jobs that wait in a queue, and of one of them."""

from __future__ import annotations

from typing import Any, cast

import attrs

from multikueue.core.model.names import Json
from multikueued.reading.queue_places import read_waiting
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.remoteapi.sums import places_in
from multikueued.reports.objects import ManagerObjects
from tests.commands.test_report_runner import NOBODY
from tests.reports.objects import NOW, fleet
from tests.reports.test_places import ended, waits

QUEUE = "cluster-queue"


@attrs.frozen
class Seen:
    """What a view shows of these objects."""

    objects: ManagerObjects
    namespace: str = ""

    @property
    def context(self) -> ManagerObjects:
        return attrs.evolve(self.objects, workloads=())

    def now(self) -> Any:
        return NOW


def seen(*listed: Json) -> ManagerView:
    return cast(ManagerView, Seen(fleet(*listed)))


async def placed(view: ManagerView, namespace: str = "", queue: str = QUEUE) -> list[tuple[str, int]]:
    return [(place["name"], place["place"]) for place in await places_in(view, cast(Any, NOBODY), namespace, queue)]


async def test_those_that_wait_come_by_place_and_those_that_do_not_have_none() -> None:
    first, second = waits("first", minutes=1, priority=5), waits("second", minutes=9)
    view = seen(second, first, ended(1))

    assert await placed(view) == [("job.first", 1), ("job.second", 2)]
    assert await placed(view, "default") == [("job.first", 1), ("job.second", 2)]
    assert await placed(view, "others") == []
    assert await placed(view, queue="none") == []
    known = await read_waiting(cast(Any, NOBODY), [second, ended(1)], view.objects, view.namespace, NOW)
    assert [wait.place for wait in known.values()] == [2, None]
