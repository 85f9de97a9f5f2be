"""An informer plus the writes it has not seen yet.

The watch shows a write a moment later. A decision made in between, from the informer alone, would write the same again.
A mutation cache therefore remembers what was written until the informer has caught up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Set
from typing import Any, Final

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import resource_version, uid, version_number, version_of
from multikueue.core.model.shape import has_name
from multikueue.core.model.slimmed import size_noted
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.list_pages import size_of
from multikueue.runtime.loop import loop_time

DELETION_GRACE: Final = 30.0
"""Seconds for which a deleted object stays hidden if the watch does not confirm the deletion. Long enough for a slow
watch; an object that is still there after that is deleted again."""

REFUSALS_COUNT: Final = 30.0
"""Seconds for which a patch is refused before it counts as in vain: who refuses it may be put right meanwhile."""

REFUSED_FOR: Final = 300.0
"""Seconds after which a patch that was refused is sent once more, at the latest: what refuses it may be gone, and no
event tells. At first it is sent sooner, after as long as it has been refused."""


@attrs.frozen
class _Vain:
    """A patch that changed nothing, or was refused."""

    patch: Json
    until: float
    """When it is sent again."""
    since: float = 0.0
    """When it was refused first."""
    first: float = -math.inf
    """When the first of all patches was refused that none was taken between."""
    last: float = -math.inf
    """When the last one was."""


@attrs.frozen
class _Write:
    """An object as it was written."""

    object: Json
    version: int
    entries: frozenset[str] | None
    """The Workload keys it belongs to; None: its rules fail for it."""


@attrs.frozen
class _Deletion:
    """An object that was deleted, or is out of sight with its kind."""

    uid: str
    until: float
    is_certain: bool
    """Else the server did not serve its kind: once it does again, the informer tells better."""


@attrs.define(eq=False, repr=False)
class MutationCache:
    """One kind on one cluster: what its informer shows, and what was written since."""

    informer: Informer
    index: Callable[[Json], Iterable[str] | None] = lambda _: ()
    """The Workload keys an object belongs to, for `of`; None: its rules fail for it."""
    _written: dict[ObjectKey, _Write] = attrs.field(factory=dict, init=False)
    _deleted: dict[ObjectKey, _Deletion] = attrs.field(factory=dict, init=False)
    _in_vain: dict[ObjectKey, _Vain] = attrs.field(factory=dict, init=False)
    _leaving: dict[ObjectKey, str] = attrs.field(factory=dict, init=False)
    """The UIDs of objects whose deletion was accepted, and that have still to end."""
    _history: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.informer.unshown = self._unshown

    def __repr__(self) -> str:
        writes = f"{len(self._written)} writes and {len(self._deleted)} deletions remembered"
        return f"<MutationCache {self.informer.resource}: {len(self.informer)} objects, {writes}>"

    def get(self, key: ObjectKey) -> Json | None:
        """The object as it is or soon will be; None if it is gone or about to be."""
        if not self._written and not self._deleted:
            return self.informer.get(key)
        self._forget_other_histories()
        cached = self.informer.get(key)
        written = self._written.get(key)
        if written is not None:
            if self._is_ahead(written, cached):
                cached = written.object
            else:
                del self._written[key]
        return None if cached is None or (key in self._deleted and self._is_deleted(key, cached)) else cached

    def of(self, workload: ObjectKey) -> list[Json]:
        """The objects that belong to a Workload."""
        self._forget_other_histories()
        if not self._written and not self.informer.indexed("workload"):
            return []
        wanted = str(workload)
        known = self.informer.keys_by("workload", wanted)
        if not known and not self._written:
            return []
        written = [key for key, write in self._written.items() if write.entries is not None and wanted in write.entries]
        objects = ((key, self.get(key)) for key in sorted({*known, *written}))
        return [obj for key, obj in objects if obj is not None and self._belongs(key, obj, wanted, key in known)]

    def entries(self, obj: Json) -> Iterable[str]:
        """The Workload keys an object belongs to; where rules fail for it, those of its last version with a result."""
        entries = self.index(obj)
        return self.informer.values_of("workload", ObjectKey.of(obj)) if entries is None else entries

    def _belongs(self, key: ObjectKey, obj: Json, wanted: str, shown: bool) -> bool:
        """Whether an object belongs to a Workload; `shown`: whether its version in the informer does."""
        write = self._written.get(key)
        if write is None or write.object is not obj or write.entries is None:
            return shown
        return wanted in write.entries

    def unreadable_note(self, key: ObjectKey) -> str:
        """Which object cannot be read, and why, for people: nobody may go by what `get` shows of it. Empty: it can be,
        or there is none."""
        why = self.informer.unreadable.why(key)
        return f'{self.informer.resource.gvk.kind} "{key.name}" cannot be read: {why}' if why else ""

    def unreadable_of(self, workload: ObjectKey) -> Set[ObjectKey]:
        """The objects that belong to a Workload, as far as can be told, and cannot be read."""
        unreadable = self.informer.unreadable
        if not unreadable:
            return frozenset()
        named = unreadable.outlines.keys_by("workload", str(workload))
        before = self.informer.keys_by("workload", str(workload))
        return named | {key for key in before if key in unreadable}

    def wrote(self, obj: Json) -> None:
        """The server answered a write with this object. If its shape is wrong, the watch will tell."""
        if not has_name(obj) or self.informer.flaw(obj):
            return
        key = ObjectKey.of(obj)
        metadata = {field: value for field, value in obj["metadata"].items() if field != "managedFields"}
        self._forget_settled()
        self._deleted.pop(key, None)
        known, version = self._written.get(key), version_of(obj)
        if known is None or version >= known.version:
            size = 0 if self.informer.slim is None else size_noted(obj) or size_of(obj)
            kept = self.informer.kept({**obj, "metadata": metadata}, size)
            self._written[key] = self._write(kept or obj)

    def _write(self, obj: Json) -> _Write:
        entries = self.index(obj)
        return _Write(obj, version_of(obj), None if entries is None else frozenset(entries))

    def removed(self, key: ObjectKey, object_uid: str, *, is_certain: bool = True) -> None:
        """The server accepted the deletion of this object.

        Args:
            key: the object.
            object_uid: its uid.
            is_certain: whether it did; else it does not serve the kind now, and may have the object still.
        """
        self._forget_settled()
        self._written.pop(key, None)
        self._deleted.pop(key, None)  # so that the dictionary stays in the order of time
        self._deleted[key] = _Deletion(object_uid, loop_time() + DELETION_GRACE, is_certain)

    def leaves(self, obj: Json) -> None:
        """The server accepted the deletion of this object, which has still to end."""
        for key in [*itertools.islice(self._leaving, 2)]:  # those that are gone by now are forgotten, the oldest first
            of = self._leaving.pop(key)
            if key in self.informer:
                self._leaving[key] = of
        self._leaving[ObjectKey.of(obj)] = uid(obj)
        self.wrote(obj)

    def is_leaving(self, obj: Json) -> bool:
        """Whether this process has deleted the object."""
        return self._leaving.get(ObjectKey.of(obj)) == uid(obj)

    def patched(self, patch: Json, answer: Json) -> None:
        """The server answered a patch with this object. A patch with that resourceVersion in it has changed nothing."""
        self.wrote(answer)
        if not has_name(answer):
            return
        key = ObjectKey.of(answer)
        self._in_vain.pop(key, None)
        self._look_at_oldest_in_vain()
        if resource_version(patch) == resource_version(answer):
            self._in_vain[key] = _Vain(patch, math.inf)

    def refused(self, key: ObjectKey, patch: Json, *, may_pass: bool = False) -> None:
        """The server refused a patch of this object: for what stands there already, or as a policy of it has it.

        Args:
            key: the object.
            patch: what was sent.
            may_pass: whether it is rather a right that is missing: then it is never in vain.
        """
        self._look_at_oldest_in_vain()
        known, now = self._in_vain.pop(key, None), loop_time()
        since = known.since if known is not None and known.patch == patch else now
        first = known.first if known is not None and now - known.last <= REFUSED_FOR else now
        passed = now - since
        counts = passed >= REFUSALS_COUNT and not may_pass
        until = now + min(passed, REFUSED_FOR) if counts else now
        self._in_vain[key] = _Vain(patch, until, since, first, now)

    def refusing_for(self, key: ObjectKey) -> float:
        """For how many seconds it has refused whatever was sent of this object; zero: nothing was, for minutes."""
        known = self._in_vain.get(key)
        return known.last - known.first if known is not None and loop_time() - known.last <= REFUSED_FOR else 0.0

    def in_vain(self, key: ObjectKey) -> Json | None:
        """The last patch of this object, if it changed nothing, or was refused for a while."""
        known = self._in_vain.get(key)
        return known.patch if known is not None and loop_time() < known.until else None

    def in_vain_for(self, key: ObjectKey) -> float | None:
        """For how many more seconds that is so; None: until the object changes."""
        known = self._in_vain.get(key)
        return None if known is None or known.until == math.inf else max(0.0, known.until - loop_time())

    def inherit(self, earlier: MutationCache) -> None:
        """Know what an earlier cache of the same kind on the same server knows, until the informer has caught up.

        The writes are shared and not copied: the answers of requests under way are still noted there.
        """
        if self.informer.status.histories:
            return  # not the same server, whatever its address
        self.informer.inherit(earlier.informer)
        self._written, self._deleted, self._leaving = earlier._written, earlier._deleted, earlier._leaving
        seen = version_number(self.informer.resource_version)
        seen_there = version_number(earlier.informer.resource_version)
        for obj in earlier.informer.values():
            if version_of(obj) > seen:
                self._written.setdefault(ObjectKey.of(obj), self._write(obj))
        for obj in self.informer.values() if seen_there > seen else ():
            key = ObjectKey.of(obj)
            if key not in earlier.informer and version_of(obj) <= seen_there:
                self.removed(key, uid(obj))

    def _forget_other_histories(self) -> None:
        """Forget what was written to a server that another one has replaced."""
        if self._history != self.informer.status.histories:
            self._history = self.informer.status.histories
            self._written.clear()
            self._deleted.clear()

    def _unshown(self) -> Iterable[Json]:
        self._forget_other_histories()
        return [write.object for write in self._written.values() if self._is_ahead(write, None)]

    def _look_at_oldest_in_vain(self) -> None:
        """Forget the oldest two if their objects are gone, else put them last: twice as many as there are objects is
        the most that is kept."""
        for key in [*itertools.islice(self._in_vain, 2)]:
            known = self._in_vain.pop(key)
            if key in self.informer:
                self._in_vain[key] = known

    def _is_ahead(self, written: _Write, cached: Json | None) -> bool:
        # The informer has seen all up to its resourceVersion: an older write is in its store, or was overwritten.
        seen = version_number(self.informer.resource_version)
        return written.version > max(seen, version_of(cached) if cached else 0)

    def _is_deleted(self, key: ObjectKey, obj: Json) -> bool:
        deletion = self._deleted[key]
        is_out_of_sight = deletion.is_certain or self.informer.status.failing_since is not None
        holds = is_out_of_sight and loop_time() < deletion.until
        if holds and deletion.uid == uid(obj) and "deletionTimestamp" not in obj["metadata"]:
            return True
        del self._deleted[key]
        return False

    def _forget_settled(self) -> None:
        """Forget writes that the informer has seen, oldest first: most of them are not read again."""
        self._forget_other_histories()
        now = loop_time()
        _drop_leading(self._deleted, lambda key: self._deleted[key].until <= now)
        _drop_leading(self._written, lambda key: not self._is_ahead(self._written[key], None))


def _drop_leading(known: dict[ObjectKey, Any], settled: Callable[[ObjectKey], bool]) -> None:
    for key in [*itertools.takewhile(settled, known)]:
        del known[key]
