"""A row as the caches use it: whatever its functions raise ends no watch.

A cache calls a row for each object it sees, inside its watch; what is raised there would end the watch, and with it the
daemon, at the same object again and again. So here is the answer that does least harm for each function that is called
outside a decision (`core.model.guard` has those for decisions), and what was raised is noted by object: it is
logged once, and told on the object's Workload by whoever decides about that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import attrs

from multikueue.adapters import JobKind
from multikueue.core.model.guard import complaint
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube.informer import drop_managed_fields
from multikueue.logs import get_logger

_T = TypeVar("_T")

log = get_logger(__name__)


@attrs.define(eq=False)
class Faults:
    """What a row's functions raised for the objects of one cache, as these are now."""

    _noted: dict[ObjectKey, dict[str, str]] = attrs.field(factory=dict, init=False)

    def __bool__(self) -> bool:
        return bool(self._noted)

    def of(self, key: ObjectKey) -> tuple[str, ...]:
        """What is wrong for an object."""
        return tuple(self._noted[key].values()) if key in self._noted else ()

    def note(self, key: ObjectKey, function: str, told: str) -> None:
        """A function raised; that is logged unless it did so for the object's last version as well."""
        noted = self._noted.setdefault(key, {})
        if noted.get(function) != told:
            noted[function] = told
            log.warning("row failed", object=str(key), error=told)

    def clear(self, key: ObjectKey, function: str) -> None:
        """The function works for the object as it is now."""
        noted = self._noted.get(key, {})
        noted.pop(function, None)
        if not noted:
            self._noted.pop(key, None)

    def forget(self, key: ObjectKey) -> None:
        """The object is gone."""
        self._noted.pop(key, None)


@attrs.define(eq=False)
class GuardedRow:
    """A row for the objects of one cache: a worker's copies (`of_copies`), or the manager's jobs (`of_jobs`)."""

    kind: JobKind
    belonging: str
    """Which function of the row says to which Workloads an object belongs."""
    names: Callable[[Json], Iterable[str]] = attrs.field(repr=False)
    faults: Faults = attrs.field(factory=Faults, init=False)

    @classmethod
    def of_copies(cls, kind: JobKind) -> GuardedRow:
        """For the copies on a worker: the row's `carriers`, or else what the copy says."""
        return cls(kind, "carriers", kind.workload_names)

    @classmethod
    def of_jobs(cls, kind: JobKind) -> GuardedRow:
        """For the jobs on the manager: the row's `group`."""
        group = kind.group

        def names(job: Json) -> Iterable[str]:
            name = group(job) if group is not None else ""
            return (name,) if name else ()

        return cls(kind, "group", names)

    def workloads(self, obj: Json) -> list[ObjectKey] | None:
        """The Workloads that an object belongs to, by `carriers` or `group`; None: that cannot be told.

        Nobody may take None for "to none": the object would look gone, and be made again, or what belongs to it be
        removed. See `indexed` and `MutationCache.entries` for what is taken instead, `copy_handlers.telling` and
        `ManagerCluster.jobs_of` for how its Workload is found. A copy of which it never could be told is not removed
        with its Workload: whose it is nobody knows.
        """
        try:
            return _keys(obj, self.names(obj))
        except Exception:  # noted as the cache takes the object in
            return None

    def entries(self, obj: Json) -> list[str] | None:
        """The `workloads` as an index has them."""
        found = self.workloads(obj)
        return None if found is None else [str(key) for key in found]

    def indexed(self, obj: Json) -> list[str] | None:
        """The `entries` for the cache itself, which is where a failure is noted. With None it keeps those it has."""
        try:
            found = [str(key) for key in _keys(obj, self.names(obj))]
        except Exception as error:
            self._note(self.belonging, obj, error)
            return None
        if self.faults:
            self.faults.clear(ObjectKey.of(obj), self.belonging)
        return found

    def kept(self, function: str, transform: Callable[[JobKind, Json], Json], obj: Json) -> Json:
        """What is kept in memory of an object (`unread`, `managed_by`): if that cannot be told, all of it.

        Args:
            function: what of the row decides it.
            transform: says what is kept; may change its argument, but remove nothing that anybody reads.
            obj: the object.
        """
        try:
            kept = transform(self.kind, obj)
        except Exception as error:
            self._note(function, obj, error)
            return drop_managed_fields(obj)
        if self.faults:
            self.faults.clear(ObjectKey.of(obj), function)
        return kept

    def may_have_ended(self, copy: Json) -> bool:
        """Whether a change of a copy is to be acted on at once (`finished`): if that cannot be told, it is.

        The decision that follows asks again, and says what is wrong.
        """
        try:
            return self.kind.outcome(copy) is not None
        except Exception:
            return True

    def _note(self, function: str, obj: Json, error: Exception) -> None:
        self.faults.note(ObjectKey.of(obj), function, complaint(self.kind, function, obj, error))


def _keys(obj: Json, names: Iterable[str]) -> list[ObjectKey]:
    if isinstance(names, str):
        raise TypeError("one name where several belong")
    namespace = obj["metadata"].get("namespace", "")
    found = [ObjectKey(namespace, name) for name in names]
    for key in found:
        if not isinstance(key.name, str):
            raise TypeError("a name that is not text")
    return found


def reviewed(kind: JobKind, job: Json, attempt: Callable[[], _T], otherwise: _T) -> _T:
    """The answer to an API server about a job that is being created, with `managed_by`: if it fails, `otherwise`.

    The job should then be created as it is: nobody runs it before its delegation can be told. Each time is logged:
    there is no object yet by which to tell the next one.
    """
    try:
        return attempt()
    except Exception as error:
        log.warning("row failed", error=complaint(kind, "managed_by", job, error))
        return otherwise
