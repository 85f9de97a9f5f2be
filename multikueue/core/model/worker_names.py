"""Names on a worker that differ from the manager's: in which namespace copies are there, and in which LocalQueue.

The MultiKueueCluster says how they are called there. Where a Workload's copies are is written on the Workload before
the first one is made, and that holds from then on: what the MultiKueueCluster says later moves nothing. A copy notes
the namespace and the queue that it comes from; its events are for the Workload of that namespace.

Another annotation there says that the worker gets nothing new.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from multikueue.core.model.labels import (
    CORDON_ANNOTATION,
    MAX_LABEL_VALUE,
    NAMESPACE_ON_ANNOTATION,
    NAMESPACES_ANNOTATION,
    ORIGIN_LABEL,
    ORIGIN_NAMESPACE_ANNOTATION,
    QUEUES_ANNOTATION,
)
from multikueue.core.model.names import OBJECT_NAME, SHORT_NAME, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, labels_of, name_of, namespace_of
from multikueue.core.model.outside_text import one_line
from multikueue.core.model.workloads import cluster_name, is_live, is_replaced

MAX_NAME: Final = MAX_LABEL_VALUE
"""Characters of a namespace's name."""


@attrs.frozen
class WorkerNames:
    """What the annotations of a MultiKueueCluster say of names there."""

    namespaces: Mapping[str, str] | None = None
    """The namespace there by the one here; a `*` stands for the same text in both. None: they have the same names."""
    queues: Mapping[str, str] = attrs.field(factory=dict)
    """The LocalQueue there by the one here; others have the same name."""
    flaw: str = ""
    """Why they cannot be used; empty: they can."""
    of_manager: bool = False
    """Whether the worker is the manager itself: what holds copies there has none itself."""

    @classmethod
    def of(cls, annotations: Mapping[str, str], *, of_manager: bool = False) -> WorkerNames:
        """What the MultiKueueCluster with these annotations says.

        Args:
            annotations: its own.
            of_manager: whether it points at the manager itself, where two objects cannot have one name.
        """
        return _read(annotations.get(NAMESPACES_ANNOTATION), annotations.get(QUEUES_ANNOTATION), of_manager)

    def namespace(self, namespace: str) -> str:
        """The namespace there; empty if it has none, see `why_none`."""
        if self.flaw or self._holds_copies(namespace):
            return ""
        image = namespace if self.namespaces is None else _image(self.namespaces, namespace)
        return image if len(image) <= MAX_NAME else ""

    def _holds_copies(self, namespace: str) -> bool:
        return self.of_manager and _is_image(self.namespaces or {}, namespace)

    def why_none(self, namespace: str) -> str:
        """Why a namespace has none there; empty: it has one."""
        if self.flaw or self.namespace(namespace):
            return self.flaw
        if self._holds_copies(namespace):
            return f'it is the manager itself, where namespace "{namespace}" is for copies of others'
        image = _image(self.namespaces or {}, namespace)
        if image:
            return f'namespace "{image}", which {NAMESPACES_ANNOTATION} gives it there, is longer than {MAX_NAME}'
        return f'{NAMESPACES_ANNOTATION} gives namespace "{namespace}" none there'

    def local_queue(self, key: ObjectKey) -> ObjectKey:
        """The LocalQueue there of one here; in no namespace if that has none there."""
        return ObjectKey(self.namespace(key.namespace), self.queues.get(key.name, key.name))


def namespaces_on_workers(workload: Json) -> dict[str, str]:
    """By worker, the namespace there that was chosen for a Workload's copies, if its name is not the Workload's own."""
    noted = annotations_of(workload).get(NAMESPACE_ON_ANNOTATION)
    return dict(_recorded(noted) or ()) if noted is not None else {}


def unreadable_places(workload: Json) -> str:
    """That a Workload does not say readably in which namespaces its copies are, for messages; empty: it does.

    Its copies would be looked for where they are not, and it might run twice.
    """
    noted = annotations_of(workload).get(NAMESPACE_ON_ANNOTATION)
    readable = noted is None or _recorded(noted) is not None
    return (
        ""
        if readable
        else f"its annotation {NAMESPACE_ON_ANNOTATION} cannot be read: restore it, or nothing is decided"
    )


def namespace_on(workload: Json, worker: str, siblings: Sequence[Json] = ()) -> str:
    """The namespace on a worker in which a Workload's copies are: one job is in one.

    Args:
        workload: the manager's.
        worker: the name of the worker.
        siblings: the other Workloads of its job.
    """
    if not siblings:
        return namespaces_on_workers(workload).get(worker) or namespace_of(workload)
    # A slice may be replaced before it has got a copy, and says nothing then.
    sharing = (sibling for sibling in siblings if cluster_name(sibling) == worker and record_counts(sibling))
    # One that was evicted or has ended may have left the job there, whose pods still end.
    said = (namespaces_on_workers(sharer).get(worker) for sharer in (*sharing, workload, *siblings))
    return next(filter(None, said), namespace_of(workload))


def record_counts(workload: Json) -> bool:
    """Whether the job of a Workload may be where that is recorded: a slice that was replaced leaves it to the next."""
    return is_live(workload) or is_replaced(workload)


def origin_namespace(copy: Json) -> str:
    """The manager's namespace that a copy says it comes from: its own if it says nothing."""
    return annotations_of(copy).get(ORIGIN_NAMESPACE_ANNOTATION) or namespace_of(copy)


def is_copy_elsewhere(obj: Json, namespace: str, origin: str) -> bool:
    """Whether an object says that it is a copy made by the manager of this origin from what is in another namespace.

    On the manager itself such an object is no job of a user: the manager is a worker, too.
    """
    came_from = annotations_of(obj).get(ORIGIN_NAMESPACE_ANNOTATION) or namespace
    return came_from != namespace and labels_of(obj).get(ORIGIN_LABEL) == origin


def origin_key(copy: Json) -> ObjectKey:
    """The manager's object that a copy says it was made of: names are the same on both sides."""
    return ObjectKey(origin_namespace(copy), name_of(copy))


@functools.lru_cache(maxsize=128)  # few texts are alike all the time, and whoever changes a Workload makes them long
def _recorded(noted: str) -> tuple[tuple[str, str], ...] | None:
    """None: it cannot be read."""
    try:
        places = json.loads(noted)
    except (ValueError, RecursionError):
        return None
    return tuple(places.items()) if _is_of_texts(places) and all(map(SHORT_NAME.fullmatch, places.values())) else None


@functools.lru_cache(maxsize=256)
def _read(namespaces: str | None, queues: str | None, of_manager: bool) -> WorkerNames:
    read: list[dict[str, str]] = []
    rules = (NAMESPACES_ANNOTATION, namespaces, _flaws), (QUEUES_ANNOTATION, queues, _queue_flaws)
    for annotation, text, flaws in rules:
        try:
            read.append({} if text is None else _texts(text))
            flaw = next(flaws(read[-1]), "")
        except ValueError as error:
            flaw = str(error)
        if flaw:
            return WorkerNames(flaw=f"its annotation {annotation} cannot be used: {one_line(flaw)}")
    if of_manager and (flaw := _shared(None if namespaces is None else read[0])):
        return WorkerNames(flaw=one_line(flaw))
    return WorkerNames(None if namespaces is None else read[0], read[1], of_manager=of_manager)


def _shared(mapped: Mapping[str, str] | None) -> str:
    """Why copies on the manager itself would have the names of what they are made of, or of others' jobs."""
    why = "it is the manager itself, so copies need namespaces of their own: "
    if mapped is None:
        return f'{why}name them in its annotation {NAMESPACES_ANNOTATION}, as {{"team-a": "local-team-a"}}'
    taken = next((name for name in mapped if _is_image(mapped, name)), None)
    return "" if taken is None else f'{why}its annotation {NAMESPACES_ANNOTATION} has "{taken}" on both sides'


def _is_image(mapped: Mapping[str, str], name: str) -> bool:
    """Whether a namespace, or all of a pattern, may be what a mapping makes of another."""
    return any(image == name or ("*" in image and _filling(image, name) is not None) for image in mapped.values())


def _texts(annotation: str) -> dict[str, str]:
    try:
        names = json.loads(annotation, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error}") from None
    if not _is_of_texts(names):
        raise ValueError('it must be an object of names, as {"team-a": "mk-team-a"}')
    return dict(names)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(pairs) != len(dict(pairs)):
        raise ValueError("a name stands in it twice")
    return dict(pairs)


def _is_of_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value, str) for value in value.values())


def _queue_flaws(queues: Mapping[str, str]) -> Iterator[str]:
    for name in (*queues, *queues.values()):
        if not OBJECT_NAME.fullmatch(name):
            yield f'"{name}" is no name'


def _flaws(mapped: Mapping[str, str]) -> Iterator[str]:
    """Why two namespaces could get one, or one none that a server takes."""
    for name, image in mapped.items():
        alike = name.count("*") == image.count("*") < 2
        if too_long := next((text for text in (name, image) if len(text) > MAX_NAME), ""):
            yield f'"{too_long}" is longer than {MAX_NAME}'
        elif not alike or not all(SHORT_NAME.fullmatch(either.replace("*", "x")) for either in (name, image)):
            yield f'"{name}": "{image}" are not two names, nor two with one * each'
    seen: dict[str, str] = {}
    for name, image in mapped.items():
        if image in seen:
            yield f'"{seen[image]}" and "{name}" would be one namespace there'
        seen[image] = name
    patterns = [(name, image) for name, image in mapped.items() if "*" in name]
    for number, (name, image) in enumerate(patterns):
        for other, others in patterns[:number]:
            if _overlap(image, others):
                yield f'"{other}" and "{name}" can lead to one namespace there'
        for exact, taken in mapped.items():
            filling = _filling(image, taken)
            if "*" not in exact and filling is not None and (here := name.replace("*", filling)) not in mapped:
                yield f'"{exact}" and "{here}", as of "{name}", would be one namespace there'


def _overlap(image: str, other: str) -> bool:
    (before, after), (first, last) = image.split("*"), other.split("*")
    starts = before.startswith(first) or first.startswith(before)
    return starts and (after.endswith(last) or last.endswith(after))


def _image(mapped: Mapping[str, str], namespace: str) -> str:
    """What a mapping makes of a namespace: the name alone goes before patterns, the longest of which counts."""
    if namespace in mapped:
        return mapped[namespace]
    for name in sorted((pattern for pattern in mapped if "*" in pattern), key=len, reverse=True):
        if (filling := _filling(name, namespace)) is not None:
            return mapped[name].replace("*", filling)
    return ""


def _filling(pattern: str, name: str) -> str | None:
    """What the `*` of a pattern stands for in a name; None: it does not match."""
    before, after = pattern.split("*")
    fits = len(name) > len(before) + len(after) and name.startswith(before) and name.endswith(after)
    return name[len(before) : len(name) - len(after)] if fits else None


MAX_CORDON: Final = 200
"""Characters of the reason of a cordon that are told."""


def cordon_of(annotations: Mapping[str, str]) -> str:
    """That a MultiKueueCluster gets nothing new, and why if whoever cordoned it said so; empty: it does."""
    noted = annotations.get(CORDON_ANNOTATION, "")
    if noted.lower() in ("", "false"):
        return ""
    said = one_line(noted)[:MAX_CORDON]
    return "cordoned" if noted.lower() == "true" else f"cordoned: {said}"
