"""Checks of job copies on workers that were deleted and do not end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from multikueue.core.model.giving_up import is_given_up
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import Spot, check
from multikueued.reports.ending_copies import EndingCopy
from multikueued.reports.job_findings import DOES_NOT_END
from multikueued.reports.worker_facts import WorkerFacts

MOST: Final = 5
"""Job copies with one cause that are named."""


@check(DOES_NOT_END)
def do_not_end(facts: Facts) -> Iterator[Spot]:
    """A job copy on a worker was deleted longer ago than its pods' longest grace period and a minute: a finalizer
    holds it, or a pod that has not ended, as on a node that is down; or its Workload is gone, and the worker refuses
    its deletion. Copies with the same cause are one finding.
    """
    known = {ObjectKey.of(workload) for workload in facts.objects.workloads}
    for worker in facts.workers.values():
        by_cause: dict[tuple[object, ...], list[EndingCopy]] = defaultdict(list)
        for copy in worker.overdue or ():
            if not _is_given_up(copy, worker, facts):
                nodes = frozenset(pod.node for pod in copy.pods)
                by_cause[copy.finalizers, nodes, copy.pods_unseen, copy.orphaned].append(copy)
        for first, *others in by_cause.values():
            why = f"{first}: {first.why(facts.now)}{_same(others)}"
            words = {"way_out": first.way_out(worker.name, known=first.workload in known)}
            yield Spot(f"{worker.name}, {first.kind} {first.key}", why, words, instead=f"{DOES_NOT_END}@there")


def _same(others: list[EndingCopy]) -> str:
    if not others:
        return ""
    more = f" and {len(others) - MOST} more" if len(others) > MOST else ""
    return f"; the same holds of {', '.join(map(str, others[:MOST]))}{more}"


def _is_given_up(copy: EndingCopy, worker: WorkerFacts, facts: Facts) -> bool:
    cluster = facts.objects.clusters_by_name.get(worker.name, {})
    own = [workload for workload in facts.objects.workloads if ObjectKey.of(workload) == copy.workload]
    return is_given_up(copy.uid, copy.created, worker.name, annotations_of(cluster), own)
