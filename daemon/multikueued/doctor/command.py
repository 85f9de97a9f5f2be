"""`multikueue doctor`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from multikueue.core.model.conditions import timestamp
from multikueue.runtime.loop import utc_now
from multikueued.commands.options import OUTPUT, Format, confirmed, settings_option, target_of, target_options
from multikueued.commands.rbac import AccountParameter
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.report_text import finding_lines
from multikueued.commands.tables import paragraph, table
from multikueued.diagnosis.checks.table import CHECKS
from multikueued.diagnosis.findings import Diagnosis, Measured, diagnose
from multikueued.doctor.collect import Examination, gather
from multikueued.doctor.fixes import fixes, mend
from multikueued.exits import FINDING, FINE, NOT_REACHABLE
from multikueued.rbac.objects import Account
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.worker_facts import NotChecked


@click.command("doctor")
@target_options
@settings_option("The daemon's settings. Without it: those of the chart's ConfigMap.")
@click.option(
    "--service-account", type=AccountParameter(), help="The daemon's. Without it: that of the chart's Deployment."
)
@OUTPUT
@click.option("--fix", is_flag=True, help="Show what may be mended by itself, ask, and do it.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
def doctor(
    output: Format,
    as_json: bool,
    config_file: Path | None,
    service_account: Account | None,
    fix: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Look for what is wrong on the manager and on all workers, and say how to mend it.

    Workers are asked with the credentials that the manager holds, all at once, where you may read those Secrets. What
    may not be seen is listed as not checked. Exits with 1 if there is an error among the findings.

    Nothing is changed without --fix, and with it only our own webhook's registration and annotations of ours: never
    gates, RBAC, quotas, queues or configs.
    """
    if yes and not fix:
        raise click.UsageError("--yes is for --fix")
    kubectl = _kubectl(options["kubeconfig"], options["context"])
    target = target_of(options)
    tell = partial(click.echo, err=True)
    where = target.config, target.daemon_namespace
    request = Examination(*where, config_file, service_account, tell=tell, kubectl=kubectl)

    async def make(client: Any, now: datetime) -> Diagnosis:
        facts = await gather(client, request, now)
        if fix and await mend(client, fixes(facts), lambda question: yes or confirmed(question)):
            facts = await gather(client, request, utc_now())
        return diagnose(facts, CHECKS)

    printed = Printed[Diagnosis](
        make,
        lambda diagnosis, _, width: diagnosis_lines(diagnosis, width or 160, wide=output == "wide"),
        exit_code,
        wraps=True,
    )
    raise SystemExit(run(target, printed, "json" if as_json else output))


def _kubectl(kubeconfig: str | None, context: str | None) -> str:
    """How a shell calls it for the manager; of KUBECONFIG it knows by itself."""
    source = click.get_current_context().get_parameter_source("kubeconfig")
    files = f"KUBECONFIG={shlex.quote(kubeconfig)} " if kubeconfig and source is ParameterSource.COMMANDLINE else ""
    return f"{files}{shlex.join(['kubectl', *(['--context', context] if context else ())])}"


def exit_code(diagnosis: Diagnosis) -> int:
    """1 if somebody has to act, 4 if nothing that matters could be looked at."""
    if diagnosis.has_errors:
        return FINDING
    return NOT_REACHABLE if diagnosis.blind else FINE


ALIKE: Final = 10
"""Findings of one id in the table."""
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}


def diagnosis_lines(diagnosis: Diagnosis, width: int, *, wide: bool) -> list[str]:
    """The whole diagnosis: findings, what was measured, and what was not checked.

    Args:
        found: what to print.
        width: of the terminal.
        wide: whether to name each finding's id and side, and to print bounds of clocks.
    """
    lines: list[str] = []
    shown: Counter[str] = Counter()
    for finding in diagnosis.findings:
        shown[finding.id] += 1
        if wide or shown[finding.id] <= ALIKE:
            lines += [*_finding(finding, width, wide=wide), ""]
    for name, count in shown.items() if not wide else ():
        if count > ALIKE:
            lines += [*paragraph(f"And {count - ALIKE} more of {name}: -o wide or --json shows them.", width), ""]
    lines += _measured(diagnosis.workers, width, wide=wide)
    lines += _not_checked(diagnosis.not_checked, width)
    return [*lines, _total(diagnosis)]


def _finding(finding: Finding, width: int, *, wide: bool) -> list[str]:
    first, *rest = finding_lines(finding, width, f"{finding.severity}: ", wide=wide)
    return [
        first.replace(finding.severity, click.style(str(finding.severity), fg=_COLOURS[finding.severity]), 1),
        *rest,
    ]


def _measured(workers: Sequence[Measured], width: int, *, wide: bool) -> list[str]:
    rows = [
        [measured.worker, measured.kueue or "unknown", _milliseconds(measured.latency), _clock(measured, wide=wide)]
        for measured in workers
        if measured.latency is not None or measured.seen_at is not None
    ]
    lines = table(["WORKER", "KUEUE", "LATENCY", "CLOCK"], rows, width) if rows else []
    for measured in workers:
        if measured.seen_at is not None:
            note = (
                f"{measured.worker}: as the daemon saw it at {timestamp(measured.seen_at)}, with its own credentials."
            )
            lines += paragraph(note, width, rest="  ")
    return [*lines, ""] if lines else []


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"


def _clock(measured: Measured, *, wide: bool) -> str:
    if measured.clock_from is None or measured.clock_to is None:
        return "not checked"
    if wide:
        return f"between {measured.clock_from:+.1f} s and {measured.clock_to:+.1f} s from this machine's"
    if measured.clock_from > 1.0 or measured.clock_to < -1.0:  # headers have whole seconds
        off, side = (measured.clock_from, "ahead of") if measured.clock_from > 0 else (-measured.clock_to, "behind")
        return f"{off:.1f} s {side} this machine's"
    return f"within {max(abs(measured.clock_from), abs(measured.clock_to)):.1f} s of this machine's"


def _not_checked(gaps: Iterable[NotChecked], width: int) -> list[str]:
    """What the same would show stands together, above that."""
    lines: list[str] = []
    for who, together in _by_remedy(gaps).items():
        for number, gap in enumerate(together):
            lines += paragraph(f"{gap.what}: {gap.why}", width, first="  " if number else "- ", rest="    ")
        lines += paragraph(who, width, first="  → ", rest="    ")
    return ["Not checked:", *lines, ""] if lines else []


def _by_remedy(gaps: Iterable[NotChecked]) -> dict[str, list[NotChecked]]:
    by_remedy: dict[str, list[NotChecked]] = {}
    for gap in gaps:
        by_remedy.setdefault(gap.who, []).append(gap)
    return by_remedy


def _total(diagnosis: Diagnosis) -> str:
    counted = Counter(finding.severity for finding in diagnosis.findings)
    words = (
        [
            f"{counted[severity]} {severity}{'s' if counted[severity] != 1 else ''}"
            for severity in (Severity.ERROR, Severity.WARNING)
        ]
        if diagnosis.findings
        else ["no findings"]
    )
    gaps = f"; {len(_by_remedy(diagnosis.not_checked))} not checked" if diagnosis.not_checked else ""
    return f"{', '.join(words)}{gaps}"
