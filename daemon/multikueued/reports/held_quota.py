"""Jobs that hold quota of a ClusterQueue and can never start: what waits behind them waits for somebody."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from multikueue.core.model import workloads
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import namespace_of
from multikueue.core.model.workloads import reserved_at
from multikueued.reports.jobs import JobState, state_of
from multikueued.reports.objects import Chain
from multikueued.reports.remedies.remedy import Finding, finding
from multikueued.reports.typenames import title, type_name

MOST: Final = 20
"""Jobs that are looked at, those that have had quota longest: anybody may submit more."""
HELD_QUOTA: Final = "quota-held"
_HOLDING: Final = (JobState.WAITING, JobState.OFFERED)
_NEVER: Final = frozenset(
    {
        "quota-too-small",
        "no-flavor",
        "narrowed-out",
        "local-queue-missing",
        "namespace-missing",
        "namespace-not-selected",
    }
)
"""What no time changes."""


def held_quota(chain: Chain, findings_of: Callable[[Json], Iterable[Finding]], *, named: bool) -> Iterator[Finding]:
    """The first job that holds quota of the same ClusterQueue and fits no worker.

    Args:
        chain: of a Workload without quota.
        findings_of: what is wrong with another Workload.
        named: whether the other job may be named: who reads this may see what it was made of.
    """
    queue = chain.cluster_queue_name
    holding = [
        other.workload
        for other in chain.objects.chains
        if workloads.cluster_queue(other.workload) == queue
        and state_of(other) in _HOLDING
        and ObjectKey.of(other.workload) != ObjectKey.of(chain.workload)
    ]
    holding.sort(key=lambda other: str(reserved_at(other)))
    for other in holding[:MOST]:
        if (
            why := next((reason for reason in findings_of(other) if reason.blocking and reason.id in _NEVER), None)
        ) is None:
            continue
        row, where = HELD_QUOTA if named else f"{HELD_QUOTA}@unnamed", f"ClusterQueue {queue}"
        words = {"title": title(other), "job": type_name(other), "namespace": namespace_of(other), "reason": why.why}
        yield finding(row, where, queue=queue, **words)
        return
