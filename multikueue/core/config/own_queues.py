"""Which ClusterQueues of the manager cannot hold copies, where the manager is one of its own workers.

A copy needs quota beside that of its original. In a queue whose jobs go to workers it would wait for our check for
ever; in its cohort it would take the quota that its original holds, or have it evicted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from multikueue.core.config.quota import check_names, cohort_of, parent_of
from multikueue.core.model.names import Json
from multikueue.core.model.objects import name_of


def unfit(cluster_queues: Iterable[Json], cohorts: Iterable[Json], ours: Collection[str]) -> dict[str, str]:
    """The ClusterQueues that cannot hold copies, and why.

    Args:
        cluster_queues: all of the manager's.
        cohorts: its Cohorts, as far as they are known.
        ours: the names of our AdmissionChecks.
    """
    above = {name_of(cohort): parent_of(cohort) for cohort in cohorts}
    roots = {name_of(queue): _root(cohort_of(queue), above) for queue in cluster_queues}
    checked = {
        name_of(queue): check
        for queue in cluster_queues
        if (check := next((name for name in check_names(queue) if name in ours), ""))
    }
    whys = {name: f'it has AdmissionCheck "{check}", so its jobs go to workers' for name, check in checked.items()}
    first = {roots[name]: name for name in sorted(checked, reverse=True) if roots[name]}
    for name, root in roots.items():
        if name not in checked and (beside := first.get(root)):
            whys[name] = f'it shares cohort "{root}" with ClusterQueue "{beside}", whose jobs go to workers'
    return whys


def _root(cohort: str, above: Mapping[str, str]) -> str:
    seen = set[str]()
    while above.get(cohort) and cohort not in seen:
        seen.add(cohort)
        cohort = above[cohort]
    return cohort
