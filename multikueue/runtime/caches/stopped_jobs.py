"""Jobs of the manager whose Workload is gone, and that still show a run: the next Workload waits for us."""

from __future__ import annotations

import attrs

from multikueue.adapters import AdapterRegistry, SafeAdapter
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.core.model.workloads import Owner
from multikueue.core.workload.seen.snapshot import Snapshot
from multikueue.runtime.caches.manager_cluster import ManagerCluster


@attrs.frozen
class StoppedJob:
    """A job that still shows that it runs."""

    adapter: SafeAdapter
    object: Json

    @property
    def owner(self) -> Owner:
        """It, as a Workload would name it."""
        return Owner(self.adapter.resource.gvk, name_of(self.object))

    def shown(self, gone: Snapshot) -> Snapshot:
        """What is seen of its Workload, which is gone, with the job."""
        return attrs.evolve(gone, adapter=self.adapter, jobs={name_of(self.object): self.object})


def stopped_job(manager: ManagerCluster, adapters: AdapterRegistry, key: ObjectKey) -> StoppedJob | None:
    """The stopped job behind a Workload that is gone, by the name that Kueue gave to that; None: there is none."""
    for gvk, cache in manager.jobs.items():
        adapter = adapters.get(gvk)
        for name in cache.informer.keys_by("stopped", str(key)) if adapter is not None else ():
            job = cache.get(name)
            if adapter is not None and job is not None and adapter.shows_former_run(job):
                return StoppedJob(adapter, job)
    return None
