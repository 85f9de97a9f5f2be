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
from multikueued.commands.options import Format, confirmed, output_option, target_of, target_options
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.report_text import finding_lines
from multikueued.commands.tables import paragraph, table
from multikueued.doctor.checks.table import CHECKS
from multikueued.doctor.collect import Examination, gather
from multikueued.doctor.findings import Diagnosis, Measured, diagnose
from multikueued.doctor.fixes import fixes, mend
from multikueued.exits import FINDING, FINE, NOT_REACHABLE
from multikueued.rbac.command import AccountParameter
from multikueued.rbac.objects import Account
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.worker_facts import NotChecked

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("doctor")
@target_options
@click.option(
    "--config",
    "--config-file",
    "config_file",
    type=_FILE,
    help="The daemon's settings. Without it: those of the chart's ConfigMap.",
)
@click.option(
    "--service-account", type=AccountParameter(), help="The daemon's. Without it: that of the chart's Deployment."
)
@output_option
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
    account = f"{service_account.namespace}/{service_account.name}" if service_account is not None else ""
    tell = partial(click.echo, err=True)
    request = Examination(target.config, target.daemon_namespace, config_file, account, tell=tell, kubectl=kubectl)

    async def make(client: Any, now: datetime) -> Diagnosis:
        facts = await gather(client, request, now)
        if fix and await mend(client, fixes(facts), lambda question: yes or confirmed(question)):
            facts = await gather(client, request, utc_now())
        return diagnose(facts, CHECKS)

    printed = Printed[Diagnosis](
        make,
        lambda found, _, width: diagnosis_lines(found, width or 160, wide=output == "wide"),
        exit_code,
        wraps=True,
    )
    raise SystemExit(run(target, printed, "json" if as_json else output))


def _kubectl(kubeconfig: str | None, context: str | None) -> str:
    """How a shell calls it for the manager; of KUBECONFIG it knows by itself."""
    source = click.get_current_context().get_parameter_source("kubeconfig")
    files = f"KUBECONFIG={shlex.quote(kubeconfig)} " if kubeconfig and source is ParameterSource.COMMANDLINE else ""
    return f"{files}{shlex.join(['kubectl', *(['--context', context] if context else ())])}"


def exit_code(found: Diagnosis) -> int:
    """1 if somebody has to act, 4 if nothing that matters could be looked at."""
    if found.has_errors:
        return FINDING
    return NOT_REACHABLE if found.blind else FINE


ALIKE: Final = 10
"""Findings of one id in the table."""
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}


def diagnosis_lines(found: Diagnosis, width: int, *, wide: bool) -> list[str]:
    """The whole diagnosis: findings, what was measured, and what was not checked.

    Args:
        found: what to print.
        width: of the terminal.
        wide: whether to name each finding's id and side, and to print bounds of clocks.
    """
    lines: list[str] = []
    told: Counter[str] = Counter()
    for one in found.findings:
        told[one.id] += 1
        if wide or told[one.id] <= ALIKE:
            lines += [*_finding(one, width, wide=wide), ""]
    for name, count in told.items() if not wide else ():
        if count > ALIKE:
            lines += [*paragraph(f"And {count - ALIKE} more of {name}: -o wide or --json shows them.", width), ""]
    lines += _measured(found.workers, width, wide=wide)
    lines += _not_checked(found.not_checked, width)
    return [*lines, _total(found)]


def _finding(one: Finding, width: int, *, wide: bool) -> list[str]:
    first, *rest = finding_lines(one, width, f"{one.severity}: ", wide=wide)
    return [first.replace(one.severity, click.style(str(one.severity), fg=_COLOURS[one.severity]), 1), *rest]


def _measured(workers: Sequence[Measured], width: int, *, wide: bool) -> list[str]:
    rows = [
        [one.worker, one.kueue or "unknown", _milliseconds(one.latency), _clock(one, wide=wide)]
        for one in workers
        if one.latency is not None or one.seen_at is not None
    ]
    lines = table(["WORKER", "KUEUE", "LATENCY", "CLOCK"], rows, width) if rows else []
    for one in workers:
        if one.seen_at is not None:
            told = f"{one.worker}: as the daemon saw it at {timestamp(one.seen_at)}, with its own credentials."
            lines += paragraph(told, width, rest="  ")
    return [*lines, ""] if lines else []


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"


def _clock(one: Measured, *, wide: bool) -> str:
    if one.clock_from is None or one.clock_to is None:
        return "not checked"
    if wide:
        return f"between {one.clock_from:+.1f} s and {one.clock_to:+.1f} s from this machine's"
    if one.clock_from > 1.0 or one.clock_to < -1.0:  # headers have whole seconds
        off, side = (one.clock_from, "ahead of") if one.clock_from > 0 else (-one.clock_to, "behind")
        return f"{off:.1f} s {side} this machine's"
    return f"within {max(abs(one.clock_from), abs(one.clock_to)):.1f} s of this machine's"


def _not_checked(gaps: Iterable[NotChecked], width: int) -> list[str]:
    lines: list[str] = []
    for gap in gaps:
        lines += paragraph(f"{gap.what}: {gap.why}; {gap.who}", width, first="- ", rest="  ")
    return ["Not checked:", *lines, ""] if lines else []


def _total(found: Diagnosis) -> str:
    counted = Counter(one.severity for one in found.findings)
    words = (
        [f"{counted[one]} {one}{'s' if counted[one] != 1 else ''}" for one in (Severity.ERROR, Severity.WARNING)]
        if found.findings
        else ["no findings"]
    )
    gaps = f"; {len(found.not_checked)} not checked" if found.not_checked else ""
    return f"{', '.join(words)}{gaps}"
