"""Distributions fitted to published traces; none of their rows.

Arrivals, tenants and sizes: 15,264 jobs of Microsoft's Philly trace, as stanford-futuredata/gavel publishes them (MIT).
Run times: 83,154 of Philly, as alibaba/clusterdata publishes them (cluster-trace-gpu-v2020, CC-BY 4.0).
Nodes: 4,278 of Alibaba's spot GPU trace of 2026 (alibaba/clusterdata, cluster-trace-v2026-spot-gpu, CC-BY 4.0).
"""

from __future__ import annotations

import bisect
import math
from random import Random
from typing import Final

import attrs

DAYS: Final = (
    *(77, 9, 31, 50, 25, 18, 16, 34, 121, 78, 71, 305, 170, 105, 80, 127, 73, 292, 175, 195, 138, 241, 166, 174, 300),
    *(252, 146, 402, 227, 791, 590, 1195, 148, 86, 117, 373, 120, 55, 111, 158, 134, 328, 313, 438, 104, 378, 250, 327),
    *(1112, 502, 175, 95, 120, 98, 88, 86, 80, 85, 72, 74, 65, 104, 77, 78, 46, 58, 61, 75, 38, 95, 101, 63, 117, 36),
    *(110, 200, 64, 54, 34, 43, 51, 61, 74, 105, 39, 112, 8, 77, 37, 28, 40, 25, 10, 15, 43, 38, 29, 46, 17, 6, 9, 17),
    *(1, 8, 5, 10, 0, 28, 18, 2, 45, 5, 4, 6, 8, 1, 3, 0, 2, 4, 0, 0, 0, 1, 2, 4),
)
"""Arrivals by day."""
DAY: Final = 86400.0
SIZES: Final = {
    "11cb48": {1: 1559, 2: 81, 4: 257, 8: 23, 16: 69, 24: 2, 32: 8, 64: 1},
    "6214e9": {1: 1928, 2: 27, 4: 32, 8: 13},
    "6c71a0": {1: 1798, 2: 6, 4: 41, 8: 150, 16: 4, 32: 1},
    "b436b2": {1: 1632, 2: 23, 4: 133, 8: 172, 16: 39, 24: 1},
    "ee9e8c": {1: 975, 2: 47, 4: 321, 8: 545, 16: 106, 20: 1, 32: 5},
    "0e4a51": {1: 436, 2: 226, 4: 451, 8: 68},
    "103959": {1: 500, 2: 40, 4: 446},
    "7f04ca": {1: 394, 2: 2, 4: 234, 8: 311, 16: 24, 32: 7},
    "ed69ec": {1: 951},
    "e13805": {1: 233, 2: 5, 4: 116, 8: 234, 12: 6, 16: 11, 24: 2},
    "2869ce": {1: 65, 2: 6, 4: 11, 8: 379, 16: 2, 32: 70},
    "others": {1: 9, 4: 2, 8: 23},
}
"""Jobs by tenant and GPUs."""
BATCHES: Final = ((0.82, 1), (0.88, 2), (0.91, 3), (0.95, 4), (0.97, 7), (0.98, 11), (0.99, 24), (0.995, 50), (1, 318))
"""Jobs of one tenant and size that come within 30 s of each other: share of the batches that are at most so large."""
LARGEST_BATCH: Final = ((1, 318), (2, 56), (4, 66), (8, 20), (math.inf, 5))
"""Of jobs of so many GPUs."""
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
    """Seconds, drawn between the quantiles on a logarithmic scale."""
    share = random.random()
    i = max(1, bisect.bisect_left(RUN_TIMES, (share, 0)))
    (low, shortest), (high, longest) = RUN_TIMES[i - 1], RUN_TIMES[i]
    return math.exp(math.log(shortest) + (math.log(longest / shortest)) * (share - low) / (high - low))


@attrs.frozen
class Arrival:
    """When who asks for how many GPUs."""

    submit: float
    tenant: str
    gpus: int


def batch(random: Random, gpus: int) -> int:
    """How many jobs come together."""
    largest = next(most for limit, most in LARGEST_BATCH if gpus <= limit)
    share = random.random()
    i = next(i for i, (upto, _) in enumerate(BATCHES) if share <= upto)
    fewest = BATCHES[i - 1][1] + 1 if i else 1
    return min(largest, random.randint(fewest, BATCHES[i][1]))


def arrivals(random: Random, count: int, burstiness: float = 1.0) -> list[Arrival]:
    """So many jobs over the trace's days, in batches; by submission."""
    means = {gpus: sum(batch(random, gpus) for _ in range(5000)) / 5000 for gpus in (1, 2, 4, 8, 64)}
    drawn = [(tenant, gpus) for tenant, sizes in SIZES.items() for gpus in sizes]
    weights = [SIZES[tenant][gpus] / means[min(size for size in means if gpus <= size)] for tenant, gpus in drawn]
    found: list[Arrival] = []
    for day, wanted in enumerate(_spread(random, count, burstiness)):
        of_day: list[Arrival] = []
        while len(of_day) < wanted:
            tenant, gpus = random.choices(drawn, weights)[0]
            submit = (day + random.random()) * DAY
            for _ in range(min(batch(random, gpus), wanted - len(of_day))):
                of_day.append(Arrival(submit, tenant, gpus))
                submit += random.expovariate(1 / GAP)
        found.extend(of_day)
    return sorted(found, key=lambda arrival: arrival.submit)


def _spread(random: Random, count: int, burstiness: float) -> list[int]:
    """Days of the same shape with so many jobs together; a power below 1 flattens them."""
    weights = [jobs**burstiness if jobs else 0.0 for jobs in DAYS]
    scale = count / sum(weights)
    days = [int(weight * scale) for weight in weights]
    for day in random.choices(range(len(DAYS)), weights, k=count - sum(days)):
        days[day] += 1
    return days
