"""A YAML loader whose work is bounded by the size of what it reads: for files and Secrets that people write.

In YAML an alias (`*name`) repeats what an anchor (`&name`) marks. Aliases of aliases, and keys that merge them (`<<`),
make hours of work out of half a kilobyte. Here each alias counts as what it repeats, and merge keys are refused.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import yaml

MAX_SIZE: Final = 1 << 20
"""Bytes of a document, and characters of its texts with those that aliases repeat. Real ones have some thousand."""
MAX_VALUES: Final = 10_000
"""Values of a document, with those that aliases repeat: it takes half a second to parse so many."""
MAX_DEPTH: Final = 100
"""Levels of nesting. Real files have ten; a thousand would exhaust Python's stack."""
MAX_NUMBER: Final = 100
"""Characters of a number: the work for one in base 60 (`1:30:00`) grows with the square of its length."""

_MERGE: Final = "tag:yaml.org,2002:merge"
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


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


class BoundedLoader(yaml.SafeLoader):
    """A SafeLoader with bounds; beyond them it raises a YAML error with its place.

    Check the size of the document before: see `MAX_SIZE`.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._depth = 0
        self._read = _Extent()
        self._marked: dict[str, _Extent] = {}
        """By anchor of this document, what it marks."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """See `yaml.composer.Composer`."""
        parser: Any = self  # the stubs do not type its methods
        event, before = parser.peek_event(), self._read
        if parent is None:
            self._marked = {}
        if isinstance(event, yaml.AliasEvent):
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
        if self._read.values > MAX_VALUES:
            raise OutOfBoundsError(f"it has more than {MAX_VALUES} values", event)
        if self._read.characters > MAX_SIZE:
            raise OutOfBoundsError(f"its texts have more than {MAX_SIZE} characters", event)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """See `yaml.constructor.SafeConstructor`: it would copy what is merged into the node."""
        for key, _ in node.value:
            if key.tag == _MERGE:
                raise OutOfBoundsError("merge keys (<<) are not read: write the fields out", key)
        super().flatten_mapping(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """See `yaml.constructor.BaseConstructor`."""
        if node.tag in _NUMBERS and len(node.value) > MAX_NUMBER:
            raise OutOfBoundsError(f"a number of more than {MAX_NUMBER} characters", node)
        return super().construct_object(node, deep)
