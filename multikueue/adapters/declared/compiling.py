"""From a declaration to a row: everything in it is read and compiled here, once, and every fault is told at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from multikueue.adapters.declaration import Declaration, kind_of, usual_plural
from multikueue.adapters.declared.expressions import Expression
from multikueue.adapters.declared.patches import DeclaredPatch, Operation
from multikueue.adapters.declared.rules import (
    Ending,
    FollowedFields,
    Holds,
    Preparing,
    ShownStatus,
    Stopped,
)
from multikueue.adapters.kind import NO_JOBS, JobKind
from multikueue.adapters.paths import MAPS, FieldPath
from multikueue.adapters.profiles import HEEDING, LEFT_OUT, USUALLY_LEFT_OUT, WORDS, profile_for
from multikueue.adapters.rules import CopyRules, Delegation, FieldsSet, StatusRules, SyncRules
from multikueue.adapters.templates import PodTemplates
from multikueue.core.model.kinds import is_own
from multikueue.core.model.labels import MARKS_OF_COPIES, QUEUE_LABEL
from multikueue.core.model.names import GVK, SHORT_NAME, Resource
from multikueue.core.model.objects import json_fault
from multikueue.core.model.written_values import LABEL_KEY, LABEL_VALUE
from multikueue.errors import AdapterError

_G = TypeVar("_G")
_T = TypeVar("_T")

_DELEGATED: Final = "multikueue"
"""What a label says of a delegated job, if no value is declared: a label cannot hold a controller's name."""
_USUAL: Final = ".spec.managedBy"
"""The field that is known of the kinds with profiles."""
_CREATING: Final = ("object", "workload", "origin")
_SYNCING: Final = (*_CREATING, "remote")
_ENDS_IT: Final = "deletes it at its end, and a copy that goes by itself would run again"
_OF_PODS: Final = {
    ("", "Pod"): "pod",
    ("apps", "Deployment"): "deployment",
    ("apps", "StatefulSet"): "statefulset",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "leaderworkerset.x-k8s.io/leaderworkerset",
}
"""Kinds that no declaration keeps from running on the manager, and their names as those that are built in."""
_FIXED: Final = frozenset((*MARKS_OF_COPIES, QUEUE_LABEL))
"""What a copy is found by: it cannot follow the manager's job."""


class DeclarationError(AdapterError):
    """A declaration that cannot be used.

    Attributes:
        faults: each as a field's path within the declaration, and why it cannot be used.
    """

    def __init__(self, source: str, faults: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{source}.{field}: {why}" for field, why in faults))
        self.faults = faults


@attrs.define(eq=False)
class DeclarationReader:
    """Reads the texts of one declaration. Each fault is kept with the field it is in, so that all are told at once."""

    source: str
    """Where the declaration stands, for messages."""
    faults: list[tuple[str, str]] = attrs.field(factory=list, init=False)
    """Field and reason of what cannot be used."""

    def of(self, field: str, given: _G | None, read: Callable[[_G], _T]) -> _T | None:
        """What `read` makes of a field; None if nothing is given, or if that raises a ValueError, which is noted."""
        return None if given is None else self._read(field, given, read)

    def all_of(self, field: str, given: Sequence[_G] | None, read: Callable[[_G], _T]) -> tuple[_T, ...]:
        """What `read` makes of each entry of a field."""
        values = [self._read(f"{field}[{number}]", entry, read) for number, entry in enumerate(given or ())]
        return tuple(value for value in values if value is not None)

    def _read(self, field: str, given: _G, read: Callable[[_G], _T]) -> _T | None:
        try:
            return read(given)
        except ValueError as error:
            self.faults.append((field, str(error)))
            return None

    def expression(self, field: str, text: str | None, wanted: type) -> Expression | None:
        """An expression over the job, and what its value must be."""
        where = f"{self.source}.{field}"
        return self.of(field, text, lambda text: Expression.compiled(text, ("object",), where, wanted=wanted))

    def patch(self, field: str, steps: Sequence[Any] | None, variables: tuple[str, ...]) -> DeclaredPatch:
        """A JSON patch; an empty one changes nothing."""
        return DeclaredPatch(
            f"{self.source}.{field}", self.all_of(field, steps, lambda step: Operation.parse(step, variables))
        )


def declared_kind(declaration: Declaration, source: str = "declaration") -> JobKind:
    """Compile a declaration, with what its profile fills in.

    No API server is asked: a plural that is not declared is the usual one, and the status is behind `/status`.

    Args:
        declaration: what the user wants.
        source: where it stands, for messages.

    Raises:
        DeclarationError: something in it cannot be used; every fault is told.
    """
    reading = DeclarationReader(source)
    gvk = reading.of("name", declaration, lambda said: _job_kind(said.name)) or GVK("", "", "")
    profile = reading.of("profile", gvk, lambda gvk: profile_for(declaration, gvk))
    full = declaration.over(profile or Declaration(name=""))
    kind = attrs.evolve(_compiled(full, gvk, reading), declaration=full)
    faults = [*reading.faults, *_contradictions(declaration)]
    if faults:
        raise DeclarationError(source, faults)
    return kind


def _job_kind(name: str) -> GVK:
    gvk = kind_of(name)
    if is_own(gvk):
        raise ValueError(f"{name} is a kind {NO_JOBS}")
    if framework := _OF_PODS.get((gvk.group, gvk.kind)):
        raise ValueError(
            f"{name} is made of pods, which the manager would run as well: write {framework} in "
            "integrations.frameworks in place of this entry"
        )
    return gvk


def _compiled(declared: Declaration, gvk: GVK, reading: DeclarationReader) -> JobKind:
    delegation, value = _delegation(declared, reading)
    may_hold = functools.partial(_may_hold, delegation)
    suspend = reading.of("suspendPath", declared.suspend_path, functools.partial(_path, may_hold))
    suspend_value = (
        True if declared.suspend_value is None else reading.of("suspendValue", declared.suspend_value, _json)
    )
    status = _status(declared, reading)
    creation = reading.patch("creationPatches", declared.creation_patches, _CREATING)
    sync = reading.patch("syncPatches", declared.sync_patches, _SYNCING)
    left_out = LEFT_OUT.get((gvk.group, gvk.kind), USUALLY_LEFT_OUT)
    fixed = {FieldPath(path): _ENDS_IT for path in left_out}
    if delegation is not None:
        fixed[delegation] = "says who runs it: a copy has its own"
    if suspend is not None:
        fixed[suspend] = "is the switch of each cluster's Kueue: a copy has its own"
    forwarded = reading.all_of(
        "forwardedPaths", declared.forwarded_paths, functools.partial(_path, functools.partial(_may_follow, fixed))
    )
    templates = reading.all_of("templatePaths", declared.template_paths, _template_path)
    config_maps = reading.all_of("configMapPaths", declared.config_map_paths, _template_path)
    plural = reading.of("plural", declared.plural or usual_plural(gvk.kind), lambda plural: _plural(plural, gvk)) or ""
    return JobKind(
        resource=Resource(gvk, plural),
        delegation=Delegation(
            path=delegation.steps if delegation is not None else None,
            value=value,
            heeding=HEEDING.get((gvk.group, gvk.kind)) if declared.managed_by_path == _USUAL else None,
        ),
        copies=CopyRules(
            left_out=left_out,
            unheeded=FieldsSet(left_out),
            suspend=suspend.steps if suspend is not None else None,
            suspend_value=suspend_value,
            templates=tuple(PodTemplates(at=path.steps) for path in templates),
            config_maps=tuple(path.steps for path in config_maps),
            prepared=Preparing(suspend, suspend_value, creation) if suspend or creation.operations else None,
        ),
        status=attrs.evolve(status, words=WORDS.get((gvk.group, gvk.kind))),
        pods_label=reading.of("podsLabel", declared.pods_label, _label_key) or "",
        sync=SyncRules(
            followed=FollowedFields(forwarded, sync, frozenset(fixed)) if forwarded or sync.operations else None
        ),
        workload_only=declared.workload_only is True,
        source=reading.source,
    )


def _status(declared: Declaration, reading: DeclarationReader) -> StatusRules:
    """What is shown of a copy, and what its status says."""
    ending = Ending(
        reading.expression("finished", declared.finished, bool),
        reading.expression("failed", declared.failed, bool),
        reading.expression("message", declared.message, str),
    )
    active, gone = (
        reading.expression("active", declared.active, bool),
        reading.expression("podsGone", declared.pods_gone, bool),
    )
    shown = reading.all_of("statusPaths", declared.status_paths, functools.partial(_path, _in_status))
    status = StatusRules(rule=ShownStatus(shown), subresource=declared.status_subresource is not False)
    if any(rule is not None for rule in (ending.finished, ending.failed, active)):
        status = attrs.evolve(status, finished=ending, stopped=Stopped(shown))
    if active is not None:
        status = attrs.evolve(status, active=Holds(active))
    return status if gone is None else attrs.evolve(status, pods_are_gone=Holds(gone))


def _delegation(declared: Declaration, reading: DeclarationReader) -> tuple[FieldPath | None, str]:
    """Where a job says that it is delegated, and what; the value is empty for the controller's name."""
    if declared.managed_by_label is None:
        return reading.of("managedByPath", declared.managed_by_path, functools.partial(_path, _may_delegate)), ""
    key, value = reading.of("managedByLabel", declared.managed_by_label, _label) or ("", "")
    return FieldPath(("metadata", "labels", key)), value


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not LABEL_KEY.fullmatch(key) or (equals and not LABEL_VALUE.fullmatch(value)):
        raise ValueError(f"{text!r} is not a label: write KEY=VALUE, as example.com/run-by=multikueue")
    return key, value or _DELEGATED


def _label_key(text: str) -> str:
    if not LABEL_KEY.fullmatch(text):
        raise ValueError(f"{text!r} is not the key of a label: write it like example.com/job-name")
    return text


def _plural(plural: str, gvk: GVK) -> str:
    if gvk.kind and not SHORT_NAME.fullmatch(plural):
        raise ValueError(f"{plural!r} is not what URLs call a kind: write it like {usual_plural(gvk.kind)}")
    return plural


def _contradictions(said: Declaration) -> Iterator[tuple[str, str]]:
    """What can be used one by one, but not together."""
    if said.managed_by_path is not None and said.managed_by_label is not None:
        yield "managedByLabel", "managedByPath says it already: keep one of the two"
    if said.always_delegated:
        for field, text in (("managedByPath", said.managed_by_path), ("managedByLabel", said.managed_by_label)):
            if text is not None:
                yield field, "with alwaysDelegated no job says who runs it: remove one of the two"
    if said.suspend_value is not None and said.suspend_path is None and said.profile is None:
        yield "suspendValue", "it is not used without suspendPath"
    if said.workload_only:
        unused = {
            "creationPatches": said.creation_patches,
            "syncPatches": said.sync_patches,
            "forwardedPaths": said.forwarded_paths,
            "statusPaths": said.status_paths,
            "templatePaths": said.template_paths,
            "configMapPaths": said.config_map_paths,
        }
        for field, value in unused.items():
            if value:
                yield field, "workloadOnly leaves the jobs to somebody else: remove one of the two"


def _path(why_not: Callable[[FieldPath], str], text: str) -> FieldPath:
    """A path; `why_not` says what is against it where it stands, if anything."""
    path = FieldPath.parse(text or "")
    why = why_not(path)
    if why:
        raise ValueError(f"{text} {why}")
    return path


def _json(value: Any) -> Any:
    if fault := json_fault(value, "it"):
        raise ValueError(f"{fault}: put it in quotes if it is a text")
    return value


def _template_path(text: str) -> FieldPath:
    path = FieldPath.parse(text or "", entries=True)
    if not path.is_below("spec"):
        raise ValueError(f"{text} must be a field of .spec")
    return path


def _in_spec(path: FieldPath) -> str:
    return "" if path.is_below("spec") else "must be a field of .spec"


def _may_hold(delegation: FieldPath | None, path: FieldPath) -> str:
    both = () if delegation is None else ((path, delegation), (delegation, path))
    if any(one == other or one.is_below(*other.steps) for one, other in both):
        return "says who runs it, and cannot hold it, too"
    return _in_spec(path)


def _in_status(path: FieldPath) -> str:
    return "" if path.is_below("status") else "must be a field of .status; without statusPaths all of it is copied"


def _may_delegate(path: FieldPath) -> str:
    if path.is_below("spec") or _entry(path) is not None:
        return ""
    return "must be a field of .spec, a label or an annotation"


def _may_follow(fixed: Mapping[FieldPath, str], path: FieldPath) -> str:
    for own, why in fixed.items():
        if path == own or path.is_below(*own.steps):
            return f"{why}, and it cannot follow"
    if path.is_below("spec") or path.steps in MAPS:
        return ""
    entry = _entry(path)
    if entry is None:
        return "must be a field of .spec, or labels or annotations: the rest of a copy is its worker's"
    return "is what the copy is found by, and cannot follow" if entry in _FIXED else ""


def _entry(path: FieldPath) -> str | None:
    """Which label or annotation it is; None if it is none."""
    return path.steps[2] if len(path.steps) == 3 and path.steps[:2] in MAPS else None
