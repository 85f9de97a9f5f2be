"""Say briefly how two JSON values differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs

_NOTHING = object()


def delta(real: Any, sandbox: Any, path: str = "") -> Iterator[str]:
    """Every place where two values differ, with both values."""
    one, other = (attrs.asdict(value) if attrs.has(type(value)) else value for value in (real, sandbox))
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if one.get(key, _NOTHING) != other.get(key, _NOTHING):
                yield from delta(one.get(key, _NOTHING), other.get(key, _NOTHING), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            if left != right:
                yield from delta(left, right, f"{path}[{index}]")
    elif one != other:
        yield f"{path or '.'}: real {_shown(one)}, sandbox {_shown(other)}"


def _shown(value: Any) -> str:
    return "nothing" if value is _NOTHING else json.dumps(value)
