"""Which objects on a worker are a job's copies. Pure.

A request names a job, and never a worker or a pod: Workload → recorded worker → our copies there → pods by the UIDs of
their owners. So an object that only has the right name is not shown.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.copies import is_copy_of, prebuilt_workload
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, labels_of, name_of, uid
from multikueue.core.model.worker_names import namespace_on


@attrs.frozen
class PlacedJob:
    """One job, as far as the manager knows it."""

    job: str
    """TYPE/NAME."""
    namespace: str
    worker: str
    """The recorded one."""
    workload: Json
    """The Workload that counts."""
    origin: str
    """Value of the origin label: copies of another manager have another."""
    siblings: tuple[Json, ...] = ()
    """Other Workloads of the very same job: slices, or parts of a group."""
    object: Json | None = None
    """The manager's job; None: there is no one object, or it may not be read."""
    mark_key: bytes | None = attrs.field(default=None, repr=False)
    """By which copies are marked; None: it may not be read, and what is recorded is believed."""
    strict: bool = False
    """Whether only what certainly is ours counts: no copy without a mark, or with that of a lost key."""

    @property
    def namespace_there(self) -> str:
        """The namespace of the copies on the worker."""
        return namespace_on(self.workload, self.worker, self.siblings)

    @property
    def selector(self) -> str:
        """The label selector of all copies."""
        return f"{ORIGIN_LABEL}={self.origin}"

    def copies(self, listed: Iterable[Json]) -> list[Json]:
        """Those objects of the job's kind on the worker that are its copies."""
        return [obj for obj in listed if self._is_copy(obj)]

    def owners_of_copy(self, listed: Iterable[Json]) -> frozenset[str]:
        """The UIDs of the jobs that control the Workload copy on the worker, or of a group's pods."""
        copies = [obj for obj in listed if name_of(obj) == name_of(self.workload) and self._is_ours(obj)]
        owners = (owner for copy in copies for owner in dig(copy, "metadata", "ownerReferences") or [])
        members = workloads.has_members(self.workload)
        return frozenset(
            str(owner.get("uid") or "") for owner in owners if members or owner.get("controller") is True
        ) - {""}

    def _is_copy(self, obj: Json) -> bool:
        carriers = {name_of(workload) for workload in (self.workload, *self.siblings)}
        if name_of(obj) not in self._names or prebuilt_workload(obj) not in ("", *carriers):
            return False
        return self._is_ours(obj) and (self.object is None or is_copy_of(obj, self.object))

    @property
    def _names(self) -> set[str]:
        owner = workloads.owner(self.workload)
        if owner is None:
            return set()
        if workloads.has_members(self.workload):
            return set(workloads.owner_names(self.workload, owner.gvk))
        return {owner.name}

    def _is_ours(self, obj: Json) -> bool:
        """By the origin label; and by the mark, where it can be read: it tells a namespace that was made again, too."""
        if labels_of(obj).get(ORIGIN_LABEL) != self.origin:
            return False
        if self.mark_key is None:
            return not self.strict
        marks = Marks(self.mark_key)
        proofs = (marks.proof(obj, workload, self.worker) for workload in (self.workload, *self.siblings))
        return any(proof is Proof.EXACT or (proof is Proof.NONE and not self.strict) for proof in proofs)


def siblings_of(workload: Json, listed: Iterable[Json]) -> tuple[Json, ...]:
    """The other Workloads of the very same job: not of an earlier one of its name."""
    mine = workloads.owner_uids(workload)
    return tuple(other for other in listed if uid(other) != uid(workload) and mine & workloads.owner_uids(other))
