"""`multikueue get jobs|workers`."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime
from typing import Any

import attrs
import click

from multikueue.errors import Invalid
from multikueued.clusters import ClusterClient
from multikueued.commands.options import (
    LISTING,
    NAME,
    WATCH,
    Format,
    checked_selector,
    everywhere_option,
    option_of,
    target_of,
    target_options,
)
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.report_text import jobs_table, not_checked_lines, workers_table
from multikueued.exits import USAGE, CommandError, listing
from multikueued.reading.api_first import ask
from multikueued.reading.manager_lists import check_names, read_objects
from multikueued.reading.own_words import own_words, with_words
from multikueued.reading.source import JobList, JobsWanted
from multikueued.reports.jobs import JobFilter, JobState
from multikueued.reports.workers import WorkerReport, worker_reports

_STATES = [str(state) for state in JobState]


@click.command("jobs")
@target_options
@LISTING
@WATCH
@everywhere_option("Jobs of all namespaces.")
@click.option(
    "-l",
    "--selector",
    default="",
    callback=checked_selector,
    help="Only jobs with these labels, as for kubectl.",
)
@option_of("--queue", completes="queues", help="Only jobs of this LocalQueue or ClusterQueue.")
@option_of("--worker", completes="workers", help="Only jobs that this worker has, or is asked to take.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    help="Only jobs in this state; may be given more than once.",
)
@click.option("--user", type=NAME, default="", help="Only jobs of this user; needs --user-label.")
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

    filtered = bool(selector) or attrs.evolve(chosen, namespace="") != JobFilter()

    def make(client: ClusterClient, now: datetime) -> Awaitable[JobList]:
        at = now if output != "name" else None
        places = output not in ("table", "name")
        return gather_jobs(client, JobsWanted(chosen, selector, user_label, at, target.daemon_namespace, places))

    def lines(listed: JobList, now: datetime, width: int | None) -> list[str]:
        none = f"No jobs in namespace {target.namespace}; -A shows all." if not everywhere else "No jobs."
        if filtered:
            none = f"None of the jobs{'' if everywhere else f' in namespace {target.namespace}'} match."
        form = {"wide": output == "wide", "everywhere": everywhere, "users": bool(user_label)}
        shown = jobs_table(listed.jobs, now, width, **form) if listed.jobs else [none]
        return [*shown, *not_checked_lines(listed.not_checked, width)]

    printed = Printed[JobList](make, lines, names=lambda listed: (job.job for job in listed.jobs))
    raise SystemExit(run(target, printed, output, watch=watch))


async def gather_jobs(client: ClusterClient, wanted: JobsWanted) -> JobList:
    """List jobs, with what running ones say themselves of trouble.

    Raises:
        CommandError: the selector is none, or what is named does not exist.
    """
    try:
        with listing(wanted.chosen.namespace):
            listed = await ask(client, lambda source: source.jobs(wanted))
            if not listed.jobs:
                await check_names(client, wanted.chosen)
            if wanted.now is None:
                return listed
            words = await own_words(client, listed.jobs, wanted.now)
            jobs, not_read = with_words(listed.jobs, words.troubles), (*listed.not_checked, *words.not_checked)
            return attrs.evolve(listed, jobs=jobs, not_checked=not_read)
    except Invalid as error:
        raise CommandError(f"{f'-l {wanted.selector}: ' if wanted.selector else ''}{error}", USAGE) from error


@click.command("workers")
@target_options
@LISTING
@WATCH
def get_workers(output: Format, watch: bool, **options: Any) -> None:
    """List the worker clusters, with their connection, jobs, quota in use and last error."""
    target = target_of(options)

    async def make(client: ClusterClient, now: datetime) -> tuple[WorkerReport, ...]:
        del now
        return worker_reports(await read_objects(client, "", target.daemon_namespace))

    def lines(workers: tuple[WorkerReport, ...], now: datetime, width: int | None) -> list[str]:
        return workers_table(workers, now, width, wide=output == "wide") if workers else ["No worker clusters."]

    named = Printed[tuple[WorkerReport, ...]](
        make, lines, value=WorkerList, names=lambda workers: (worker.name for worker in workers)
    )
    raise SystemExit(run(target, named, output, watch=watch))


@attrs.frozen
class WorkerList:
    """What `multikueue get workers -o json` prints."""

    workers: tuple[WorkerReport, ...]
