"""What a job kind may say about itself, by what it is about; and the rules that several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

import attrs

from multikueue.adapters.checked import checked
from multikueue.adapters.managed_by_support import ManagedBySupport
from multikueue.adapters.templates import Path, PodTemplates, are_paths, is_path
from multikueue.adapters.words import Words
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.conditions import changed_at, conditions, find, is_true, parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, json_size, merge_patch, resource_version, shortened, without_nulls

StatusRule: TypeAlias = Callable[[Json, Json, datetime], Json | None]
"""(manager's job, worker's job, now) -> the status the manager's job should have; None: leave it as it is."""

SyncRule: TypeAlias = Callable[[Json, Json, Stamp], Json | None]
"""(manager's job, worker's job, marks) -> merge patch of the worker's; None if it is right, or not ours to change."""

CopyRule: TypeAlias = Callable[[Json, Json, Stamp], Json]
"""(manager's job, copy without marks, marks) -> the copy; may change the copy it is given."""


OBSERVED: Final = "observedGeneration"


def never_finished(job: Json) -> Outcome | None:
    """For kinds that serve and do not end."""
    return None


@attrs.frozen(kw_only=True, field_transformer=checked)
class Delegation:
    """Who runs a job: the manager's own controller, or we."""

    path: Path | None = attrs.field(default=("spec", "managedBy"), validator=is_path)
    """Where the job says it; None for kinds without such a field, which are always taken as delegated."""
    value: str = ""
    """What a job that is delegated says there; empty for kinds that say the controller's name."""
    own_controller: str = ""
    """What the job says there when the kind's own controller runs it; empty where that is said by saying nothing."""
    heeding: ManagedBySupport | None = None
    """Which versions of that controller heed it; None where that is not known."""


ALWAYS_DELEGATED: Final = Delegation(path=None)
"""For kinds that cannot say who runs a job: Kueue's scheduling gates hold its pods on the manager."""


@attrs.frozen(kw_only=True, field_transformer=checked)
class HoldRules:
    """How a job is kept from running on the manager by ourselves, for kinds that only Kueue's gates hold there.

    Then its check may become Ready: Kueue opens its gate, and ours holds the job.
    """

    why_free: Callable[[Json], str]
    """Why a job is not held, in words for its user; empty if it is."""
    hold: Callable[[Json], Json | None]
    """The operation of a JSON patch that makes a new job one that is held; None if it is, or is not ours to hold."""


TTL: Final = "ttlSecondsAfterFinished"
"""By it a job is deleted some seconds after its end. A copy has none: it would go, and its Workload with it, while the
manager cannot see that it has ended. We remove it, and the manager's job has its own."""


@attrs.frozen(kw_only=True)
class TimeToLive:
    """By what a job is deleted some time after its end, where its kind's own controller runs it; see also `TTL`.

    With neither of the last two no controller deletes the job itself by it: MPI's deletes its launcher.
    """

    seconds: Path = attrs.field(validator=is_path)
    """Where it says for how many seconds it stays."""
    completed: Path = attrs.field(default=(), validator=is_path)
    """Where its status has the time from which they count."""
    conditions: tuple[str, ...] = ()
    """Otherwise: those of an end, of which one is true. They count since it has become so."""

    @property
    def deletes(self) -> bool:
        """Whether the job is deleted by it."""
        return bool(self.completed or self.conditions)

    def is_over_at(self, job: Json, seen: datetime) -> datetime | None:
        """When the time is over of a job that has ended; None: it says no time, or none that a clock reaches, or does
        not show when it ended.

        Args:
            job: the manager's.
            seen: when its end was seen here: what the job shows is by its worker's clock, and the later of both counts.
        """
        ends = [changed_at(job, kind) for kind in self.conditions if is_true(job, kind)]
        ended = parse_timestamp(dig(job, *self.completed)) if self.completed else next(iter(ends), None)
        lasts = dig(job, *self.seconds)
        if ended is None or not isinstance(lasts, int | float):
            return None
        try:
            return max(ended, seen) + timedelta(seconds=lasts)
        except OverflowError:
            return None


@attrs.frozen
class FieldsSet:
    """For `CopyRules.unheeded`: those of these fields that a job has."""

    paths: tuple[Path, ...]

    def __call__(self, job: Json) -> Sequence[str]:
        """Their names."""
        return [".".join(path) for path in self.paths if dig(job, *path) is not None]


def sized_there(path: Path, said: str, by: str) -> Callable[[Json], str]:
    """For `CopyRules.refused`: a job says itself that its copy is sized on its worker.

    Two would size one object, its Workload has the quota of neither, and the worker's Kueue ends the run (`OutOfSync`).

    Args:
        path: where the job says it; `false` and an absent field say that it is not.
        said: what it says there, in words.
        by: who would change the sizes.
    """
    why = f"{'.'.join(path)} is {said}: {by} would change the sizes that the manager gave quota for"
    return lambda job: "" if dig(job, *path) in (None, False) else why


@attrs.frozen(kw_only=True, field_transformer=checked)
class CopyRules:
    """What a copy is made like, from the manager's job."""

    left_out: tuple[Path, ...] = attrs.field(default=(), validator=are_paths)
    """What a copy does not have, beside who runs the job: what the manager's API server or Kueue filled in."""
    suspend: Path | None = attrs.field(default=("spec", "suspend"), validator=is_path)
    """Where the job says that it should not run; None for kinds that Kueue holds by scheduling gates."""
    suspend_value: Any = True
    """What it says there then."""
    templates: tuple[PodTemplates, ...] = ()
    """Where its pod templates are. A copy of a job that has been started has them as its Workload does."""
    config_maps: tuple[Path, ...] = attrs.field(default=(), validator=are_paths)
    """Where it names ConfigMaps beside these."""
    sanitised: Callable[[Json], Json] = lambda spec: spec
    """Changes the spec of a copy where leaving fields out is not enough; may change its argument."""
    prepared: CopyRule | None = None
    """Changes the copy where more than its spec must change; the marks that make it ours are set after it."""
    time_to_live: TimeToLive | None = None
    """After which time the job is deleted once it has ended: nobody does while it is delegated, unless we do."""
    unheeded: Callable[[Json], Sequence[str]] = lambda job: ()
    """What the manager's job says that nobody heeds: its copy lacks it, and the manager's controller passes over it."""
    refused: Callable[[Json], str] = lambda job: ""
    """Why the manager's job is not dispatched, in words for its user; empty: it is."""
    unread: tuple[Path, ...] = attrs.field(default=(), validator=are_paths)
    """What nobody reads of a copy on a worker, so that it need not be kept in memory."""


@attrs.frozen(kw_only=True, field_transformer=checked)
class StatusRules:
    """What the manager's job shows of its copy, and what a status says about a job."""

    rule: StatusRule | None = lambda local, remote, now: dig(remote, "status") or {}
    """When the manager's job shows the status of its copy, and how much of it: by default always all of it. None for
    kinds whose status is the manager's own. It is not asked while the manager's job is suspended and its copy runs, nor
    of a job that shows its end while its copy shows none."""
    addresses: tuple[Path, ...] = attrs.field(default=(), validator=are_paths)
    """What in it are addresses of the copy's own network: the manager's job does not show them, where the daemon's
    `pods.copyAddresses` does not say otherwise. On the manager they are nobody's, or belong to something else."""
    words: Words | None = None
    """What it says while it is suspended and shows no run, also if its copy runs already; None: what stands there."""
    finished: Callable[[Json], Outcome | None] = never_finished
    """How the job ended."""
    all_finished: Callable[[Sequence[Json]], Outcome | None] | None = None
    """How the jobs of one Workload ended, for kinds of which there may be several."""
    settled: Callable[[Json], Outcome | None] = never_finished
    """How a job that has not ended can only end, by what is on its status already, whoever has put it there."""
    at_settled_end: Callable[[Json, datetime], Json | None] = lambda local, now: None
    """(manager's job, now) -> its status with that end, once nothing of it runs; None if it has ended."""
    active: Callable[[Json], bool] | None = None
    """Whether the status says that something runs, or still ends; None: that is what `stopped` would change."""
    pods_are_gone: Callable[[Json], bool] = lambda job: False
    """Whether the status of a copy that is still there says that no pod of it is left. By default nobody knows."""
    counting: Callable[[Json], bool] = lambda job: False
    """Whether it says that its controller has yet to count pods that have ended. By default nobody knows."""
    stopped: Callable[[Json], Json] = lambda status: status
    """The status of a job of which nothing runs any more, made from the last one seen; see `counters_at_zero`. By
    default that one, for kinds of whose status nobody knows what says that something runs."""
    on_hold: Callable[[Json], bool] | None = None
    """Whether the status has the words by which a Kueue takes the quota and waits until they are gone; None: the kind
    has no such words."""
    subresource: bool = True
    """Whether the status is written through `/status`; otherwise with the object itself."""


@attrs.frozen(kw_only=True, field_transformer=checked)
class SyncRules:
    """What of a copy follows the manager's job after it was made."""

    forwarded: tuple[Path, ...] = attrs.field(default=(), validator=are_paths)
    """Fields that follow."""
    followed: SyncRule | None = None
    """What else follows, where `forwarded` is not enough."""
    resized: SyncRule | None = None
    """How the copy of an elastic job follows the size of the manager's; None for kinds that cannot be elastic."""


def limits_at(*parent: str) -> tuple[Path, ...]:
    """For `SyncRules.forwarded`: limits that its user may change while it runs, and its controller heeds."""
    return (*parent, "activeDeadlineSeconds"), (*parent, "backoffLimit")


@attrs.frozen(kw_only=True, field_transformer=checked)
class Membership:
    """Which jobs matter, and which Workloads stand for a job."""

    selector: str = ""
    """Label selector of the manager's jobs of this kind that matter; empty: all of them."""
    group: Callable[[Json], str] | None = None
    """The Workload that a job shares with others of its kind, empty for one on its own; None: none ever does."""
    carriers: Callable[[Json], Sequence[str]] | None = None
    """The Workloads that carry a copy, where Kueue derives their names; None: a copy names its Workload."""
    workloads: Callable[[Json], int] = lambda job: 1
    """How many Workloads the manager's Kueue makes of a job."""


def ended(message: str | None, *, well: bool) -> Outcome:
    """How a job ended, in its own words or else in Kueue's."""
    if well:
        return Outcome("Succeeded", message or "Job finished successfully")
    return Outcome("Failed", message or "Job failed")


def finished_by(good: str, bad: str) -> Callable[[Json], Outcome | None]:
    """How most kinds end: by a condition of one type or the other."""

    def outcome(job: Json) -> Outcome | None:
        listed = conditions(job)
        for kind in (good, bad):
            shown = find(listed, kind)
            if shown is not None and shown.get("status") == "True":
                return ended(shown.get("message"), well=kind == good)
        return None

    return outcome


def observed_here(local: Json, remote: Json, *, counted: bool) -> Json:
    """The copy, with what its status has observed told as generations of the manager's job, which count on their own.

    The job's newest where the copy's controller has seen the copy's newest, else one less: who waits for a job waits
    until the two are equal.

    Args:
        local: the manager's job.
        remote: its copy.
        counted: whether writing its status leaves the generation as it is. Where it does not, nothing of it is told:
            each write would make another one due.
    """
    status, newest = dig(remote, "status"), dig(remote, "metadata", "generation")
    shown = dig(local, "metadata", "generation") if counted else None
    if not isinstance(status, dict) or type(newest) is not int or (counted and type(shown) is not int):
        return remote

    def shifted(entry: Any) -> Any:
        seen = dig(entry, OBSERVED)
        if type(seen) is not int:
            return entry
        rest = {field: value for field, value in entry.items() if field != OBSERVED}
        return rest if shown is None else {**rest, OBSERVED: shown if seen >= newest else max(shown - 1, 0)}

    listed = status.get("conditions")
    known = {"conditions": [*map(shifted, listed)]} if isinstance(listed, list) else {}
    return {**remote, "status": {**shifted(status), **known}}


MAX_STATUS: Final = 512 << 10
"""Bytes of a status that is shown. A worker, and what runs there, decides how large its own is: each job would leave as
much in the manager's etcd."""
_MESSAGE: Final = 1_024
_CONDITION: Final = 4 * _MESSAGE
_OF_CONDITION: Final = ("type", "status", "reason", "message", "lastTransitionTime", "observedGeneration")
_OF_SPEC: Final = ("completedIndexes", "failedIndexes")
"""What the manager's API server holds against the job itself, and so bounds."""


def bounded(status: Json) -> Json:
    """A status of `MAX_STATUS` bytes at most, beside `_OF_SPEC`: with short messages, without its largest fields."""
    if json_size(status) <= MAX_STATUS:
        return status
    kept: Json = {field: status[field] for field in _OF_SPEC if field in status}
    rest = {field: value for field, value in status.items() if field not in kept}
    room = MAX_STATUS
    if isinstance(rest.get("conditions"), list):
        shown = {"conditions": _most_telling([*map(_shortened, rest.pop("conditions"))], MAX_STATUS // 2)}
        kept, room = {**kept, **shown}, room - json_size(shown)
    return {**kept, **_smallest(rest, room)}


def _most_telling(listed: list[Any], room: int) -> list[Any]:
    """The conditions that fit in there, in their order: first those that are true, as an end is, and the last ones."""
    kept: set[int] = set()
    for number in sorted(range(len(listed)), key=lambda at: (dig(listed[at], "status") != "True", -at)):
        if (size := json_size(listed[number]) + 1) <= room:
            kept.add(number)
            room -= size
    return [entry for number, entry in enumerate(listed) if number in kept]


def _smallest(fields: Json, room: int, first: Sequence[str] = ()) -> Json:
    """The fields that fit in there: first these, and the smallest before others."""
    sizes = {field: json_size({field: value}) for field, value in fields.items()}
    kept: Json = {}
    for field in sorted(fields, key=lambda field: (field not in first, sizes[field])):
        if sizes[field] <= room:
            kept[field], room = fields[field], room - sizes[field]
    return kept


def _shortened(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    plain = {field: value for field, value in entry.items() if not isinstance(value, dict | list)}
    cut = {field: shortened(value, _MESSAGE) if isinstance(value, str) else value for field, value in plain.items()}
    return _smallest(cut, _CONDITION, _OF_CONDITION)


def status_change(local: Json, wanted: Json) -> Json | None:
    """The merge patch that gives a job a status; None if it has that. It never lands on a job that has changed."""
    known = dig(local, "status") or {}
    if known == wanted:  # as mostly: each decision on a running job asks
        return None
    wanted = without_nulls(bounded(wanted))
    patch = merge_patch(without_nulls(known), wanted)
    if not patch:
        return None
    # None of it: a schema may want an empty one to have something in it, and takes its absence.
    return {"metadata": {"resourceVersion": resource_version(local)}, "status": patch if wanted else None}


def counters_at_zero(*paths: Path) -> Callable[[Json], Json]:
    """For kinds whose status counts running pods; `*` in a path stands for every entry of a list or mapping."""

    def stopped(status: Json) -> Json:
        for path in paths:
            _set_to_zero(status, path)
        return status

    return stopped


def condition_at_false(kind: str) -> Callable[[Json], Json]:
    """For kinds whose status says by one condition that something runs."""

    def stopped(status: Json) -> Json:
        for shown in status.get("conditions") or []:
            if shown.get("type") == kind:
                shown["status"] = "False"
        return status

    return stopped


def _set_to_zero(value: Any, path: Path) -> None:
    step, *rest = path
    if step == "*":
        for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            _set_to_zero(entry, tuple(rest))
    elif isinstance(value, dict) and rest:
        _set_to_zero(value.get(step), tuple(rest))
    elif isinstance(value, dict) and value.get(step):
        value[step] = 0
