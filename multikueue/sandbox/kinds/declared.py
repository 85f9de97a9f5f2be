"""A row of the sandbox for a kind that settings declare: where its fields are, and what its status says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import attrs

from multikueue.adapters import JobKind
from multikueue.core.model.names import Json
from multikueue.core.model.objects import overlaid
from multikueue.errors import SandboxError
from multikueue.sandbox.kinds.declared_course import declared_course
from multikueue.sandbox.kinds.kind import DELEGATED, SandboxKind
from multikueue.sandbox.kinds.roles import EACH, InTemplates, Roles
from multikueue.sandbox.kinds.stages import Stages
from multikueue.sandbox.kinds.workflows import HELD, OpaquePods

_LABELS: Final = ("metadata", "labels")
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Any time."""


def kind_of_row(row: JobKind) -> SandboxKind:
    """The sandbox's row for a declared kind. Without `templatePaths` a job is one pod, as annotations describe it.

    Args:
        row: what was made of the declaration.

    Raises:
        SandboxError: the sandbox cannot play it; the message says why, and what to do.
    """
    if row.workload_only:
        raise SandboxError(
            f"{row.source}.workloadOnly: somebody else's controller moves these jobs, and the sandbox has none"
        )
    path, paths = row.delegation.path, [templates.at for templates in row.copies.templates]
    labelled = path is not None and path[:2] == _LABELS
    value = row.declaration.suspend_value if row.declaration is not None else None
    held = row.copies.suspend is not None
    suspended_as = "true" if not held else True if value is None else value
    spec: Json = {}
    for template in paths:
        spec = overlaid(spec, _around(template[1:]))
    kind = SandboxKind(
        resource=row.resource,
        suspend=row.copies.suspend or HELD,
        suspended_as=suspended_as,
        running_as=not suspended_as if isinstance(suspended_as, bool) else None,
        managed_by=None if labelled else path,
        managed_by_label=path[2] if labelled and path is not None else "",
        delegated_as=row.delegation.value or DELEGATED,
        always_delegated=path is None,
        pods=InTemplates([_roles(template) for template in paths]) if paths else OpaquePods(),
        status_subresource=row.status.subresource,
        spec=spec,
    )
    course = declared_course(row, kind.example("example", {"spec": {"containers": [{}]}}, queue=""))
    _check_shown(row, course)
    return attrs.evolve(kind, course=course)


def _around(path: tuple[str, ...]) -> Json:
    """What a spec has around the template at a path; lists have one entry."""
    made: Any = {}
    for step in reversed(path if path[-1] == EACH else path[:-1]):
        made = [made] if step == EACH else {step: made}
    return dict(made)


def _roles(path: tuple[str, ...]) -> Roles:
    """The roles with the templates at a path. How many pods each has is in `replicas` beside it, as usual."""
    depth = len(path) - path[::-1].index(EACH) if EACH in path else 1
    at, template = path[:depth], path[depth:]
    name = "-".join(step for step in path[1:-1] if step != EACH)
    return Roles(at=at, template=template, counts=((*template[:-1], "replicas"),), name=name or "main")


def _check_shown(row: JobKind, course: Stages) -> None:
    """Refuse a kind whose jobs on the manager do not show that they have ended: nobody would see it there."""
    for stage in (course.succeeded, course.failed):
        assert stage is not None
        status = {**stage.fields, **({"conditions": stage.written([], _NOW)} if stage.conditions else {})}
        shown = row.status.rule({}, {"status": status}, _NOW) if row.status.rule is not None else status
        if course.ending({"status": shown or {}}) is None:
            raise SandboxError(
                f"{row.source}.statusPaths: by them the manager's job does not show that it has ended: name a field "
                "of the status that tells it, and say in finished how"
            )
