"""`multikueue doctor`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from multikueued.commands.exits import FINDING, FINE
from multikueued.commands.options import Format, output_option, target_of, target_options, utc_now
from multikueued.commands.running import Printed, run
from multikueued.doctor.examining import Request, gather
from multikueued.doctor.fixing import mend
from multikueued.doctor.showing import diagnosis_lines
from multikueued.rbac.command import AccountParameter
from multikueued.rbac.objects import Account
from multikueued.reports.doctor.findings import Diagnosis, diagnose
from multikueued.reports.doctor.fixes import fixes
from multikueued.reports.doctor.table import CHECKS

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("doctor")
@target_options
@click.option("--config-file", type=_FILE, help="The daemon's settings. Without it: those of the chart's ConfigMap.")
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
    target = target_of(options)
    account = f"{service_account.namespace}/{service_account.name}" if service_account is not None else ""
    request = Request(target.config, target.daemon_namespace, config_file, account)

    async def make(client: Any, now: datetime) -> Diagnosis:
        facts = await gather(client, request, now)
        if fix and await mend(client, fixes(facts), lambda question: yes or click.confirm(question, err=True)):
            facts = await gather(client, request, utc_now())
        return diagnose(facts, CHECKS)

    def lines(found: Diagnosis, now: datetime, width: int | None) -> list[str]:
        del now
        return diagnosis_lines(found, width or 160, wide=output == "wide")

    raise SystemExit(run(target, Printed(make, lines, exit_code), "json" if as_json else output))


def exit_code(found: Diagnosis) -> int:
    """1 if somebody has to act."""
    return FINDING if found.has_errors else FINE
