"""Which small changes of a module there are: those of cosmic-ray, and calls and yields that are left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

Position = tuple[tuple[int, int], tuple[int, int]]

NO_CHANGE: Final = ("Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq")
"""Operators for which identity is equality here: of enums, of small numbers, and with None."""


class LeaveOut:
    """An operator that leaves out a statement that is a call, or a yield. What is logged is not for tests."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "simple_stmt" and self._instead(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        del index
        first = node.children[0]
        instead = get_ast(self._instead(first)).children[0]
        instead.get_first_leaf().prefix = first.get_first_leaf().prefix
        node.children[0] = instead
        return node

    @staticmethod
    def _instead(statement: Any) -> str:
        if statement.type == "yield_expr":
            return "yield from ()"
        calls = statement.type in ("atom_expr", "power") and statement.children[-1].get_code().startswith("(")
        return "pass" if calls and not statement.get_code().strip().startswith("log.") else ""


@attrs.frozen
class Mutant:
    """One change at one place."""

    path: str
    operator: str
    occurrence: int
    position: Position

    def __str__(self) -> str:
        return f"{self.path}:{self.position[0][0]} {self.operator} {self.occurrence}"

    @property
    def lines(self) -> range:
        """Those that it changes."""
        return range(self.position[0][0], self.position[1][0] + 1)

    def code(self) -> str:
        """The changed module."""
        changed = mutate_code(Path(self.path).read_text(), _operator(self.operator), self.occurrence)
        assert isinstance(changed, str), f"{self} changes nothing"
        return changed


def is_python(mutant: Mutant) -> bool:
    """Whether it is more than an error of syntax: `if not name := found()` is one, which any test would notice."""
    try:
        compile(mutant.code(), mutant.path, "exec")
    except SyntaxError:
        return False
    return True


def mutants(path: Path) -> Iterator[Mutant]:
    """All changes of a module."""
    nodes = list(ast_nodes(get_ast(path.read_text())))
    configured = [name for name in operator_names() if get_operator(name).arguments()]
    for name in ("LeaveOut", *sorted(set(operator_names()).difference(configured))):
        if name.endswith(NO_CHANGE):
            continue
        positions = _operator(name).mutation_positions
        places = ((node, place) for node in nodes for place in positions(node))
        for occurrence, (node, place) in enumerate(places):
            if not any(is_left_out(node) for is_left_out in (_is_annotation, _is_for_attrs, _is_star, _is_logged)):
                yield Mutant(str(path), name, occurrence, place)


def _operator(name: str) -> Any:
    return LeaveOut() if name == "LeaveOut" else get_operator(name)()


def _is_for_attrs(node: Any) -> bool:
    """Whether it says what attrs is to make of a class: `eq=False` changes nothing for who compares nothing.

    Nor does it for a field whether more may be given to the constructor: mypy refuses who gives it.
    """
    if node.type == "argument" and node.children[0].get_code().strip() in ("init", "kw_only"):
        return True
    decorated = node.type != "decorator" and _is_in_decorator(node)
    return decorated or (node.parent is not None and _is_for_attrs(node.parent))


def _is_star(node: Any) -> bool:
    """Whether it is the sign in a signature from which on arguments have names, and no product."""
    return node.type == "operator" and node.parent.type in ("parameters", "param")


def _is_logged(node: Any) -> bool:
    """Whether it is part of what is logged, which is not for tests."""
    call = node.type in ("atom_expr", "power") and node.get_code().strip().startswith("log.")
    return call or (node.parent is not None and _is_logged(node.parent))


def _is_in_decorator(node: Any) -> bool:
    return node is not None and (node.type == "decorator" or _is_in_decorator(node.parent))


def _is_annotation(node: Any) -> bool:
    """Whether nobody evaluates it."""
    while node.parent is not None:
        parent, before = node.parent, node.get_previous_sibling()
        sign = before.get_code().strip() if before is not None else ""
        if (parent.type in ("annassign", "tfpdef") and sign == ":") or (parent.type == "funcdef" and sign == "->"):
            return True
        node = parent
    return False
