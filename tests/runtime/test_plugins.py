"""Job kinds and dispatchers that other packages bring."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import EntryPoint

import anyio
import attrs
import pytest

from multikueue.adapters import BUILTIN, AdapterRegistry, JobKind
from multikueue.core.dispatchers.dispatcher import ALL_AT_ONCE, AllAtOnce, Candidates, Nomination
from multikueue.core.dispatchers.incremental import INCREMENTAL
from multikueue.core.model.kinds import EVENT, WORKLOAD
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.workloads import cluster_name, nominated
from multikueue.errors import AdapterError, SettingsError
from multikueue.runtime.plugins import (
    DISPATCHER_GROUP,
    KIND_GROUP,
    installed_dispatchers,
    installed_kinds,
    load_dispatcher,
)
from tests.runtime.fleet import Fleet

WIDGET = JobKind(resource=Resource(GVK("example.com", "v1", "Widget"), "widgets"))
GADGET = JobKind(resource=Resource(GVK("example.com", "v1", "Gadget"), "gadgets"))
SEVERAL = (WIDGET, GADGET)
NUMBER = 7
MIXED = (WIDGET, "gadgets")


def made() -> Iterator[JobKind]:
    yield from SEVERAL


def broken() -> None:
    raise RuntimeError("no licence")


def point(attribute: str, name: str = "widgets") -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{attribute}", KIND_GROUP)


@pytest.mark.parametrize(
    ("attribute", "rows"), [("WIDGET", [WIDGET]), ("SEVERAL", [WIDGET, GADGET]), ("made", [WIDGET, GADGET])]
)
def test_an_entry_point_is_a_row_several_or_what_makes_them(attribute: str, rows: list[JobKind]) -> None:
    kinds = installed_kinds([point(attribute)])
    assert kinds == rows
    assert {kind.source for kind in kinds} == {'the entry point "widgets"'}


def test_none_is_installed_with_the_library_itself() -> None:
    assert installed_kinds() == []


@pytest.mark.parametrize(
    ("attribute", "why"),
    [
        ("NOTHING", f"{__name__}:NOTHING cannot be loaded: AttributeError: "),
        ("broken", "cannot be loaded: RuntimeError: no licence; correct or uninstall it"),
        ("NUMBER", "cannot be loaded: TypeError: 'int' object is not iterable"),
        ("MIXED", "gives 'gadgets', which is not a multikueue.adapters.JobKind"),
    ],
)
def test_one_that_cannot_be_used_is_named(attribute: str, why: str) -> None:
    with pytest.raises(AdapterError) as refused:
        installed_kinds([point(attribute)])
    assert str(refused.value).startswith('the entry point "widgets": ')
    assert why in str(refused.value)


def test_two_rows_for_one_kind_are_told_with_both_packages() -> None:
    kinds = installed_kinds([point("WIDGET", "acme"), point("SEVERAL", "zenith")])
    with pytest.raises(
        AdapterError, match=r'the entry point "zenith": two adapters .*, this one and the entry point "acme": leave'
    ):
        AdapterRegistry([*BUILTIN, *kinds])


@attrs.frozen
class Greedy(AllAtOnce):
    """A dispatcher of somebody's own: it need not inherit, but may."""


class Hasty:
    async def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        raise NotImplementedError


class Older:
    def nominate(self, workload: Json, names: list[str]) -> list[str]:
        raise NotImplementedError


GREEDY = Greedy()


def greedy() -> Greedy:
    return Greedy()


def classes() -> type[Greedy]:
    return Greedy


def policy(attribute: str, name: str = "acme.example.com/greedy") -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{attribute}", DISPATCHER_GROUP)


@pytest.mark.parametrize("attribute", ["GREEDY", "Greedy", "greedy"])
def test_an_entry_point_is_a_dispatcher_or_what_makes_one(attribute: str) -> None:
    assert load_dispatcher(policy(attribute)) == Greedy()


def test_dispatchers_are_found_by_name_without_being_loaded() -> None:
    points = [policy("NOTHING", "zenith"), policy("GREEDY")]
    assert list(installed_dispatchers(points)) == ["acme.example.com/greedy", "zenith"]
    assert installed_dispatchers() == {}


@pytest.mark.parametrize(
    ("attribute", "why"),
    [
        ("NOTHING", f"{__name__}:NOTHING cannot be loaded: AttributeError: "),
        ("broken", "cannot be loaded: RuntimeError: no licence; correct or uninstall it"),
        ("NUMBER", f"{__name__}:NUMBER gives 7, which has no method nominate: make it a multikueue.Dispatcher"),
        ("Hasty", "whose nominate is async: make it"),
        ("Older", "whose nominate does not take a workload, the candidates and the time: make it"),
        ("classes", "whose nominate does not take a workload, the candidates and the time: make it"),
    ],
)
def test_what_is_no_dispatcher_is_named(attribute: str, why: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_dispatcher(policy(attribute))
    assert str(refused.value).startswith('the entry point "acme.example.com/greedy": ')
    assert why in str(refused.value)


@pytest.mark.parametrize("name", [ALL_AT_ONCE, INCREMENTAL])
def test_the_name_of_a_built_in_dispatcher_cannot_be_taken(name: str) -> None:
    with pytest.raises(SettingsError) as refused:
        installed_dispatchers([policy("GREEDY", name)])
    assert str(refused.value) == (
        f'the entry point "{name}": a dispatcher of that name is built in; rename or uninstall it'
    )


def test_two_dispatchers_of_one_name_are_refused() -> None:
    with pytest.raises(SettingsError, match="brings a dispatcher of that name, too; uninstall one"):
        installed_dispatchers([policy("GREEDY"), policy("greedy")])


@attrs.frozen
class FailsForOne(AllAtOnce):
    """Cannot divide the job called `odd`."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        if owner_name(workload) == "odd":
            raise ZeroDivisionError
        return super().nominate(workload, candidates, now)


def owner_name(workload: Json) -> str:
    return str(workload["metadata"]["ownerReferences"][0]["name"])


@pytest.mark.looptime
async def test_a_dispatcher_that_raises_for_one_workload_hurts_no_other() -> None:
    """That one is told by a warning; it is asked again every minute, and nothing is nominated for it."""
    fleet = await Fleet.connected("worker1", "worker2")
    manager = attrs.evolve(fleet.build(), dispatcher=FailsForOne())
    async with fleet.kueues(), fleet.running(manager):
        for name in ("odd", "even", "plain"):
            await fleet.submit(name)
        await anyio.sleep(300)
        by_job = {owner_name(workload): workload for workload in (await fleet.admin.list(WORKLOAD)).items}
        events = (await fleet.admin.list(EVENT)).items
    assert {name: bool(cluster_name(workload)) for name, workload in by_job.items()} == {
        "odd": False,
        "even": True,
        "plain": True,
    }
    assert nominated(by_job["odd"]) == ()
    notes = [event["note"] for event in events if event["regarding"]["name"] == by_job["odd"]["metadata"]["name"]]
    start, end = (
        f"The dispatcher {__name__}.FailsForOne raises ZeroDivisionError in test_plugins.py, line ",
        "nominated",
    )
    assert any(note.startswith(start) and note.endswith(end) for note in notes)
