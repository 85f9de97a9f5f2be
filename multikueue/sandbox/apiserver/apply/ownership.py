"""
Who owns what after a write.

A plain write gives what it changes to its manager. An apply says what its manager wants to own: what it owned before
and no longer names is removed, unless somebody else owns it too; what somebody else owns and it changes is a conflict.
The rules, down to which part of a removed list item stays, are those of structured-merge-diff, which kube-apiserver
uses.
"""

from __future__ import annotations

from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.fieldsets import display, with_named_fields, without
from multikueue.sandbox.apiserver.apply.managedfields import (
    APPLY,
    UNOWNED,
    UPDATE,
    Manager,
    ManagerId,
    Managers,
    Write,
    cap_updaters,
    read_managers,
    write_managers,
)
from multikueue.sandbox.apiserver.apply.typed_comparing import Comparison, same
from multikueue.sandbox.apiserver.apply.typed_merging import merge
from multikueue.sandbox.apiserver.apply.typed_values import fields_of, misfits, remove
from multikueue.sandbox.apiserver.kinds.shapes import Path, Shape
from multikueue.sandbox.apiserver.status_errors import StatusError

_BEFORE_APPLY = "before-first-apply"


def track_update(shape: Shape, old: Json, new: Json, write: Write, *, created: bool = False) -> None:
    """Give what a plain write changed to its manager; sets `new.metadata.managedFields`.

    Args:
        shape: of the kind.
        old: the object before; for a new one what an empty object of the kind looks like.
        new: the object after, managedFields left alone.
        write: who, when.
        created: the object is new.
    """
    managers = read_managers(old)
    if misfits(shape, _bare(new), duplicates=True):
        managers.clear()  # the server gives up: a value of a wrong type where this write changes nothing anyway
    elif managers or created:
        _update(shape, _bare(old), _bare(new), managers, write)
        cap_updaters(managers)
    write_managers(new, managers)


def apply_config(shape: Shape, empty: Json, live: Json, config: Json, write: Write, *, force: bool) -> Json:
    """The live object with a configuration applied, managedFields included.

    Args:
        shape: of the kind.
        empty: an object of the kind before anything is set.
        live: the object; the empty one when the apply creates it.
        config: what the manager wants.
        write: who, when.
        force: take fields over from other managers.

    Raises:
        StatusError: 409, other managers own fields with other values and `force` is off.
    """
    managers, bare = read_managers(live), _bare(live)
    if not managers:
        first = Write(_BEFORE_APPLY, write.api_version, write.subresource, write.now, write.ignored)
        _update(shape, empty, bare, managers, first)
    who, last = write.by(APPLY), managers.get(write.by(APPLY))
    merged = merge(shape, bare, config)
    wanted = without(fields_of(shape, config), write.ignored)
    managers[who] = Manager(write.api_version, wanted, last.time if last else None)
    if last and not last.paths <= wanted:
        merged = _prune(shape, merged, managers, last.paths)
    comparison = Comparison.between(shape, bare, merged, write.ignored)
    _take_over(managers, who, comparison, force=force)
    _strip(managers, who)
    if who in managers and not same(bare, merged):
        managers[who].time = write.now
    write_managers(merged, managers)
    return merged


def _bare(obj: Json) -> Json:
    """An object without managedFields, sharing everything else."""
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _update(shape: Shape, old: Json, new: Json, managers: Managers, write: Write) -> None:
    comparison = Comparison.between(shape, old, new, write.ignored)
    _take_over(managers, None, comparison, force=True)
    gained = (comparison.changed | comparison.added) - UNOWNED
    if not gained:
        return
    who = write.by(UPDATE)
    kept = managers[who].paths if who in managers else set()
    managers[who] = Manager(write.api_version, kept | gained, write.now)


def _take_over(managers: Managers, who: ManagerId | None, comparison: Comparison, *, force: bool) -> None:
    """Take what was changed, added and removed from all managers but one."""
    touched = comparison.changed | comparison.added
    lost = {other: manager.paths & touched for other, manager in managers.items() if other != who}
    conflicts = [(other, path) for other, paths in lost.items() for path in sorted(paths)]
    if conflicts and not force:
        raise _conflict(managers, conflicts)
    for other, paths in lost.items():
        managers[other].paths -= paths | comparison.removed
    for other in [other for other, manager in managers.items() if not manager.paths]:
        del managers[other]


def _strip(managers: Managers, who: ManagerId) -> None:
    if who in managers:
        managers[who].paths -= UNOWNED
        if not managers[who].paths:
            del managers[who]


def _prune(shape: Shape, merged: Json, managers: Managers, last: set[Path]) -> Json:
    """Remove what the applier owned last time, names no longer, and nobody owns now."""
    before = with_named_fields(shape, last)
    everything = with_named_fields(shape, fields_of(shape, merged))
    left = with_named_fields(shape, fields_of(shape, remove(shape, merged, before)))
    owned: set[Path] = set()
    for manager in managers.values():
        owned |= manager.paths
    # First everything that somebody owns comes back, then everything the applier did not own itself.
    pruned = remove(shape, merged, everything - (left | with_named_fields(shape, owned)))
    left = with_named_fields(shape, fields_of(shape, pruned))
    return remove(shape, merged, (everything - left) & before)


def _conflict(managers: Managers, conflicts: list[tuple[ManagerId, Path]]) -> StatusError:
    causes: list[Any] = [
        {"reason": "FieldManagerConflict", "message": _who(other, managers[other]), "field": display(path)}
        for other, path in conflicts
    ]
    plural = "s" if len(causes) > 1 else ""
    listed = ", ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    message = f"Apply failed with {len(causes)} conflict{plural}: {listed}"
    return StatusError(409, "Conflict", message, details={"causes": causes})


def _who(who: ManagerId, manager: Manager) -> str:
    text = f'conflict with "{who.name}"'
    if who.subresource:
        text += f' with subresource "{who.subresource}"'
    if who.operation == UPDATE:
        text += f" using {manager.version}" + (f" at {manager.time}" if manager.time else "")
    return text
