"""Label and field selectors: parsed once into values, matched against objects."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError, bad_request
from multikueue.sandbox.apiserver.storage.store import Entry
from multikueue.sandbox.apiserver.validation.rules import is_label_value, is_qualified

_TOKEN = re.compile(r"\s*(==|!=|=|!|\(|\)|,|>|<|[A-Za-z0-9._/-]+)")
_MOST = 2**63 - 1
"""What a label may be compared with at most."""


@attrs.frozen
class Requirement:
    """One condition on one label."""

    operator: str
    key: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Json) -> bool:
        """Whether the labels satisfy it; a missing label satisfies `!=` and `notin`."""
        return _OPERATORS[self.operator](labels.get(self.key), self.values)


def _compared(value: str | None, values: frozenset[str], sign: int) -> bool:
    return value is not None and value.isdecimal() and (int(value) - int(next(iter(values)))) * sign > 0


_OPERATORS: dict[str, Callable[[str | None, frozenset[str]], bool]] = {
    "in": lambda value, values: value is not None and value in values,
    "notin": lambda value, values: value is None or value not in values,
    "exists": lambda value, values: value is not None,
    "absent": lambda value, values: value is None,
    ">": lambda value, values: _compared(value, values, 1),
    "<": lambda value, values: _compared(value, values, -1),
}

LabelSelector: TypeAlias = tuple[Requirement, ...]


class _Tokens:
    """The tokens of a label selector, read left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = self._split(text)
        self._next = 0

    @staticmethod
    def _split(text: str) -> list[str]:
        tokens, position = [], 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if not match:
                raise _unparsable(f"found {text[position:]!r}")
            tokens.append(match.group(1))
            position = match.end()
        return tokens

    def peek(self) -> str:
        """The next token, or nothing at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        """The next token; moves on."""
        token = self.peek()
        self._next += 1
        return token

    def take_word(self) -> str:
        """A label name."""
        return self._checked(is_qualified, "identifier")

    def take_value(self) -> str:
        """A label's value; nothing before a comma and at the end."""
        return "" if self.peek() in (",", "") else self._checked(is_label_value, "identifier")

    def take_number(self) -> str:
        """What a label's value is compared with."""
        return self._checked(lambda token: token.isdecimal() and int(token) <= _MOST, "an integer")

    def _checked(self, fits: Callable[[str], bool], expected: str) -> str:
        token = self.take()
        if not fits(token):
            raise _unparsable(f"found '{token}', expected: {expected}")
        return token


def _unparsable(why: str) -> StatusError:
    return bad_request(f"unable to parse requirement: {why}")


@functools.lru_cache(512)
def parse_labels(text: str) -> LabelSelector:
    """Read a label selector.

    Raises:
        StatusError: 400, it cannot be parsed.
    """
    tokens, requirements = _Tokens(text), []
    while tokens.peek():
        requirements.append(_requirement(tokens))
        separator = tokens.take()
        if separator not in (",", "") or (separator and not tokens.peek()):
            raise _unparsable(f"found '{separator}', expected: ',' and an identifier, or 'end of string'")
    return tuple(requirements)


def _requirement(tokens: _Tokens) -> Requirement:
    if tokens.peek() == "!":
        tokens.take()
        return Requirement("absent", tokens.take_word())
    key, operator = tokens.take_word(), tokens.peek()
    if operator in ("=", "==", "!="):
        tokens.take()
        return Requirement("notin" if operator == "!=" else "in", key, frozenset([tokens.take_value()]))
    if operator in ("in", "notin"):
        tokens.take()
        return Requirement(operator, key, _values(tokens))
    if operator in (">", "<"):
        tokens.take()
        return Requirement(operator, key, frozenset([tokens.take_number()]))
    return Requirement("exists", key)


def _values(tokens: _Tokens) -> frozenset[str]:
    opening = tokens.take()
    if opening != "(":
        raise _unparsable(f"found '{opening}', expected: '('")
    values = [""]
    while (token := tokens.take()) != ")":
        if token == ",":
            values.append("")
        elif not token or values[-1] or not is_label_value(token):
            raise _unparsable(f"found '{token}', expected: ',' or ')'")
        else:
            values[-1] = token
    return frozenset(values)


@attrs.frozen
class FieldRequirement:
    """One condition on one field."""

    path: str
    wanted: bool
    value: str


@functools.lru_cache(512)
def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """Read a field selector.

    Raises:
        StatusError: 400, it cannot be parsed.
    """
    requirements = []
    for part in text.split(","):
        if not part.strip():
            continue
        match = re.fullmatch(r"([^=!]+)(!=|==|=)(.*)", part.strip())
        if not match:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        requirements.append(FieldRequirement(match.group(1), match.group(2) != "!=", match.group(3)))
    return tuple(requirements)


def field_value(obj: Any, path: str) -> Any:
    """The value at a dotted path, or None."""
    for part in path.split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(part)
    return obj


_NUMBERS = {"status.successful": "status.succeeded"}
"""Selectable fields of Jobs that stand for a count; nothing is 0."""


def _field_text(obj: Json, path: str) -> str:
    if path in _NUMBERS:
        return str(field_value(obj, _NUMBERS[path]) or 0)
    value = field_value(obj, path)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@attrs.frozen
class Selector:
    """What a list or a watch selects: labels and fields, all of which must match."""

    labels: LabelSelector = ()
    fields: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, row: ResourceType, labels: str = "", fields: str = "", name: str | None = None) -> Selector:
        """Read both selectors; `name` restricts to one object.

        Raises:
            StatusError: 400, a selector cannot be parsed or names a field that cannot be selected.
        """
        wanted = parse_fields(fields)
        for requirement in wanted:
            if requirement.path not in row.fields:
                raise bad_request(f"field label not supported: {requirement.path}")
        wanted = tuple(attrs.evolve(requirement, path=row.stored_path(requirement.path)) for requirement in wanted)
        if name is not None:
            wanted = (*wanted, FieldRequirement("metadata.name", True, name))
        return cls(parse_labels(labels), wanted)

    @property
    def everything(self) -> bool:
        """Whether nothing is excluded."""
        return not self.labels and not self.fields

    def matches(self, entry: Entry) -> bool:
        """Whether labels and fields fit; an object is decoded only where there are fields to look at."""
        if self.everything:
            return True
        return all(requirement.matches(entry.labels) for requirement in self.labels) and all(
            (_field_text(entry.obj, field.path) == field.value) == field.wanted for field in self.fields
        )


EVERYTHING = Selector()
"""Excludes nothing."""
