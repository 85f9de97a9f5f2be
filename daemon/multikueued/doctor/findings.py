"""Findings of the doctor, and the form of a check: a row of data with one pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import ModuleType
from typing import Final, Literal, TypeAlias

import attrs

from multikueue.core.model.objects import shortened
from multikueue.core.model.outside_text import one_line
from multikueued.doctor.facts import Facts
from multikueued.reports.remedies.one_cause import one_each
from multikueued.reports.remedies.remedy import filled_for_all
from multikueued.reports.worker_facts import NotChecked, WorkerFacts

LONGEST: Final = 1_000
"""Characters of what a finding says."""
Side: TypeAlias = Literal["manager", "worker"]


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Jobs are not dispatched, or go wrong: somebody has to act."""
    WARNING = "warning"
    """Some jobs or some workers are concerned, or it will become an error."""
    INFO = "info"


@attrs.frozen
class DoctorFinding:
    """Something that is not as it should be."""

    id: str
    severity: Severity
    side: Side
    """Which cluster is to be mended."""
    where: str
    what: str
    why: str
    """Why it matters."""
    remedy: str
    """How to mend it."""
    object: str = ""
    """What the cause is about where that is no worker: a LocalQueue, a job."""
    workers: tuple[str, ...] = ()
    """The workers that show it; none: it is about the manager."""


@attrs.frozen
class Spot:
    """What a check has found, in one place. What is empty is the row's."""

    where: str
    what: str
    words: Mapping[str, str] | Sequence[Mapping[str, str]] = attrs.field(factory=dict)
    """What the row's remedy fills in; of several workers those of each."""
    severity: Severity | None = None
    id: str = ""
    remedy: str = ""
    object: str = ""
    """See `DoctorFinding`."""
    workers: tuple[str, ...] = ()


Look: TypeAlias = Callable[[Facts], Iterable[Spot]]


@attrs.frozen
class Check:
    """A row of the table."""

    id: str
    severity: Severity
    side: Side
    finds: str
    """What it finds, for the documentation."""
    why: str
    """Why that matters."""
    remedy: str
    """How to mend it; `{name}` is filled in from the spot's words."""
    look: Look
    command: str = ""
    """What to type, once for each worker, where the remedy has `{command}`."""

    def findings(self, facts: Facts) -> Iterator[DoctorFinding]:
        """What it finds."""
        for spot in self.look(facts):
            each = [spot.words] if isinstance(spot.words, Mapping) else spot.words
            yield DoctorFinding(
                spot.id or self.id,
                spot.severity or self.severity,
                self.side,
                spot.where,
                spot.what,
                self.why,
                spot.remedy or filled_for_all(self.remedy, each, self.command),
                spot.object,
                spot.workers,
            )


def check(
    id: str, severity: Severity, why: str, remedy: str = "", side: Side = "manager", command: str = ""
) -> Callable[[Look], Check]:
    """Make a function a row of the table; its docstring says what it finds."""

    def row(look: Look) -> Check:
        finds = " ".join((look.__doc__ or "").split()).removesuffix(".")
        return Check(id, severity, side, finds, why, remedy, look, command)

    return row


def checks_of(module: ModuleType) -> tuple[Check, ...]:
    """The rows that a module defines, in its order."""
    return tuple(value for value in vars(module).values() if isinstance(value, Check))


ABSENCE: Final[Mapping[str, frozenset[str]]] = {
    "no-check": frozenset({"checks", "cluster_queues"}),
    "check-missing": frozenset({"checks"}),
    "queue-without-check": frozenset({"checks"}),
    "config-missing": frozenset({"configs"}),
    "cluster-missing": frozenset({"clusters"}),
    "worker-unlisted": frozenset({"checks", "configs"}),
    "cluster-queue-missing": frozenset({"cluster_queues"}),
    "local-queue-missing": frozenset({"local_queues"}),
}
"""By finding that something is missing: the lists that it would stand in. One that could not be read tells nothing."""


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

    findings: tuple[DoctorFinding, ...]
    """The errors first."""
    not_checked: tuple[NotChecked, ...]
    """What may not be seen, or could not be: it is not known to be right."""
    workers: tuple[Measured, ...]
    blind: bool = False
    """Whether not even the AdmissionChecks could be listed: that nothing is found says nothing then."""

    @property
    def has_errors(self) -> bool:
        """Whether somebody has to act."""
        return any(one.severity is Severity.ERROR for one in self.findings)


def diagnose(facts: Facts, checks: Iterable[Check]) -> Diagnosis:
    """Run all checks. One cause is told once, with the best remedy; in one place, in the words of the earlier row."""
    found: list[DoctorFinding] = []
    for check in checks:
        earlier = {(one.id, one.where.partition(",")[0]) for one in found}
        told = (one for one in check.findings(facts) if not facts.unread.intersection(ABSENCE.get(one.id, ())))
        found += [one for one in told if (one.id, one.where) not in earlier]
    order = list(Severity)
    causes = [_together(one, others, order) for one, others in one_each(dict.fromkeys(found))]
    kept = sorted(causes, key=lambda one: order.index(one.severity))
    shown = (attrs.evolve(one, where=legible(one.where), what=legible(one.what)) for one in kept)
    gaps = (attrs.evolve(one, what=legible(one.what), why=legible(one.why)) for one in facts.not_checked)
    measured = tuple(_measured(one, facts) for one in facts.workers.values())
    return Diagnosis(tuple(shown), tuple(gaps), measured, blind="checks" in facts.unread)


def _together(best: DoctorFinding, others: Sequence[DoctorFinding], order: Sequence[Severity]) -> DoctorFinding:
    """The best finding of a cause: as grave as any of them, and with the workers that only others name."""
    more = dict.fromkeys(name for one in others for name in one.workers if name not in best.workers)
    also = f"; so says {', '.join(more)}" if more else ""
    severity = min((one.severity for one in (best, *others)), key=order.index)
    return attrs.evolve(best, severity=severity, what=best.what + also, workers=(*best.workers, *more))


def legible(text: str) -> str:
    """Words of a worker as a terminal may have them: no control characters, and not without end."""
    return shortened(one_line(text), LONGEST)


def _measured(worker: WorkerFacts, facts: Facts) -> Measured:
    low, high = (worker.clock.low, worker.clock.high) if worker.clock is not None else (None, None)
    kueue = worker.kueue.number if worker.kueue is not None else ""
    return Measured(worker.name, worker.latency, low, high, kueue, facts.seen_at.get(worker.name))
