"""For whom a remedy is: who submits a job is told what they can do, or whom to ask, and no operator's commands."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final

import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Resource
from multikueued.reports.remedies.one_cause import once
from multikueued.reports.remedies.remedy import REMEDIES, Finding


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


def for_audience(finding: Finding, audience: Audience) -> Finding:
    """The finding with the remedy for who reads it."""
    if audience is Audience.OPERATOR or not finding.remedy:
        return finding
    there = REMEDIES.get(f"{finding.id}@worker") if finding.workers else None
    row = there or REMEDIES.get(finding.id)
    if row is not None and row.audience == Audience.SUBMITTER:
        return finding
    ask = ASK_WORKERS if finding.workers else ASK_QUEUES
    otherwise = row.otherwise if row is not None else ""
    return attrs.evolve(finding, remedy=otherwise or f"{ask}: it is theirs to mend")


def read_by(audience: Audience, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings as a report tells them: each once, for who reads it, and what needs somebody first."""
    return tuple(
        sorted(
            (for_audience(finding, audience) for finding in once(findings)), key=lambda finding: not finding.blocking
        )
    )
