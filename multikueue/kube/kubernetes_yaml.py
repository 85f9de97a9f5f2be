"""Reads YAML as Kubernetes does, in work that is bounded by the size of the text.

It is the reading of sigs.k8s.io/yaml, which kubectl, API servers and Kueue have: neither YAML 1.1 nor 1.2. `y` and
`off` are booleans, `0o644` and `0644` are 420, `08` is 8, `22:22` and dates are texts, keys are texts, and what JSON
does not have is an error. Merge keys (`<<`) and unknown tags are errors here only.

In YAML an alias (`*name`) repeats what an anchor (`&name`) marks. Aliases of aliases, and keys that merge them, make
hours of work out of half a kilobyte. Here each alias counts as what it repeats.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final, TypeAlias

import attrs
import yaml

from multikueue.core.model.objects import shortened

MAX_SIZE: Final = 1 << 20
"""Bytes of a document, and characters of its texts with those that aliases repeat. Real ones have some thousand."""
MAX_VALUES: Final = 10_000
"""Values of a document, with those that aliases repeat: it takes half a second to parse so many."""
MAX_DEPTH: Final = 100
"""Levels of nesting. Real files have ten; a thousand would exhaust Python's stack."""
MAX_NUMBER: Final = 100
"""Characters of a number: reading a long one takes time by the square of its length."""

Scalar: TypeAlias = bool | int | float | str | None

_BASE: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_BASE}merge"
_WORDS: Final[Mapping[str, Scalar]] = {
    **{word: True for text in ("y", "yes", "true", "on") for word in (text, text.capitalize(), text.upper())},
    **{word: False for text in ("n", "no", "false", "off") for word in (text, text.capitalize(), text.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((f"{sign}.{word}" for sign in ("", "+") for word in ("inf", "Inf", "INF")), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_BLANKS: Final = frozenset(" \t")
_BREAKS: Final = frozenset("\r\n\x85\u2028\u2029")
"""What ends a line."""
_FIRST: Final = frozenset("+-0123456789.")
"""What a number begins with."""
_INTEGERS: Final = tuple(
    (re.compile(pattern), base)
    for pattern, base in (
        (r"(?P<sign>[-+]?)0[xX](?P<digits>[0-9a-fA-F]+)", 16),
        (r"(?P<sign>[-+]?)0[bB](?P<digits>[01]+)", 2),
        (r"0b(?P<sign>[-+])(?P<digits>[01]+)", 2),
        (r"(?P<sign>[-+]?)0[oO]?(?P<digits>[0-7]+)", 8),
        (r"(?P<sign>[-+]?)(?P<digits>0|[1-9][0-9]*)", 10),
    )
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_FRACTION: Final = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_LOWEST: Final = -(1 << 63)
_SIGNED: Final = 1 << 63
_UNSIGNED: Final = 1 << 64


def scalar(text: str) -> Scalar:
    """What a scalar without quotes stands for. Numbers that JSON does not have are floats.

    Raises:
        ValueError: it is a number of more than `MAX_NUMBER` characters.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST or (text[0] == "." and not _FRACTION.fullmatch(text)):
        return text
    plain = text.replace("_", "")
    is_float, integers = _FLOAT.fullmatch(plain), [(pattern.fullmatch(plain), base) for pattern, base in _INTEGERS]
    if len(plain) > MAX_NUMBER and (is_float or any(match for match, _ in integers)):
        raise ValueError(f"a number of more than {MAX_NUMBER} characters")
    for match, base in integers:
        value = int(match["sign"] + match["digits"], base) if match else _UNSIGNED
        if match and _LOWEST <= value < (_SIGNED if match["sign"] else _UNSIGNED):
            return value
    return float(plain) if is_float and math.isfinite(float(plain)) else text


def _sent(value: Scalar) -> Scalar:
    """As Go's encoding/json writes it: a whole number has no fraction, in the digits that tell it from others."""
    if not isinstance(value, float) or not value.is_integer():
        return value
    whole = int(Decimal(repr(value))) if abs(value) < _UNSIGNED else _UNSIGNED
    return whole if _LOWEST <= whole < _UNSIGNED else value


class OutOfBoundsError(yaml.constructor.ConstructorError):
    """The document is beyond the bounds. Its `problem` says how, and quotes nothing of it."""

    def __init__(self, problem: str, place: yaml.Event | yaml.Node) -> None:
        mark: Any = place.start_mark  # the stubs name three types that are one
        super().__init__(None, None, problem, mark)


def fault(problem: str, mark: yaml.Mark) -> yaml.constructor.ConstructorError:
    """A YAML error about one place."""
    return yaml.constructor.ConstructorError(None, None, problem, mark)


@attrs.frozen
class _Extent:
    """How much a document has so far, or what one of its anchors marks."""

    values: int = 0
    characters: int = 0

    def plus(self, other: _Extent) -> _Extent:
        return _Extent(self.values + other.values, self.characters + other.characters)

    def since(self, earlier: _Extent) -> _Extent:
        return _Extent(self.values - earlier.values, self.characters - earlier.characters)


class KubernetesLoader(yaml.SafeLoader):
    """Reads JSON values, within bounds; for all else it raises a YAML error with its place.

    Check the size of the document before: see `MAX_SIZE`.
    """

    aliases: ClassVar[bool] = True
    """Whether aliases are read. Nobody needs them in what another has sent."""
    distinct: ClassVar[bool] = False
    """Whether a key that is written twice is an error. Else the last counts."""
    max_values: ClassVar[int] = MAX_VALUES
    max_characters: ClassVar[int] = MAX_SIZE

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._depth = 0
        self._read = _Extent()
        self._marked: dict[str, _Extent] = {}
        """By anchor of this document, what it marks."""

    def scan_to_next_token(self) -> None:
        """See `yaml.scanner.Scanner`. A tab is a space where it indents no block: people put it before a value or a
        comment, and programs indent JSON with it."""
        scanner: Any = self  # the stubs do not type its methods
        super().scan_to_next_token()
        while scanner.peek() == "\t" and (scanner.flow_level or not scanner.allow_simple_key):
            scanner.forward()
            super().scan_to_next_token()

    def scan_plain_spaces(self, indent: int, start_mark: yaml.Mark) -> list[str]:
        """See `yaml.scanner.Scanner`. Within a text without quotes tabs are spaces, too."""
        scanner: Any = self
        blanks, breaks = "", list[str]()
        while (character := scanner.peek()) in _BLANKS or character in _BREAKS:
            if character in _BREAKS:
                breaks.append(scanner.scan_line_break())
                scanner.allow_simple_key = True
                if scanner.prefix(3) in ("---", "...") and scanner.peek(3) in _BLANKS | _BREAKS | {"\0"}:
                    return []
            elif breaks and character == "\t" and scanner.column < indent:
                break  # it would indent a block: the next token cannot begin with it
            else:
                blanks += character
                scanner.forward()
        if not breaks:
            return [blanks] if blanks else []
        first, *others = breaks
        return [*([first] if first != "\n" else [" "] if not others else []), *others]

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """See `yaml.composer.Composer`."""
        parser: Any = self  # the stubs do not type its methods
        event, before = parser.peek_event(), self._read
        if parent is None:
            self._marked = {}
        if isinstance(event, yaml.AliasEvent):
            if not self.aliases:
                raise OutOfBoundsError("aliases (*) are not read here: write the values out", event)
            if event.anchor in self.anchors and event.anchor not in self._marked:
                raise OutOfBoundsError("an alias stands in what it repeats", event)
            self._count(event, self._marked.get(event.anchor or "", _Extent()))
            return super().compose_node(parent, index)
        if parent is not None and self._depth == MAX_DEPTH:
            raise OutOfBoundsError(f"more than {MAX_DEPTH} levels of nesting", parent)
        self._count(event, _Extent(1, len(event.value) if isinstance(event, yaml.ScalarEvent) else 0))
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if event.anchor is not None:
            self._marked[event.anchor] = self._read.since(before)
        return node

    def _count(self, event: yaml.Event, more: _Extent) -> None:
        self._read = self._read.plus(more)
        if self._read.values > self.max_values:
            raise OutOfBoundsError(f"it has more than {self.max_values} values", event)
        if self._read.characters > self.max_characters:
            raise OutOfBoundsError(f"its texts have more than {self.max_characters} characters", event)

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        """See `yaml.resolver.Resolver`."""
        if kind is yaml.ScalarNode and implicit[0]:
            return _BASE + self.kind_of(value)
        resolver: Any = super()
        return str(resolver.resolve(kind, value, implicit))

    def kind_of(self, value: str) -> str:
        """The type of a scalar without quotes, in YAML's word for it."""
        try:
            return _KINDS[type(scalar(value))]
        except ValueError:
            return "int"  # of too many digits: it is told when it is read

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        """See `yaml.constructor.SafeConstructor`. Keys are texts."""
        if not isinstance(node, yaml.MappingNode):
            raise fault("a mapping is expected here", node.start_mark)
        made: dict[Any, Any] = {}
        for key_node, value in node.value:
            key = self._key(key_node)
            if self.distinct and key in made:
                raise fault(f'"{shortened(key, 100)}" is written twice', key_node.start_mark)
            made[key] = self.construct_object(value, deep)
        return made

    def _key(self, node: yaml.Node) -> str:
        if node.tag == _MERGE or (node.value == "<<" and isinstance(node, yaml.ScalarNode) and node.style is None):
            raise OutOfBoundsError("merge keys (<<) are not read: write the fields out", node)
        key = self._scalar(node) if node.tag in _UNTOLD else self.construct_object(node, deep=True)
        match key:
            case bool():
                return "true" if key else "false"
            case str():
                return key
            case int() if key < _SIGNED:
                return str(key)
            case float() if (
                abs(key) < 1e38 and float(short := f"{key:g}") == key
            ):  # Go writes more digits in several ways
                return short
        raise fault("this cannot be a key: put it in quotes", node.start_mark)

    def _scalar(self, node: yaml.Node) -> Scalar:
        try:
            value = scalar(node.value) if isinstance(node, yaml.ScalarNode) else node.value
        except ValueError as error:
            raise OutOfBoundsError(str(error), node) from None
        kind, wanted = _KINDS.get(type(value), ""), node.tag.removeprefix(_BASE)
        finite = not isinstance(value, float) or math.isfinite(value)
        if finite and (kind == wanted or (kind, wanted) == ("int", "float")):
            return value
        flaw = f"no {wanted}" if finite else "no number that JSON has"
        raise fault(f'"{shortened(str(node.value), 100)}" is {flaw}: put it in quotes if it is a text', node.start_mark)

    def _value(self, node: yaml.Node) -> Scalar:
        return _sent(self._scalar(node))

    def _text(self, node: Any) -> str:
        text = str(self.construct_scalar(node))
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise fault("half of a character is no text", node.start_mark)
        return text

    def _binary(self, node: Any) -> str:
        try:
            return base64.b64decode("".join(self._text(node).split()), validate=True).decode()
        except ValueError:
            raise fault("this is no base64 of a text", node.start_mark) from None


_KINDS: Final[Mapping[type, str]] = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}
_UNTOLD: Final = frozenset(_BASE + kind for kind in ("bool", "int", "float", "null"))

KubernetesLoader.yaml_constructors = {
    **dict.fromkeys(_UNTOLD, KubernetesLoader._value),
    f"{_BASE}str": KubernetesLoader._text,
    f"{_BASE}binary": KubernetesLoader._binary,
    f"{_BASE}seq": KubernetesLoader.construct_yaml_seq,
    f"{_BASE}map": KubernetesLoader.construct_yaml_map,
    None: KubernetesLoader.construct_undefined,
}


class KubernetesDumper(yaml.SafeDumper):
    """Writes texts so that Kubernetes reads texts: PyYAML puts no quotes around `n`, `1e3` and `0o17`.
    It never refers back to an equal part."""

    def ignore_aliases(self, data: object) -> bool:
        """See `yaml.SafeDumper`."""
        del data
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    try:
        style = None if isinstance(scalar(text), str) else "'"
    except ValueError:  # a number of too many digits
        style = "'"
    return dumper.represent_scalar(f"{_BASE}str", text, style=style)


KubernetesDumper.add_representer(str, _quoted)
