"""The three stories as data: what the Placement asks for, what the clusters are like, and which jobs come."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from multikueue import Json

LABEL: Final = "accelerator"
T4: Final = "nvidia-tesla-t4"
SCORES: Final = "resource-usage-score"
GPUS: Final = "gpuClusterAvailable"
MOST_GPUS: Final = 20
"""OCM's addon counts so many free GPUs of a cluster, not more."""
LONG: Final = "6s"
"""How long the job runs that is there when the scores change."""


@attrs.frozen
class Story:
    """One story."""

    name: str
    """Of its Placement, of the config that is made of it, and of its queue."""
    title: str
    told: str
    """What happens, in one sentence."""
    placement: Json
    """The spec."""
    chosen: frozenset[str]
    """The clusters that it gets."""
    jobs: tuple[tuple[str, int], ...]
    """Names and CPUs of the jobs that are submitted first."""
    labels: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """Of clusters, by their names."""
    gpus: Mapping[str, int] = attrs.field(factory=dict)
    """Free ones, by cluster."""
    later: Later | None = None


@attrs.frozen
class Later:
    """What changes while the first jobs run."""

    gpus: Mapping[str, int]
    chosen: frozenset[str]
    jobs: tuple[tuple[str, int], ...]
    """Names and CPUs of the jobs that come then."""


def score_of(free: int) -> int:
    """The score of so many free GPUs, as OCM's addon `resource-usage-collect` writes it: from -100 to 100."""
    return max(-100, min(100, int(200 * free / MOST_GPUS - 100)))


def _labelled(**labels: str) -> Json:
    return {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}]}


def _best(count: int) -> Json:
    addon: dict[str, Any] = {"type": "AddOn", "addOn": {"resourceName": SCORES, "scoreName": GPUS}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": addon, "weight": 1}]}
    return {"numberOfClusters": count, "prioritizerPolicy": policy}


_T4: Final[Mapping[str, str]] = MappingProxyType({LABEL: T4})
STORIES: Final = (
    Story(
        "all-clusters",
        "All clusters, by themselves",
        "The Placement asks for nothing, so every cluster gets jobs. Nobody wrote a kubeconfig or a list of clusters.",
        {},
        frozenset({"worker1", "worker2", "worker3"}),
        (("train-1", 2), ("train-2", 2), ("train-3", 2), ("train-4", 2), ("train-5", 2), ("train-6", 2)),
    ),
    Story(
        "t4-clusters",
        "Only clusters with the right accelerator",
        f"The Placement asks for the label {LABEL}={T4}: two of the three clusters have it.",
        _labelled(**_T4),
        frozenset({"worker2", "worker3"}),
        (("infer-1", 2), ("infer-2", 2), ("infer-3", 2), ("infer-4", 2)),
        labels={"worker2": _T4, "worker3": _T4},
    ),
    Story(
        "most-gpus",
        "The cluster with the most free GPUs",
        "The Placement asks for the one cluster with the best score. The scores change while a job runs: "
        "the next jobs go elsewhere, and the one that runs stays where it is.",
        _best(1),
        frozenset({"worker2"}),
        (("tune-long", 1), ("tune-1", 1)),
        gpus={"worker1": 3, "worker2": 12, "worker3": 6},
        later=Later(
            {"worker1": 3, "worker2": 2, "worker3": 14},
            frozenset({"worker3"}),
            (("tune-2", 1), ("tune-3", 1), ("tune-4", 1)),
        ),
    ),
)
WORKERS: Final = 3
