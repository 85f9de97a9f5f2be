"""CEL rules of CRDs (`x-kubernetes-validations`): checked when the object is otherwise valid."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import cel

from multikueue.adapters.declared.expressions import libraries
from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import decode, encode
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.cel_values import Typing, typed, typing_of
from multikueue.sandbox.apiserver.validation.schema_defaulting import field_schema
from multikueue.sandbox.apiserver.validation.schema_validation import item_identity, items_by_identity

_USES: Final = re.compile(
    r"(\bhas\()?\b(self|oldSelf)\b((?:\.[A-Za-z]\w*\b(?!\())*)(?:\.(?:all|exists|exists_one|map)\((\w+),)?"
)
"""`self.a.b` with the fields it reads: `self.a.b.exists(c, ...)` reads a and b of it, and looks at each c there;
`self == oldSelf` reads all."""


@functools.lru_cache(2048)
def _compile(rule: str) -> tuple[cel.Program, Mapping[str, Callable[..., Any]]]:
    program = cel.compile(rule)
    return program, libraries(program)


@functools.lru_cache(2048)
def _fields_used(rule: str, name: str) -> Json | None:
    """The fields of `self` or `oldSelf` a rule reads, each with those of its fields; None for all of them.

    Of a list they are the fields of its items.
    """
    used: Json = {}
    for has, variable, path, item in _USES.findall(rule):
        if variable != name:
            continue
        first, *deeper = path.split(".")[1:] or [""]
        if not first or "__" in rule:  # the value as a whole, or escaped names
            return None
        part = {} if has else _fields_of_items(rule, item) if item else None
        if not deeper:
            used[first] = _both(used.get(first, {}), part)
        elif used.setdefault(first, {}) is not None:
            inner = part if len(deeper) == 1 else None
            used[first][deeper[0]] = _both(used[first].get(deeper[0], {}), inner)
    return used


def _fields_of_items(rule: str, item: str) -> Json | None:
    """The fields that a rule reads of what it calls by this name; None for all of them."""
    fields = re.findall(rf"\b{item}\.([A-Za-z]\w*)\b(?!\()", rule)
    heads = re.findall(rf"\({item},", rule)
    named = re.findall(rf"\b{item}\b", rule)
    return dict.fromkeys(fields) if len(fields) + len(heads) == len(named) else None


def _both(left: Json | None, right: Json | None) -> Json | None:
    return None if left is None or right is None else {**left, **right}


def check_rules(schema: Json, value: Any, old: Any = None, path: str = "") -> Iterator[Cause]:
    """Every broken rule of an object or a part of it; `old` is the stored value, None for a new one."""
    if value is None or (old is not None and old == value):
        return  # what did not change is not judged again (ratcheting)
    yield from _check_own(schema, value, old, path)
    if isinstance(value, dict):
        for key, item in value.items():
            child = field_schema(schema, key)
            if child:
                before = old.get(key) if isinstance(old, dict) else None
                yield from check_rules(child, item, before, f"{path}.{key}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        before_by_key = items_by_identity(schema, old)
        for index, item in enumerate(value):
            before = before_by_key.get(item_identity(schema, item))
            yield from check_rules(schema["items"], item, before, f"{path}[{index}]")


def _in_its_order(schema: Json, value: Any, old: Any) -> Any:
    """An old value with its sets, and lists with keys, in the order of the new one: to rules they have none."""
    if isinstance(old, dict) and isinstance(value, dict):
        return {key: _in_its_order(field_schema(schema, key) or {}, value.get(key), item) for key, item in old.items()}
    if not (isinstance(old, list) and isinstance(value, list)):
        return old
    items, unordered = schema.get("items") or {}, schema.get("x-kubernetes-list-type") in ("set", "map")
    if not unordered:
        return [_in_its_order(items, now, item) for now, item in itertools.zip_longest(value, old)][: len(old)]
    identities = [item_identity(schema, item) for item in value]
    places = {identity: place for place, identity in enumerate(identities)}
    known = sorted(old, key=lambda item: places.get(item_identity(schema, item), len(places)))
    return [
        _in_its_order(items, value[places[name]], item) if (name := item_identity(schema, item)) in places else item
        for item in known
    ]


def _check_own(schema: Json, value: Any, old: Any, path: str) -> Iterator[Cause]:
    old = _in_its_order(schema, value, old) if schema.get("x-kubernetes-validations") else old
    for rule in schema.get("x-kubernetes-validations") or ():
        if old is None and "oldSelf" in rule["rule"]:
            continue  # transition rules need an old value
        failure = _evaluate(rule["rule"], value, old, typing_of(schema))
        if failure is not None:
            reason = rule.get("message") or failure
            message = f"Invalid value: {_short(value)}: {reason}"
            yield Cause("FieldValueInvalid", path.lstrip(".") or "<nil>", message)


def _evaluate(rule: str, value: Any, old: Any, typing: Typing | None) -> str | None:
    """None when the rule holds, else why not; a rule that cannot be evaluated does not hold."""
    read = (_part(value, _fields_used(rule, "self")), _part(old, _fields_used(rule, "oldSelf")))
    return _judge(rule, typing, *map(encode, read))


@functools.lru_cache(8192)
def _judge(rule: str, typing: Typing | None, value: bytes, old: bytes) -> str | None:
    """Judge by what a rule reads: an object changes often, the few fields a rule is about do not."""
    try:
        program, functions = _compile(rule)
        variables = {"self": decode(value), "oldSelf": decode(old)}
        if typing is not None:
            variables = {name: typed(typing.schema, content) for name, content in variables.items()}
        result = program.execute(
            cel.Context(variables=variables, functions=dict(functions)) if functions else variables
        )
    except (RuntimeError, ValueError, TypeError, LookupError) as error:
        return str(error)
    return None if result is True else f"failed rule: {rule}"


def _part(value: Any, used: Json | None) -> Any:
    if used is None:
        return value
    if isinstance(value, list):
        return [_part(item, used) for item in value]
    if not isinstance(value, dict):
        return value
    return {field: _part(item, used[field]) for field, item in value.items() if field in used}


def _short(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return '"object"'
    return '"array"' if isinstance(value, list) else str(value)
