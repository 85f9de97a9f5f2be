"""`multikueue get jobs|workers`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import click

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import reserved_at
from multikueue.errors import Invalid
from multikueued.clusters import ClusterClient
from multikueued.commands.exits import USAGE, CommandError
from multikueued.commands.manager_lists import read_objects, workloads_of_labelled_jobs
from multikueued.commands.options import Format, output_option, target_of, target_options, watch_option
from multikueued.commands.queue_places import read_waiting
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.report_text import jobs_table, workers_table
from multikueued.reports.jobs import JobFilter, JobReport, JobState, job_reports
from multikueued.reports.workers import WorkerReport, worker_reports

_STATES = [str(state) for state in JobState]


@click.command("jobs")
@target_options
@output_option
@watch_option
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Jobs of all namespaces.")
@click.option("-l", "--selector", default="", help="Only jobs with these labels, as kubectl takes them.")
@click.option("--queue", default="", help="Only jobs of this LocalQueue or ClusterQueue.")
@click.option("--worker", default="", help="Only jobs that this worker has, or is asked to take.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    help="Only jobs in this state; may be given more than once.",
)
@click.option("--user", default="", help="Only jobs of this user; needs --user-label.")
@click.option(
    "--user-label",
    default="",
    envvar="MULTIKUEUE_USER_LABEL",
    show_envvar=True,
    help="The label that names a job's user; adds a column.",
)
def get_jobs(output: Format, watch: bool, everywhere: bool, selector: str, user_label: str, **options: Any) -> None:
    """List the jobs that MultiKueue looks after, with worker, state, age and reason."""
    if options["user"] and not user_label:
        raise click.UsageError("--user needs --user-label (or MULTIKUEUE_USER_LABEL): which label names the user?")
    filters = {name: options.pop(name) for name in ("queue", "worker", "user")}
    states = frozenset(JobState(state) for state in options.pop("states"))
    target = target_of(options)
    chosen = JobFilter("" if everywhere else target.namespace, states=states, **filters)

    async def make(client: ClusterClient, now: datetime) -> tuple[JobReport, ...]:
        asked = now if output != "table" else None
        return await gather_jobs(client, chosen, selector=selector, user_label=user_label, waiting_at=asked)

    def lines(jobs: tuple[JobReport, ...], now: datetime, width: int | None) -> list[str]:
        if not jobs:
            return ["No jobs." if everywhere else f"No jobs in namespace {target.namespace}; -A shows all."]
        return jobs_table(jobs, now, width, wide=output == "wide", everywhere=everywhere, users=bool(user_label))

    raise SystemExit(run(target, Printed(make, lines, value=JobList), output, watch=watch))


async def gather_jobs(
    client: ClusterClient,
    chosen: JobFilter,
    *,
    selector: str = "",
    user_label: str = "",
    waiting_at: datetime | None = None,
) -> tuple[JobReport, ...]:
    """Read the manager and list jobs.

    Args:
        client: of the manager.
        chosen: which jobs.
        selector: of their labels.
        user_label: the label that names a job's user.
        waiting_at: the wall clock, to tell places in queues and starts, too; None: they are not.

    Raises:
        CommandError: the selector is none.
    """
    objects = await read_objects(client, chosen.namespace)
    of = objects.dispatched
    if selector:
        try:
            of = tuple(await workloads_of_labelled_jobs(client, of, selector, chosen.namespace))
        except Invalid as error:
            raise CommandError(f"-l {selector}: {error}", USAGE) from error
    jobs = job_reports(objects, chosen, user_label=user_label, of=of)
    if waiting_at is None:
        return jobs
    listed = {ObjectKey(job.namespace, job.workload) for job in jobs}
    shown = {key: one for one in of if (key := ObjectKey.of(one)) in listed}
    waits = await read_waiting(client, tuple(shown.values()), objects, chosen.namespace, waiting_at)
    keyed = ((ObjectKey(job.namespace, job.workload), job) for job in jobs)
    return tuple(waits[key].on(job, reserved_at(shown[key])) for key, job in keyed)


@click.command("workers")
@target_options
@output_option
@watch_option
def get_workers(output: Format, watch: bool, **options: Any) -> None:
    """List the worker clusters, with their connection, jobs, quota in use and last error."""
    target = target_of(options)

    async def make(client: ClusterClient, now: datetime) -> tuple[WorkerReport, ...]:
        del now
        return worker_reports(await read_objects(client, "", target.daemon_namespace))

    def lines(workers: tuple[WorkerReport, ...], now: datetime, width: int | None) -> list[str]:
        return workers_table(workers, now, width, wide=output == "wide") if workers else ["No worker clusters."]

    raise SystemExit(run(target, Printed(make, lines, value=WorkerList), output, watch=watch))


@attrs.frozen
class JobList:
    """What `multikueue get jobs -o json` prints."""

    jobs: tuple[JobReport, ...]


@attrs.frozen
class WorkerList:
    """What `multikueue get workers -o json` prints."""

    workers: tuple[WorkerReport, ...]
