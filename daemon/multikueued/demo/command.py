"""The command `multikueue demo`."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio
import click
import orjson
from click.core import ParameterSource
from rich.console import Console

from multikueue.errors import SettingsError
from multikueue.sandbox.kinds import SandboxKind, completed
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueued.commands.options import NAME, kind_option
from multikueued.commands.report_runner import LiveConsole
from multikueued.dashboard.command import Pace, dashboard_of
from multikueued.demo.files import Files, load_files
from multikueued.demo.gantt import gantt
from multikueued.demo.jobs import ROOM, drawn_jobs, room_for, with_kinds
from multikueued.demo.kept_clusters import keep
from multikueued.demo.live_view import watch
from multikueued.demo.ocm.command import tell_stories
from multikueued.demo.output import giving_up, print_problems, print_table, problems, sentences_of, summary
from multikueued.demo.own_kinds import OwnKinds, config_option
from multikueued.demo.policies import WORKERS, compare
from multikueued.demo.run import Demo, break_worker, check_broken, with_short_patience
from multikueued.reading.asked import ReportTarget
from multikueued.serving.logs import configure_logging
from multikueued.settings.config import LoggingSettings, RetentionSettings, ServingSettings, Settings

_DAEMON = Settings(
    namespace=KUEUE_NAMESPACE,
    retention=RetentionSettings(failed=timedelta(0)),
    logging=LoggingSettings(format="console", level="error"),
    serving=ServingSettings(bind_address="127.0.0.1", port=0),
)
"""The daemon with few log lines, on any free port of this machine."""
_PACE: Final = Pace(sums=0.5, history=1.0, published=1.0)
"""Of the page: a demo lasts ten seconds."""
_NOT_WITH_OCM: Final = {
    "workers": "--workers",
    "jobs": "--jobs",
    "files": "--filename",
    "kind_names": "--kind",
    "config": "--config",
    "broken": "--break",
    "policy": "--policy",
    "page": "--dashboard",
}
_NOT_WITH_POLICY: Final = {
    "broken": "--break",
    "config": "--config",
    "files": "-f",
    "keep_up": "--keep",
    "page": "--dashboard",
    "port": "--port",
}
_NOT_WITH_FILES: Final = {"jobs": "--jobs", "kind_names": "--kind"}


@click.command("demo")
@click.option("--workers", type=click.IntRange(1, 20), show_default="2, and 4 with --policy", help="Worker clusters.")
@click.option(
    "--jobs", type=click.IntRange(1, 10_000), show_default="20, and at least one of each kind", help="Jobs to draw."
)
@click.option(
    "-f",
    "--filename",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Submit the jobs of this YAML file (or folder, or - for the standard input) instead, after what stands beside "
    "them; may be given more than once.",
)
@kind_option("Submit jobs of this kind, such as rayjob; may be given more than once; all for every kind in turn.")
@config_option
@click.option(
    *("--break", "broken"),
    type=NAME,
    metavar="WORKER",
    help="Cut the way to this worker while it runs jobs, then mend it.",
)
@click.option(
    "--ocm",
    is_flag=True,
    help="Show clusters of an inventory instead: stories of Open Cluster Management, with a detached cluster.",
)
@click.option(
    "--policy",
    is_flag=True,
    help="Compare dispatchers instead: the same jobs with AllAtOnce and with scored, and what each took.",
)
@click.option("--keep", "keep_up", is_flag=True, help="Leave the clusters up, with a kubeconfig for each.")
@click.option("--dashboard", "page", is_flag=True, help="Show it as a page, too; the clusters stay up until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as one JSON object, as the last line.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything drawn: jobs and their times.")
@click.option("--port", type=click.IntRange(0, 65_000), default=0, help="Port of the manager's API server; 0: any.")
@click.option("--timeout", type=click.FloatRange(1), default=300.0, show_default=True, help="Seconds to give up after.")
def demo(files: tuple[Path, ...], kind_names: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """Show jobs spreading over worker clusters.

    The clusters run inside this process: API servers that speak HTTPS, each with a small Kueue and a job runner. The
    dispatcher is the real one. With --config kinds of your own are played, too, by what their declarations say; nothing
    else is taken from that file. Jobs that do not end by themselves, such as a raycluster, are deleted when they have
    run for a while. Exits with 0 if every job finished, and ran only on the worker that the manager names.
    """
    options["workers"] = options["workers"] or (WORKERS if options["policy"] else 2)
    if options["port"] and options["port"] + options["workers"] > 65_535:
        raise SettingsError("--port: leaves no room for the workers' ports above it")
    if options["ocm"]:
        _check_alone(_NOT_WITH_OCM, "--ocm: the stories have their own jobs and clusters")
        configure_logging(_DAEMON.logging, sys.stderr)
        raise SystemExit(anyio.run(tell_stories, _DAEMON, LiveConsole(stderr=options["as_json"]), options))
    if options["policy"]:
        _check_alone(_NOT_WITH_POLICY, "--policy: both have the same jobs and clusters of their own")
        configure_logging(_DAEMON.logging, sys.stderr)
        raise SystemExit(
            anyio.run(compare, _DAEMON, OwnKinds().named(kind_names), LiveConsole(stderr=options["as_json"]), options)
        )
    if files:
        _check_alone(_NOT_WITH_FILES, "-f: the jobs are those of the file")
    own = OwnKinds.declared_in(config)
    loaded = load_files(files, own.available) if files else Files()
    if options["broken"] is not None:
        check_broken(options["broken"], options["workers"])
    kinds = tuple(dict.fromkeys(job.kind for job in loaded.jobs)) or own.named(kind_names)
    if not loaded.jobs:
        count = options["jobs"] or max(20, len(kinds))
        loaded = Files(tuple(drawn_jobs(kinds, count, random.Random(options["seed"]))))
    own.check_copies(loaded.jobs, advice="change it" if files else "give jobs that can be, with -f")
    configure_logging(_DAEMON.logging, sys.stderr)
    daemon = with_kinds(
        with_short_patience(_DAEMON) if options["broken"] else _DAEMON, completed(kinds), own.declarations
    )
    raise SystemExit(anyio.run(_demo, daemon, kinds, loaded, LiveConsole(stderr=options["as_json"]), options))


def _check_alone(others: Mapping[str, str], reason: str) -> None:
    """Refuse options that have no place beside another one: `others` are written so, `reason` says which and why."""
    for name, option in others.items():
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise SettingsError(f"{reason}: leave {option} out")


async def _demo(
    daemon: Settings,
    kinds: Sequence[SandboxKind],
    loaded: Files,
    console: Console,
    options: Mapping[str, Any],
) -> int:
    for note in loaded.notes:
        console.print(note, style="dim", markup=False, highlight=False, soft_wrap=True)
    room = room_for(loaded.jobs)
    if room != ROOM:
        amounts = ", ".join(f"{amount} {resource}" for resource, amount in room.items())
        console.print(f"Each worker has {amounts}: the largest job asks for so much.", style="dim", soft_wrap=True)
    running = Demo.prepare(kinds, options["workers"], seed=options["seed"], port=options["port"], room=room)
    async with running.sandbox, running.dispatched(daemon) as tasks, AsyncExitStack() as stack:
        if options["broken"]:
            tasks.start_soon(break_worker, running, options["broken"])
        if options["page"]:
            target = ReportTarget(running.dispatcher, "default", KUEUE_NAMESPACE)
            local = await stack.enter_async_context(dashboard_of(target, pace=_PACE))
            console.print(f"Open {local.address}", soft_wrap=True, highlight=False)
        running.lay_out(loaded)
        in_time = await watch(running, loaded.jobs, options["timeout"], console)
        outcome = summary(running.tally, list(running.sandbox.workers), running.elapsed)
        _report(running, console, broken=options["broken"] or "", in_time=in_time)
        if options["as_json"]:
            click.echo(orjson.dumps(outcome).decode())
        if options["keep_up"]:
            await keep(running.sandbox, console)
        elif options["page"]:
            console.print("The page stays up until Ctrl-C.")
            await anyio.sleep_forever()
    return 1 if problems(running.tally) or running.tally.leftovers else 0


def _report(running: Demo, console: Console, *, broken: str, in_time: bool) -> None:
    tally = running.tally
    print_table(console, tally)
    for line in gantt(tally, list(running.sandbox.workers), console.width, colours=console.color_system is not None):
        console.print(line, no_wrap=True, crop=True)
    for sentence in sentences_of(tally, list(running.sandbox.workers), broken=broken):
        console.print(sentence)
    if not in_time:
        console.print(giving_up(tally), style="red")
    print_problems(console, problems(tally))
    if tally.leftovers:
        console.print(f"{tally.leftovers} objects are still on workers.", style="red")
