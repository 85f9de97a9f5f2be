"""Reads values of the settings file: the rules that types of settings are made of, and what the errors say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin

import attrs
import cattrs
from cattrs.cols import list_structure_factory

from multikueue.core.model.written_values import parse_duration

Hook: TypeAlias = Callable[[Any, Any], Any]
"""Reads a value as a type; raises ValueError with what to write instead."""
Read: TypeAlias = Callable[[Any], Any]
"""The same, of one type."""


@attrs.frozen(eq=False)
class SettingRule:
    """Beside a type in `Annotated`: how a value of it is read."""

    read: Read


def register_values(converter: cattrs.Converter) -> None:
    """Register the hooks of all values; each error is a ValueError that says what to write."""
    for kind, read in _PLAIN.items():
        converter.register_structure_hook(kind, _hook(read))
    converter.register_structure_hook_func(_is_ruled, lambda value, kind: kind.__metadata__[0].read(value))
    converter.register_structure_hook_func(lambda kind: _origin(kind) is Literal, _choice)
    converter.register_structure_hook_func(lambda kind: _origin(kind) is dict, lambda value, _: value)
    converter.register_structure_hook_factory(is_list, _list_of)


def shown(value: Any) -> str:
    """A value as error messages show it."""
    if value is None:
        return "an empty value"
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def is_list(kind: Any) -> bool:
    """Whether a setting of that type is a list."""
    return _origin(kind) is tuple


def _list_of(kind: Any, converter: cattrs.Converter) -> Hook:
    entries = list_structure_factory(kind, converter)

    def structure(value: Any, _: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f'{shown(value)} is not a list: begin each entry with "- "')
        return tuple(entries(value, kind))

    return structure


def _choice(value: Any, kind: Any) -> Any:
    value = str(value) if type(value) is int else value  # YAML reads 2024 as a number
    if value not in get_args(kind):
        raise ValueError(f"{shown(value)} is not one of {', '.join(get_args(kind))}")
    return value


def checked(holds: Callable[[Any], bool], error: str, read: Read = lambda value: value) -> SettingRule:
    """The rule for values of which something holds.

    Args:
        holds: of what was read.
        error: the message for others, after the value as it is written.
        read: reads the value first; without it the value is kept as it is.
    """

    def read_and_check(value: Any) -> Any:
        made = read(value)
        if not holds(made):
            raise ValueError(f"{shown(value)} {error}")
        return made

    return SettingRule(read_and_check)


TEXT: Final = checked(lambda value: type(value) is str, "is not a text: put it in quotes").read
"""Reads any text. What YAML reads as a number or a truth value is none, as `5`, `y` and `no`."""


def duration(value: Any) -> timedelta:
    """Read a duration as YAML has it; see `written_values.parse_duration`."""
    if type(value) in (int, float) and value != 0:
        raise ValueError(f'{value} lacks a unit: write it like "15m", "1m30s" or "500ms"')
    if type(value) is int:
        return timedelta(0)
    if not isinstance(value, str):
        raise ValueError(f'{shown(value)} is not a duration: write it like "15m", "1m30s" or "500ms"')
    return parse_duration(value)


def _hook(read: Read) -> Hook:
    return lambda value, _: read(value)


def _origin(kind: Any) -> Any:
    """What it makes of a type is no type for mypy."""
    return get_origin(kind)


def _is_ruled(kind: Any) -> bool:
    return _origin(kind) is Annotated and isinstance(kind.__metadata__[0], SettingRule)


_PLAIN: Final[Mapping[Any, Read]] = {
    bool: checked(lambda value: type(value) is bool, "is not true or false").read,
    str: TEXT,
    timedelta: duration,
}


def camel(name: str) -> str:
    """`next_attempt` as `nextAttempt`, `a_cli_b` as `aCLIB`."""
    first, *rest = name.split("_")
    return first + "".join("CLI" if word == "cli" else word.capitalize() for word in rest)
