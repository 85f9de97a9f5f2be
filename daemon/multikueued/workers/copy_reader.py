"""What of ours may still have pods on a worker: its job copies that have not ended, and why they are there.

One reader for `worker drain` and `doctor`. It needs no more than the daemon's own permissions; pods are looked at where
they may be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue import AdapterRegistry, JobKind
from multikueue.adapters import AVAILABLE
from multikueue.adapters.safe import SafeAdapter
from multikueue.core.model.adapter import may_have_pods
from multikueue.core.model.conditions import created_at, deleted_at
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.giving_up import holding_finalizers
from multikueue.core.model.grace import MARGIN, ends_by, longest_grace
from multikueue.core.model.kinds import POD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, is_terminating, labels_of, name_of, namespace_of, uid
from multikueue.core.model.worker_names import origin_namespace
from multikueue.errors import Forbidden, NotFound
from multikueued.clusters import ClusterClient
from multikueued.reading.owned import owned_pods
from multikueued.reports.ending_copies import EndingCopy, LatePod

_PODS: Final = SafeAdapter(next(kind for kind in AVAILABLE if kind.resource == POD))
UNCLAIMED: Final = timedelta(minutes=2)
"""How old a job copy is at least that is told of because its Workload is gone."""
MOST_LOOKED_AT: Final = 20
"""Overdue job copies of which the pods are looked for: each needs lists of its namespace."""


@attrs.frozen
class EndingCopies:
    """What was seen on a worker."""

    copies: tuple[EndingCopy, ...]
    """Those that may have pods, in the order of their names."""
    not_read: tuple[Resource, ...] = ()
    """Kinds that may not be listed there."""
    pods_unseen: tuple[Resource, ...] = ()
    """Kinds of which pods may run without a job copy, that may not be looked for there."""


@attrs.frozen
class CopyReader:
    """Looks at one worker."""

    client: ClusterClient
    kinds: Iterable[JobKind]
    """That may have copies there."""
    origin: str
    """The label's value on copies."""
    orphans: Set[str] = frozenset()
    """UIDs of copies whose Workload is gone, as the daemon knows: of others nobody can tell whose they are."""

    async def look(self, now: datetime, *, overdue_only: bool = False) -> EndingCopies:
        """List the job copies that may have pods.

        Args:
            now: the worker's clock, as far as that is known.
            overdue_only: leave out those that have time to end.

        Raises:
            ApiError: it does not answer, or does not accept the credentials.
        """
        served, ending, not_read = await self.client.served(), list[EndingCopy](), list[Resource]()
        unseen = list[Resource]()
        for adapter in AdapterRegistry(self.kinds):
            if adapter.traits.workload_only or not _may_be_served(adapter.resource.gvk, served):
                continue
            try:
                listed = await self._listed(adapter.resource)
            except Forbidden:
                not_read.append(adapter.resource)
                continue
            copies = [ending_copy(job, adapter) for job in listed if may_have_pods(adapter, job)]
            copies = [orphaned(copy, now) if copy.uid in self.orphans else copy for copy in copies]
            if adapter.traits.pods_label:
                try:
                    copies += await self._left_pods(adapter)
                except (Forbidden, NotFound):
                    unseen.append(adapter.resource)
            ending += [copy for copy in copies if copy.is_overdue(now) or not overdue_only]
        ending.sort(key=lambda copy: (copy.key, copy.kind))
        return EndingCopies(tuple(await self._with_pods(ending, now)), tuple(not_read), tuple(unseen))

    async def _left_pods(self, adapter: SafeAdapter) -> list[EndingCopy]:
        """The pods of jobs that are gone, of a kind whose controller lets them outlive these: by their label alone.

        Nothing on them tells whose the job was.
        """
        label = adapter.traits.pods_label
        listed = (await self.client.list(POD, label_selector=label)).items
        running = [pod for pod in listed if may_have_pods(_PODS, pod)]
        jobs = set(map(ObjectKey.of, (await self.client.list(adapter.resource)).items)) if running else set()
        left = [pod for pod in running if ObjectKey(namespace_of(pod), labels_of(pod)[label]) not in jobs]
        return [ending_copy(pod, _PODS) for pod in left]

    async def read(self, deleted: Iterable[tuple[Resource, Json]], now: datetime) -> EndingCopies:
        """Read those that should have ended of the job copies that somebody has deleted, a few of them.

        Args:
            deleted: those, as a cache has them: perhaps without their pod templates, and so without grace period; and
                those whose Workload is gone from the manager, which nobody has deleted.
            now: the worker's clock, as far as that is known.

        Raises:
            ApiError: it does not answer, or does not accept the credentials.
        """
        rows, ending = AdapterRegistry(self.kinds), list[EndingCopy]()
        times = ((deleted_at(job) or created_at(job), resource, job) for resource, job in deleted)
        gone = [(at, resource, job) for at, resource, job in times if at is not None and now - at >= MARGIN]
        for _, resource, deletion in sorted(gone, key=lambda each: each[0])[:MOST_LOOKED_AT]:
            adapter = rows.get(resource.gvk)
            try:
                job = await self.client.get(resource, ObjectKey.of(deletion))
            except (NotFound, Forbidden):
                continue
            if adapter is not None and may_have_pods(adapter, job):
                ending.append(orphaned(ending_copy(job, adapter), now))
        return EndingCopies(tuple(await self._with_pods([copy for copy in ending if copy.is_overdue(now)], now)))

    async def _listed(self, resource: Resource) -> list[Json]:
        try:
            return (await self.client.list(resource, label_selector=f"{ORIGIN_LABEL}={self.origin}")).items
        except NotFound:  # it is not served
            return []

    async def _with_pods(self, copies: list[EndingCopy], now: datetime) -> list[EndingCopy]:
        overdue = [copy for copy in copies if copy.is_overdue(now) and copy.kind != POD.gvk.kind][:MOST_LOOKED_AT]
        seen = {copy.uid: await self._pods_of(copy, now) for copy in overdue}
        return [seen.get(copy.uid, copy) for copy in copies]

    async def _pods_of(self, copy: EndingCopy, now: datetime) -> EndingCopy:
        try:
            owned = await owned_pods(self.client, frozenset({copy.uid}), copy.key.namespace)
        except (Forbidden, NotFound):
            return attrs.evolve(copy, pods_unseen="they may not be listed there (worker add --logs grants that)")
        late = [pod for pod in map(late_pod, owned.pods) if pod is not None and now - pod.due >= MARGIN]
        return attrs.evolve(copy, pods=tuple(late), pods_unseen="" if late else "; ".join(owned.not_read))


def orphaned(copy: EndingCopy, now: datetime) -> EndingCopy:
    """One whose Workload is gone; soon after it was made, a list of Workloads may just be too old to have that."""
    long_ago = copy.created is not None and now - copy.created >= UNCLAIMED
    return attrs.evolve(copy, orphaned=copy.deleted is None and long_ago)


def _may_be_served(gvk: GVK, served: Collection[GVK] | None) -> bool:
    """A server tells of its kinds, but for those of the core group; one that tells nothing is asked."""
    return not gvk.group or served is None or gvk in served


def ending_copy(job: Json, adapter: SafeAdapter) -> EndingCopy:
    """What is known of one job copy without its pods."""
    deleted = deleted_at(job)
    is_pod = adapter.resource == POD
    grace = timedelta(0) if is_pod else longest_grace(_templates(job, adapter))  # the time of a pod has it already
    named = prebuilt_workload(job)
    pod = late_pod(job) if is_pod else None
    return EndingCopy(
        kind=adapter.resource.gvk.kind,
        key=ObjectKey.of(job),
        uid=uid(job),
        created=created_at(job),
        deleted=deleted,
        due=None if deleted is None else ends_by(deleted, grace),
        finalizers=tuple(holding_finalizers(job)),
        workload=ObjectKey(origin_namespace(job), named) if named else None,
        pods=() if pod is None else (pod,),
    )


def _templates(job: Json, adapter: SafeAdapter) -> list[Json]:
    """Its pod templates; of a kind whose row has none, the one where most have it."""
    templates = [template for row in adapter.row.copies.templates for _, template in row.found_in(job)]
    usual = dig(job, "spec", "template")
    return templates or ([usual] if isinstance(usual, dict) else [])


def late_pod(pod: Json) -> LatePod | None:
    """A pod that is to end and has not; None: nobody has deleted it, or it has ended."""
    due = deleted_at(pod)
    if due is None or dig(pod, "status", "phase") in ("Succeeded", "Failed") or not is_terminating(pod):
        return None
    return LatePod(name_of(pod), str(dig(pod, "spec", "nodeName") or ""), due)
