"""What the documentation says of the tests is so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
ITEMS = {*range(5, 10), *range(14, 24), *range(26, 44), 45}
"""Weaknesses of Kueue's controller that ours must not have."""
FILE = re.compile(r"`((?:\w+/)*test_\w+\.py)`")
FOR_DEVELOPERS = {"architecture.md", "glossary.md", "testing.md"}
ID = re.compile(r"`((?:\w+/)*\w+\.py::[\w:]+)`")


def named_in(document: str) -> list[str]:
    """The tests a document names."""
    return ID.findall((ROOT / "docs" / document).read_text())


def members_of(module: Path) -> Iterator[tuple[str, set[str]]]:
    """The tests of a module, each with its marks."""
    for node in ast.parse(module.read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        for member in members:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and member.name.startswith("test_"):
                name = f"{node.name}::{member.name}" if isinstance(node, ast.ClassDef) else member.name
                yield name, {ast.unparse(mark) for mark in member.decorator_list}
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, set()  # a state machine's TestCase


def marks_of(test: str) -> set[str] | None:
    """The marks of a test; None if there is no such test."""
    path, _, name = test.partition("::")
    module = TESTS / path
    return dict(members_of(module)).get(name) if module.is_file() else None


@pytest.mark.parametrize("document", ["testing.md", "design/defects.md", "design/held.md"])
def test_tests_that_are_named_exist(document: str) -> None:
    """Whoever renames a test has to say so."""
    named = named_in(document)
    assert len(named) > 20
    assert [test for test in named if marks_of(test) is None] == []


def test_files_of_tests_that_are_named_exist() -> None:
    """Where a whole file holds a claim."""
    named = FILE.findall((ROOT / "docs/design/held.md").read_text())
    assert len(named) > 20
    assert [file for file in named if not (TESTS / file).is_file()] == []


def test_user_pages_name_no_test() -> None:
    """What they claim is beside its test in `design/held.md`, which leads to each page that it speaks of."""
    docs = ROOT / "docs"
    pages = [page for page in sorted(docs.glob("*.md")) if page.name not in FOR_DEVELOPERS]
    pages += [*docs.glob("guides/*.md"), *docs.glob("zh/*.md"), ROOT / "README.md"]
    assert [page.name for page in pages if re.search(r"\btest_\w+\.py", page.read_text())] == []


def test_each_weakness_has_its_answer_and_a_test() -> None:
    """Every item that issue 5 names, once."""
    rows = re.findall(
        r"^\| (\d+) \| (.+?) \| (.+) \|$", (ROOT / "docs/design/defects.md").read_text(), flags=re.MULTILINE
    )
    numbers = [int(number) for number, _, _ in rows]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) >= ITEMS
    assert all(ID.search(tests) for _, _, tests in rows)


def test_each_scenario_is_in_the_table_and_runs_where_it_says() -> None:
    """At least 25 of them on real API servers."""
    in_table = dict(
        re.findall(r"^\| .*? \| `(.+?)` \| (yes|) ?\|$", (ROOT / "docs/testing.md").read_text(), re.MULTILINE)
    )
    real = {test for test, where in in_table.items() if where}
    scenarios = {
        f"scenarios/{module.name}::{name}": marks
        for module in sorted((TESTS / "scenarios").glob("test_*.py"))
        for name, marks in members_of(module)
        if name.startswith("test_")
    }
    decisive = {test for test, marks in scenarios.items() if "pytest.mark.decisive" in marks}
    assert set(scenarios) <= set(in_table)
    assert real == decisive | {test for test in in_table if test.startswith("integration/")}
    assert len(decisive) >= 25
