"""The API reference has all that a program may import."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import multikueue
import multikueue.adapters
import multikueue.kube
import multikueue.testing
from tests.docs.blocks import ROOT, blocks

PAGES = [path.read_text() for path in sorted((ROOT / "docs" / "reference").glob("*.md"))]
PUBLIC = (multikueue, multikueue.adapters, multikueue.kube, multikueue.testing)
SHOWING = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if blocks(page, "python") and page.parent.name != "design"  # whose excerpts are of our own code
]
DIRECTIVE = re.compile(r"^\.\. auto(\w+):: (\S+)$", re.MULTILINE)


def documented() -> Iterator[tuple[str, Any]]:
    """Each name that a directive documents, with what it stands for."""
    for kind, path in (directive for page in PAGES for directive in DIRECTIVE.findall(page)):
        if kind == "module":
            module = importlib.import_module(path)
            made = {name for name, value in vars(module).items() if getattr(value, "__module__", path) == path}
            for name in getattr(module, "__all__", {*made, *module.__annotations__}):
                yield name, getattr(module, name)
        else:
            parent, _, name = path.rpartition(".")
            yield name, getattr(importlib.import_module(parent), name)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_exported_name_is_in_it(module: ModuleType) -> None:
    assert set(module.__all__) - {name for name, _ in documented()} == set()


def test_every_class_and_function_in_it_has_a_docstring() -> None:
    described = [(name, value) for name, value in documented() if inspect.isclass(value) or inspect.isroutine(value)]
    assert [name for name, value in described if not value.__doc__] == []


def imported(page: Path) -> Iterator[tuple[str, str]]:
    """What the code of a page imports of us: module and name; the name is empty for a module as a whole."""
    for text in blocks(page, "python"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                yield from ((str(node.module), alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)


@pytest.mark.parametrize("page", SHOWING, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_imports_what_is_not_in_it(page: Path) -> None:
    """What a page shows goes into programs, and what is internal may change with any release."""
    public = {(module.__name__, name) for module in PUBLIC for name in module.__all__}
    ours = {(module, name) for module, name in imported(page) if module.startswith("multikueue")}
    assert ours - public == set()
