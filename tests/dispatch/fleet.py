"""A load drawn from the fitted distributions, and the parts of it that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import fmean
from typing import Final

import attrs

from tests.dispatch import fitted
from tests.dispatch.load import Flavor, Job, Load, Worker, work

REGIONS: Final = ("region-a", "region-b", "region-c", "region-d")


SPEEDS: Final = {"a10": 0.8, "gpu-series-1": 0.8, "gpu-series-2": 1.0, "a800": 1.2, "a100": 1.2, "h800": 2.5}
"""Of a GPU, made up as the rest below: jobs run as long as in the first simulation."""


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
    """Share of the whole capacity that workers' own users ask for, all of it on every second worker."""
    spread: float = 0.6
    """Sigma of the workers' log-normal sizes."""
    gpus: float = 67.7
    """Mean of the workers' GPUs: what GPU hours over utilization and makespan are in the first simulation."""
    fill: float = 1.06
    """What the load is multiplied with, to wait as long as in the first simulation."""
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
    arrived = fitted.arrivals(random, wanted.jobs)
    jobs = [
        Job(f"job-{i}", arrival.submit, arrival.tenant, (arrival.gpus, 0), fitted.run_time(random))
        for i, arrival in enumerate(arrived)
    ]
    return complete(random, wanted, workers, jobs)


def draw_workers(random: Random, wanted: Wanted) -> list[Worker]:
    """Nodes of one model each; the models' shares are the trace's, for each queue."""
    made, drawn = wanted.made, list[Worker]()
    for queue in range(wanted.queues):
        models, sizes = _models(wanted.workers), [random.lognormvariate(0, made.spread) for _ in range(wanted.workers)]
        costs = [made.cost if i < made.dear * wanted.workers else 1.0 for i in range(wanted.workers)]
        regions = [REGIONS[i % len(REGIONS)] for i in range(wanted.workers)]
        for dealt in (models, costs, regions):
            random.shuffle(dealt)
        for i, (model, size) in enumerate(zip(models, sizes, strict=True)):
            like = fitted.MODELS[model]
            gpus = max(made.smallest, made.gpus * size / fmean(sizes))
            nodes = max(1, round(gpus / like.node))
            flavor = Flavor(model, nodes * like.node, nodes * like.cpus, SPEEDS[model])
            name = f"worker-{queue * wanted.workers + i:02}"
            drawn.append(Worker(name, (flavor,), regions[i], costs[i], queue=queue))
    return drawn


def _models(workers: int) -> list[str]:
    """Of so many workers: as close to the trace's shares of GPUs as whole workers can be."""
    gpus = sum(model.gpus for model in fitted.MODELS.values())
    shares = {name: workers * model.gpus / gpus for name, model in fitted.MODELS.items()}
    whole = {name: int(share) for name, share in shares.items()}
    for name in sorted(shares, key=lambda name: whole[name] - shares[name])[: workers - sum(whole.values())]:
        whole[name] += 1
    return [name for name, count in whole.items() for _ in range(count)]


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
    wanted = 2 * made.own * (flavor.gpus or flavor.cpus) * span
    drawn: list[Job] = []
    while wanted > 0 and fitting:
        own = Job(
            f"{worker.name}-own-{len(drawn)}",
            random.uniform(0, span),
            worker.name,
            random.choice(fitting),
            fitted.run_time(random),
            model=flavor.model,
        )
        wanted -= work(own) / flavor.speed
        drawn.append(own)
    return sorted(drawn, key=lambda job: job.submit)
