"""For whom a remedy is: who submits a job is told what they can do, or whom to ask, and no operator's commands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Resource
from multikueued.reports.remedies.one_cause import once
from multikueued.reports.remedies.remedy import Finding


class Audience(StrEnum):
    """Who reads a report."""

    OPERATOR = "operator"
    """They may list the workers."""
    SUBMITTER = "submitter"
    """They may see their own jobs."""


def audience_of(unread: Collection[Resource]) -> Audience:
    """By what one may not list on the manager: who may not list workers runs none."""
    return Audience.SUBMITTER if MULTIKUEUE_CLUSTER in unread else Audience.OPERATOR


ASK_QUEUES: Final = "ask whoever runs the queues"
ASK_WORKERS: Final = "ask whoever runs the workers"
ASK_DAEMON: Final = "ask whoever runs multikueue on this cluster"
_SUBMITTERS: Final = frozenset(
    {
        "clock-skew",
        "container-crashes",
        "container-failed",
        "container-not-started",
        "contested-field",
        "copy-waits",
        "dependency-going",
        "dependency-in-use",
        "dependency-nowhere",
        "dependency-too-much",
        "inactive",
        "job-deleted",
        "job-failed",
        "job-failing",
        "job-not-ready",
        "job-refused",
        "job-stuck",
        "job-unhealthy",
        "no-queue",
        "other-checks",
        "out-of-memory",
        "quota-held",
        "quota-in-use",
        "rejected",
        "status-refused",
        "time-is-over",
    }
)
"""What who has submitted the job can do as it is told."""
_OTHERWISE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acted-on-here": f"{ASK_DAEMON}: a controller there acts on such jobs, too",
        "cannot-be-copied": f"correct the job and create it again; or {ASK_DAEMON}, if its kind is declared wrongly",
        "daemon-not-running": f"{ASK_DAEMON}: until it runs again, nothing is dispatched",
        "dependency-missing": f"{ASK_WORKERS} to create it there; or correct its name in the job",
        "dependency-foreign": f"use another name for it here; or {ASK_WORKERS}, if it is not needed there",
        "dependency-not-copied": f"{ASK_WORKERS} to create it there",
        "dependency-unread": f"{ASK_DAEMON} to grant that",
        "image-not-pulled": f"correct its name and create the job again; or {ASK_WORKERS} for the right to pull it",
        "kind-not-enabled": f"{ASK_DAEMON} to enable the kind; then submit the job again",
        "no-flavor": f"correct nodeSelector, affinity or tolerations of the job; or {ASK_QUEUES} for a flavor",
        "no-node": f"{ASK_WORKERS} whether there will be room; or request less",
        "name-taken": f"submit the job under another name; or {ASK_WORKERS}, if the object there is not needed",
        "narrowed-out": f"correct these annotations on the job; or {ASK_WORKERS}, which labels and taints they have",
        "not-taken": f"request less, or {ASK_WORKERS} whether there will be room; then submit it again",
        "not-delegated": "create it again with managedBy set to that value",
        "pod-starts": f"nothing, if the image is large; else {ASK_WORKERS} what the events of the pod say",
        "queue-stopped": f"{ASK_QUEUES}, who have stopped it and can resume it",
        "quota-too-small": f"request less, or {ASK_QUEUES} for more: it never fits as it is",
        "share-used-up": "it follows by itself once jobs of your namespace have ended or are deleted",
        "starving": f"request less; or {ASK_QUEUES} for a higher priority",
        "webhook": f"change the job so that the webhook takes it, or {ASK_WORKERS}",
    }
)
"""In place of what an operator would do."""


def for_audience(finding: Finding, audience: Audience) -> Finding:
    """The finding with the remedy for who reads it."""
    if audience is Audience.OPERATOR or finding.id in _SUBMITTERS or not finding.remedy:
        return finding
    if finding.id == "earlier-run":
        remedy = f"{ASK_WORKERS}: {finding.where} has it" if finding.blocking else finding.remedy
    elif finding.id == "local-queue-missing" and not finding.workers:
        remedy = f"correct the label kueue.x-k8s.io/queue-name of the job, or {ASK_QUEUES}"
    else:
        ask = ASK_WORKERS if finding.workers else ASK_QUEUES
        remedy = _OTHERWISE.get(finding.id, f"{ask}: it is theirs to mend")
    return attrs.evolve(finding, remedy=remedy)


def read_by(audience: Audience, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings as a report tells them: each once, for who reads it, and what needs somebody first."""
    return tuple(sorted((for_audience(one, audience) for one in once(findings)), key=lambda one: not one.blocking))
