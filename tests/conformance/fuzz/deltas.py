"""Say briefly how two JSON values differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs

_NOTHING = object()


def delta(real: Any, sandbox: Any, path: str = "") -> Iterator[str]:
    """Every place where two values differ, with both values."""
    first, other = (attrs.asdict(value) if attrs.has(type(value)) else value for value in (real, sandbox))
    if isinstance(first, dict) and isinstance(other, dict):
        for key in [*first, *(key for key in other if key not in first)]:
            if first.get(key, _NOTHING) != other.get(key, _NOTHING):
                yield from delta(first.get(key, _NOTHING), other.get(key, _NOTHING), f"{path}.{key}")
    elif isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        for index, (left, right) in enumerate(zip(first, other, strict=True)):
            if left != right:
                yield from delta(left, right, f"{path}[{index}]")
    elif first != other:
        yield f"{path or '.'}: real {_shown(first)}, sandbox {_shown(other)}"


def _shown(value: Any) -> str:
    return "nothing" if value is _NOTHING else json.dumps(value)
