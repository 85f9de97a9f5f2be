"""The four stories as data: what the Placement asks for, what the clusters are like, and which jobs come."""

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
"""How long the job runs that is there when something changes."""


@attrs.frozen
class Story:
    """One story."""

    name: str
    """Of its Placement, of the config that is made of it, and of its queue."""
    title: str
    summary: str
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
    changes: tuple[Change, ...] = ()
    """What changes, one after the other."""

    @property
    def detached(self) -> str:
        """The cluster that is detached; empty: none."""
        return next((change.detached for change in self.changes if change.detached), "")

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its jobs, in the order in which they come."""
        return tuple(name for jobs in (self.jobs, *(change.jobs for change in self.changes)) for name, _ in jobs)

    def chosen_for(self, job: str) -> frozenset[str]:
        """The clusters that the Placement had when a job came."""
        came = (change.chosen for change in self.changes if job in dict(change.jobs))
        return next(came, self.chosen)


@attrs.frozen
class Change:
    """What changes while the jobs before it run."""

    chosen: frozenset[str]
    """The clusters that the Placement gets then."""
    jobs: tuple[tuple[str, int], ...]
    """Names and CPUs of the jobs that come then."""
    gpus: Mapping[str, int] = attrs.field(factory=dict)
    """Free ones then, by cluster."""
    detached: str = ""
    """The cluster whose ManagedCluster is deleted, and held for a while."""


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
        "the next jobs go elsewhere, and the one that runs stays where it is. Then they change back, and the first "
        "cluster gets jobs again at once: its queues have a Placement of their own, so they are still there.",
        _best(1),
        frozenset({"worker2"}),
        (("tune-long", 1), ("tune-1", 1)),
        gpus={"worker1": 3, "worker2": 12, "worker3": 6},
        changes=(
            Change(
                frozenset({"worker3"}),
                (("tune-2", 1), ("tune-3", 1), ("tune-4", 1)),
                {"worker1": 3, "worker2": 2, "worker3": 14},
            ),
            Change(frozenset({"worker2"}), (("tune-5", 1), ("tune-6", 1)), {"worker1": 3, "worker2": 18, "worker3": 9}),
        ),
    ),
    Story(
        "detached",
        "A cluster that is detached under a job",
        "The ManagedCluster of worker1 is deleted while a job runs there, and something holds it. New jobs go "
        "elsewhere. That one stays, longer than workerLostTimeout, as nobody can stop it there any more. It moves some "
        "time after the ManagedCluster is gone, and may run twice so: drain a cluster before you detach it.",
        _best(1),
        frozenset({"worker1"}),
        (("build-long", 1),),
        gpus={"worker1": 16, "worker2": 4, "worker3": 10},
        changes=(Change(frozenset({"worker3"}), (("build-1", 1), ("build-2", 1)), detached="worker1"),),
    ),
)
WORKERS: Final = 3
