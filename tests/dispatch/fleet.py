"""A load drawn from the fitted distributions, and the parts of it that are made up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Final

import attrs

from tests.dispatch import fitted
from tests.dispatch.load import Flavor, Job, Load, Worker, work

REGIONS: Final = ("region-a", "region-b", "region-c", "region-d")


SPEEDS: Final = {"a10": 0.8, "gpu-series-1": 1.0, "gpu-series-2": 1.0, "a800": 1.4, "a100": 1.5, "h800": 2.5}
"""Of a GPU, made up as the rest below."""


@attrs.frozen
class Made:
    """What no trace says."""

    dear: float = 0.4
    """Share of the workers whose GPUs cost `cost`; the others' cost 1."""
    cost: float = 2.5
    with_data: float = 0.3
    """Share of the jobs with data in one region."""
    staging: tuple[float, float] = (120.0, 1200.0)
    """Seconds elsewhere, drawn between."""
    any_model: float = 0.5
    """Share of the jobs that can use any model."""
    gang: int = 8
    """Jobs of more GPUs than these can always use any model."""
    own: float = 0.15
    """Share of its capacity that its own users ask for, on every second worker."""
    spread: float = 0.6
    """Sigma of the workers' log-normal sizes."""
    gpus: int = 62
    """Mean of a worker's GPUs."""
    burstiness: float = 0.5
    """The power of the days' arrivals: 1 is the trace, 0 the same number each day."""
    fill: float = 1.1
    """What the load is multiplied with, to use as much of the fleet as the first simulation did."""
    smallest: int = 8
    """GPUs of a worker, at least."""


@attrs.frozen
class Wanted:
    """What to draw."""

    workers: int = 20
    jobs: int = 20_000
    load: float | None = 0.6
    """Work over `capacity`, workers' own users' apart; None: a trace's arrivals as they are."""
    queues: int = 1
    broken: int = 0
    lost: int = 0
    cohort: float = 0.0
    made: Made = Made()


def draw(wanted: Wanted, seed: int, workers: list[Worker] | None = None) -> Load:
    """The same for the same seed; with other workers if there are any."""
    random = Random(seed)
    workers = workers or draw_workers(random, wanted)
    arrived = fitted.arrivals(random, wanted.jobs, wanted.made.burstiness)
    jobs = [
        Job(f"job-{i}", one.submit, one.tenant, (one.gpus, 0), fitted.run_time(random)) for i, one in enumerate(arrived)
    ]
    return complete(random, wanted, workers, jobs)


def draw_workers(random: Random, wanted: Wanted) -> list[Worker]:
    """Nodes of one model each, by the models' share of all GPUs."""
    made = wanted.made
    models = list(fitted.MODELS)
    found = []
    for i in range(wanted.workers * wanted.queues):
        model = random.choices(models, [fitted.MODELS[m].gpus for m in models])[0]
        like = fitted.MODELS[model]
        gpus = max(made.smallest, made.gpus * random.lognormvariate(-(made.spread**2) / 2, made.spread))
        nodes = math.ceil(gpus / like.node)
        flavor = Flavor(model, nodes * like.node, nodes * like.cpus, SPEEDS[model])
        cost = made.cost if random.random() < made.dear else 1.0
        found.append(Worker(f"worker-{i:02}", (flavor,), random.choice(REGIONS), cost, queue=i // wanted.workers))
    return found


def complete(random: Random, wanted: Wanted, workers: list[Worker], jobs: Sequence[Job]) -> Load:
    """Stretch arrivals to the load, add what is made up, and leave out what no worker could ever hold."""
    made = wanted.made
    asked = [_complete_job(random, wanted, workers, job) for job in jobs]
    possible = [job for job in asked if any(w.queue == job.queue and w.could_hold(job) for w in workers)]
    span = max((job.submit for job in possible), default=0.0) or 1.0
    if wanted.load:
        stretched = sum(map(work, possible)) / capacity(workers) / (wanted.load * made.fill)
        possible = [attrs.evolve(job, submit=job.submit * stretched / span) for job in possible]
        span = stretched
    sizes = [job.request for job in possible]
    own = {worker.name: _own_jobs(random, made, worker, sizes, span) for worker in workers[::2]} if made.own else {}
    broken = {worker.name for worker in random.sample(workers, wanted.broken)}
    lost = {w.name for w in random.sample([w for w in workers if w.name not in broken], wanted.lost)}
    return Load(
        tuple(possible),
        tuple(
            attrs.evolve(
                worker,
                own=tuple(own.get(worker.name, ())),
                cohort=wanted.cohort,
                broken=worker.name in broken,
                lost=(span * 0.3, span * 0.3 + random.choice((60.0, 600.0, 7200.0))) if worker.name in lost else None,
            )
            for worker in workers
        ),
        len(asked) - len(possible),
    )


def capacity(workers: Sequence[Worker]) -> float:
    """Work a second when all GPUs are used by jobs that did not choose them: the mean of their slowness counts."""
    flavors = [flavor for worker in workers for flavor in worker.flavors]
    amounts = [flavor.gpus or flavor.cpus for flavor in flavors]
    slowness = sum(amount / flavor.speed for amount, flavor in zip(amounts, flavors, strict=True))
    return sum(amounts) ** 2 / slowness


def _complete_job(random: Random, wanted: Wanted, workers: Sequence[Worker], job: Job) -> Job:
    """Its model, data and queue, if it has none; a job too large for every worker of that model takes any."""
    made = wanted.made
    queue = random.randrange(wanted.queues) if wanted.queues > 1 else 0
    ours = [worker for worker in workers if worker.queue == queue]
    job = attrs.evolve(job, queue=queue)
    if not job.model and job.size <= made.gang and random.random() >= made.any_model:
        flavors = [flavor for worker in ours for flavor in worker.flavors if flavor.holds(job.request)]
        if flavors:
            job = attrs.evolve(
                job, model=random.choices(flavors, [f.speed * (f.gpus or f.cpus) for f in flavors])[0].model
            )
    if not job.region and random.random() < made.with_data:
        regions = sorted({worker.region for worker in workers if worker.region}) or list(REGIONS)
        job = attrs.evolve(job, region=random.choice(regions))
    return attrs.evolve(job, staging=random.uniform(*made.staging)) if job.region else job


def _own_jobs(random: Random, made: Made, worker: Worker, sizes: Sequence[tuple[int, int]], span: float) -> list[Job]:
    """Of the same sizes and run times, at random moments."""
    flavor = worker.flavors[0]
    fitting = [request for request in sizes if flavor.holds(request)]
    wanted = made.own * (flavor.gpus or flavor.cpus) * span
    found: list[Job] = []
    while wanted > 0 and fitting:
        own = Job(
            f"{worker.name}-own-{len(found)}",
            random.uniform(0, span),
            worker.name,
            random.choice(fitting),
            fitted.run_time(random),
            model=flavor.model,
        )
        wanted -= work(own) / flavor.speed
        found.append(own)
    return sorted(found, key=lambda job: job.submit)
