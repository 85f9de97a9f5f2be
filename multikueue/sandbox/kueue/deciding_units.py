"""What Kueue does next about gated pods: their Workload, opening the gate, taking them away, seeing them end.

A list of rules, as for jobs. A pod is never stopped: one that has lost its quota is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import conditions, new_condition, updated
from multikueue.core.model.copies import STOPPED_BY_KUEUE, prebuilt_workload
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import JOB_UID_LABEL, MANAGED_LABEL, POD_GROUP_TOTAL_ANNOTATION, RETRIABLE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, uid
from multikueue.core.model.workloads import ON_HOLD, has_quota, is_admitted, is_evicted, is_finished, is_on_hold
from multikueue.sandbox.kinds.course import Ending
from multikueue.sandbox.kinds.injecting import Injection, TemplateConflictError
from multikueue.sandbox.kinds.pods import POD, POD_RESOURCE, is_gated
from multikueue.sandbox.kueue.building import unit_workload
from multikueue.sandbox.kueue.deciding_workloads import admission, without_finalizer
from multikueue.sandbox.kueue.effects import NOTHING, Create, Decision, Delete, Note, Replace, Step, first_of
from multikueue.sandbox.kueue.scheduling.ledger import WAITS
from multikueue.sandbox.kueue.statuses import finished, released, unreserved
from multikueue.sandbox.kueue.units import Unit, queue_name
from multikueue.sandbox.objects import owned_by


@attrs.frozen
class UnitSituation:
    """Gated pods, their Workload, and what is needed to act on them."""

    unit: Unit
    workload: Json | None
    now: datetime
    injections: Callable[[], dict[str, Injection]] = dict
    """What admission puts into the pods, by pod set; may raise `TemplateConflictError`."""


def decide_unit(situation: UnitSituation) -> Decision:
    """The next thing to do. A copy's Workload may be gone, and with it who would let its pods go."""
    if situation.workload is None:
        held = None if situation.unit.is_copy else _surplus(situation) or _to_hold(situation)
        return held or _to_create(situation.unit) or NOTHING
    return first_of(rule(situation, situation.workload) for rule in _RULES)


def surplus_workload(workload: Json) -> Decision:
    """Remove the Workload of a part that its set does not have any more."""
    if is_terminating(workload):
        return without_finalizer(workload) or NOTHING
    return Step(Delete(WORKLOAD, ObjectKey.of(workload), uid(workload)))


def _to_create(unit: Unit) -> Decision | None:
    """Make the Workload once all it is for is there; a copy's is made by whoever made the copy."""
    owners = unit.owners
    if not owners or unit.is_copy or any(prebuilt_workload(obj) for _, obj in owners):
        return None
    if not all(queue_name(obj) for _, obj in owners):
        return None
    if len(_live(unit)) < _total(unit) if unit.set is None else not unit.members:
        return None
    workload = unit_workload(unit)
    message = f"Created Workload: {ObjectKey.of(workload)}"
    return Step(Create(WORKLOAD, workload), (_note(owners[0][1], "CreatedWorkload", message),))


def _to_hold(situation: UnitSituation, _workload: Json | None = None) -> Decision | None:
    """Kueue's webhook puts a finalizer on the pods of a new group, so that those that end are not forgotten."""
    unit = situation.unit
    bare = (pod for pod in _live(unit) if unit.group and is_gated(pod) and not _is_kept(pod))
    return next((_with_finalizers(pod, [*_finalizers(pod), MANAGED_LABEL]) for pod in bare), None)


def _surplus(situation: UnitSituation, _workload: Json | None = None) -> Decision | None:
    """Pods that a group does not count go: the newest of those that wait, and of the others."""
    unit = situation.unit
    if not unit.group:
        return None
    kept_first = sorted(_live(unit), key=lambda pod: (not _is_kept(pod), is_gated(pod), _created(pod)))
    for pod in kept_first[_total(unit) :]:
        if _is_kept(pod):
            return _freed(pod)
        return attrs.evolve(_deleted(pod), notes=(_note(pod, "ExcessPodDeleted", "Excess pod deleted"),))
    return None


def _replaced(situation: UnitSituation, _workload: Json) -> Decision | None:
    """A pod of a group that has failed, or goes without ever having run, is let go once another is in its place.

    Not where somebody else has made the Workload: Kueue v0.19.2 looks for such pods only where it has made it itself.
    """
    unit = situation.unit
    if not unit.group or unit.is_copy:
        return None
    inactive = [pod for pod in unit.there if _has_failed(pod)]
    missing = max(0, _total(unit) - (len(unit.there) - len(inactive)))
    kept = sorted(filter(_is_kept, inactive), key=_created, reverse=True)
    return next(map(_freed, kept[missing:]), None)


def _has_failed(pod: Json) -> bool:
    return dig(pod, "status", "phase") == "Failed" or (is_terminating(pod) and is_gated(pod))


def _over(situation: UnitSituation, workload: Json) -> Decision | None:
    unit = situation.unit
    if is_finished(workload):
        return _let_go(unit) or NOTHING
    if is_terminating(workload):
        taken = _taken_away(unit.pods, situation.now) if unit.set is not None else next(map(_deleted, unit.pods), None)
        return taken or _let_go(unit) or without_finalizer(workload) or NOTHING
    return None


def _on_hold(situation: UnitSituation, workload: Json) -> Decision | None:
    """A set that is to have no pods gives its quota back, and asks for it again once it is to have some."""
    unit = situation.unit
    if unit.set is None:
        return None
    if has_quota(workload) and not unit.members:
        return admission(unreserved(workload, ON_HOLD, "scaled to zero; workload on hold", situation.now))
    if is_on_hold(workload) and unit.members:
        message = "Workload no longer on hold; waiting for quota reservation"
        return admission(unreserved(workload, WAITS, message, situation.now))
    return None


def _let_go(unit: Unit) -> Decision | None:
    kept = (pod for pod in unit.there if unit.group and _is_kept(pod))
    return next(map(_freed, kept), None)


def _freed(pod: Json) -> Step:
    return _with_finalizers(pod, [name for name in _finalizers(pod) if name != MANAGED_LABEL])


def _finalizers(pod: Json) -> list[str]:
    return dig(pod, "metadata", "finalizers") or []


def _created(pod: Json) -> str:
    return str(dig(pod, "metadata", "creationTimestamp") or "")


def _is_kept(pod: Json) -> bool:
    return MANAGED_LABEL in _finalizers(pod)


def _with_finalizers(pod: Json, names: list[str]) -> Step:
    return Step(Replace(POD_RESOURCE, {**pod, "metadata": {**pod["metadata"], "finalizers": names}}))


def _deleted(pod: Json) -> Step:
    return Step(Delete(POD_RESOURCE, ObjectKey.of(pod), uid(pod)))


def _to_adopt(situation: UnitSituation, workload: Json) -> Decision | None:
    unit = situation.unit
    known = dig(workload, "metadata", "ownerReferences") or []
    missing = [owner for owner in unit.owners if uid(owner[1]) not in {reference["uid"] for reference in known}]
    if not missing:
        return None
    alone = unit.set is None and not unit.group
    if alone and known:
        return NOTHING  # another pod's: not ours to touch
    added = [owned_by(*owner, controller=alone) for owner in missing]
    metadata = {**workload["metadata"], "ownerReferences": [*known, *added]}
    if alone:
        metadata["labels"] = {**labels_of(workload), JOB_UID_LABEL: uid(missing[0][1])}
    return Step(Replace(WORKLOAD, {**workload, "metadata": metadata}))


def _to_finish(situation: UnitSituation, workload: Json) -> Decision | None:
    ending = unit_ending(situation.unit)
    if ending is None:
        return None
    return admission(finished(workload, ending.reason, ending.message, situation.now))


def unit_ending(unit: Unit) -> Ending | None:
    """How pods ended: one by its phase; a group when enough have succeeded, or none is to be tried again."""
    if unit.set is not None or not unit.there:
        return None
    if not unit.group:
        return POD.ending(unit.pods[0])
    succeeded = sum(dig(pod, "status", "phase") == "Succeeded" for pod in unit.there)
    total = _total(unit)
    over = all(POD.ending(pod) is not None for pod in unit.there)
    final = any(annotations_of(pod).get(RETRIABLE_ANNOTATION) == "false" for pod in unit.there)
    if succeeded >= total or (over and final):
        return Ending("Succeeded", f"Pods succeeded: {succeeded}/{total}.")
    return None


def _evicted(situation: UnitSituation, workload: Json) -> Decision | None:
    if not is_evicted(workload):
        return None
    taken = _taken_away(situation.unit.pods, situation.now)
    if taken is not None:
        return taken
    if has_quota(workload) and not any(POD.course.is_active(pod) for pod in situation.unit.there):
        return admission(released(workload, situation.now))
    return NOTHING


def _to_start(situation: UnitSituation, workload: Json) -> Decision | None:
    gated = next((pod for pod in situation.unit.pods if is_gated(pod)), None)
    if gated is None or not is_admitted(workload):
        return None
    result = {**gated, "metadata": dict(gated["metadata"]), "spec": dict(gated["spec"])}
    try:
        injection = next(iter(situation.injections().values()), Injection())
        POD.pods.inject(result, {"main": injection})
    except TemplateConflictError as conflict:
        return admission(finished(workload, "FailedToStart", str(conflict), situation.now))
    message = f"Admitted by clusterQueue {dig(workload, 'status', 'admission', 'clusterQueue')}"
    return Step(Replace(POD_RESOURCE, result), (_note(gated, "Started", message),))


def _taken_away(pods: Iterable[Json], now: datetime) -> Decision | None:
    """Delete one that was started and has not ended; the pod says before that who does."""
    for pod in pods:
        if not is_gated(pod) and POD.ending(pod) is None:
            why = new_condition(STOPPED_BY_KUEUE, True, "Stopped", "", now=now)
            status = {**(pod.get("status") or {}), "conditions": updated(conditions(pod), why)}
            return attrs.evolve(_deleted(pod), first=Step(Replace(POD_RESOURCE, {**pod, "status": status}, "status")))
    return None


def _live(unit: Unit) -> list[Json]:
    return [pod for pod in unit.pods if POD.ending(pod) is None]


def _total(unit: Unit) -> int:
    total = annotations_of(unit.there[0]).get(POD_GROUP_TOTAL_ANNOTATION, "") if unit.group else ""
    return int(total) if total.isdecimal() else 1


def _note(about: Json, reason: str, note: str) -> Note:
    return Note(POD.controller, about, reason, note)


_Rule = Callable[[UnitSituation, Json], Decision | None]
_RULES: Final[tuple[_Rule, ...]] = (
    _over,
    _on_hold,
    _surplus,
    _to_hold,
    _to_adopt,
    _replaced,
    _to_finish,
    _evicted,
    _to_start,
)
