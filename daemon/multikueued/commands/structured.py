"""Reports as JSON and YAML: the fields of the value in camelCase, times in RFC 3339."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any

import attrs
import orjson
import yaml

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.outside_text import has_hidden, is_hidden


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
    return "".join(json.dumps(one)[1:-1] if is_hidden(one) else one for one in text) if has_hidden(text) else text


def as_yaml(value: Any) -> str:
    """A report as YAML; characters that a terminal would obey are escaped."""
    made = partial(yaml.safe_dump, plain(value), sort_keys=False, width=120)
    text = str(made(allow_unicode=True))
    return (str(made(allow_unicode=False)) if has_hidden(text) else text).rstrip("\n")


def camel(name: str) -> str:
    """`next_attempt` as `nextAttempt`, `a_cli_b` as `aCLIB`."""
    first, *rest = name.split("_")
    return first + "".join("CLI" if word == "cli" else word.capitalize() for word in rest)
