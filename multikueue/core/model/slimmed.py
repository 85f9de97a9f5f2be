"""Objects of which not all is kept: whoever creates a job decides how large its body is, and it can be read again.

What is left of a body is what is small in it. A note says that it is not whole, and what is asked of the whole one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import orjson

from multikueue.core.model.copies import SLIMMED, digests_of
from multikueue.core.model.labels import OWN_PREFIX
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, uid

LARGE: Final = 16 << 10
"""Bytes of an object, as it is sent, up to which all of it is kept: no job of a usual size has more."""
LEFT: Final = 4 << 10
"""Bytes that are left of a body, about: of each pod template, or of a job's spec."""
WORD: Final = 256
"""Characters of a text that is left as it is."""
SLIMMED_LATELY: Final = 1_024
"""Specs that are remembered, so that a change of a status does not have them slimmed again."""


def is_slimmed(obj: Json) -> bool:
    """Whether not all of an object is here."""
    return SLIMMED in obj


def size_noted(obj: Json) -> int:
    """How many bytes an object has of which not all is here; 0: all is."""
    return int(dig(obj, SLIMMED, "size") or 0)


def small_part(value: Any, most: int = LEFT) -> Any:
    """What is small in a JSON value: the smallest fields of an object, the first items of a list, short texts."""
    if isinstance(value, str):
        return value if len(value) <= min(WORD, most) else ""
    if isinstance(value, list):
        return _first(value, most)
    return _smallest(value, most) if isinstance(value, dict) else value


def _is_read(annotation: str) -> bool:
    """Whether decisions may read it, however long it is: of an object all annotations have 256 KiB at most."""
    return annotation.startswith(OWN_PREFIX) or "kueue.x-k8s.io/" in annotation


def _size(value: Any) -> int:
    try:
        return len(orjson.dumps(value))
    except TypeError:  # it nests too deep, or has a number that is none
        return 1 << 30


def _first(values: list[Any], most: int) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        part = value if (size := _size(value)) <= most else small_part(value, most // 2)
        size = size if part is value else _size(part)
        if size > most:
            break
        most -= size
        kept.append(part)
    return kept


def _smallest(values: Json, most: int) -> Json:
    sizes = {key: _size(value) + len(key) for key, value in values.items()}
    kept: Json = {}
    for key in sorted(sizes, key=lambda name: sizes[name]):
        part = values[key] if sizes[key] <= most else small_part(values[key], most // 2)
        size = sizes[key] if part is values[key] else _size(part) + len(key)
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
    note_of: Callable[[Json], Json] = lambda _: {}
    """What is noted of the whole object."""
    _lately: dict[tuple[str, int, int], tuple[Json, Json]] = attrs.field(factory=dict, init=False, repr=False)
    """By UID, generation and the bytes that are left, what was left and noted. The generation of an object is that of
    its spec."""

    def __call__(self, obj: Json, size: int, *, above: int = LARGE, left: int = LEFT) -> Json:
        """What is kept of an object.

        Args:
            obj: all of it; it is not changed.
            size: its bytes as they were sent.
            above: up to which size all is kept.
            left: see `spec_of`.
        """
        if size <= above or is_slimmed(obj) or not isinstance(obj.get("spec"), dict):
            return obj
        generation = dig(obj, "metadata", "generation")
        known = (uid(obj), generation, left) if isinstance(generation, int) and uid(obj) else None
        spec, note = self._lately.get(known) or (None, {}) if known is not None else (None, {})
        if spec is None:
            spec, note = self.spec_of(obj["spec"], left), self.note_of(obj)
            if known is not None:
                self._remember(known, spec, note)
        read = {name: value for name, value in annotations_of(obj).items() if len(value) <= WORD or _is_read(name)}
        metadata = {**obj["metadata"], "annotations": read} if annotations_of(obj) else obj["metadata"]
        return {**obj, "metadata": metadata, "spec": spec, SLIMMED: {**note, "size": size}}

    def _remember(self, known: tuple[str, int, int], spec: Json, note: Json) -> None:
        if len(self._lately) >= SLIMMED_LATELY:
            del self._lately[next(iter(self._lately))]
        self._lately[known] = spec, note


def workload_slimmer() -> Slimmer:
    """Of Workloads: their pod templates are large, nothing else; a copy is compared with their digests."""
    return Slimmer(_slim_pod_sets, lambda workload: {"digests": [*digests_of(workload["spec"])]})


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
