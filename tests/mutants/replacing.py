"""Functions of modules that are imported already get the changed code: tests are collected once for many mutants."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeAlias

Name: TypeAlias = tuple[str, int]
"""The qualified name of a function, and its number among those of that name: lambdas share theirs."""


def replaced(path: str, code: str) -> dict[Name, CodeType]:
    """What the functions of a module become; empty if more than these has changed, so only an import shows it."""
    before, after = (compile(text, path, "exec") for text in (Path(path).read_text(), code))
    old, new = _functions(before), _functions(after)
    if _outside(before) != _outside(after) or old.keys() != new.keys():
        return {}
    changed = {name: new[name] for name, code in old.items() if _without_lines(code) != _without_lines(new[name])}
    same = all(old[name].co_freevars == code.co_freevars for name, code in changed.items())
    return changed if same and not any(name.endswith("comp>") for name, _ in changed) else {}


def replace(path: str, codes: dict[Name, CodeType]) -> None:
    """Have the functions of an imported module do something else, wherever they are referred to."""
    there = str(Path(path).resolve())
    names = {(code.co_firstlineno, code.co_qualname): name for name, code in _functions_of(path).items()}
    left = set(codes)
    for function in [obj for obj in gc.get_objects() if isinstance(obj, FunctionType)]:
        if function.__code__.co_filename == there:
            name = names.get((function.__code__.co_firstlineno, function.__code__.co_qualname))
            if name in codes:
                function.__code__ = codes[name]
                left.discard(name)
    assert not left, f"nobody has imported {left} of {path}"


def _functions_of(path: str) -> dict[Name, CodeType]:
    return _functions(compile(Path(path).read_text(), path, "exec"))


def _functions(module: CodeType) -> dict[Name, CodeType]:
    """The outermost functions of a module and its classes."""
    codes: dict[Name, CodeType] = {}
    for code in _inner(module):
        number = sum(code.co_qualname == name for name, _ in codes)
        codes[code.co_qualname, number] = code
    return codes


def _inner(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from (_inner(const) if _is_class(const) else (const,))


def _is_class(code: CodeType) -> bool:
    return "__module__" in code.co_names and "__qualname__" in code.co_names


def _outside(code: CodeType) -> object:
    """What is done outside of functions."""
    constants = tuple(
        (_outside(const) if _is_class(const) else const.co_qualname)
        if isinstance(const, CodeType)
        else (type(const), const)
        for const in code.co_consts
    )
    return code.co_code, code.co_names, constants


def _without_lines(code: CodeType) -> object:
    constants = tuple(
        _without_lines(const) if isinstance(const, CodeType) else (type(const), const) for const in code.co_consts
    )
    return code.co_code, code.co_names, code.co_varnames, constants
