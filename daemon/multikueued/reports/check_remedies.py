"""The table of remedies about a job itself, as our check and the manager's Kueue tell it; see `remedy_table`."""

from __future__ import annotations

from typing import Final

from multikueued.reports.remedies import row

CHECK_RULES: Final = (
    row(
        "kind-not-enabled",
        r'No multikueue adapter found(?: for owner kind "(?P<gvk>[^"]+)")?',
        'jobs of kind "{gvk}" are not dispatched: the daemon\'s settings do not name it',
        "{setting} in the daemon's settings, restart it, and then multikueue retry {job} -n {namespace}",
        own=True,
    ),
    row(
        "not-delegated",
        r'The owner is not managed by Kueue: (?P<said>.+?)(?:, Previously: "\w*")?$',
        "the job does not say that MultiKueue runs it: {said}",
        "create it again with managedBy set to that value, or enable the daemon's webhook, which fills it in "
        "(webhook.enabled: true)",
    ),
    row(
        "not-delegated",
        r"(?P<said>Expecting .+?): create the job again with that value",
        "the job does not say that MultiKueue runs it: {said}",
        "create it again with managedBy set to that value, or enable the daemon's webhook, which fills it in "
        "(webhook.enabled: true)",
    ),
    row(
        "acted-on-here",
        r"A controller of the manager acts on the job and would run it here, too: (?P<said>.+?)(?:, Previously.*)?$",
        "the manager's own controller does not leave the job to MultiKueue: {said}",
        "then create the job again; or remove that controller from the manager, where its definitions are enough",
    ),
    row(
        "cannot-be-copied",
        r"The job cannot be copied: (?P<said>.+)",
        "a rule of the job's kind fails for this job: {said}",
        "correct the job, or the declaration of its kind in the daemon's settings, and create it again",
    ),
    row(
        "other-checks",
        r"Waiting for the other admission checks",
        "another AdmissionCheck of its ClusterQueue is not Ready: copies are made after that",
        "look at status.admissionChecks of the Workload: it names that check and what it says",
    ),
    row(
        "job-not-seen",
        r"Waiting for its job to be seen",
        "the daemon does not see the job behind the Workload",
        "look whether it exists, and in the daemon's log whether it may watch that kind here",
    ),
    row(
        "delegation-unknown",
        r"It cannot be told who runs the job: (?P<said>.+)",
        "a rule of the job's kind fails: {said}",
        "correct the job, or the declaration of its kind in the daemon's settings",
    ),
    row(
        "no-worker-known",
        r"the MultiKueueConfig lists none that is known",
        "the MultiKueueConfig lists no worker that exists",
        "list MultiKueueClusters that exist in spec.clusters",
    ),
    row(
        "recorded-twice",
        r"have it: remove it from all but one",
        "several workers have the job",
        "delete its copies on all but one of them",
    ),
    row(
        "time-is-over",
        r"exceeding the maximum execution time|MaximumExecutionTimeExceeded",
        "it ran for longer than it may",
        "raise maximumExecutionTimeSeconds, and set spec.active of the Workload to true to have it run again",
    ),
)
"""About the job itself, as our check tells it."""

MANAGER_RULES: Final = (
    row(
        "quota-too-small",
        r"insufficient quota for (?P<resource>[\w./-]+)|maximum capacity",
        "the job asks for more {resource} than ClusterQueue {cluster_queue} has here in all",
        "raise nominalQuota of {resource} here (the sum of the workers', as a rule), or request less",
    ),
    row(
        "quota-in-use",
        r"insufficient unused quota|waiting|pending|preempt",
        "the quota of ClusterQueue {cluster_queue} is in use here",
        "nothing: it gets quota when other jobs end; or raise the quota",
        blocking=False,
    ),
)
"""About quota on the manager."""
