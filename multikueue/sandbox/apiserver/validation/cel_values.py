"""The values that CEL rules of CRDs see: by their schema a text may be a time, and names may be no names of CEL."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import ByIdentity

_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_SPAN: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|us|µs|ns|h|m|s)")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return"),
    )
)


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _duration(text: str) -> timedelta:
    sign, spans = (-1 if text.startswith("-") else 1), text.lstrip("+-")
    if _SPAN.sub("", spans):
        raise ValueError(text)
    return sign * timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in _SPAN.findall(spans)))


_FORMATS: Final[Mapping[str, Callable[[str], Any]]] = {
    "date-time": _time,
    "date": _time,
    "duration": _duration,
    "byte": base64.b64decode,
}


def _has_own(schema: Json) -> bool:
    """Whether a value of it looks otherwise in CEL than in JSON."""
    if schema.get("format") in _FORMATS or schema.get("type") == "number":
        return True
    fields = schema.get("properties") or {}
    inner = [*fields.values(), schema.get("items"), schema.get("additionalProperties")]
    return any(escaped(name) != name for name in fields) or any(
        _has_own(part) for part in inner if isinstance(part, dict)
    )


@attrs.frozen(eq=False)
class Typing:
    """A schema of which values look otherwise in CEL than in JSON; equal to itself alone, so that it can be a key."""

    schema: Json


_TYPINGS: Final = ByIdentity(lambda schema: Typing(schema) if _has_own(schema) else None, size=8_192)


def typing_of(schema: Json) -> Typing | None:
    """What to make of values of this schema before a rule sees them; None: nothing."""
    return _TYPINGS.of(schema)


def escaped(name: str) -> str:
    """What a declared field is called in CEL."""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda match: _ESCAPES[match[0]], name)


def typed(schema: Json, value: Any) -> Any:
    """A value as rules see it; what does not fit its schema stays as it is."""
    if isinstance(value, list):
        items = schema.get("items")
        return [typed(items, item) for item in value] if isinstance(items, dict) else value
    if isinstance(value, dict):
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
        inner = others if isinstance(others, dict) else {}
        return {
            escaped(name) if name in fields else name: typed(fields.get(name, inner), item)
            for name, item in value.items()
        }
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    reads = _FORMATS.get(schema.get("format", ""))
    try:
        return reads(value) if reads is not None and isinstance(value, str) else value
    except ValueError:
        return value
