"""`multikueue usage`: what jobs have used of workers."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import click

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.names import Json
from multikueue.core.model.quantities import is_in_bytes
from multikueue.errors import Forbidden
from multikueued.clusters import ClusterClient
from multikueued.commands.options import (
    OUTPUT,
    Duration,
    Format,
    everywhere_option,
    option_of,
    target_of,
    target_options,
)
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.tables import table
from multikueued.exits import listing
from multikueued.reading.manager_lists import check_names
from multikueued.reports.jobs import JobFilter
from multikueued.reports.usage import UsageReport, costs_of, usage_report

_HOUR = 3600
_GI = 2**30


@click.command("usage")
@target_options
@OUTPUT
@everywhere_option("Of jobs of all namespaces.")
@option_of("--queue", completes="queues", help="Only of jobs of this LocalQueue or ClusterQueue.")
@option_of("--worker", completes="workers", help="Only of this worker.")
@click.option("--last", type=Duration(), help="Only what was used in this time, as 24h. Without it: all that is known.")
def usage(output: Format, everywhere: bool, queue: str, worker: str, last: float | None, **options: Any) -> None:
    """Sum up what jobs have used of workers, in resource-hours, by namespace, queue, worker and cost.

    It is computed from the Workloads that are still there, and says from when: those that were removed do not count.
    The daemon's metric multikueue_resource_seconds_total counts as long as Prometheus keeps it. -o json has seconds.
    """
    target = target_of(options)
    namespace = "" if everywhere else target.namespace

    async def make(client: ClusterClient, now: datetime) -> UsageReport:
        with listing(namespace):
            listed = (await client.list(WORKLOAD, namespace=namespace)).items
        clusters: list[Json] = []
        with suppress(Forbidden):  # who submits jobs may not read them: then the costs are not known
            clusters = list((await client.list(MULTIKUEUE_CLUSTER)).items)
        begin = now - timedelta(seconds=last) if last is not None else None
        report = usage_report(listed, costs_of(clusters), begin, now, queue=queue, worker=worker)
        if not report.uses:
            await check_names(client, JobFilter(namespace, queue, worker))
        return report

    raise SystemExit(run(target, Printed(make, lambda report, _, width: usage_lines(report, width, namespace)), output))


def usage_lines(report: UsageReport, width: int | None, namespace: str = "") -> list[str]:
    """The report as a table; of a namespace, or of all."""
    if not report.uses or report.since is None:
        where = f" in namespace {namespace}; -A counts all" if namespace else ""
        return [f"No worker has been used by the Workloads that are still there{where}."]
    rows = [
        [
            *([] if namespace else [use.namespace]),
            use.queue or "-",
            use.worker,
            use.cost or "-",
            str(use.jobs),
            ", ".join(f"{name} {_hours(name, amount)}" for name, amount in use.seconds.items()) or "-",
        ]
        for use in report.uses
    ]
    columns = [*([] if namespace else ["NAMESPACE"]), "QUEUE", "WORKER", "COST", "JOBS", "RESOURCE-HOURS"]
    return [
        f"From {report.since:%Y-%m-%d %H:%M:%SZ} on, of the Workloads that are still there:",
        *table(columns, rows, width),
    ]


def _hours(resource: str, seconds: float) -> str:
    hours, unit = (seconds / _HOUR / _GI, "Gi") if is_in_bytes(resource) else (seconds / _HOUR, "")
    return f"{hours:.2f}".rstrip("0").rstrip(".") + unit
