"""What running jobs need on their workers beside themselves, and what of that is not there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from multikueue.core.model import workloads
from multikueue.core.model.dependencies import MAX_LOOKED_FOR, RESOURCES, dependencies_of
from multikueue.core.model.kinds import CONFIG_MAP, SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.worker_names import namespace_on
from multikueued.doctor.cluster_reader import Sight
from multikueued.reports.jobs import JobState, state_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.typenames import title
from multikueued.reports.worker_facts import Need

OF_ONE: Final = "multikueue explain JOB -n NAMESPACE tells it of one"
_KINDS: Final = (SECRET.gvk.kind, CONFIG_MAP.gvk.kind)


def needs_of(objects: ManagerObjects) -> dict[str, tuple[Need, ...]]:
    """By worker, the Secrets and ConfigMaps that jobs there cannot do without: each once."""
    by_worker: dict[str, dict[tuple[str, ObjectKey], Need]] = defaultdict(dict)
    for chain in objects.chains:
        workload, worker = chain.workload, workloads.cluster_name(chain.workload)
        if worker is None or state_of(chain) not in (JobState.STARTING, JobState.RUNNING):
            continue
        for dependency in dependencies_of(workload):
            if dependency.required and dependency.kind in _KINDS:
                key = ObjectKey(namespace_on(workload, worker), dependency.name)
                by_worker[worker].setdefault((dependency.kind, key), Need(dependency.kind, key, title(workload)))
    return {worker: tuple(needs.values()) for worker, needs in by_worker.items()}


async def missing(sight: Sight, needs: Sequence[Need]) -> tuple[Need, ...]:
    """Those that are not there, of the first `MAX_LOOKED_FOR`. A kind that may not be read is noted once, and not asked
    for again.

    Raises:
        ApiError: see `Sight.items`.
    """
    unread, lacking = set[str](), list[Need]()
    if (more := len(needs) - MAX_LOOKED_FOR) > 0:
        why = f"only {MAX_LOOKED_FOR} are looked for"
        sight.blind(f"whether {more} more of what jobs name is on {sight.whose}", why, OF_ONE)
    for need in needs[:MAX_LOOKED_FOR]:
        if need.kind not in unread:
            what = f"whether each {need.kind} that jobs name is on {sight.whose}"
            there = await sight.exists(RESOURCES[need.kind], need.key, what)
            if there is None:
                unread.add(need.kind)
            elif not there:
                lacking.append(need)
    return tuple(lacking)
