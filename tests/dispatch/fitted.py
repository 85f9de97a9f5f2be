"""Distributions fitted to published traces; none of their rows.

Arrivals, tenants and sizes: 15,264 jobs of Microsoft's Philly trace, as stanford-futuredata/gavel publishes them (MIT).
Run times: 83,154 of Philly, as alibaba/clusterdata publishes them (cluster-trace-gpu-v2020, CC-BY 4.0).
Nodes: 4,278 of Alibaba's spot GPU trace of 2026 (alibaba/clusterdata, cluster-trace-v2026-spot-gpu, CC-BY 4.0).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final

import attrs

DAYS: Final = (
    *(77, 9, 31, 50, 25, 18, 16, 34, 68, 78, 71, 184, 170, 105, 80, 127, 73, 163, 175, 149, 99, 132, 141, 127, 69, 136),
    *(146, 200, 141, 355, 248, 341, 148, 86, 117, 116, 62, 55, 111, 158, 134, 328, 277, 200, 104, 229, 250, 327, 189),
    *(170, 125, 95, 120, 48, 88, 86, 80, 85, 72, 74, 65, 104, 77, 78, 46, 58, 61, 75, 38, 95, 101, 63, 63, 36, 110),
    *(200, 64, 54, 34, 43, 51, 61, 74, 105, 39, 112, 8, 52, 37, 28, 40, 25, 10, 15, 43, 38, 29, 46, 17, 6, 9, 17, 1),
    *(8, 5, 10, 0, 28, 18, 2, 45, 5, 4, 6, 8, 1, 3, 0, 2, 4, 0, 0, 0, 1, 2, 4),
)
"""Arrivals by day, without floods."""
DAY: Final = 86400.0
FLOODS: Final = dict(
    [
        *((8, 53), (11, 121), (17, 129), (19, 46), (20, 39), (21, 109), (22, 25), (23, 47), (24, 231), (25, 116)),
        *((27, 202), (28, 86), (29, 436), (30, 342), (31, 854), (35, 257), (36, 58), (42, 36), (43, 238), (45, 149)),
        *((48, 923), (49, 332), (50, 50), (53, 50), (72, 54), (87, 25)),
    ]
)
"""Jobs by day that come in batches of 25 and more."""
FLOODING: Final = {
    "0e4a51": {1: 366, 2: 160, 4: 219},
    "11cb48": {1: 296},
    "6214e9": {1: 1280},
    "6c71a0": {1: 1108},
    "7f04ca": {1: 52},
    "b436b2": {1: 1249},
    "ed69ec": {1: 149},
    "ee9e8c": {1: 104},
}
"""Their tenants and GPUs."""
FLOOD: Final = ((0.0, 25), (0.25, 28), (0.5, 45), (0.75, 62), (0.8, 109), (0.9, 179), (0.95, 256), (1.0, 344))
"""Quantiles of their batches."""
SIZES: Final = {
    "0e4a51": {1: 70, 2: 66, 4: 232, 8: 68},
    "103959": {1: 500, 2: 40, 4: 446},
    "11cb48": {1: 1263, 2: 81, 4: 232, 8: 23, 16: 69, 24: 2, 32: 8, 64: 1},
    "2869ce": {1: 65, 2: 6, 4: 11, 8: 379, 16: 2, 32: 70},
    "6214e9": {1: 648, 2: 27, 4: 32, 8: 13},
    "6c71a0": {1: 690, 2: 6, 4: 41, 8: 150, 16: 4, 32: 1},
    "7f04ca": {1: 342, 2: 2, 4: 234, 8: 311, 16: 24, 32: 7},
    "b436b2": {1: 383, 2: 23, 4: 133, 8: 172, 16: 39, 24: 1},
    "e13805": {1: 233, 2: 5, 4: 116, 8: 234, 12: 6, 16: 11, 24: 2},
    "ed69ec": {1: 802},
    "ee9e8c": {1: 871, 2: 47, 4: 321, 8: 545, 16: 106, 20: 1, 32: 5},
    "others": {1: 9, 4: 2, 8: 23},
}
"""Other jobs by tenant and GPUs."""
BATCHES: Final = ((0.0, 1), (0.84, 1), (0.93, 2), (0.95, 3), (0.97, 5), (0.98, 7), (0.99, 10), (0.995, 14), (1.0, 24))
"""Quantiles of other jobs of one tenant and size that come within 30 s of each other."""
GAP: Final = 6.4
"""Mean seconds between jobs of a batch."""
RUN_TIMES: Final = (
    *((0.0, 5), (0.02, 25), (0.05, 48), (0.1, 61), (0.15, 68), (0.2, 76), (0.25, 131), (0.3, 229), (0.35, 428)),
    *((0.4, 630), (0.45, 889), (0.5, 1186), (0.55, 1500), (0.6, 1871), (0.65, 2242), (0.7, 2590), (0.75, 3342)),
    *((0.8, 4700), (0.85, 6300), (0.9, 12860), (0.92, 18843), (0.94, 32001), (0.95, 49969), (0.955, 59000)),
    *((0.96, 69288), (0.965, 86400), (1.0, 86400)),
)
"""Quantiles in seconds, cut to 5 s and a day."""


@attrs.frozen
class Model:
    """What a trace says of nodes with this model of GPU."""

    gpus: int
    """In the whole trace."""
    node: int
    """GPUs of most of its nodes."""
    cpus: int
    """Of a node."""


MODELS: Final = {
    "gpu-series-1": Model(1558, 1, 192),
    "a10": Model(2494, 1, 128),
    "a100": Model(3456, 8, 128),
    "gpu-series-2": Model(976, 8, 192),
    "h800": Model(1752, 8, 192),
    "a800": Model(176, 8, 128),
}


def run_time(random: Random) -> float:
    """Seconds."""
    return _drawn(random, RUN_TIMES)


def _drawn(random: Random, quantiles: Sequence[tuple[float, float]]) -> float:
    """Between the quantiles on a logarithmic scale."""
    share = random.random()
    i = max(1, bisect.bisect_left(quantiles, (share, 0)))
    (low, least), (high, most) = quantiles[i - 1], quantiles[i]
    return math.exp(math.log(least) + (math.log(most / least)) * (share - low) / (high - low))


@attrs.frozen
class Arrival:
    """When who asks for how many GPUs."""

    submit: float
    tenant: str
    gpus: int


def arrivals(random: Random, count: int) -> list[Arrival]:
    """So many jobs, in batches on the trace's days; by submission."""
    drawn: list[Arrival] = []
    for i, day in enumerate(_days(random)):
        for wanted, who, sizes in ((FLOODS.get(day, 0), FLOODING, FLOOD), (DAYS[day], SIZES, BATCHES)):
            drawn += _of_day(random, i, min(wanted, count - len(drawn)), who, sizes)
        if len(drawn) == count:
            break
    return sorted(drawn, key=lambda arrival: arrival.submit)


def _of_day(
    random: Random, day: int, wanted: int, who: Mapping[str, Mapping[int, int]], sizes: Sequence[tuple[float, float]]
) -> Iterator[Arrival]:
    """Batches at any moments of a day, until there are so many jobs."""
    weights = {(tenant, gpus): jobs for tenant, asked in who.items() for gpus, jobs in asked.items()}
    while wanted > 0:
        tenant, gpus = random.choices(list(weights), list(weights.values()))[0]
        submit = (day + random.random()) * DAY
        jobs = min(wanted, round(_drawn(random, sizes)))
        for _ in range(jobs):
            yield Arrival(submit, tenant, gpus)
            submit += random.expovariate(1 / GAP)
        wanted -= jobs


def _days(random: Random) -> Iterator[int]:
    """The trace's days in any order, again and again. Bursts stay; that most of its jobs come in its first half does
    not, as the first simulation shows no sign of it."""
    days = list(range(len(DAYS)))
    while True:
        random.shuffle(days)
        yield from days
