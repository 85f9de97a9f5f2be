"""Reports as JSON and YAML: the fields of the value in camelCase, times in RFC 3339; and read back from JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar

import attrs
import cattrs
import orjson
import yaml
from cattrs.gen import make_dict_structure_fn, override

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.outside_text import has_hidden, is_hidden
from multikueue.kube.kubernetes_yaml import KubernetesDumper
from multikueued.exits import NOT_REACHABLE, CommandError
from multikueued.reports.published import as_time
from multikueued.settings.values import camel


def plain(value: Any) -> Any:
    """A report as what JSON has: objects, lists, texts, numbers and null."""
    if attrs.has(type(value)):
        return {camel(field.name): plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def as_json(value: Any) -> str:
    """A report as indented JSON; characters that a terminal would obey are escaped."""
    text = orjson.dumps(plain(value), option=orjson.OPT_INDENT_2).decode()
    return "".join(json.dumps(char)[1:-1] if is_hidden(char) else char for char in text) if has_hidden(text) else text


def as_yaml(value: Any) -> str:
    """A report as YAML; characters that a terminal would obey are escaped."""
    made = partial(yaml.dump, plain(value), Dumper=KubernetesDumper, sort_keys=False, width=120)
    text = str(made(allow_unicode=True))
    return (str(made(allow_unicode=False)) if has_hidden(text) else text).rstrip("\n")


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
        unreadable = f"the manager's API answers with a {cls.__name__} that this version cannot read"
        raise CommandError(f"{unreadable}: use the version of its multikueue api-server", NOT_REACHABLE) from error


def _of_its_type(value: Any, kind: type[Any]) -> Any:
    """A text, as an enum is, or a boolean: by itself cattrs reads `"false"` as true, and null as the text `None`."""
    if not isinstance(value, bool if kind is bool else str):
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return kind(value)


def _values(cls: type[Any]) -> Any:
    renamed = {field.name: override(rename=camel(field.name)) for field in attrs.fields(cls)}
    structure: Any = make_dict_structure_fn  # `**renamed` is keyed by the fields' names: its signature cannot say so
    return structure(cls, _CONVERTER, **renamed)


_CONVERTER.register_structure_hook_factory(attrs.has, _values)
_CONVERTER.register_structure_hook(datetime, as_time)
_CONVERTER.register_structure_hook(bool, _of_its_type)
_CONVERTER.register_structure_hook(str, _of_its_type)
