"""`multikueue pods JOB` and `multikueue logs JOB`: of the remote run, from the manager."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import anyio
import attrs
import click

from multikueue.core.model.objects import dig
from multikueue.core.model.outside_text import one_line, without_controls
from multikueue.core.model.written_values import parse_duration
from multikueue.errors import NotFound
from multikueue.kube import KubeClient
from multikueued.clusters import ClusterClient
from multikueued.commands.options import (
    CLIENT,
    JOB_NAME,
    Format,
    listing_option,
    target_of,
    target_options,
    watch_option,
)
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.tables import age, table
from multikueued.exits import FINE, NOT_FOUND, NOT_REACHABLE, CommandError, for_people
from multikueued.reading.api_first import ELSEWHERE, api_first, ask
from multikueued.reading.asked import Asked
from multikueued.reading.pod_lookup import LocatorOfManager, WorkerPods, sought_job
from multikueued.reading.pods import PodList
from multikueued.reading.through_api import ThroughApi
from multikueued.reading.worker_access import worker_client, worker_for_people
from multikueued.remote.log_output import NEWLINE, LogSelection, LogShower
from multikueued.remote.placement_watch import Follower
from multikueued.remote.through_api import PATIENCE, Output, logs_through_api
from multikueued.reports.typenames import WORKLOAD_TYPE, JobName
from multikueued.settings.config import Settings

F = TypeVar("F", bound=Callable[..., Any])
LINE_END = "\r\n"


def origin_option(command: F) -> F:
    """The origin label of copies."""
    return click.option(
        "--origin",
        default=str(Settings().origin),
        show_default=True,
        help="The daemon's setting origin: the label of its copies.",
    )(command)


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    try:
        return max(1, round(parse_duration(value).total_seconds())) if value else 0
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("pods")
@JOB_NAME
@target_options
@origin_option
@listing_option
@watch_option
def pods_command(job: str, origin: str, output: Format, watch: bool, **options: Any) -> None:
    """List the pods of JOB on the worker that has it.

    JOB is named as for explain. Where the manager's API is served (multikueue api-server), you need the permission to
    get remotejobs/pods and to list remotejobs. Else the worker is read with the credentials that the manager holds: you
    must be allowed to get the Secret with its kubeconfig.
    """
    target = target_of(options)
    asked = Asked(job, target, origin)

    printed = Printed[PodList](
        lambda client, _: gather_pods(client, asked),
        lambda listed, now, width: pods_table(listed, now, width, wide=output == "wide"),
        names=lambda listed: (pod.name for pod in listed.pods),
    )
    raise SystemExit(run(target, printed, output, watch=watch))


async def gather_pods(manager: ClusterClient, asked: Asked) -> PodList:
    """A job's pods, by the manager's API, or by the worker's credentials where those may be read.

    Raises:
        CommandError: there is no such job, no worker has it, or the worker cannot be asked.
    """
    return await ask(manager, lambda source: source.pods(asked))


def pods_table(listed: PodList, now: datetime, width: int | None, *, wide: bool) -> list[str]:
    """One line for each pod."""
    columns = ["POD", "PHASE", "READY", "RESTARTS", "AGE", *(["NODE", "CONTAINERS"] if wide else []), "REASON"]
    rows = []
    for pod in listed.pods:
        ready = f"{pod.ready}/{len(pod.containers)}"
        row = [pod.name, pod.phase, ready, str(pod.restarts), age(pod.created, now)]
        rows.append([*row, *([pod.node or "-", ",".join(pod.containers)] if wide else []), pod.reason])
    head = f'{listed.job} in namespace {listed.namespace} is on worker cluster "{listed.worker}".'
    hidden = [f"There may be more pods: {why}." for why in listed.not_read]
    return [head, "", *(table(columns, rows, width) if rows else ["It has no pods there."]), *hidden]


@click.command("logs")
@JOB_NAME
@target_options
@origin_option
@click.option("-f", "--follow", is_flag=True, help="Wait for more until JOB has ended, also when it moves.")
@click.option("--all-pods", is_flag=True, help="Of all its pods; each line begins with [WORKER/POD].")
@click.option("-c", "--container", default="", help="Without it: the pod's default container, or its first.")
@click.option("--since", default="", callback=_seconds, help="Only what is not older, as 90s or 2h.")
@click.option("--tail", type=click.IntRange(min=0), help="Only so many lines of what there is.")
@click.option("--pod", default="", help="Of this pod alone, as multikueue pods names it.")
@click.option("--previous", is_flag=True, help="Of containers before their last restart; not with -f.")
@click.option("--timestamps", is_flag=True, help="Each line begins with the time at which its node got it.")
@click.option("--raw", is_flag=True, help="At a terminal, too, print each line as it is, with what moves the cursor.")
@click.option("--through-api", is_flag=True, help="Ask multikueue api-server through the manager, and nothing else.")
def logs_command(job: str, origin: str, follow: bool, raw: bool, through_api: bool, **options: Any) -> None:
    """Print the logs of JOB's pods on the worker that has it.

    JOB is named as for explain. Without --all-pods it is one pod: the one that has run the longest. With -f it goes on
    on another worker when JOB moves there.

    Where the manager's API is served (multikueue api-server), it is asked: it needs the permission to get
    remotejobs/log (remote.multikueue.dev) and no other for a JOB that is TYPE/NAME. Else the worker is read with the
    credentials that the manager holds: you must be allowed to get the Secret with its kubeconfig, and its account to
    get pods/log (multikueue rbac worker --logs).
    """
    if follow and options["previous"]:
        raise click.UsageError("--previous is over: it is not for -f")
    if options["pod"] and options["all_pods"]:
        raise click.UsageError("--pod and --all-pods: leave one of them out")
    wanted = LogSelection(
        options.pop("all_pods"),
        options.pop("container"),
        options.pop("since"),
        options.pop("tail"),
        show=printer(raw=raw),
        pod=options.pop("pod"),
        previous=options.pop("previous"),
        timestamps=options.pop("timestamps"),
        tell=lambda text: click.echo(f"--- {one_line(text)}", file=sys.stderr),
    )
    asked = Asked(job, target_of(options), origin)
    anyio.run(_print_logs, asked, wanted, follow, through_api)
    raise SystemExit(FINE)


def printer(*, raw: bool) -> Callable[[str], None]:
    """Prints lines of logs, byte for byte; at a terminal without what moves its cursor or sets its title, unless asked
    for raw."""
    cleaned = sys.stdout.isatty() and not raw

    def show(text: str) -> None:
        shown = f"{without_controls(text.rstrip(LINE_END))}{NEWLINE}" if cleaned else text
        click.echo(shown.encode(errors="replace" if cleaned else "surrogateescape"), nl=False, color=True)

    return show


async def _print_logs(asked: Asked, wanted: LogSelection, follow: bool, through_api: bool) -> None:
    config = asked.target.config
    with for_people(config.server):
        async with KubeClient(config, name="manager", options=CLIENT) as manager:
            if through_api:
                try:
                    await _ask_api(asked, wanted, follow)
                except NotFound as error:
                    raise CommandError(error.said or str(error), NOT_FOUND) from error
                return
            output = Output(wanted.show)

            async def through() -> bool:
                try:
                    await _ask_api(await _typed(ThroughApi(manager), asked), attrs.evolve(wanted, show=output), follow)
                except ELSEWHERE as error:
                    if not output.any:
                        raise
                    raise CommandError(f"the log ends early: {error}", NOT_REACHABLE) from error
                return True

            async def otherwise() -> bool:
                await _print_directly(manager, asked, wanted, follow)
                return True

            await api_first(manager, through, otherwise)


async def _typed(api: ThroughApi, asked: Asked) -> Asked:
    """The same job as TYPE/NAME, which the API takes: a NAME alone is looked for."""
    if JobName.parse(asked.job).type not in ("", WORKLOAD_TYPE):
        return asked
    remote_job = await api.find(asked.job, asked.target.namespace)
    if remote_job is None:
        raise NotFound(f'there is no job "{asked.job}"')
    return attrs.evolve(asked, job=str(dig(remote_job, "status", "job")))


async def _ask_api(asked: Asked, wanted: LogSelection, follow: bool) -> None:
    async with KubeClient(asked.target.config, name="manager", options=attrs.evolve(CLIENT, deadline=PATIENCE)) as api:
        await logs_through_api(api, asked, wanted, follow=follow)


async def _print_directly(manager: KubeClient, asked: Asked, wanted: LogSelection, follow: bool) -> None:
    if follow:
        await Follower(LocatorOfManager(manager, asked), wanted).run()
        return
    sought = await sought_job(manager, asked)
    async with worker_client(manager, sought.worker, asked.target.daemon_namespace) as client:
        with worker_for_people(sought.worker):
            await LogShower(WorkerPods(client, sought), wanted).show()
