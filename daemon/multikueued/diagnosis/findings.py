"""Findings of the doctor, and the form of a check: a row of data with one pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import ModuleType
from typing import Final, TypeAlias

import attrs

from multikueue.core.model.kinds import ADMISSION_CHECK
from multikueue.core.model.objects import shortened
from multikueue.core.model.outside_text import one_line
from multikueued.diagnosis.facts import Facts
from multikueued.reports.remedies.audience import once
from multikueued.reports.remedies.remedy import REMEDIES, Finding, Remedy, Severity
from multikueued.reports.waiting_jobs import as_seen_since
from multikueued.reports.worker_facts import NotChecked, WorkerFacts

LONGEST: Final = 1_000
"""Characters of what a finding says."""


@attrs.frozen
class Spot:
    """What a check has found, in one place. What is empty is the row's."""

    where: str
    what: str
    words: Mapping[str, str] | Sequence[Mapping[str, str]] = attrs.field(factory=dict)
    """What the row's remedy fills in; of several workers those of each."""
    severity: Severity | None = None
    instead: str = ""
    """The key of the row whose remedy holds."""
    object: str = ""
    """See `Finding`."""
    workers: tuple[str, ...] = ()


Look: TypeAlias = Callable[[Facts], Iterable[Spot | Finding]]
"""Of a finding that a report tells as well, only why it matters is the row's, and the side if that is a worker."""


@attrs.frozen
class Check:
    """A row of the table."""

    row: Remedy
    severity: Severity
    finds: str
    """What it finds, for the documentation."""
    look: Look

    @property
    def id(self) -> str:
        """Of its findings, but for those that a report tells as well."""
        return self.row.id

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """What it finds."""
        for spot in self.look(facts):
            if isinstance(spot, Finding):
                side = spot.side if self.row.side == "manager" else self.row.side
                yield attrs.evolve(spot, matters=self.row.matters, side=side)
                continue
            each = [spot.words] if isinstance(spot.words, Mapping) else spot.words
            yield Finding(
                self.id,
                spot.where,
                spot.what,
                "",
                (REMEDIES[spot.instead] if spot.instead else self.row).filled(each),
                spot.severity or self.severity,
                spot.object,
                spot.workers,
                self.row.matters,
                self.row.side,
            )


def check(id: str, severity: Severity | None = None) -> Callable[[Look], Check]:
    """Make a function a row of the table; its docstring says what it finds.

    Args:
        id: of the row of remedies.
        severity: where that is another one than the row's.
    """

    def documented(look: Look) -> Check:
        return row(id, " ".join((look.__doc__ or "").split()).removesuffix("."), look, severity)

    return documented


def row(id: str, finds: str, look: Look, severity: Severity | None = None) -> Check:
    """A row of the table; see `check`."""
    return Check(REMEDIES[id], severity or REMEDIES[id].severity, finds, look)


def checks_of(module: ModuleType) -> tuple[Check, ...]:
    """The rows that a module defines, in its order."""
    return tuple(value for value in vars(module).values() if isinstance(value, Check))


@attrs.frozen
class Measured:
    """What was measured of a worker."""

    worker: str
    latency: float | None
    """Seconds of a small request, the median of three; None: not measured."""
    clock_from: float | None
    """Seconds by which its clock is ahead of this machine's at least; negative: behind; null: not measured."""
    clock_to: float | None
    """The same at most."""
    kueue: str = ""
    """The version of its Kueue, as its controller's image tells; empty: not known."""
    seen_at: datetime | None = None
    """When the daemon saw it, where it could not be asked from here; null: it was asked."""


@attrs.frozen
class Diagnosis:
    """What `multikueue doctor` prints."""

    findings: tuple[Finding, ...]
    """The errors first."""
    not_checked: tuple[NotChecked, ...]
    """What may not be seen, or could not be: it is not known to be right."""
    workers: tuple[Measured, ...]
    blind: bool = False
    """Whether not even the AdmissionChecks could be listed: that nothing is found says nothing then."""

    @property
    def has_errors(self) -> bool:
        """Whether somebody has to act."""
        return any(finding.blocking for finding in self.findings)


def diagnose(facts: Facts, checks: Iterable[Check]) -> Diagnosis:
    """Run all checks. One cause is told once, with the best remedy; in one place, in the words of the earlier row."""
    sources, earlier = list[list[Finding]](), list[Finding]()
    for check in checks:
        sources.append([as_seen_since(told, earlier) for told in check.findings(facts)])
        earlier += sources[-1]
    kept = sorted(once(*sources), key=lambda finding: list(Severity).index(finding.severity))
    shown = (
        attrs.evolve(finding, where=legible(finding.where), why=legible(finding.why), told=legible(finding.told))
        for finding in kept
    )
    gaps = (attrs.evolve(gap, what=legible(gap.what), why=legible(gap.why)) for gap in facts.not_checked)
    measured = tuple(_measured(worker, facts) for worker in facts.workers.values())
    return Diagnosis(tuple(shown), tuple(gaps), measured, blind=ADMISSION_CHECK in facts.objects.unread)


def legible(text: str) -> str:
    """Words of a worker as a terminal may have them: no control characters, and not without end."""
    return shortened(one_line(text), LONGEST)


def _measured(worker: WorkerFacts, facts: Facts) -> Measured:
    low, high = (worker.clock.low, worker.clock.high) if worker.clock is not None else (None, None)
    kueue = worker.kueue.number if worker.kueue is not None else ""
    return Measured(worker.name, worker.latency, low, high, kueue, facts.seen_at.get(worker.name))
