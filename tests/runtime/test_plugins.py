"""Rows that other packages bring."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from multikueue.adapters import BUILTIN, AdapterRegistry, JobKind
from multikueue.core.model.names import GVK, Resource
from multikueue.errors import AdapterError
from multikueue.runtime.plugins import GROUP, installed_kinds

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
    return EntryPoint(name, f"{__name__}:{attribute}", GROUP)


@pytest.mark.parametrize(
    ("attribute", "rows"), [("WIDGET", [WIDGET]), ("SEVERAL", [WIDGET, GADGET]), ("made", [WIDGET, GADGET])]
)
def test_an_entry_point_is_a_row_several_or_what_makes_them(attribute: str, rows: list[JobKind]) -> None:
    found = installed_kinds([point(attribute)])
    assert found == rows
    assert {kind.source for kind in found} == {'the entry point "widgets"'}


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
    with pytest.raises(AdapterError, match='the entry point "acme" and the entry point "zenith": leave one out'):
        AdapterRegistry([*BUILTIN, *kinds])
