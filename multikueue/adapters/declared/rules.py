"""What the row of a declared kind does: functions with the declaration's paths, expressions and patches in them.

What fails for one job is a `RuleError` that names the setting; see `multikueue.adapters.safe` for what then holds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import attrs

from multikueue.adapters.declared.expressions import EvaluationError, Expression
from multikueue.adapters.declared.patches import DeclaredPatch
from multikueue.adapters.paths import MAPS, FieldPath
from multikueue.adapters.rules import ended
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.copies import unlabelled
from multikueue.core.model.names import Json
from multikueue.core.model.objects import (
    clone,
    dig,
    is_same_json,
    merge_patch,
    resource_version,
    with_value,
    without,
    without_nulls,
)
from multikueue.errors import RuleError

OWN_DOMAINS: Final = ("kueue.x-k8s.io/", "multikueue.dev/", "kubectl.kubernetes.io/")
"""Labels and annotations of these belong to one cluster: they do not follow with all the others."""


@attrs.frozen
class Ending:
    """How a job has ended, as expressions over it tell."""

    finished: Expression | None
    failed: Expression | None
    message: Expression | None

    def __call__(self, job: Json) -> Outcome | None:
        """See `StatusRules.finished`."""
        if self.failed is not None and self.failed.holds(object=job):
            return ended(self._told(job), well=False)
        if self.finished is not None and self.finished.holds(object=job):
            return ended(self._told(job), well=True)
        return None

    def _told(self, job: Json) -> str:
        """The words for it. An end is an end, whether or not there are words."""
        try:
            message = self.message.value(object=job) if self.message is not None else ""
        except EvaluationError:
            return ""
        return message if isinstance(message, str) else ""


@attrs.frozen
class Holds:
    """Whether an expression is true of a job."""

    expression: Expression

    def __call__(self, job: Json) -> bool:
        """See `StatusRules.active`."""
        return self.expression.holds(object=job)


@attrs.frozen
class ShownStatus:
    """What the manager's job shows of its copy: all of the status, or some fields. While the copy has none, nothing."""

    paths: tuple[FieldPath, ...] = ()

    def __call__(self, local: Json, remote: Json, now: datetime) -> Json | None:
        """See `StatusRules.rule`."""
        status = dig(remote, "status")
        if not isinstance(status, dict) or not status:
            return None
        if not self.paths:
            return status
        wanted: Json = {"status": clone(dig(local, "status") or {})}
        for path in self.paths:
            wanted = _with(wanted, path, dig(remote, *path.steps))
        return dict(wanted["status"])


@attrs.frozen
class Stopped:
    """The status of a job that runs nowhere any more: what was shown is taken back, as if it had never started.

    What "runs" looks like is not declared, and the manager's Kueue keeps the quota of a job that seems to run.
    """

    paths: tuple[FieldPath, ...] = ()

    def __call__(self, status: Json) -> Json:
        """See `StatusRules.stopped`."""
        return without({"status": status}, [path.steps for path in self.paths])["status"] if self.paths else {}


@attrs.frozen
class Preparing:
    """Makes of a plain copy the one to create: suspended, and patched."""

    suspend: FieldPath | None
    suspend_value: Any
    patch: DeclaredPatch

    def __call__(self, job: Json, made: Json, stamp: Stamp) -> Json:
        """See `CopyRules.prepared`."""
        if self.suspend is not None:
            made = _with(made, self.suspend, self.suspend_value)
        return self.patch.applied(made, {"object": job, "workload": stamp.workload, "origin": stamp.origin})


@attrs.frozen
class FollowedFields:
    """Keeps a copy in line with the manager's job: fields that follow it, and a patch."""

    paths: tuple[FieldPath, ...]
    patch: DeclaredPatch
    own: frozenset[FieldPath] = frozenset()
    """What a copy says for itself, whatever is around it follows: who runs it, whether it may, and when it goes."""

    def __call__(self, local: Json, remote: Json, stamp: Stamp) -> Json | None:
        """See `SyncRules.followed`."""
        local = {**local, "spec": unlabelled(local.get("spec") or {})}  # as the copy was made
        followed = remote
        for path in self.paths:
            followed = self._followed(followed, local, path)
        known: dict[str, Json | str] = {"object": local, "workload": stamp.workload, "origin": stamp.origin}
        wanted = self.patch.applied_idempotently(followed, known | {"remote": remote})
        # A null in a merge patch takes a field away, and servers may drop others: neither makes a difference.
        patch: Json = merge_patch(without_nulls(remote), without_nulls(wanted))
        if patch and _replaces_list(followed, merge_patch(followed, wanted)):
            # Made from the list that was read, it would undo what has become of it since.
            patch = with_value(patch, ("metadata", "resourceVersion"), resource_version(remote))
        return patch or None

    def _followed(self, wanted: Json, local: Json, path: FieldPath) -> Json:
        value = dig(local, *path.steps)
        there = dig(wanted, *path.steps)
        if not isinstance(value, dict) or not (there is None or isinstance(there, dict)):
            return wanted if self._holds_own(path) else _with(wanted, path, value)
        for key, item in value.items():
            inner = FieldPath((*path.steps, key))
            if inner in self.own or (path.steps[0] == "metadata" and key.startswith(OWN_DOMAINS)):
                continue
            wanted = self._followed(wanted, local, inner) if isinstance(item, dict) else _with(wanted, inner, item)
        return wanted

    def _holds_own(self, path: FieldPath) -> bool:
        """Whether something is in there that must not go with it: all labels and annotations hold a copy's marks."""
        return path.steps in MAPS or any(path_of_own.is_below(*path.steps) for path_of_own in self.own)


def _replaces_list(before: Any, patch: Any) -> bool:
    if isinstance(patch, dict):
        return any(_replaces_list(dig(before, key), value) for key, value in patch.items())
    return isinstance(patch, list) and isinstance(before, list)


def _with(obj: Json, path: FieldPath, value: Any) -> Json:
    """The object with that value, or without the field if the value is None; the argument stays as it is."""
    if is_same_json(dig(obj, *path.steps), value):
        return obj
    if value is None:
        return without(obj, [path.steps])
    result: Json = clone(obj)
    parent = result
    for depth, step in enumerate(path.steps[:-1], start=1):
        if parent.get(step) is None:
            parent[step] = {}
        parent = parent[step]
        if not isinstance(parent, dict):
            raise RuleError(f"{path} cannot be set: {FieldPath(path.steps[:depth])} is not an object")
    parent[path.steps[-1]] = value
    return result
