"""The table of all checks, in the order in which they look: what several find is told by the first of them."""

from __future__ import annotations

from typing import Final

from multikueued.reports.doctor import fixes, jobs
from multikueued.reports.doctor.findings import Check, Severity
from multikueued.reports.doctor.manager_table import MANAGER_CHECKS
from multikueued.reports.doctor.webhook_table import WEBHOOK_CHECKS
from multikueued.reports.doctor.worker_table import WORKER_CHECKS

JOB_CHECKS: Final = (
    Check(
        "annotation-unreadable",
        Severity.WARNING,
        "manager",
        "a Workload's annotation `multikueue.dev/retry-at` is no time",
        "workers that refuse the job are not asked again before their time",
        "multikueue retry JOB writes it as it must be; multikueue doctor --fix takes it off",
        fixes.unreadable_annotations,
    ),
    Check(
        "job-waits",
        Severity.ERROR,
        "manager",
        "jobs wait or were rejected for a reason that somebody has to mend, as `multikueue explain` tells it; the id "
        "is the reason's, as `kind-not-enabled`, `not-delegated`, `name-taken`, `webhook`, `namespace-missing`",
        "these jobs do not run",
        "",
        jobs.why_jobs_wait,
    ),
)
"""What jobs themselves tell."""

CHECKS: Final = (*MANAGER_CHECKS, *WEBHOOK_CHECKS, *WORKER_CHECKS, *JOB_CHECKS)
"""All rows."""
