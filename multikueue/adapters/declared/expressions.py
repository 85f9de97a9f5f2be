"""Expressions in CEL, the language of Kubernetes' own validation rules, over the objects of a job.

They are compiled once, at start. Evaluating one takes only the fields it reads: a job may weigh megabytes.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs
import cel
from cel.stdlib import STDLIB_FUNCTIONS

from multikueue.adapters.declared.costs import LITERAL, MACRO, MAX_RANGE, MAX_STEPS, degree, exceeds
from multikueue.adapters.declared.key_order import IN_ORDER, in_order, ordered
from multikueue.core.model.names import Json
from multikueue.core.model.objects import json_fault, shortened, with_value
from multikueue.core.model.shape import JSON_WORDS
from multikueue.errors import RuleError

_TEXTS: Final = frozenset(("workload", "origin"))
"""Variables that are texts; all others are objects."""
_ZONED: Final = re.compile(r"\.\s*(get[A-Z]\w*)\s*\(\s*[^)\s]")
_TYPES: Final = frozenset(("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"))
_NATIVE: Final = _TYPES.union(
    ("size", "contains", "startsWith", "endsWith", "matches", "duration", "timestamp", "dyn"),
    ("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    ("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)
"""Functions of the language itself; those of the extension libraries are in `STDLIB_FUNCTIONS`."""
_OF_EACH_TYPE: Final[tuple[Any, ...]] = ("", "1", 1, 1.5, True, None, [], [1], ["1"], [True], [{}], {}, {"1": 1})
_OF_TYPES: Final = ("No such overload", "Unsupported operation", "Undefined variable or function")
"""How the library begins to say that a value is of another type than what it is used for."""
_FITTING: Final[Mapping[type, tuple[type, ...]]] = {bool: (bool,), str: (str, type(None))}
"""By what is wanted, the types of values that will do: no words are no words."""
_UNFITTING: Final[Mapping[type, str]] = {
    bool: "neither true nor false: compare it with something, as in size(object.status.steps) > 0",
    str: "no text: put string(...) around it",
}
_POSITION: Final = re.compile(r"ERROR: <input>:\d+:(\d+): (.*)")

_MATCHES: Final = cel.compile("text.matches(pattern)")
"""The library knows it as a method alone."""
_FLAGS: Final = {
    **dict.fromkeys(("true", "True", "TRUE", "t", "T", "1"), True),
    **dict.fromkeys(("false", "False", "FALSE", "f", "F", "0"), False),
}

MAX_TOLD: Final = 100
"""Bytes of what a failure says: it may show a value, and what else is in a job belongs in no log."""

_Fields = dict[str, Any]
"""What is read of an object: each field with what is read of it; None for all of it."""


class EvaluationError(RuleError):
    """An expression has no value for these objects; the message says why."""


class MissingError(EvaluationError):
    """It reads something that is not there."""


class CostError(EvaluationError):
    """It may take too long for these objects, and was not evaluated."""


@attrs.frozen
class Expression:
    """One compiled expression."""

    text: str
    where: str
    """The setting it stands in, for messages; may be empty."""
    _program: cel.Program = attrs.field(repr=False, eq=False)
    _reads: Mapping[str, _Fields | None] = attrs.field(repr=False, eq=False)
    _functions: Mapping[str, Callable[..., Any]] = attrs.field(repr=False, eq=False)
    _degree: int = attrs.field(repr=False, eq=False)
    """Of its loops; see `costs`."""

    @classmethod
    def compiled(
        cls, text: str, variables: tuple[str, ...], where: str = "", *, wanted: type | None = None
    ) -> Expression:
        """Compile an expression that may use these variables.

        Args:
            text: in CEL.
            variables: that it may use.
            where: the setting it stands in.
            wanted: what its value must be; None: anything.

        Raises:
            ValueError: it does not compile, uses a variable or function that does not exist, or has no such value for
                any object.
        """
        if not isinstance(text, str):
            raise ValueError(f"{text} is not an expression: put it in quotes")
        try:
            program = cel.compile(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not an expression in CEL{_cause(str(error))}") from None
        if zoned := _ZONED.search(LITERAL.sub("''", text)):
            raise ValueError(f"{text!r}: {zoned[1]}() takes no time zone here: its value is that of UTC")
        functions = libraries(program)
        provided = _NATIVE.union(full.rpartition(".")[2] for full in functions)
        for name in filter(str.isidentifier, program.functions()):  # others are operators, `_&&_`
            if name not in provided:
                raise ValueError(f"{text!r}: there is no function {name!r}")
        namespaces = {name.partition(".")[0] for name in functions if "." in name}
        known = {*variables, *_TYPES, *(variable for _, variable in MACRO.findall(text)), *namespaces}
        for name in program.variables():
            if name not in known:
                raise ValueError(f"{text!r}: there is no variable {name!r}; there is {' and '.join(variables)}")
        reads = {name: _fields_read(text, name) for name in variables if name in program.variables()}
        if (looping := ordered(text)) != text:
            program, functions = cel.compile(looping), {**functions, IN_ORDER: in_order}
        made = cls(text, where, program, reads, functions, degree(text, variables))
        made._try_on_nothing(wanted)
        made._try_on_values(wanted)
        return made

    def _try_on_nothing(self, wanted: type | None) -> None:
        """Refuse what fails already for objects with nothing in them, by no fault of what is not in them."""
        try:
            result = self._evaluated({name: "" if name in _TEXTS else _filled({}) for name in self._reads})
        except LookupError:
            return
        except Exception as error:  # whatever the library raises
            reason = _first_sentence(str(error))
            if reason.startswith(_OF_TYPES) or not self._reads:  # nothing of a job could change it
                raise ValueError(f"{self.text!r} cannot hold for any job: {reason}") from None
            return
        self._check_type(result, wanted)

    def _try_on_values(self, wanted: type | None) -> None:
        """Refuse what cannot be used with any value that JSON has in the fields it reads, or has never a wanted value.

        Several fields all get the same value. That shows the latter alone: others may go together.
        """
        paths, reasons, unwanted = _paths_read(self._reads), list[str](), list[tuple[Any, Any]]()
        compared = (text for text in _texts_in(self.text) if unwanted)
        for value in itertools.chain(_OF_EACH_TYPE, compared) if paths else ():
            try:
                result = self._evaluated_quietly(_known_with(self._reads, paths, value))
            except LookupError:
                reasons.append("")
            except Exception as error:  # whatever the library raises
                reasons.append(_first_sentence(str(error)))
            else:
                if wanted is None or isinstance(result, _FITTING[wanted]):
                    return
                unwanted.append((value, result))
        if unwanted:
            value, result = unwanted[0]
            fields = " and ".join(f".{'.'.join(path[1:])}" for path in paths)
            self._check_type(result, wanted, f" with {shortened(repr(value), MAX_TOLD)} in {fields}")
        if len(paths) == 1 and all(reason.startswith(_OF_TYPES) for reason in reasons):
            raise ValueError(f"{self.text!r} cannot hold for any job: {reasons[-1]}")

    def _check_type(self, result: Any, wanted: type | None, when: str = "") -> None:
        if wanted is not None and not isinstance(result, _FITTING[wanted]):
            raise ValueError(
                f"{self.text!r} gives {shortened(repr(result), MAX_TOLD)}{when}, which is {_UNFITTING[wanted]}"
            )

    def _evaluated_quietly(self, known: Mapping[str, Any]) -> Any:
        """Its value, where a function of Python raises without a line of the library in the log."""
        failed: list[Exception] = []
        quiet = attrs.evolve(self, functions={name: _noting(failed, do) for name, do in self._functions.items()})
        try:
            result = quiet._evaluated(known)
        except Exception:  # whatever the library raises; a function's answer may be what it raises for
            if not failed:
                raise
        if failed:
            raise failed[0]
        return result

    def _evaluated(self, known: Mapping[str, Any]) -> Any:
        context: Any = cel.Context(variables=dict(known), functions=dict(self._functions)) if self._functions else known
        return self._program.execute(context)

    def value(self, **given: Json | str) -> Any:
        """Its value, as JSON has values.

        Args:
            given: the variables. Objects have `metadata`, its labels and annotations, `spec` and `status` in any
                case: empty ones where they have none.

        Raises:
            MissingError: it reads a field that is not there.
            CostError: its loops may take too long with what it reads.
            EvaluationError: it has no value for another reason, or none that JSON has.
        """
        known = {name: _part(_filled(given[name]), fields) for name, fields in self._reads.items()}
        if exceeds(known.values(), self._degree, each_character="split" in self._functions):
            reason = (
                f"it reads so much that its loops may take more than {MAX_STEPS:,} steps; write it with fewer of them"
            )
            raise CostError(self._saying(reason))
        try:
            result = self._evaluated(known)
        except LookupError as error:
            raise MissingError(self._saying(shortened(_missing(error), MAX_TOLD))) from None
        except Exception as error:  # whatever the library raises: no object may stop what reads it
            raise EvaluationError(self._saying(shortened(_first_sentence(str(error)), MAX_TOLD))) from None
        if fault := json_fault(result, "its value"):
            raise EvaluationError(self._saying(shortened(fault, MAX_TOLD)))
        return result

    def holds(self, **given: Json | str) -> bool:
        """Whether it is true. What reads a field that is not there is not.

        Raises:
            EvaluationError: it is neither true nor false.
        """
        try:
            result = self.value(**given)
        except MissingError:
            return False
        if not isinstance(result, bool):
            # Not with the value: it may change with each look, and each time the problem would be told anew.
            raise EvaluationError(self._saying(f"gives {JSON_WORDS[type(result)]}, which is {_UNFITTING[bool]}"))
        return result

    def _saying(self, why: str) -> str:
        return f"{self.where}: {self.text}: {why}" if self.where else f"{self.text}: {why}"


def _cause(message: str) -> str:
    match = _POSITION.search(message)
    return f", at character {match.group(1)}: {match.group(2).partition(' expecting ')[0]}" if match else ""


def _first_sentence(message: str) -> str:
    return (message.splitlines() or [""])[0].partition(". ")[0]


def _missing(error: LookupError) -> str:
    name = str(error.args[0]) if error.args else ""
    return f"there is no {name!r}" if isinstance(error, KeyError) else name


def libraries(program: cel.Program) -> dict[str, Callable[..., Any]]:
    """The functions that an expression uses of the extension libraries."""
    namespaces = program.variables()
    names = (full for name in program.functions() for full in (name, *(f"{space}.{name}" for space in namespaces)))
    return {full: _FUNCTIONS[full] for full in names if full in _FUNCTIONS}


def _string(value: Any) -> str:
    if not isinstance(value, bool):
        raise TypeError("string takes numbers, truth values, texts, bytes, durations and times")
    return "true" if value else "false"


def _bool(text: Any) -> bool:
    if text not in _FLAGS:
        raise ValueError("bool takes true, t, 1, false, f and 0 alone")
    return _FLAGS[text]


def _int(value: Any) -> int:
    """Of a time the seconds since 1970, of a duration its nanoseconds."""
    if isinstance(value, datetime):
        return math.floor(value.timestamp())
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1) * 1000
    raise TypeError("int takes numbers, texts, times and durations")


def _timestamp(seconds: Any) -> datetime:
    if type(seconds) is not int:
        raise TypeError("timestamp takes texts and numbers")
    return datetime.fromtimestamp(seconds, UTC)


def _matches(text: Any, pattern: Any) -> bool:
    return bool(_MATCHES.execute({"text": text, "pattern": pattern}))


def _is_sorted(items: list[Any]) -> bool:
    return all(earlier <= later for earlier, later in itertools.pairwise(items))


def _index_of(where: Any, item: Any, *offset: int) -> int:
    if isinstance(where, str):
        return where.find(item, *offset)
    return next((number for number, entry in enumerate(where) if entry == item), -1)


def _last_index_of(where: Any, item: Any, *offset: int) -> int:
    if isinstance(where, str):
        return int(STDLIB_FUNCTIONS["lastIndexOf"](where, item, *offset))
    return max((number for number, entry in enumerate(where) if entry == item), default=-1)


def _range(size: int) -> list[int]:
    if size > MAX_RANGE:
        raise ValueError(f"lists.range makes at most {MAX_RANGE} entries")
    return list(range(size))


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **STDLIB_FUNCTIONS,
    "lists.range": _range,
    "string": _string,
    "bool": _bool,
    "int": _int,
    "timestamp": _timestamp,
    "matches": _matches,
    "isSorted": _is_sorted,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
}
"""Those of the library, and what it lacks. One of the language's own name is for the values that the language does not
take."""


def _fields_read(text: str, name: str) -> _Fields | None:
    """The fields of a variable that an expression reads; None for all of them."""
    fields: _Fields = {}
    for path in _reads_of(name).findall(text):
        *parents, last = path.split(".")
        if not last:  # the object as a whole
            return None
        inner: _Fields | None = fields
        for step in parents[1:]:
            inner = inner.setdefault(step, {}) if inner is not None else None
        if inner is not None:
            inner[last] = None
    return fields


@functools.cache
def _reads_of(name: str) -> re.Pattern[str]:
    """`object.a.b`, of which `object.a.b.exists(...)` reads a and b."""
    return re.compile(rf"(?<![\w.])\b{name}\b((?:\.[A-Za-z_]\w*\b(?!\s*\())*)")


def _paths_read(reads: Mapping[str, _Fields | None]) -> list[tuple[str, ...]]:
    """The fields that are read of objects, each after its variable; empty where one is read as a whole."""
    paths = [path for name, fields in reads.items() if name not in _TEXTS for path in _leaves((name,), fields)]
    return paths if all(len(path) > 1 for path in paths) else []


def _leaves(path: tuple[str, ...], fields: _Fields | None) -> Iterator[tuple[str, ...]]:
    if fields is None:
        yield path
    for name, inner in (fields or {}).items():
        yield from _leaves((*path, name), inner)


def _known_with(reads: Iterable[str], paths: Iterable[tuple[str, ...]], value: Any) -> dict[str, Any]:
    """The variables, where all these fields have one value."""
    known: dict[str, Any] = {name: "1" if name in _TEXTS else {} for name in reads}
    for name, *path in paths:
        known[name] = with_value(known[name], tuple(path), value)
    return {name: _filled(value) for name, value in known.items()}


def _texts_in(text: str) -> list[str]:
    """The texts that stand in an expression: what it compares with."""
    return [match[2] for match in LITERAL.finditer(text) if match[1]]


def _noting(failed: list[Exception], function: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*given: Any) -> Any:
        try:
            return function(*given)
        except Exception as error:  # raised again by who asks
            failed.append(error)
            return None

    return noted


def _part(value: Any, fields: _Fields | None) -> Any:
    if fields is None or not isinstance(value, dict):
        return value
    return {name: _part(value[name], inner) for name, inner in fields.items() if name in value}


def _filled(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    metadata = {"labels": {}, "annotations": {}, **(value.get("metadata") or {})}
    return {"spec": {}, "status": {}, **value, "metadata": metadata}
