"""How findings are told: one cause once, and for who reads it.

Who submits a job is told what they can do, or whom to ask, and no operator's commands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Resource
from multikueued.reports.remedies.remedy import CAUSES, REMEDIES, Finding, Severity

_PLACES: Final = MappingProxyType({name: (ids[0], place) for ids in CAUSES for place, name in enumerate(ids)})


def once(*sources: Iterable[Finding]) -> list[Finding]:
    """Each cause once, in the order of the findings: the one with the best remedy, as grave as any that tells of it.

    What several sources tell of one place is told by the first; what one of them tells twice under one id, of a place
    without an object, are two things.
    """
    by_cause: dict[str, list[tuple[int, int, int, Finding]]] = defaultdict(list)
    numbered = ((source, finding) for source, findings in enumerate(sources) for finding in dict.fromkeys(findings))
    for number, (source, finding) in enumerate(numbered):
        cause, place = _PLACES.get(finding.id, (finding.id, 0))
        by_cause[cause].append((place, number, source, finding))
    kept: list[tuple[int, list[Finding]]] = []
    for alike in by_cause.values():
        groups: list[tuple[int, int, list[Finding]]] = []
        for _, number, source, finding in sorted(alike, key=lambda each: each[:2]):
            behind = next((group for _, by, group in groups if _tells(group[0], finding, apart=by != source)), None)
            if behind is None:
                groups.append((number, source, [finding]))
            else:
                behind.append(finding)
        kept += ((number, group) for number, _, group in groups)
    return [_together(group) for _, group in sorted(kept, key=lambda each: each[0])]


def _together(alike: list[Finding]) -> Finding:
    """The best finding of a cause: as grave as any of them, and with the workers that only others name."""
    best = alike[0]
    more = dict.fromkeys(name for finding in alike for name in finding.workers if name not in best.workers)
    also = f"; so says {', '.join(more)}" if more else ""
    severity = min((finding.severity for finding in alike), key=list(Severity).index)
    return attrs.evolve(best, severity=severity, why=best.why + also, workers=(*best.workers, *more))


def _tells(better: Finding, other: Finding, *, apart: bool) -> bool:
    """Whether a finding tells of what the other does, which another source has told if they are apart."""
    if better.object or other.object:
        return better.object == other.object and bool(better.workers) == bool(other.workers)
    if better.id == other.id:
        return apart and better.where.partition(",")[0] == other.where
    return bool(better.workers) and set(other.workers) <= set(better.workers)


class Audience(StrEnum):
    """Who reads a report."""

    OPERATOR = "operator"
    """They may list the workers."""
    SUBMITTER = "submitter"
    """They may see their own jobs."""


def audience_of(unread: Collection[Resource]) -> Audience:
    """By what one may not list on the manager: who may not list workers runs none."""
    return Audience.SUBMITTER if MULTIKUEUE_CLUSTER in unread else Audience.OPERATOR


def for_operators_alone(finding: Finding) -> bool:
    """Whether who has submitted the job can do no more than ask."""
    row = REMEDIES.get(finding.id)
    return row is not None and not row.audience and not row.otherwise


def for_audience(finding: Finding, audience: Audience) -> Finding:
    """The finding with the remedy for who reads it."""
    if audience is Audience.OPERATOR or not finding.remedy:
        return finding
    there = REMEDIES.get(f"{finding.id}@worker") if finding.workers else None
    row = there or REMEDIES.get(finding.id)
    if row is not None and row.audience == Audience.SUBMITTER:
        return finding
    ask = f"ask whoever runs the {'workers' if finding.workers else 'queues'}: it is theirs to mend"
    return attrs.evolve(finding, remedy=(row.otherwise if row is not None else "") or ask)


def read_by(audience: Audience, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings as a report tells them: each once, for who reads it, and what needs somebody first."""
    return tuple(
        sorted(
            (for_audience(finding, audience) for finding in once(findings)), key=lambda finding: not finding.blocking
        )
    )
