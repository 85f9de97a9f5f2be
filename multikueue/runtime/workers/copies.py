"""What of the manager's Workloads is on one worker, by what the copies say of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import filterfalse

import attrs

from multikueue.core.machinery.shares import Need
from multikueue.core.model.kinds import CONFIG_MAP, WORKLOAD
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, is_terminating, namespace_of
from multikueue.core.model.worker_names import origin_key, origin_namespace, record_counts
from multikueue.core.model.worker_states import Refusal, ShareUsedUp
from multikueue.core.model.workloads import Owner, has_quota, is_elastic, owner
from multikueue.core.model.writers import drop_managed_fields
from multikueue.core.workload.seen.snapshot import JobCopy, Worker
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.workload_indexes import FAILED, ORIGIN
from multikueue.runtime.target import Target
from multikueue.runtime.workers.children import adopter, is_child
from multikueue.runtime.workers.copy_shares import CopyShares


@attrs.define(eq=False, repr=False)
class WorkerCopies(Target):
    """Finds the copies of a Workload. Keys are the manager's, objects as they are on the worker."""

    shares: CopyShares = attrs.field(factory=CopyShares, kw_only=True)

    def place_of(self, key: ObjectKey, namespace: str | None) -> str:
        """The namespace here in which a Workload's copies are: the given one, or that of any that say they are its."""
        if namespace is not None:
            return namespace
        jobs = (job for cache in self.jobs.values() for job in cache.of(key))
        copies = sorted((*self.workloads.informer.by(ORIGIN, str(key)), *jobs), key=is_terminating)
        return namespace_of(copies[0]) if copies else key.namespace

    def workload_of(self, key: ObjectKey, there: str) -> Json | None:
        """The copy of a Workload in a namespace here, unless it says that it is another one's."""
        copy = self.workloads.get(ObjectKey(there, key.name))
        return copy if copy is not None and origin_namespace(copy) == key.namespace else None

    def failed_in(self, namespace: str) -> int:
        """How many Workload copies of jobs that have failed are in a namespace here."""
        return len(self.workloads.informer.keys_by(FAILED, namespace))

    def copies_of(self, key: ObjectKey) -> list[Json]:
        """What says that it is of a Workload, in any namespace here: its copy, and its jobs, which may outlive that.

        Of those that cannot be read it is the metadata.
        """
        there, own = self.workloads.informer, self.workload_of(key, key.namespace)
        copies = [] if own is None else [own]
        for store in (there, there.unreadable.outlines):
            copies += store.by(ORIGIN, str(key)) if store.indexed(ORIGIN) else ()
        for cache in self.jobs.values():
            outlines = cache.informer.unreadable.outlines
            jobs = (*cache.of(key), *(outlines.by("workload", str(key)) if outlines.indexed("workload") else ()))
            copies += (job for job in jobs if not self._is_child(job))
        return copies

    def marked_places(self, workloads: Sequence[Json], marks: Marks, worker: ClusterName) -> tuple[str, ...]:
        """The namespaces on that worker with copies, marked by us, of those of these Workloads whose job may run."""
        namespaces = list[str]()
        for workload in filter(record_counts, workloads):
            key = ObjectKey.of(workload)
            for copy in self.copies_of(key):
                if marks.proof(copy, workload, worker) is Proof.EXACT:
                    namespaces.append(namespace_of(copy))
        return tuple(dict.fromkeys(namespaces))

    def jobs_of(
        self, key: ObjectKey, owned_by: Owner | None, there: str
    ) -> tuple[tuple[JobCopy, ...], tuple[JobCopy, ...]]:
        """The jobs in a namespace here that name a Workload; and the owner's, where it names another Workload of the
        owner or none."""
        own = tuple(
            JobCopy(cache.informer.resource, job, adopter(job), cache.is_leaving(job))
            for cache in self.jobs.values()
            for job in cache.of(key)
            if namespace_of(job) == there and not self._is_child(job)
        )
        cache = self.cache_of(owned_by.gvk) if owned_by is not None else None
        job = cache.get(ObjectKey(there, owned_by.name)) if cache is not None and owned_by is not None else None
        if cache is None or job is None or any(copy.object is job for copy in own):
            return own, ()
        if origin_namespace(job) != key.namespace or self._is_child(job):
            return own, ()
        return own, (JobCopy(cache.informer.resource, job, adopter(job), cache.is_leaving(job)),)

    def refusal(
        self, key: ObjectKey, gvk: GVK | None, workload: Json | None, jobs: Sequence[JobCopy]
    ) -> Refusal | None:
        """Why objects of a Workload, with jobs of a kind, are not created here, if they are not: the reason that lasts
        longest. `workload` and `jobs` are what of it is here.
        """
        if not jobs and (workload is None or has_quota(workload)):
            waits = self.create_conflicts.remade(key) if workload is None else None
            waits = waits or self.shares.held_back(key)
            if waits is not None:
                return waits
        if not self.create_conflicts:
            return None
        asked = self._asked_for(gvk, workload, jobs)
        refusals = (self.create_conflicts.refusal(resource, key, own=own) for resource, own in asked)
        return max(filter(None, refusals), key=lambda refusal: refusal.left, default=None)

    def learn(self, key: ObjectKey, gvk: GVK | None, worker: Worker) -> None:
        """Note what was read of a Workload here: when it is looked at again, and which refusals are over by that."""
        self.shares.wait(key, held_back=isinstance(worker.refusal, ShareUsedUp))
        if self.create_conflicts:
            for resource, own in self._asked_for(gvk, worker.copy, worker.all_jobs):
                self.create_conflicts.settle(resource, key, own=own)

    def _asked_for(
        self, gvk: GVK | None, workload: Json | None, jobs: Sequence[JobCopy]
    ) -> Iterator[tuple[Resource, Sequence[ObjectKey]]]:
        """The kinds that are created for a Workload here, with the names of those that are."""
        yield WORKLOAD, () if workload is None else (ObjectKey.of(workload),)
        yield CONFIG_MAP, ()  # what it needs beside its job, of any kind
        if (cache := self.cache_of(gvk)) is not None:
            yield cache.informer.resource, [ObjectKey.of(copy.object) for copy in jobs]

    def expect(self, workload: ObjectKey) -> None:
        """See `Target`."""
        self.shares.expect(workload)

    def settle(self, workload: ObjectKey) -> None:
        """See `Target`."""
        self.shares.made(workload)
        if not self.copies_of(workload):
            self.shares.gone(workload)

    def count(self, cache: MutationCache, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """Note what a change of an object here means for its namespace's share.

        Args:
            cache: of its kind.
            key: its name here.
            old: as it was.
            new: as it is.
        """
        of_kind = cache.informer
        for obj in filter(None, (new or old,)):
            own = cache is self.workloads
            named = [origin_key(obj)] if own else [ObjectKey.parsed(entry) for entry in cache.entries(obj)]
            for workload in named or [origin_key(obj)]:
                if new is None:
                    if workload not in self.shares.expected and not self.copies_of(workload):
                        self.shares.gone(workload)
                    continue
                objects = 1 if own else max(1, len(of_kind.keys_by("workload", str(workload))))
                self.shares.shown(workload, Need(of_kind.size_of(key) * objects, objects), namespace_of(obj))

    def owner_of(self, key: ObjectKey) -> Owner | None:
        """The job behind a Workload, from its copy, or from a job that names it."""
        copy = self.workload_of(key, self.place_of(key, None))
        owned_by = owner(copy) if copy is not None else None
        named = ((gvk, job) for gvk, cache in self.jobs.items() for job in cache.of(key) if not self._is_child(job))
        return owned_by or next((Owner(gvk, job["metadata"]["name"]) for gvk, job in named), None)

    def keys(self) -> Iterator[ObjectKey]:
        """The Workloads with copies there, or with jobs."""
        copies = self.workloads.informer
        for store in (copies, copies.unreadable.outlines):
            yield from filterfalse(store.indexed(ORIGIN).__contains__, store.keys())
            yield from map(ObjectKey.parsed, store.entries(ORIGIN))
        for cache in self.jobs.values():
            yield from map(ObjectKey.parsed, cache.informer.entries("workload"))
            yield from map(ObjectKey.parsed, cache.informer.unreadable.outlines.entries("workload"))

    def _is_child(self, job: Json) -> bool:
        """See `is_child`."""
        return is_child(job, self.jobs)


def without_templates(copy: Json) -> Json:
    """A Workload copy without its pod templates: they are compared by their digest, which is noted on the copy.

    Those of an elastic job are kept, since they are sent again with its new size.
    """
    for pod_set in () if is_elastic(copy) else dig(copy, "spec", "podSets") or ():
        pod_set.pop("template", None)
    return drop_managed_fields(copy)
