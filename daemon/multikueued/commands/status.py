"""`multikueue status`: the fleet on one screen."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from multikueued.clusters import ClusterClient
from multikueued.commands.exits import FINDING, FINE
from multikueued.commands.manager_lists import read_objects
from multikueued.commands.options import Format, output_option, target_of, target_options, watch_option
from multikueued.commands.panel import status_panel
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.report_text import status_lines
from multikueued.reports.refused_jobs import with_refusals
from multikueued.reports.status import StatusReport, status_report


@click.command("status")
@target_options
@output_option
@watch_option
def status(output: Format, watch: bool, **options: Any) -> None:
    """Show the workers, the queues, and what needs somebody.

    It reads the manager alone. Exits with 1 if somebody has to act, as when a worker is not connected.
    """
    target = target_of(options)

    printed = Printed[StatusReport](
        lambda client, now: gather_status(client, now, target.daemon_namespace),
        lambda report, _, width: status_lines(report, width, wide=output == "wide"),
        status_exit_code,
        panel=status_panel,
    )
    raise SystemExit(run(target, printed, output, watch=watch))


async def gather_status(client: ClusterClient, now: datetime, daemon_namespace: str) -> StatusReport:
    """Read the manager and report."""
    objects = await read_objects(client, "", daemon_namespace)
    return with_refusals(status_report(objects, now, daemon_namespace), objects, now, daemon_namespace)


def status_exit_code(report: StatusReport) -> int:
    """1 if somebody has to act."""
    return FINDING if any(finding.blocking for finding in report.findings) else FINE
