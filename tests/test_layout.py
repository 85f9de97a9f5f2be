"""The shape of the source: modules of one idea, short functions."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = [path for folder in ("multikueue", "daemon") for path in sorted((ROOT / folder).rglob("*.py"))]


def test_modules_have_at_most_400_lines_and_functions_50() -> None:
    """A module is as long as its idea; a review looks at what is longer than this."""
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}
    functions = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {name: lines for name, lines in sizes.items() if lines > 400} == {}
    assert {name: lines for name, lines in functions.items() if lines > 50} == {}


DECISIONS = "multikueue.core.workload"
DOORS = {
    "core/door.py": "what tests show a decision, and what they see of it",
    "simulation/decision_mutations.py": "the table of broken promises, and which function is changed for each",
}
"""Which tests may import what decides, below `tests`, and why: all others would have to be rewritten with it."""


def _names_imported_by(path: Path) -> set[str]:
    """What a module imports of the core, in full, and texts that name it, as of what is patched."""
    text, names = path.read_text(), set[str]()
    if DECISIONS not in text and "multikueue.core import" not in text:
        return names
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=imported):
                names.update(alias.name for alias in imported)
            case ast.ImportFrom(module=str(module), names=imported):
                names.update(f"{module}.{alias.name}" for alias in imported)
            case ast.Constant(value=str(name)) if name.startswith("multikueue."):
                names.add(name)
    return names


def test_tests_reach_decisions_through_one_door() -> None:
    """Import-linter cannot see `tests`, which is no package: two checkouts beside each other would be one to it."""
    folder = ROOT / "tests"
    doors = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if any(f"{name}.".startswith(f"{DECISIONS}.") for name in _names_imported_by(path)) and path != Path(__file__)
    }

    assert doors == DOORS.keys()
