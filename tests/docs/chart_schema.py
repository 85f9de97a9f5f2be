"""The schema of the chart's `settings`, made of the settings' own types: `python -m tests.docs.chart_schema` writes it.

Helm refuses by it what is no setting, or of another type. What a text may be, and what contradicts what, the daemon
says: `multikueue run --check`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import attrs

from multikueue.adapters.declaration import Declaration
from multikueue.core.dispatchers.scored.profile import Hold, Then, Weights
from multikueue.core.model.names import Json
from multikueued.settings.config import IntegrationSettings, Settings
from multikueued.settings.frameworks import AUTO, UNSUPPORTED, framework_names
from multikueued.settings.kueue_configuration import PASSED_OVER, SPELLINGS
from multikueued.settings.value_types import ByteSize, Count, DispatchProfiles, FrameworkName, Port, StepSize
from multikueued.settings.values import camel

FILE: Final = Path(__file__).parents[2] / "charts" / "multikueued" / "values.schema.json"
WIDTH: Final = 118
DURATION: Final[Json] = {
    "type": ["string", "number"],
    "pattern": r"^\+?(0|([0-9]*\.?[0-9]*(h|m|s|ms|us|µs|μs|ns))+)$",  # of a text
    "minimum": 0,  # of a number: only 0 needs no unit
    "maximum": 0,
}
_POINTS: Final[Json] = {"type": "number", "minimum": 0}
_WORKERS: Final[Json] = {"type": "integer", "minimum": 1}


def group(properties: Json) -> Json:
    """These settings and no others. Null: every line of the group is commented out."""
    return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}


def named(definition: str) -> Json:
    """A reference to it."""
    return {"$ref": f"#/definitions/{definition}"}


PROFILE: Final = group(
    {
        "offer": group({"candidates": _WORKERS, "retry": named("duration"), "most": _WORKERS}),
        "hold": {"enum": [*Hold]},
        "scores": group(dict.fromkeys(attrs.fields_dict(Weights), _POINTS)),
        "preference": {"type": ["object", "null"], "additionalProperties": _POINTS},
        "giveUp": group({"after": named("duration"), "then": {"enum": [*Then]}}),
    }
)
_RULED: Final[Mapping[Any, Json]] = {
    ByteSize: {"type": ["string", "integer"]},
    Port: {"type": "integer", "minimum": 1, "maximum": 65_535},  # a Service and probes need to know which
    Count: {"type": "integer", "minimum": 1},
    StepSize: {"type": "integer", "minimum": 1},
    FrameworkName: {"enum": sorted({*framework_names(), *UNSUPPORTED})},
    DispatchProfiles: {"type": ["object", "null"], "additionalProperties": PROFILE},
}
"""Types whose rule takes less, or something else, than the type of what is read."""
_PLAIN: Final[Mapping[Any, Json]] = {
    bool: {"type": "boolean"},
    str: {"type": "string"},
    timedelta: named("duration"),
    Any: {},
}


@attrs.define
class Schemas:
    """The schemas of types; those of groups are definitions, which are named after the class."""

    definitions: dict[str, Json] = attrs.field(factory=lambda: {"duration": DURATION})

    def of(self, kind: Any) -> Json:
        """What a setting of a type may be.

        Raises:
            TypeError: nothing is known of that type.
        """
        if kind in _RULED:
            return _RULED[kind]
        if kind in _PLAIN:
            return _PLAIN[kind]
        if attrs.has(kind):
            return self.group_of(kind)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.of(arguments[0])
        if origin is Literal:
            if numbers := [int(text) for text in arguments if text.isdecimal()]:  # YAML reads such a text as a number
                return {"anyOf": [{"enum": [*arguments]}, {"enum": numbers}]}
            return {"enum": [*arguments]}
        if origin is tuple:
            return {"type": ["array", "null"], "items": self.of(arguments[0])}
        if origin is dict:
            return {"type": "object"}
        if type(None) in arguments and len(arguments) == 2:
            return or_null(self.of(arguments[0]))
        raise TypeError(f"of {kind} nothing is known")

    def group_of(self, owner: type) -> Json:
        """What a group of settings may have."""
        if owner.__name__ not in self.definitions:
            hints = get_type_hints(owner, include_extras=True)
            fields: tuple[Any, ...] = attrs.fields(owner)
            made = {camel(field.name): self.of(hints[field.name]) for field in fields}
            silent = {camel(field.name) for field in fields if field.default == ""}
            made = {name: or_null(schema) if name in silent else schema for name, schema in made.items()}
            if owner is IntegrationSettings:
                made["frameworks"] |= {"type": ["array", "null", "string"], "pattern": f"^{AUTO}$"}
            needed = [camel(field.name) for field in fields if field.default is attrs.NOTHING]
            alone = {"type": ["object", "string"]} if owner is Declaration else {}  # a name alone, as in Kueue
            self.definitions[owner.__name__] = group(made) | ({"required": needed} if needed else {}) | alone
        return named(owner.__name__)

    def of_kueues_configuration(self) -> Json:
        """What Kueue's Configuration may have: our settings, and Kueue's."""
        whole = copy.deepcopy(self.resolved(self.group_of(Settings)))
        for theirs, ours in reversed([*SPELLINGS.items()]):
            self._put(whole, theirs, self._at(whole, ours))
        for path in PASSED_OVER:
            self._put(whole, path, {})
        return whole

    def resolved(self, schema: Json) -> Json:
        """The definition that a schema refers to; any other as it is."""
        return self.definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def _at(self, schema: Json, path: str) -> Json:
        for name in path.split("."):
            schema = self.resolved(schema)["properties"][name]
        return schema

    def _put(self, schema: Json, path: str, value: Json) -> None:
        *groups, last = path.split(".")
        for name in groups:
            inner = schema["properties"]
            inner[name] = copy.deepcopy(self.resolved(inner.get(name, group({}))))
            schema = inner[name]
        schema["properties"].setdefault(last, value)


def or_null(schema: Json) -> Json:
    """The same, or null."""
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    if "type" not in schema:
        return schema  # a group may be null in any case
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*types, *({"null"} - {*types})]}


def with_settings(values: Json) -> Json:
    """The schema of the chart's values with that of the settings."""
    schemas = Schemas()
    ours, kueues = schemas.group_of(Settings), schemas.of_kueues_configuration()
    definitions = {
        name: definition
        for name, definition in values["definitions"].items()
        if name in ("strings", "objects", "apiServer")
    }
    definitions |= {"kueueConfiguration": kueues, **schemas.definitions}
    said = {"anyOf": [{"required": ["apiVersion"]}, {"required": ["kind"]}]}
    chosen = {"if": said, "then": named("kueueConfiguration"), "else": ours}
    return {**values, "definitions": definitions, "properties": {**values["properties"], "settings": chosen}}


def written(value: Any, indent: int = 0, before: int = 0) -> str:
    """As JSON, with what fits on one line on one.

    Args:
        value: what is written.
        indent: of the line on which it begins.
        before: characters that stand on that line already, behind the indent.
    """
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or indent + before + len(flat) < WIDTH:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, list):
        parts = [written(item, indent + 2) for item in value]
    else:
        keys = [json.dumps(key) + ": " for key in value]
        parts = [key + written(item, indent + 2, len(key)) for key, item in zip(keys, value.values(), strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{pad}" + f",\n{pad}".join(parts) + f"\n{' ' * indent}{closing}"


def schema() -> str:
    """The file as it should be."""
    return written(with_settings(json.loads(FILE.read_text()))) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema())
