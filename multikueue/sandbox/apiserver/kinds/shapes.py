"""
Shapes: what server-side apply knows about a type.

A shape says of a value which parts are owned and merged one by one: the fields of a map, the items of a list that has
keys or is a set. Everything else is atomic, owned and replaced as a whole. Shapes are read from OpenAPI schemas by the
rules of kube-openapi's `schemaconv`, lazily, because most parts of most schemas are never asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeAlias

import attrs

from multikueue.core.model.names import Json

Path: TypeAlias = tuple[str, ...]
"""Where a field is: the steps as FieldsV1 writes them, `f:name`, `k:{...}` or `v:...`."""

NUMERIC, STRING, BOOLEAN, UNTYPED = "numeric", "string", "boolean", "untyped"
_SCALARS = {"integer": NUMERIC, "number": NUMERIC, "string": STRING, "boolean": BOOLEAN}
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"


@attrs.define(eq=False)
class MapShape:
    """A map: declared fields, and the shape of all other ones; None if there may be none."""

    fields: Mapping[str, Json]
    other: Shape | None
    atomic: bool
    reader: Reader
    _children: dict[str, Shape] = attrs.field(factory=dict)

    def declares(self, key: str) -> bool:
        """Whether the field is declared by name."""
        return key in self.fields

    def child(self, key: str) -> Shape | None:
        """The shape of a field; None if there may be no such field."""
        if key not in self.fields:
            return self.other
        if key not in self._children:
            self._children[key] = self.reader.read(self.fields[key])
        return self._children[key]

    def default(self, key: str) -> Any:
        """The default of a field, which stands for a list's key that is not given."""
        return self.fields.get(key, {}).get("default")


@attrs.define(eq=False)
class ListShape:
    """A list: atomic, or with items that are told apart by keys or, without keys, by their value."""

    schema: Json
    reader: Reader
    atomic: bool
    keys: tuple[str, ...]
    _items: Shape | None = None

    @property
    def items(self) -> Shape:
        """The shape of the items."""
        if self._items is None:
            self._items = self.reader.read(self.schema["items"]) if "items" in self.schema else UNTYPED_ATOMIC
        return self._items

    def key_default(self, key: str) -> Any:
        """What stands for a key that an item leaves out."""
        fields = self.items.map
        return fields.default(key) if fields else None


@attrs.define(eq=False)
class Shape:
    """What a value may be; where several are possible, the value decides."""

    scalar: str = ""
    list: ListShape | None = None
    map: MapShape | None = None

    def deduced(self, value: Any) -> Shape:
        """This shape narrowed to what the value is; itself if the value says nothing or does not fit."""
        if bool(self.scalar) + (self.list is not None) + (self.map is not None) < 2:
            return self
        if isinstance(value, dict):
            return self._as_map if self.map else self
        if isinstance(value, list):
            return self._as_list if self.list else self
        if isinstance(value, str | int | float) and self.scalar:
            return self._as_scalar
        return self

    @cached_property
    def _as_map(self) -> Shape:
        return Shape(map=self.map)

    @cached_property
    def _as_list(self) -> Shape:
        return Shape(list=self.list)

    @cached_property
    def _as_scalar(self) -> Shape:
        return Shape(self.scalar)

    def is_like(self, other: Shape) -> bool:
        """Whether both are the same choice."""
        return self.scalar == other.scalar and self.list is other.list and self.map is other.map


@attrs.frozen
class Reader:
    """Reads shapes from schemas; `preserves` once a schema above keeps unknown fields."""

    definitions: Mapping[str, Json]
    preserves: bool = False

    def read(self, schema: Json) -> Shape:
        """The shape of a schema."""
        reference = schema.get("$ref")
        if reference == _QUANTITY:
            return Shape(UNTYPED)
        if reference == _RAW:
            return UNTYPED_ATOMIC
        if reference:
            schema = {**self.definitions[reference], **{key: schema[key] for key in schema if key != "$ref"}}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return Reader(self.definitions, True)._shape(schema)
        return self._shape(schema)

    def _shape(self, schema: Json) -> Shape:
        kind = schema.get("type", "")
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return Shape(UNTYPED)
        if kind in _SCALARS:
            return Shape(_SCALARS[kind])
        if kind == "object":
            return Shape(map=self._map(schema))
        if kind == "array":
            return Shape(list=self._list(schema))
        return Shape(UNTYPED, self._list(schema), self._map(schema))

    def _map(self, schema: Json) -> MapShape:
        fields, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        other: Shape | None = None
        if isinstance(additional, dict):
            other = self.read(additional)
        elif additional or (additional is None and (self.preserves or not fields)):
            other = DEDUCED
        return MapShape(fields, other, schema.get("x-kubernetes-map-type") == "atomic", self)

    def _list(self, schema: Json) -> ListShape:
        kind = schema.get("x-kubernetes-list-type")
        if kind == "map":
            return ListShape(schema, self, False, tuple(schema.get("x-kubernetes-list-map-keys") or ()))
        merges = kind is None and "merge" in schema.get("x-kubernetes-patch-strategy", "")
        if merges and schema.get("x-kubernetes-patch-merge-key"):
            return ListShape(schema, self, False, (schema["x-kubernetes-patch-merge-key"],))
        return ListShape(schema, self, not (kind == "set" or merges), ())


_ANY = Reader({})
DEDUCED = Shape(UNTYPED)
"""Whatever the value is: maps field by field, lists as a whole."""
DEDUCED.map = MapShape({}, DEDUCED, False, _ANY)
DEDUCED.list = ListShape({}, _ANY, True, (), DEDUCED)
UNTYPED_ATOMIC = Shape(UNTYPED)
"""Whatever the value is, as a whole."""
UNTYPED_ATOMIC.map = MapShape({}, UNTYPED_ATOMIC, True, _ANY)
UNTYPED_ATOMIC.list = ListShape({}, _ANY, True, (), UNTYPED_ATOMIC)
