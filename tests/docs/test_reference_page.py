"""The API reference has all that a program may import."""

from __future__ import annotations

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

PAGES = [path.read_text() for path in sorted((Path(__file__).parents[2] / "docs" / "reference").glob("*.md"))]
DIRECTIVE = re.compile(r"^\.\. auto(\w+):: (\S+)$", re.MULTILINE)


def documented() -> Iterator[tuple[str, Any]]:
    """Each name that a directive documents, with what it stands for."""
    for kind, path in (found for page in PAGES for found in DIRECTIVE.findall(page)):
        if kind == "module":
            module = importlib.import_module(path)
            made = {name for name, value in vars(module).items() if getattr(value, "__module__", path) == path}
            for name in getattr(module, "__all__", {*made, *module.__annotations__}):
                yield name, getattr(module, name)
        else:
            parent, _, name = path.rpartition(".")
            yield name, getattr(importlib.import_module(parent), name)


@pytest.mark.parametrize("module", [multikueue, multikueue.adapters, multikueue.kube, multikueue.testing])
def test_every_exported_name_is_in_it(module: ModuleType) -> None:
    assert set(module.__all__) - {name for name, _ in documented()} == set()


def test_every_class_and_function_in_it_has_a_docstring() -> None:
    described = [(name, value) for name, value in documented() if inspect.isclass(value) or inspect.isroutine(value)]
    assert [name for name, value in described if not value.__doc__] == []
