"""Counts lines of code: without blank ones, comments and docstrings."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_NO_CODE: Final = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def code_lines(files: Iterable[Path]) -> int:
    """Of all these modules together."""
    return sum(len(_lines(file.read_text())) for file in files)


def _lines(text: str) -> set[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for token in tokens if token.type not in _NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):  # of a module, a class, a function, or under a field
                lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines
