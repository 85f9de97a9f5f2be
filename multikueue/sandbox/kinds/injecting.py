"""What Kueue puts into the pod templates of a job when it starts, and takes out when it stops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.model.started import put

WORKLOAD_ANNOTATION: Final = "kueue.x-k8s.io/workload"
"""In the pod templates of a job that Kueue has started: the name of its Workload."""


class TemplateConflictError(Exception):
    """A template has another value than the one Kueue must set: the job can never start."""


@attrs.frozen
class Injection:
    """What goes into the pod template of one pod set when its job starts."""

    labels: Json = attrs.field(factory=dict)
    annotations: Json = attrs.field(factory=dict)
    node_selector: Json = attrs.field(factory=dict)
    tolerations: tuple[Json, ...] = ()
    count: int | None = None
    """How many pods there are to be; None: as many as the job says."""
    of_elastic: bool = False
    """Whether the template may name an earlier slice of an elastic job."""

    @classmethod
    def in_fields(cls, metadata: Json, spec: Json) -> Injection:
        """As a job has it beside its pod templates."""
        return cls(
            metadata.get("labels") or {},
            metadata.get("annotations") or {},
            spec.get("nodeSelector") or {},
            tuple(spec.get("tolerations") or ()),
        )


def inject(template: Json, injection: Injection) -> None:
    """Put it into the template, in place.

    Raises:
        TemplateConflictError: the template has another value already.
    """
    metadata = template.setdefault("metadata", {})
    spec = template.setdefault("spec", {})
    if injection.of_elastic and is_noted(template):
        kept = metadata["annotations"].items()
        metadata["annotations"] = {key: value for key, value in kept if key != WORKLOAD_ANNOTATION}
    merge_into(metadata, "labels", injection.labels)
    merge_into(metadata, "annotations", injection.annotations)
    merge_into(spec, "nodeSelector", injection.node_selector)
    missing = [entry for entry in injection.tolerations if entry not in (spec.get("tolerations") or [])]
    if missing:
        spec["tolerations"] = [*(spec.get("tolerations") or []), *missing]


def restore(template: Json, original: Json, generated: Iterable[str]) -> None:
    """Make the template's labels, annotations, node selector and tolerations the original's again, in place.

    Args:
        generated: labels the API server filled in, which the original lacks; they stay.
    """
    metadata = template.setdefault("metadata", {})
    spec = template.setdefault("spec", {})
    kept = {label: value for label, value in (metadata.get("labels") or {}).items() if label in set(generated)}
    put(metadata, "labels", {**(dig(original, "metadata", "labels") or {}), **kept})
    put(metadata, "annotations", dig(original, "metadata", "annotations"))
    put(spec, "nodeSelector", dig(original, "spec", "nodeSelector"))
    put(spec, "tolerations", dig(original, "spec", "tolerations"))


def is_noted(template: Json) -> bool:
    """Whether Kueue has put its annotation there."""
    return bool(annotations_of(template).get(WORKLOAD_ANNOTATION))


def merge_into(holder: Json, field: str, values: Json) -> None:
    """Add entries to an object's field.

    Raises:
        TemplateConflictError: an entry has another value already.
    """
    current = holder.get(field) or {}
    for key, value in values.items():
        if current.get(key, value) != value:
            raise TemplateConflictError(
                f"invalid admission check PodSetUpdate: conflict for {field}: "
                f"conflict for key={key}, value1={current[key]}, value2={value}"
            )
    if values:
        holder[field] = {**current, **values}
