"""Each way out of the table has a name, so the log says which applied: read off the source, whatever a test reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import multikueue

DECISIONS: Final = Path(multikueue.__file__).parent / "core/workload"
COMPLETING: Final = {"also", "within", "show_end", "_stop_first"} | {
    "with_words",
    "with_places_written",
    "with_dependencies",
    "with_last_status",
}
"""What makes a plan of one that was decided before: that has its name."""
OF_A_WAY: Final = {"guarded_plan", "open_next"}
"""What is decided in any case as `plan` does; and what is a part of the way `offer`."""


def anonymous(source: str) -> Iterator[str]:
    """The functions that decide in several ways, and do not say which."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or function.returns is None:
            continue
        if ast.unparse(function.returns) not in ("Plan", "Plan | None") or function.name in COMPLETING | OF_A_WAY:
            continue
        ways = [
            way for statement in ast.walk(function) if isinstance(statement, ast.Return) for way in _ways(statement)
        ]
        if len(ways) > 1 and not all(map(_is_named, ways)):
            yield function.name


def _ways(statement: ast.Return) -> Iterator[ast.expr]:
    """What a statement returns that is a plan: either branch of a choice."""
    choices = [statement.value] if statement.value is not None else []
    for choice in choices:
        if isinstance(choice, ast.IfExp):
            choices += (choice.body, choice.orelse)
        elif not (isinstance(choice, ast.Constant) and choice.value is None):
            yield choice


def _is_named(way: ast.expr) -> bool:
    """Whether a name is given, or what gives it is called."""
    calls = [node for node in ast.walk(way) if isinstance(node, ast.Call)]
    called = {ast.unparse(call.func).rpartition(".")[2] for call in calls}
    return any(keyword.arg == "row" for call in calls for keyword in call.keywords) or bool(called & NAMING)


NAMING: Final = {"named", "sync_end", "_stop_first"}
"""What gives a name."""


@pytest.mark.parametrize("file", sorted(DECISIONS.rglob("*.py")), ids=lambda file: file.stem)
def test_what_decides_in_several_ways_names_each(file: Path) -> None:
    assert list(anonymous(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("return Plan()", []),
        ("return None if seen else Plan()", []),
        ("return Plan((1,)) if seen else Plan()", ["decide"]),
        ("if seen:\n        return Plan(row='a')\n    return Plan()", ["decide"]),
        ("if seen:\n        return Plan(row='a')\n    return named('b', wait(seen))", []),
    ],
)
def test_it_finds_a_way_without_a_name(body: str, names: list[str]) -> None:
    assert list(anonymous(f"def decide(seen: Situation) -> Plan | None:\n    {body}\n")) == names
