"""What is simulated: jobs, and the workers that they may run on."""

from __future__ import annotations

from typing import Final

import attrs

Request = tuple[int, int]
"""GPUs and CPUs."""
GANG: Final = "gang"
"""The kind of jobs that need much of a worker."""


@attrs.frozen(eq=False)
class Job:
    """One job, of the fleet's users or of a worker's own."""

    name: str
    submit: float
    """Seconds since the first arrival."""
    tenant: str
    request: Request
    runtime: float
    """Seconds on a worker of speed 1, without staging."""
    model: str = ""
    """The only model of GPU that it can use; empty: any."""
    region: str = ""
    """Where its data are; empty: nowhere, or everywhere."""
    staging: float = 0.0
    """Seconds that its data take to any other region."""
    priority: int = 0
    kind: str = "Job"
    queue: int = 0
    """Which of the manager's ClusterQueues it is submitted to."""

    @property
    def size(self) -> int:
        """GPUs; CPUs of a job that has none."""
        return self.request[0] or self.request[1]


@attrs.frozen
class Flavor:
    """What a worker has of one model."""

    model: str
    gpus: int
    cpus: int
    speed: float = 1.0
    node: int = 0
    """GPUs of each of its nodes; 0: its pods fit wherever there is quota."""

    @property
    def quota(self) -> Request:
        """What its nodes have together."""
        return self.gpus, self.cpus

    def holds(self, request: Request) -> bool:
        """Whether it could if it were empty."""
        return request[0] <= self.gpus and request[1] <= self.cpus


@attrs.frozen(eq=False)
class Worker:
    """A worker cluster as it is set up."""

    name: str
    flavors: tuple[Flavor, ...]
    region: str = ""
    cost: float = 1.0
    """Of a GPU's hour."""
    own: tuple[Job, ...] = ()
    """The jobs of its own users, by submission."""
    cohort: float = 0.0
    """The share of its quota that lies in a ClusterQueue of its own users, which lends to ours and borrows from it.
    0: its users and ours share one ClusterQueue."""
    broken: bool = False
    """Whether it admits, and pods never get ready."""
    lost: tuple[float, float] | None = None
    """From when to when it cannot be reached."""
    queue: int = 0
    """The manager's ClusterQueue whose config lists it."""

    @property
    def gpus(self) -> int:
        """Of all its flavors."""
        return sum(flavor.gpus for flavor in self.flavors)

    def usable(self, job: Job) -> tuple[int, ...]:
        """The flavors whose nodes the job's selector matches."""
        return tuple(i for i, flavor in enumerate(self.flavors) if job.model in {"", flavor.model})

    def could_hold(self, job: Job) -> bool:
        """Whether it could run the job if it were empty."""
        return any(self.flavors[i].holds(job.request) for i in self.usable(job))


@attrs.frozen(eq=False)
class Load:
    """One run's jobs and workers."""

    jobs: tuple[Job, ...]
    """By submission."""
    workers: tuple[Worker, ...]
    impossible: int = 0
    """Jobs left out because no worker could ever hold them."""

    @property
    def queues(self) -> int:
        """How many ClusterQueues the manager has."""
        return 1 + max(worker.queue for worker in self.workers)


def work(job: Job) -> float:
    """GPU seconds, or CPU seconds of a job without GPUs, at speed 1."""
    return job.size * job.runtime
