"""What keeps jobs from running, for lists of jobs: of each the first finding that somebody has to mend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueued.reports.explanation import Seen, explain
from multikueued.reports.jobs import WAITING_STATES, JobReport, JobState, state_of
from multikueued.reports.objects import ManagerObjects

SETTLED: Final = (JobState.REJECTED, JobState.INACTIVE)
"""The states that last until somebody does something about them."""
HELD_UP: Final = (*WAITING_STATES, JobState.LOST, *SETTLED)
"""The states of jobs that something may keep from running."""
MOST: Final = 200
"""Jobs that are explained, the oldest first, and those that wait before those that are settled: each takes about a
millisecond."""


def causes(objects: ManagerObjects, now: datetime, daemon_namespace: str, namespace: str = "") -> dict[ObjectKey, str]:
    """What keeps jobs from running, by their Workloads. Those that nobody has to look after are not in it.

    Args:
        objects: of the manager: what keeps a job from running may be those of other namespaces.
        now: the wall clock.
        daemon_namespace: for remedies.
        namespace: the only one whose jobs are told of; empty: all are.
    """
    states = ((chain.workload, state_of(chain)) for chain in objects.chains if namespace in ("", chain.queue.namespace))
    held_up = [(workload, state) for workload, state in states if state in HELD_UP]
    held_up.sort(key=lambda pair: (pair[1] in SETTLED, str(dig(pair[0], "metadata", "creationTimestamp") or "")))
    known: dict[ObjectKey, str] = {}
    for workload, _ in held_up[:MOST]:
        explanation = explain(Seen(workload, None, objects, (), now, daemon_namespace, others_named=None))
        if (first := next((finding for finding in explanation.findings if finding.blocking), None)) is not None:
            known[ObjectKey.of(workload)] = first.sentence
    return known


def with_causes(jobs: Iterable[JobReport], known: Mapping[ObjectKey, str]) -> tuple[JobReport, ...]:
    """The jobs, with what keeps them from running as the reason.

    Causes may be older than the list: what runs has none.
    """
    keyed = ((ObjectKey(job.namespace, job.workload), job) for job in jobs)
    return tuple(
        attrs.evolve(job, reason=known.get(key, job.reason)) if job.state in HELD_UP else job for key, job in keyed
    )
