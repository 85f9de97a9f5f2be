"""`multikueue pods JOB` and `multikueue logs JOB`: of the remote run, from the manager."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import anyio
import click

from multikueue.core.model.outside_text import one_line, without_controls
from multikueue.kube import KubeClient
from multikueued.commands.options import (
    CLIENT,
    CONTAINER,
    JOB_NAME,
    LISTING,
    NAME,
    WATCH,
    Duration,
    Format,
    option_of,
    target_of,
    target_options,
)
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.tables import age, table
from multikueued.exits import FINE, for_people
from multikueued.reading.api_first import ask
from multikueued.reading.asked import Asked
from multikueued.reading.log_output import NEWLINE, LogSelection
from multikueued.reading.pods import PodList
from multikueued.settings.config import Settings

LINE_END = "\r\n"


ORIGIN: Final = click.option(
    "--origin",
    type=NAME,
    default=str(Settings().origin),
    show_default=True,
    help="The daemon's setting origin: the label of its copies.",
)


@click.command("pods")
@JOB_NAME
@target_options
@ORIGIN
@LISTING
@WATCH
def pods_command(job: str, origin: str, output: Format, watch: bool, **options: Any) -> None:
    """List the pods of JOB on the worker that has it.

    JOB is named as for explain. Where the manager's API is served (multikueue api-server), you need the permission to
    get remotejobs/pods and to list remotejobs. Else the worker is read with the credentials that the manager holds: you
    must be allowed to get the Secret with its kubeconfig.
    """
    target = target_of(options)
    asked = Asked(job, target, origin)

    printed = Printed[PodList](
        lambda client, _: ask(client, lambda source: source.pods(asked)),
        lambda listed, now, width: pods_table(listed, now, width, wide=output == "wide"),
        names=lambda listed: (pod.name for pod in listed.pods),
    )
    raise SystemExit(run(target, printed, output, watch=watch))


def pods_table(listed: PodList, now: datetime, width: int | None, *, wide: bool) -> list[str]:
    """One line for each pod."""
    columns = ["POD", "PHASE", "READY", "RESTARTS", "AGE", *(["NODE", "CONTAINERS"] if wide else []), "REASON"]
    rows = []
    for pod in listed.pods:
        ready = f"{pod.ready}/{len(pod.containers)}"
        row = [pod.name, pod.phase, ready, str(pod.restarts), age(pod.created, now)]
        rows.append([*row, *([pod.node or "-", ",".join(pod.containers)] if wide else []), pod.reason])
    head = f'{listed.job} in namespace {listed.namespace} is on worker cluster "{listed.worker}".'
    none = f"It has no pods there{f': {listed.why_none}' if listed.why_none else ''}."
    hidden = [f"There may be more pods: {why}." for why in listed.not_read]
    return [head, "", *(table(columns, rows, width) if rows else [none]), *hidden]


@click.command("logs")
@JOB_NAME
@target_options
@ORIGIN
@click.option("-f", "--follow", is_flag=True, help="Wait for more until JOB has ended, also when it moves.")
@click.option("--all-pods", is_flag=True, help="Of all its pods; each line begins with [WORKER/POD].")
@CONTAINER
@click.option("--since", type=Duration(), help="Only what is not older, as 90s or 2h.")
@click.option("--tail", type=click.IntRange(min=0), help="Only so many lines of what there is.")
@option_of("--pod", completes="pods", help="Of this pod alone, as multikueue pods names it.")
@click.option("--previous", is_flag=True, help="Of containers before their last restart; not with -f.")
@click.option("--timestamps", is_flag=True, help="Each line begins with the time at which its node got it.")
@click.option("--raw", is_flag=True, help="At a terminal, too, print each line as it is, with what moves the cursor.")
def logs_command(job: str, origin: str, follow: bool, since: float | None, raw: bool, **options: Any) -> None:
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
        max(1, round(since)) if since is not None else 0,
        options.pop("tail"),
        show=printer(raw=raw),
        pod=options.pop("pod"),
        previous=options.pop("previous"),
        timestamps=options.pop("timestamps"),
        tell=lambda text: click.echo(f"--- {one_line(text)}", file=sys.stderr),
    )
    asked = Asked(job, target_of(options), origin)
    anyio.run(_print_logs, asked, wanted, follow)
    raise SystemExit(FINE)


def printer(*, raw: bool) -> Callable[[str], None]:
    """Prints lines of logs, byte for byte; at a terminal without what moves its cursor or sets its title, unless asked
    for raw."""
    cleaned = sys.stdout.isatty() and not raw

    def show(text: str) -> None:
        shown = f"{without_controls(text.rstrip(LINE_END))}{NEWLINE}" if cleaned else text
        click.echo(shown.encode(errors="replace" if cleaned else "surrogateescape"), nl=False, color=True)

    return show


async def _print_logs(asked: Asked, wanted: LogSelection, follow: bool) -> None:
    config = asked.target.config
    with for_people(config.server):
        async with KubeClient(config, name="manager", options=CLIENT) as manager:
            await ask(manager, lambda source: source.logs(asked, wanted, follow=follow))
