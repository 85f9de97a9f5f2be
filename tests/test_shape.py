"""How large the core is stays known: it grows by a decision, not by the way."""

from __future__ import annotations

import pytest

from multikueue.core.model.objects import name_of
from tests.shape import MOST_OF_DECISIONS, code_lines, lines_of, walk


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", 0),
        ('"""A module."""\n\nx = 1  # a comment\n', 1),
        ('class A:\n    """A class."""\n\n    x: int = 1\n    """A field."""\n', 2),
        ('def f():\n    """Says."""\n    # why\n    return (\n        1,\n    )\n', 4),
        ('x = """a text\nof two lines"""\n', 2),
    ],
)
def test_code_lines_are_those_without_blanks_comments_and_docstrings(source: str, lines: int) -> None:
    assert code_lines(source) == lines


def test_a_walk_is_which_functions_of_the_library_are_entered() -> None:
    made = walk(lambda: code_lines(name_of({"metadata": {"name": "x"}})))
    assert ("core/model/objects.py", "name_of") in made.functions
    assert made.files == {"core/model/objects.py"}, "those of tests do not count"


def test_decisions_take_no_more_lines_than_they_do() -> None:
    assert lines_of("core/workload") <= MOST_OF_DECISIONS
