"""Where a job kind has pod templates, and which pod sets of a Workload were made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.started import is_started, restore
from multikueue.errors import AdapterError

Path: TypeAlias = tuple[str, ...]
"""Where a field of an object is: `("spec", "managedBy")`."""
EACH: Final = "*"
"""In a path: every entry of a list or of a mapping."""
KEY: Final = "*"
"""What names the entries of a mapping."""


_LIKE: Final = "write one as ('spec', 'managedBy')"


def is_path(rules: object, field: attrs.Attribute[Any], value: object) -> None:
    """A validator of a path, or of none.

    Raises:
        AdapterError: it is something else, as a text, whose letters would be taken for names of fields.
    """
    if value is not None and value != field.default:
        _check(rules, field, value)


def are_paths(rules: object, field: attrs.Attribute[Any], value: object) -> None:
    """A validator of several paths; see `is_path`."""
    if not isinstance(value, Iterable):
        raise AdapterError(f"{type(rules).__name__}.{field.name}: {value!r} is no list of paths: {_LIKE}")
    for path in value:
        _check(rules, field, path)


def _check(rules: object, field: attrs.Attribute[Any], path: object) -> None:
    if not isinstance(path, tuple) or not path or not all(isinstance(step, str) for step in path):
        raise AdapterError(f"{type(rules).__name__}.{field.name}: {path!r} is not a path of a field: {_LIKE}")


@attrs.frozen(kw_only=True)
class PodTemplates:
    """The pod templates at one path. Which pod set is whose is told by names, in any case, or else by their order."""

    at: Path = attrs.field(validator=is_path)
    """Of a job; `*` stands for every entry of a list or mapping."""
    pod_set: str = ""
    """The name of the pod set, where there is one."""
    named_by: str = ""
    """The field of an entry that names its pod set; `KEY` where its key does."""
    kept: tuple[str, ...] = ()
    """Labels that pod sets lack, since the API server fills them in."""

    def found_in(self, job: Json) -> Iterator[tuple[str, Json]]:
        """Each template, and the name of its pod set; empty if the row does not tell."""
        yield from self._below(job, self.at, self.pod_set)

    def _below(self, value: Any, path: Path, name: str) -> Iterator[tuple[str, Json]]:
        if not path:
            if isinstance(value, dict):
                yield name, value
        elif path[0] == EACH:
            for key, entry in _entries(value):
                entry_name = key if self.named_by == KEY else str(dig(entry, self.named_by) or "")
                yield from self._below(entry, path[1:], entry_name or name)
        else:
            yield from self._below(dig(value, path[0]), path[1:], name)


def texts_at(value: Any, path: Path) -> Iterator[str]:
    """The texts at a path; `*` stands for every entry of a list or mapping."""
    if not path:
        if isinstance(value, str):
            yield value
        return
    below = [entry for _, entry in _entries(value)] if path[0] == EACH else [dig(value, path[0])]
    for entry in below:
        yield from texts_at(entry, path[1:])


def restore_templates(job: Json, rows: Iterable[PodTemplates], pod_sets: Sequence[Json]) -> None:
    """Make the templates of a job that a Kueue has started as its Workload has them, in place.

    A template whose pod set is not there stays as it is, and so does one that was never started.
    """
    named = {str(pod_set.get("name")).lower(): pod_set for pod_set in pod_sets}
    templates = [(name, template, row.kept) for row in rows for name, template in row.found_in(job)]
    in_order = list(pod_sets) if len(templates) == len(pod_sets) else [None] * len(templates)
    for (name, template, kept), numbered in zip(templates, in_order, strict=True):
        pod_set = named.get(name.lower()) if name else numbered
        if pod_set is not None and is_started(template):
            restore(template, pod_set, kept)


def _entries(value: object) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return value.items()
    return (("", entry) for entry in value) if isinstance(value, list) else ()
