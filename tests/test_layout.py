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
