"""Our copies that have quota on a worker, and how long each usually runs: read once for each version of a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import attrs

from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.facts import Running
from multikueue.core.dispatchers.scored.run_times import RunTimes, Size, size
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.core.model.worker_names import origin_key
from multikueue.core.model.workloads import cluster_queue

Version: TypeAlias = tuple[str, str]
"""A copy's UID and resourceVersion."""
Known: TypeAlias = tuple[Running, str, Size | None]
"""With the manager's ClusterQueue; the size is None where Kueue itself stops the copy in time, or it is not known."""


@attrs.define(eq=False)
class RunningCopies:
    """Of one worker."""

    workload: Callable[[ObjectKey], Json | None]
    """The manager's, by key."""
    run_times: RunTimes
    _known: dict[Version, Known] = attrs.field(factory=dict)
    _before: dict[Version, Known] = attrs.field(factory=dict)

    def again(self) -> RunningCopies:
        """For another look: what is not seen in it is forgotten after the next."""
        return RunningCopies(self.workload, self.run_times, before=self._known)

    def of(self, copies: Iterable[Json]) -> Iterator[Running]:
        """Those of one queue."""
        for copy in copies:
            version = uid(copy), str(copy["metadata"].get("resourceVersion"))
            found = self._known[version] = self._before.get(version) or self._read(copy)
            one, queue, needs = found
            usual = None if needs is None else self.run_times.run_time(queue, needs)
            yield one if usual is None else attrs.evolve(one, usual=usual)

    def _read(self, copy: Json) -> Known:
        workload = self.workload(origin_key(copy)) or {}
        request = kueue_objects.request(workload) if kueue_objects.longest(copy) is None else None
        return kueue_objects.running(copy), cluster_queue(workload), None if request is None else size(request.total)
