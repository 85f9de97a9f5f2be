"""What a job's own status says of trouble: its controller on the worker is asked by nobody else.

Which field of a kind says so, and how a kind says that something of it runs, are rows of `job_signs.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import attrs
import cattrs

from multikueue.adapters import AVAILABLE, SafeAdapter
from multikueue.core.model.adapter import OnHold
from multikueue.core.model.conditions import condition, conditions, parse_timestamp, timestamp
from multikueue.core.model.dependencies import dependencies_of
from multikueue.core.model.names import GVK, Json
from multikueue.core.model.objects import dig
from multikueue.core.model.outside_text import plain
from multikueued.reports.jobs import WAITING_STATES, JobReport, JobState
from multikueued.reports.remedies.pod_remedies import BY_REASON, reason_of_pod
from multikueued.reports.remedies.remedy import REMEDIES, Finding, Remedy, finding
from multikueued.settings.config import RetentionSettings

NOT_READY_AFTER: Final = timedelta(minutes=5)
"""How long a job has run until it counts that none of its pods is ready: images are pulled meanwhile."""
NO_PODS_AFTER: Final = timedelta(seconds=20)
"""From when on whoever explains a job of which nothing is ready asks its worker whether it can make pods at all."""
NEVER_READY_AFTER: Final = timedelta(minutes=30)
"""From when on somebody has to look."""

NOT_READY: Final = REMEDIES["job-not-ready"]
NEVER_READY: Final = REMEDIES["job-not-ready@long"]
FAILED: Final = "job-failed"
_KEPT: Final = RetentionSettings().failed
"""Unless the daemon's settings say otherwise."""


@attrs.frozen(kw_only=True)
class Sign:
    """A row: where the status of a kind says that a job is in trouble."""

    kinds: tuple[str, ...]
    row: str
    condition: str = ""
    status: str = "True"
    reasons: tuple[str, ...] = ()
    field: str = ""
    words: tuple[str, ...] = ()
    beside: str = "message"
    after: float = 0.0

    def found_in(self, job: Json, since: datetime | None, now: datetime) -> str | None:
        """The job's own words; None: it says no such thing. `since` is when its worker got it."""
        if self.condition:
            said = condition(job, self.condition) or {}
            known = BY_REASON if "*" in self.reasons else ()
            fits = not self.reasons or said.get("reason") in (*self.reasons, *known)
            fits = fits and said.get("status") == self.status
            since = parse_timestamp(said.get("lastTransitionTime")) or since
            words = ": ".join(filter(None, (str(said.get("reason") or ""), str(said.get("message") or ""))))
        else:
            path, _, last = self.field.rpartition(".")
            entry = next((part for part in _at(job, path) if _word(part, last) in self.words), None)
            fits = entry is not None
            words = ": ".join(filter(None, (_word(entry, last), _word(entry, self.beside))))
        lasts = now - since if since is not None else timedelta(0)
        return words if fits and lasts >= timedelta(minutes=self.after) else None


@attrs.frozen(kw_only=True)
class ReadySigns:
    """A row: how the status of kinds says that something of a job runs, or has."""

    kinds: tuple[str, ...]
    counts: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    words: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)

    def hold(self, job: Json) -> bool:
        """Whether something runs."""
        counted = any(isinstance(number, int) and number > 0 for path in self.counts for number in _at(job, path))
        true = any(entry.get("status") == "True" and entry.get("type") in self.conditions for entry in conditions(job))
        return counted or true or any(dig(job, "status", field) in words for field, words in self.words.items())


_CONVERTER: Final = cattrs.Converter(forbid_extra_keys=True)
_TABLE: Final = tomllib.loads(Path(__file__).with_name("job_signs.toml").read_text(encoding="utf-8"))
TROUBLE: Final = _CONVERTER.structure(_TABLE["trouble"], tuple[Sign, ...])
"""The first that applies is told."""
READY: Final = {
    kind: signs for signs in _CONVERTER.structure(_TABLE["ready"], tuple[ReadySigns, ...]) for kind in signs.kinds
}
"""By kind."""


def _trouble(job: Json, report: JobReport, now: datetime) -> tuple[Remedy, str] | None:
    """The row, and the job's words; None: nothing that is known.

    Of a job that waits only words count for which its Kueue holds it: others may be of a run before.
    """
    waits = report.state in WAITING_STATES
    if not waits and report.state not in (JobState.RUNNING, JobState.STARTING):
        return None
    if _is_outdated(job):
        return None
    kind = kind_of(job)
    troubles = ((REMEDIES[sign.row], sign.found_in(job, report.since, now)) for sign in TROUBLE if kind in sign.kinds)
    known = next(((remedy, plain(words)) for remedy, words in troubles if words is not None), None)
    if waits:
        return known if known is not None and _hold(job) is OnHold.YES else None
    if known is not None or is_ready(job) is not False or not has_run(report, now, NOT_READY_AFTER):
        return known
    late = report.since is not None and now - report.since >= NEVER_READY_AFTER
    return NEVER_READY if late else NOT_READY, plain(_of_no_pod(job))


def is_ready(job: Json) -> bool | None:
    """Whether something of a job runs, or has, by its status; None: its kind does not tell, or it wants no pods."""
    signs = READY.get(kind_of(job))
    if signs is None or 0 in (dig(job, "spec", "parallelism"), dig(job, "spec", "replicas")):
        return None
    return signs.hold(job)


def has_run(report: JobReport, now: datetime, least: timedelta) -> bool:
    """Whether a worker has a job for so long."""
    return report.state is JobState.RUNNING and report.since is not None and now - report.since >= least


def should_have_pods(job: Json, report: JobReport, now: datetime) -> bool:
    """Whether nothing of a job runs though a worker has it for long enough that there should be pods."""
    return is_ready(job) is False and has_run(report, now, NO_PODS_AFTER)


def own_trouble(job: Json, report: JobReport, workload: Json | None, now: datetime) -> Finding | None:
    """What the status of a job says of trouble, or of why it has failed; None: nothing that is known.

    Args:
        job: the manager's, with apiVersion and kind.
        report: its line.
        workload: the manager's, which tells what its pods name; None: that is not known.
        now: the wall clock.
    """
    if report.state is JobState.FAILED:
        return _failure(job, report, now)
    if (trouble := _trouble(job, report, now)) is None:
        return None
    remedy, words = trouble
    named = ", ".join(sorted(str(need) for need in dependencies_of(workload or {}) if need.required))
    without = f"; they name {named}, and do not start where that is not in the job's namespace" if named else ""
    return remedy.about(report.job, words, {**report.words, "worker": report.worker or "its worker", "needs": without})


def kind_of(job: Json) -> str:
    """As the rows name it."""
    gvk = GVK.of(str(job.get("apiVersion") or ""), str(job.get("kind") or ""))
    return f"{gvk.kind}.{gvk.group}"


def _of_no_pod(job: Json) -> str:
    """What a status says of pods of which none is ready."""
    if kind_of(job) == "Pod.":
        return reason_of_pod(job).sentence
    failed = dig(job, "status", "failed")
    return f"failed: {failed}" if isinstance(failed, int) and failed > 0 else ""


def _hold(job: Json) -> OnHold:
    named = kind_of(job)
    known = next((row for row in AVAILABLE if kind_of(row.resource.object({})) == named), None)
    return SafeAdapter(known).on_hold_here(job) if known is not None else OnHold.UNKNOWN


def _is_outdated(job: Json) -> bool:
    """Whether its spec has been changed since its controller has said something."""
    seen, generation = dig(job, "status", "observedGeneration"), dig(job, "metadata", "generation")
    return isinstance(seen, int) and isinstance(generation, int) and seen < generation


def _at(job: Json, path: str) -> list[Any]:
    parts: list[Any] = [job.get("status")]
    for step in path.split(".") if path else ():
        parts = [inner for part in parts for inner in _inner(part, step)]
    return parts


def _inner(value: Any, step: str) -> list[Any]:
    if step != "*":
        return [value[step]] if isinstance(value, dict) and step in value else []
    return [*value.values()] if isinstance(value, dict) else [*value] if isinstance(value, list) else []


def _word(entry: Any, field: str) -> str:
    return str(entry.get(field) or "") if isinstance(entry, dict) else ""


def _failure(job: Json, report: JobReport, now: datetime) -> Finding:
    """That a job has failed, in its words, and how long its logs are kept.

    Args:
        job: the manager's, which has failed.
        report: its line.
        now: the wall clock.
    """
    message = plain(_words(job) or report.reason)
    there = f" on worker cluster {report.worker}" if report.worker else ""
    instead, until = _kept(report, now)
    return finding(FAILED, report.job, message, instead=instead, there=there, until=until, **report.words)


def still_there(findings: Iterable[Finding], report: JobReport, pods: Collection[object]) -> Iterator[Finding]:
    """The same findings; where the pods of a failed job were just seen, its logs are there, whatever the settings."""
    remedy = REMEDIES[f"{FAILED}@seen"].filled([report.words])
    for each in findings:
        yield attrs.evolve(each, remedy=remedy) if each.id == FAILED and pods else each


def _kept(report: JobReport, now: datetime) -> tuple[str, str]:
    """The key of the row that says how long its logs are kept, and until when; empty: it is not known."""
    if report.since is None or not report.worker:
        return "", ""
    until = report.since + _KEPT
    return f"{FAILED}@{'kept' if now < until else 'over'}", timestamp(until)


def _words(job: Json) -> str:
    """The job's own: its conditions, else the fields in which kinds say it; of a pod also the exit code."""
    said = condition(job, "Failed") or {}
    status = said if said.get("status") == "True" else dig(job, "status") or {}
    if job.get("kind") == "Pod":
        return reason_of_pod(job).sentence
    return ": ".join(filter(None, (str(status.get("reason") or ""), str(status.get("message") or ""))))
