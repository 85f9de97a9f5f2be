"""`python -m tests.benchmarks SCENARIO`: measure a MultiKueue controller; a line of JSON and a table come out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import anyio
import click
import orjson
from rich.console import Console

from tests.benchmarks import controller, plotting, results, tables
from tests.benchmarks.answering import quiet
from tests.benchmarks.idling import measure_idle
from tests.benchmarks.measuring import Measured, Options, measure
from tests.benchmarks.mirrors import measure_mirrors
from tests.benchmarks.scaling import measure_restart
from tests.benchmarks.scenarios import SCENARIOS, Scenario
from tests.benchmarks.tenants import measure_tenants
from tests.benchmarks.upstream import measure_upstream, require_kueues
from tests.controlplane.errors import ControlPlaneError

_EPILOG = "\b\nScenarios:\n" + "\n".join(f"  {scenario.name:8}{scenario.about}" for scenario in SCENARIOS.values())


@click.command(epilog=_EPILOG)
@click.argument("scenario", type=click.Choice(list(SCENARIOS)))
@click.option("--control-plane", "kind", type=click.Choice(["real", "sandbox"]), default="real", show_default=True)
@click.option("--workers", type=click.IntRange(1), help="Worker clusters.")
@click.option("--rtt", type=click.FloatRange(0), help="Milliseconds to the workers and back.")
@click.option("--count", type=click.IntRange(1), help="Jobs (for `scale`: running workloads).")
@click.option("--rate", type=click.FloatRange(0), help="Jobs per second; 0: all at once.")
@click.option("--duration", type=click.FloatRange(1), help="Seconds for which jobs are submitted at that rate.")
@click.option("--kinds", type=click.IntRange(1), help="Kinds that all clusters serve; our daemon dispatches them.")
@click.option("--attackers", type=click.IntRange(1), help="Large jobs of the other tenant; for `tenants` only.")
@click.option("--mirrored", type=click.IntRange(1), help="Pods that are shown at once; for `mirrors` only.")
@click.option("--controller", "command", help="The controller under test, a shell command.  [default: ours]")
@click.option("--dispatcher", help="The dispatcher of our daemon, as in `dispatcher.name`.")
@click.option("--manager-kueue", type=click.Choice(["none", "sim"]), default="sim", show_default=True)
@click.option("--worker-kueue", default="", help="A real Kueue for each worker, a shell command; for `upstream` only.")
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds for all jobs to end.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the result into this file as well.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the result into this PNG.")
@click.option("--profile", type=click.Path(path_type=Path), help="Write cProfile's findings on our controller here.")
def main(
    scenario: str,
    command: str | None,
    dispatcher: str | None,
    profile: Path | None,
    output: Path | None,
    plot: Path | None,
    **options: Any,
) -> None:
    """Measure a MultiKueue controller: JSON to standard output, a table to standard error."""
    if command is not None and (profile is not None or dispatcher is not None):
        raise click.UsageError("--profile and --dispatcher are for the default controller only")
    if plot is not None:
        plotting.require()
    numbers = {
        name: options.pop(name)
        for name in ("count", "rate", "duration", "workers", "rtt", "kinds", "attackers", "mirrored")
    }
    chosen = SCENARIOS[scenario].changed(**numbers)
    if chosen.mirrored and command is not None:
        raise click.UsageError("mirrors are our daemon's: no --controller")
    ours = controller.default_command(profile, dispatcher or "", chosen.kinds, mirrors=bool(chosen.mirrored))
    settings = Options(command=command or ours, dispatcher=dispatcher or "", **options)
    if chosen.upstream:
        require_kueues(settings, command)
    elif settings.worker_kueue:
        raise click.UsageError("--worker-kueue is for `upstream` only: elsewhere workers are simulated")
    measured = _run(chosen, settings)
    result = results.result_of(measured)
    tables.show(result, Console(stderr=True))
    click.echo(orjson.dumps(result).decode())
    if output is not None:
        output.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    if plot is not None:
        plotting.draw(measured, result, plot)
    if measured.complaint:
        raise SystemExit(1)


def _run(scenario: Scenario, options: Options) -> Measured:
    async def run() -> Measured:
        if scenario.idle:
            return await measure_idle(scenario, options)
        if scenario.attackers:
            return await measure_tenants(scenario, options)
        if scenario.mirrored:
            return await measure_mirrors(scenario, options)
        if scenario.upstream:
            return await measure_upstream(scenario, options)
        return await (measure_restart if scenario.preloaded else measure)(scenario, options)

    quiet()
    try:
        return anyio.run(run, backend_options={"use_uvloop": importlib.util.find_spec("uvloop") is not None})
    except (ControlPlaneError, BaseExceptionGroup) as error:
        message = _message_of(error)
        if message is None:
            raise
        raise click.ClickException(message) from error


def _message_of(error: BaseException) -> str | None:
    """The message of an error whose message is all that is printed, be it alone or in groups of task groups."""
    if isinstance(error, BaseExceptionGroup):
        return _message_of(error.exceptions[0]) if len(error.exceptions) == 1 else None
    return str(error) if isinstance(error, ControlPlaneError) else None


if __name__ == "__main__":
    main()
