"""Reports read back from JSON: the manager's API answers with what `structured.plain` has made of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, override

from multikueue.core.model.conditions import parse_timestamp
from multikueued.commands.exits import NOT_REACHABLE, CommandError
from multikueued.commands.structured import camel

R = TypeVar("R")

_CONVERTER: Final = cattrs.Converter()


def read_as(cls: type[R], value: Any) -> R:
    """A report of a class, from JSON. What the class does not know is left out: the server may be newer.

    Raises:
        CommandError: something is missing, or of another type.
    """
    try:
        return _CONVERTER.structure(value, cls)
    except (cattrs.BaseValidationError, ValueError) as error:
        told = f"the manager's API answers with a {cls.__name__} that this version cannot read"
        raise CommandError(f"{told}: use the version of its multikueue api-server", NOT_REACHABLE) from error


def _values(cls: type[Any]) -> Any:
    renamed = {field.name: override(rename=camel(field.name)) for field in attrs.fields(cls)}
    structure: Any = make_dict_structure_fn  # `**renamed` is keyed by the fields' names: its signature cannot say so
    return structure(cls, _CONVERTER, **renamed)


def _time(value: Any, _: Any) -> datetime:
    if (found := parse_timestamp(value)) is None:
        raise ValueError("no time")
    return found


_CONVERTER.register_structure_hook_factory(attrs.has, _values)
_CONVERTER.register_structure_hook(datetime, _time)
