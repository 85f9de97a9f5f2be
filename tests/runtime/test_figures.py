"""A dispatcher of another package that looks at figures of workers: the guide's, which needs the public API alone."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast
from unittest import mock

import anyio
import attrs
import pytest
from structlog.testing import capture_logs

import multikueue
from multikueue import AllAtOnce, Dispatcher, Facts, Figures, Part, SettingsError, Waiting
from multikueue.core.model.kinds import EVENT, WORKLOAD
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.runtime.controller import KeyQueue, Process
from multikueue.runtime.manager import Manager
from multikueue.runtime.parts import GuardedFigures, PartHost
from multikueue.sandbox.apiserver.faults import Match, Refuse
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from tests.docs.measured import DOCS
from tests.runtime.fleet import LONG, Fleet, now
from tests.runtime.test_scored import SHORT, placed, quota
from tests.runtime.test_telling import Counts

pytestmark = pytest.mark.looptime

QUEUE = ObjectKey("default", LOCAL_QUEUE_NAME)
GUIDE = (DOCS / "guides" / "dispatcher.md").read_text()
(CODE,) = re.findall(r"## Look at figures.*?^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


def most_free() -> Dispatcher:
    """As its package would bring it."""
    shown: dict[str, Any] = {}
    exec(CODE, shown)
    made: Dispatcher = shown["MostFree"]()
    return made


@asynccontextmanager
async def running(fleet: Fleet, jobs: Any = LONG, **hooks: Any) -> AsyncIterator[Manager]:
    """Workers of 1 CPU, which is two jobs each, and a manager that has room for all of them."""
    await fleet.connect(cpu=1, on_manager=100)
    manager = attrs.evolve(fleet.build(), dispatcher=most_free(), **hooks)
    async with fleet.kueues(jobs), fleet.running(manager):
        await anyio.sleep(5)
        yield manager


def test_it_imports_nothing_of_multikueue_but_the_public_api() -> None:
    imports = [node for node in ast.walk(ast.parse(CODE)) if isinstance(node, ast.ImportFrom)]
    of_ours = {
        statement.module: {name.name for name in statement.names}
        for statement in imports
        if "multikueue" in str(statement.module)
    }
    assert of_ours.keys() == {"multikueue"}
    assert of_ours["multikueue"] <= set(multikueue.__all__)


async def test_a_job_goes_where_most_is_free() -> None:
    fleet = Fleet.of("w1", "w2")
    async with running(fleet):
        await quota(fleet, "w2", "3")
        await anyio.sleep(5)
        for number in range(5):
            await fleet.submit(f"j{number}")
            await anyio.sleep(5)
        where = await placed(fleet)
    assert sorted(where.values()) == ["w1", "w2", "w2", "w2", "w2"]
    assert where["j0"] == "w2"
    assert sum(fleet.requests(name, "create", WORKLOAD) for name in fleet.workers) == 5  # nowhere in vain


async def test_what_has_room_nowhere_is_held_here_until_a_worker_has_more() -> None:
    """Nothing of the Workload changes then, nor of a copy: the dispatcher's part has it planned."""
    fleet, counts = Fleet.of("w1", "w2"), Counts()
    async with running(fleet, hook=counts):
        for number in range(5):
            await fleet.submit(f"j{number}")
            await anyio.sleep(5)
        assert sorted((await placed(fleet)).values()) == ["-", "w1", "w1", "w2", "w2"]
        assert {("rejected: NoRoom", "w1"), ("rejected: NoRoom", "w2")} <= {*counts.noted}
        await quota(fleet, "w1", "2")
        await anyio.sleep(5)
        assert sorted((await placed(fleet)).values()) == ["w1", "w1", "w1", "w2", "w2"]
    assert sum(fleet.requests(name, "create", WORKLOAD) for name in fleet.workers) == 5


async def test_it_takes_the_room_of_a_job_that_has_ended() -> None:
    fleet = Fleet.of("w1")
    async with running(fleet, SHORT):
        for number in range(3):
            await fleet.submit(f"j{number}")
            await anyio.sleep(5)
        assert sorted((await placed(fleet)).values()) == ["-", "w1", "w1"]
        await anyio.sleep(90)
        assert "-" not in (await placed(fleet)).values()


async def test_of_a_worker_that_does_not_show_its_queues_nothing_is_known() -> None:
    fleet = Fleet.of("w1", "w2")
    fleet.workers["w1"].faults.add(Refuse(403), on=Match(resource="clusterqueues", user="multikueue"))
    async with running(fleet) as manager:
        for number in range(3):
            await fleet.submit(f"j{number}")
            await anyio.sleep(5)
        assert sorted((await placed(fleet)).values()) == ["-", "w2", "w2"]
        host = PartHost(manager.cluster, manager.workers, KeyQueue(), Process(now, lambda: 0.0, "test"))
        there = {name: host.cluster_queue(ClusterName(name), QUEUE) for name in ("w1", "w2", "w3")}
        assert [name for name, queue in there.items() if queue is not None] == ["w2"]
        assert host.cluster_queue(ClusterName("w2"), ObjectKey("default", "another")) is None


async def test_figures_that_raise_concern_one_workload_which_is_tried_again() -> None:
    fleet = Fleet.of("w1")
    async with running(fleet) as manager:
        known = manager._dispatching.figures
        assert known is not None
        facts = known.facts

        def odd(waiting: Waiting) -> Facts:
            if "odd" in waiting.jobs:
                raise KeyError("spec")
            return facts(waiting)

        with mock.patch.object(type(known), "facts", staticmethod(odd)), capture_logs() as logged:
            for name in ("odd", "fine"):
                await fleet.submit(name)
            await anyio.sleep(10)
            assert await placed(fleet) == {"odd": "-", "fine": "w1"}
        assert any(line["log_level"] == "error" for line in logged)
        notes = [event["note"] for event in (await fleet.admin.list(EVENT)).items if event["type"] == "Warning"]
        assert any("KeyError" in note for note in notes)
        await anyio.sleep(60)
        assert await placed(fleet) == {"odd": "w1", "fine": "w1"}


async def test_another_part_may_follow_the_queues_as_well() -> None:
    fleet, changed = Fleet.of("w1", "w2"), list[str]()

    def part(host: PartHost) -> Part:
        host.follow_queues(changed.append)
        return Part()

    async with running(fleet, parts=[part]):
        await fleet.submit()
        await anyio.sleep(5)
        assert "-" not in (await placed(fleet)).values()
    assert {*changed} == {"w1", "w2"}


@attrs.frozen
class Odd(AllAtOnce):
    """A dispatcher whose part cannot be used."""

    gives: object

    def part(self, host: PartHost) -> Part:
        """See `BringsPart.part`."""
        if isinstance(self.gives, Exception):
            raise self.gives
        part: Part = cast(Part, self.gives)
        return part


@pytest.mark.parametrize(
    ("gives", "why"),
    [(KeyError("prices"), "raises KeyError: 'prices'"), ([], "gives list, which is no multikueue.Part")],
)
async def test_a_part_that_cannot_be_used_is_one_clear_message(gives: object, why: str) -> None:
    with pytest.raises(SettingsError) as caught:
        attrs.evolve(Fleet.of("w1").build(), dispatcher=Odd(gives))
    expected = f"the dispatcher {__name__}.Odd cannot be used: its part {why}; correct it, or choose another dispatcher"
    assert str(caught.value) == expected


async def test_what_a_part_has_running_holds_up_no_workload() -> None:
    """What fails there ended the manager, and a scrape of the metrics."""
    begun = list[float]()

    async def fails() -> None:
        begun.append(anyio.current_time())
        raise ZeroDivisionError

    def many() -> Any:
        return "many"

    fleet = Fleet.of("w1")
    await fleet.connect()
    manager = attrs.evolve(fleet.build(), dispatcher=Odd(Part(services=(fails,), starving=many)))
    with capture_logs() as logged:
        async with fleet.kueues(), fleet.running(manager):
            await fleet.submit()
            await anyio.sleep(70)
            assert "-" not in (await placed(fleet)).values()
            assert (manager.starving(), manager.starving()) == (0, 0)
    assert begun[1] - begun[0] == 60
    errors = [line["event"] for line in logged if line["log_level"] == "error"]
    assert errors == ["unexpected exception", "unexpected exception", "starving fails, told once"]


@pytest.mark.parametrize("gives", [None, {"w1": 4.0}])
async def test_facts_that_are_none_are_told_by_what_gives_them(gives: object) -> None:
    class Forgetful:
        def facts(self, waiting: Waiting) -> Any:
            return gives

    with pytest.raises(TypeError, match=r"Forgetful\.facts gives (NoneType|dict), which is no multikueue\.Facts"):
        GuardedFigures(cast("Figures", Forgetful())).facts(cast("Waiting", None))


async def test_what_fails_as_figures_are_told_something_holds_up_no_workload() -> None:
    """Nothing of it was done any more, its eviction included."""
    fleet = Fleet.of("w1")
    async with running(fleet) as manager:
        broken = mock.patch.object(type(manager._dispatching.figures), "planned", side_effect=KeyError("spec"))
        with broken, capture_logs() as logged:
            await fleet.submit()
            await anyio.sleep(5)
            assert "-" not in (await placed(fleet)).values()
    assert {line["event"] for line in logged if line["log_level"] == "error"} == {"figures fail as they are told"}


async def test_figures_that_fail_hold_up_no_eviction() -> None:
    """What is evicted has quota still, and waits for no worker: it would have run on, and kept its quota."""
    fleet = Fleet.of("w1")
    async with running(fleet) as manager:
        await fleet.submit()
        await anyio.sleep(5)
        assert "-" not in (await placed(fleet)).values()
        broken = mock.patch.object(type(manager._dispatching.figures), "facts", side_effect=KeyError("spec"))
        with broken, capture_logs():
            await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
            await anyio.sleep(60)
            assert await fleet.running_on() == {}
