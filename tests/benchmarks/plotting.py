"""The result as a picture: latency over time, and requests by kind. Needs matplotlib."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Set
from pathlib import Path

import click

from multikueue.core.model.names import Json
from tests.benchmarks import moments
from tests.benchmarks.measuring import Measured
from tests.benchmarks.moments import LATENCIES


def require() -> None:
    """Say what is missing before anything is measured.

    Raises:
        click.UsageError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise click.UsageError("--plot needs matplotlib: pip install matplotlib, or use `nox -s bench`")


def draw(measured: Measured, result: Json, file: Path) -> None:
    """Write the picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    over_time, bars = figure.subplots(2, 1)
    created = measured.moments.all(moments.CREATED)
    for name in LATENCIES:
        points = measured.moments.latencies(name)
        begin = [when - created[0] for when, _ in points]
        over_time.plot(begin, [seconds * 1000 for _, seconds in points], ".", markersize=3, label=name)
    over_time.set(xlabel="seconds since the first job", ylabel="ms", title=f"{result['scenario']}: latency")
    over_time.legend(loc="upper left", bbox_to_anchor=(1, 1), markerscale=3)  # beside the points, not over them
    jobs = max(1, len(created))
    for shift, (side, clusters) in enumerate(_sides(result).items()):
        names = list(clusters)
        places = [number + 0.4 * shift for number in range(len(names))]
        bars.bar(places, [clusters[name] / jobs for name in names], width=0.4, label=side)
        bars.set_xticks([number + 0.2 for number in range(len(names))], names, rotation=30, ha="right")
    bars.set(ylabel="requests per workload", title="requests of the controller")
    bars.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(file, dpi=120)


def _sides(result: Json) -> dict[str, dict[str, int]]:
    """Requests on the manager and on all workers together, under the same names in the same order."""
    names = sorted({name for asked in result["requests"].values() for name in asked})
    sides = {"manager": dict.fromkeys(names, 0), "workers": dict.fromkeys(names, 0)}
    for cluster, asked in result["requests"].items():
        for name, count in asked.items():
            sides["manager" if cluster == "manager" else "workers"][name] += count
    return sides


def draw_ratios(ratios: Mapping[str, float], apart: Set[str], file: Path) -> None:
    """Draw how many times as large each number is; those that overlap are pale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1 + 0.25 * len(ratios)), layout="constrained")
    bars = figure.subplots()
    names = list(ratios)[::-1]
    colours = ["tab:blue" if name in apart else "lightgrey" for name in names]
    bars.barh(names, [ratios[name] for name in names], color=colours)
    bars.axvline(1.0, color="black", linewidth=1)
    bars.set(xlabel="after / before; pale: the runs overlap")
    figure.savefig(file, dpi=120)
