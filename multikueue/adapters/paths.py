"""Paths of fields as people write them: `.spec.runPolicy.managedBy`, `.metadata.labels['example.com/team']`."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from multikueue.adapters.templates import EACH
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

MAPS: Final = (("metadata", "labels"), ("metadata", "annotations"))
"""Where single labels and annotations are."""

_STEP: Final = re.compile(r"""\.?([A-Za-z_][\w-]*)|\.?\[(?:'([^']+)'|"([^"]+)")\]""")
_ENTRIES: Final = f"[{EACH}]"
_INDEX: Final = re.compile(r"\[(\d+|\*)\]")
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*")


@attrs.frozen
class FieldPath:
    """Where a field of an object is."""

    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, *, entries: bool = False) -> FieldPath:
        """Read a path. The leading dot may be left out; names that hold a dot or a slash stand in `['...']`.

        Args:
            text: the path.
            entries: whether `[*]` may stand in it, for every entry of a list.

        Raises:
            ValueError: it is not a path; the message says why.
        """
        steps: list[str] = []
        position = 0
        while position < len(text):
            if entries and steps and text.startswith(_ENTRIES, position):
                steps.append(EACH)
                position += len(_ENTRIES)
                continue
            step = _STEP.match(text, position)
            if step is None or (position and step.group()[0] not in ".["):
                raise ValueError(_complaint(text, position))
            steps.append(step.group(1) or step.group(2) or step.group(3))
            position = step.end()
        if not steps:
            raise ValueError("an empty path names no field: write it like .spec.managedBy")
        return cls(tuple(steps))

    @property
    def pointer(self) -> str:
        """The same as a JSON pointer (RFC 6901)."""
        return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in self.steps)

    def is_below(self, *parents: str) -> bool:
        """Whether it names something in that part of an object, and not the part itself."""
        return self.steps[: len(parents)] == parents and len(self.steps) > len(parents)

    def is_unknown_to(self, definition: Json, version: str) -> bool:
        """Whether the API server would drop a field of this path. False too where the schema does not tell.

        Args:
            definition: the CustomResourceDefinition.
            version: of the kind.
        """
        if self.steps[0] == "metadata":
            return False  # every kind has the same
        versions = [served for served in dig(definition, "spec", "versions") or () if served.get("name") == version]
        return self.is_unknown_in(dig(versions[0], "schema", "openAPIV3Schema") if versions else None)

    def is_unknown_in(self, schema: Any) -> bool:
        """Whether a server with this schema of the kind would drop the field. False too where it does not tell."""
        for step in self.steps:
            if not isinstance(schema, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
                return False
            if step == EACH and "items" in schema:
                schema = schema["items"]
                continue
            known = schema.get("properties")
            if isinstance(known, dict) and step in known:
                schema = known[step]
            elif not (schema := schema.get("additionalProperties")):
                return True
        return False

    def __str__(self) -> str:
        return "".join(
            _ENTRIES if step == EACH else f".{step}" if _PLAIN.fullmatch(step) else f"['{step}']" for step in self.steps
        )


def _complaint(text: str, position: int) -> str:
    if _INDEX.match(text, position):
        return f"{text} names an item of a list: only fields of objects can be named"
    return (
        f"{text} is not a path of a field, from character {position + 1} on: write it like .spec.managedBy, or "
        ".metadata.labels['example.com/team'] for a name with dots"
    )
