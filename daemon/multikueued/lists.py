"""Reading lists of the settings file: each entry has its place in what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_origin

import cattrs

from multikueue.adapters.declaration import Declaration
from multikueued.values import shown

Hook = Callable[[Any, Any], Any]


def is_list(kind: Any) -> bool:
    """Whether a setting of that type is a list."""
    return get_origin(kind) is tuple


def list_of(kind: Any, converter: cattrs.Converter) -> Hook:
    """How a list is read: entry by entry, and all that is wrong is told."""
    entry = get_args(kind)[0]

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError(f'{shown(value)} is not a list: begin each entry with "- "')
        entries: list[Any] = []
        errors: list[Exception] = []
        for index, given in enumerate(value):
            try:
                entries.append(given if get_origin(entry) is dict else converter.structure(given, entry))
            except Exception as error:  # collected: the caller tells all of them
                error.add_note(cattrs.IterableValidationNote("", index, entry))
                errors.append(error)
        if errors:
            raise cattrs.IterableValidationError("entries cannot be used", errors, kind)
        return tuple(entries)

    return read


def declaration_hook(group: Hook) -> Hook:
    """How a declared kind is read: as a group of settings, or as Kueue has it, a name alone.

    Args:
        group: reads the group.
    """

    def read(value: Any, kind: Any) -> Declaration:
        if isinstance(value, str):
            return Declaration(name=value)
        if not isinstance(value, dict) or "name" not in value:
            raise ValueError("it has no name: write it like name: PipelineRun.v1.tekton.dev")
        found: Declaration = group(value, kind)
        return found

    return read
