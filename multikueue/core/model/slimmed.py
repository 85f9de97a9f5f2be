"""Objects of which not all is kept: whoever creates a job decides how large its body is, and it can be read again.

What is left of a body is what is small in it. A note says that it is not whole, and what is asked of the whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import attrs

from multikueue.core.model.copies import SLIMMED, Slimmed, digests_of, slimmed_note
from multikueue.core.model.labels import OWN_PREFIX
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, json_size, uid

LARGE: Final = 16 << 10
"""Bytes of an object, as it is sent, up to which all of it is kept: no job of a usual size has more."""
LEFT: Final = 4 << 10
"""Bytes that are left of a body, about: of each pod template, or of a job's spec."""
WORD: Final = 256
"""Characters of a text that is left as it is."""
LONGEST: Final = LARGE // 2
"""Characters of an annotation that is read, at most."""
_OTHERS: Final = 2
_LISTS: Final = ("finalizers", "ownerReferences")
_PARTS: Final = ("apiVersion", "kind", "metadata", "spec", "status", SLIMMED)


def is_slimmed(obj: Json) -> bool:
    """Whether not all of an object is here."""
    return slimmed_note(obj) is not None


def size_noted(obj: Json) -> int:
    """How many bytes an object has of which not all is here; 0: all is."""
    note = slimmed_note(obj)
    return note.size if note is not None else 0


def known_spec(obj: Json, earlier: Json | None) -> Json:
    """The fields in which an object has what was kept of its spec in an earlier version; empty: the spec may differ.

    API servers give what changes beside metadata and status another generation, of Workloads and of jobs that are no
    pods. So the object has the same fields then. Of a Pod they do not: its binding to a node changes its spec.
    """
    if earlier is None or not uid(obj) or uid(obj) != uid(earlier):
        return {}
    generation = dig(obj, "metadata", "generation")
    if not isinstance(generation, int) or generation != dig(earlier, "metadata", "generation"):
        return {}
    kept = ("spec", SLIMMED) if is_slimmed(earlier) else ("spec",)
    if not obj.keys() >= earlier.keys() - {*kept}:
        return {}
    return {field: earlier[field] for field in kept if field in earlier}


def small_part(value: Any, most: int = LEFT) -> Any:
    """What is small in a JSON value: the smallest fields of an object, the first items of a list, short texts.

    What is inside has half as many bytes. So few levels are looked at, however deep a value nests.
    """
    if isinstance(value, str):
        return value if len(value) <= min(WORD, most) else ""
    if not most and isinstance(value, list | dict):
        return type(value)()
    if isinstance(value, list):
        return _first(value, most)
    return _smallest(value, most) if isinstance(value, dict) else value


def small_metadata(metadata: Json, lists: Iterable[str] = _LISTS) -> Json:
    """What is kept of the metadata of an object: API servers bound neither its labels nor these lists.

    Args:
        metadata: all of it.
        lists: of which the first entries are kept; of finalizers `LARGE` bytes, Kueue's before all others.
    """
    named = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
    listed = {field: _first(metadata[field], LEFT) for field in lists if metadata.get(field)}
    if "finalizers" in listed:  # the whole list is written where one is taken off it
        listed["finalizers"] = _first(sorted(metadata["finalizers"], key=_rank), LARGE)
    return {**metadata, **listed, **{field: _read_first(values) for field, values in named.items()}}


def _read_first(values: Mapping[str, str]) -> Json:
    """Labels or annotations of `LARGE` bytes at most: our own, then Kueue's, small ones first; then short ones.

    Of a text that is longer than any that is read its beginning is kept, so that it still cannot be read.
    """
    ranks: tuple[list[str], ...] = [], [], []
    for name in values:
        ranks[_rank(name)].append(name)
    for names in ranks[:_OTHERS]:
        names.sort(key=lambda name: len(name) + len(values[name]))
    kept: Json = {}
    left = LARGE
    for name in chain(*ranks[:_OTHERS], (name for name in ranks[_OTHERS] if len(values[name]) <= WORD)):
        value = values[name][:LONGEST]
        size = len(name) + len(value.encode())
        if size <= left:
            kept[name], left = value, left - size
        elif not left or len(value) <= WORD:  # of thousands nobody reads what has no room
            break
    return kept


def _rank(name: str) -> int:
    """Decisions read our own, and some of Kueue's."""
    return 0 if name.startswith(OWN_PREFIX) else 1 if "kueue.x-k8s.io/" in name else _OTHERS


def _first(values: list[Any], most: int) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        part = value if (size := json_size(value)) <= most else small_part(value, most // 2)
        size = size if part is value else json_size(part)
        if size > most:
            break
        most -= size
        kept.append(part)
    return kept


def _smallest(values: Json, most: int) -> Json:
    sizes = {key: json_size(value) + len(key) for key, value in values.items()}
    kept: Json = {}
    for key in sorted(sizes, key=lambda name: sizes[name]):
        part = values[key] if sizes[key] <= most else small_part(values[key], most // 2)
        size = sizes[key] if part is values[key] else json_size(part) + len(key)
        if size > most:
            break
        most -= size
        kept[key] = part
    return kept


@attrs.define(eq=False)
class Slimmer:
    """Makes of large objects of one kind what is kept of them."""

    spec_of: Callable[[Json, int], Json]
    """What is left of a spec, of so many bytes."""
    digests_of: Callable[[Json], tuple[str, ...]] | None = None
    """What is noted of the whole spec; None: nothing."""
    lists: tuple[str, ...] = _LISTS
    """Of its metadata, of which the first entries are kept."""

    def __call__(
        self, obj: Json, size: int, earlier: Json | None = None, *, above: int = LARGE, left: int = LEFT
    ) -> Json:
        """What is kept of an object.

        Args:
            obj: all of it; it is not changed.
            size: its bytes as they were sent.
            earlier: what was kept of an earlier version, where `known_spec` may say that the spec is the same: a change
                of a status does not have it slimmed again.
            above: up to which size all is kept.
            left: see `spec_of`.
        """
        if size <= above or not isinstance(obj.get("spec"), dict):
            return obj
        slim = obj if is_slimmed(obj) else known_spec(obj, earlier)
        if not is_slimmed(slim):
            digests = None if self.digests_of is None else self.digests_of(obj["spec"])
            slim = {"spec": self.spec_of(obj["spec"], left), SLIMMED: Slimmed(size, digests)}
        note = replace(slim[SLIMMED], size=size)
        beside = {field: small_part(value) for field, value in obj.items() if field not in _PARTS}
        metadata = small_metadata(obj["metadata"], self.lists)
        return {**obj, **beside, "metadata": metadata, "spec": slim["spec"], SLIMMED: note}


def workload_slimmer() -> Slimmer:
    """Of Workloads: their pod templates are large; a copy is compared with their digests. Its owners are its jobs."""
    return Slimmer(_slim_pod_sets, digests_of, ("finalizers",))


def job_slimmer() -> Slimmer:
    """Of jobs."""
    return Slimmer(small_part)


def _slim_pod_sets(spec: Json, left: int) -> Json:
    pod_sets = spec.get("podSets")
    if not isinstance(pod_sets, list):
        return spec
    slim = [
        {**pod_set, "template": small_part(pod_set["template"], left)} if "template" in pod_set else pod_set
        for pod_set in pod_sets
    ]
    return {**spec, "podSets": slim}
