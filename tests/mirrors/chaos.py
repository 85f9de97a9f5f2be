"""Mirrors in a fleet where anything may happen, from a seed, in virtual time: `python -m tests.mirrors.chaos`.

What must hold once nothing has happened for a while: no mirror without its pod, none of an attempt that is over and has
ended, none for a job that is gone, and every other pod of a run has one, unless somebody took it away. Once mirrors are
off there is none at all. It has seeds of its own: nothing that the simulation draws depends on it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from typing import Final

import anyio
import attrs
import click

from multikueue.core.model.kinds import JOB, POD, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, controller_of, is_terminating, labels_of, name_of, uid
from multikueue.core.model.workloads import cluster_name, owner
from multikueue.errors import ApiError
from multikueue.sandbox import RunnerOptions
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.testing import until
from multikueued.mirror_names import PROOF, WORKER, WORKER_POD, WORKER_POD_UID
from multikueued.mirrors.mirror import RUNS_POD, has_ended
from multikueued.mirrors.node import NODE
from tests.garbage import collect_rarely
from tests.mirrors.showing import OFF, Shown, prepared
from tests.runtime.fleet import Fleet
from tests.simulation.virtual_time import run_on_virtual_time

WORKERS: Final = ("worker1", "worker2")
TERMS: Final = 3
"""Processes, one after the other."""
DEEDS: Final = 8
"""Of each at most."""
QUIET: Final = 200.0
"""Seconds after which all is as it should be: a worker is found lost, and asked again once a minute."""
LOST: Final = 60.0
RUNS: Final = RunnerOptions(mean=60.0, minimum=5.0, maximum=300.0, trap=8.0, failure_rate=0.2)


@attrs.define(eq=False)
class Chaos:
    """What happens, and what somebody has done that explains why a pod is not shown."""

    shown: Shown
    dice: random.Random
    unshown: set[str] = attrs.field(factory=set)
    """UIDs of pods whose mirrors somebody has deleted, or that were refused."""
    jobs: int = 0

    @property
    def deeds(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        """What may happen."""
        return (
            self.submit,
            self.submit,
            self.delete_job,
            self.deactivate,
            self.delete_mirror,
            self.delete_pod,
            self.end_pod,
            self.end_pod,
            self.lose,
            self.heal,
            self.refuse,
            self.scribble,
            self.delete_node,
        )

    async def submit(self) -> None:
        """Somebody submits a job."""
        self.jobs += 1
        with suppress(ApiError):
            await self.shown.fleet.submit(f"job{self.jobs}", pods=self.dice.randint(1, 2))

    async def delete_job(self) -> None:
        """Somebody deletes a job, in one of three ways."""
        admin = self.shown.fleet.admin
        if (job := self._any((await admin.list(JOB)).items)) is not None:
            how = self.dice.choice(("Background", "Foreground", "Orphan"))
            await admin.delete(JOB, ObjectKey.of(job), propagation=how)  # type: ignore[arg-type]

    async def deactivate(self) -> None:
        """Somebody evicts a job, or lets it go on."""
        admin = self.shown.fleet.admin
        if (workload := self._any((await admin.list(WORKLOAD)).items)) is not None:
            active = {"spec": {"active": not workload["spec"].get("active", True)}}
            with suppress(ApiError):
                await admin.merge_patch(WORKLOAD, ObjectKey.of(workload), active)

    async def delete_mirror(self) -> None:
        """Somebody drains the node."""
        if (mirror := self._any(await self.shown.mirrors())) is not None:
            self.unshown.add(annotations_of(mirror).get(WORKER_POD_UID, ""))
            with suppress(ApiError):
                await self.shown.fleet.admin.delete(POD, ObjectKey.of(mirror), grace=self.dice.choice((None, 0, 600)))

    async def delete_pod(self) -> None:
        """A pod of a run is evicted on its worker."""
        worker = self.dice.choice(WORKERS)
        if (pod := self._any(await self.shown.pods(worker))) is not None:
            await DirectClient(self.shown.fleet.workers[worker]).delete(POD, ObjectKey.of(pod), grace=0)

    async def end_pod(self) -> None:
        """A pod ends, and somebody's finalizer holds it for good; its job may be evicted for that."""
        worker = self.dice.choice(WORKERS)
        there = DirectClient(self.shown.fleet.workers[worker])
        if (pod := self._any(await self.shown.pods(worker))) is not None:
            await there.merge_patch(POD, ObjectKey.of(pod), {"metadata": {"finalizers": ["example.com/hold"]}})
            await there.merge_patch(POD, ObjectKey.of(pod), {"status": {"phase": "Failed"}}, subresource="status")
            if self.dice.random() < 0.5:
                await self._evict((controller_of(pod) or {}).get("name", ""))

    async def _evict(self, job: str) -> None:
        admin = self.shown.fleet.admin
        for workload in (await admin.list(WORKLOAD)).items:
            if (of := owner(workload)) is not None and of.name == job:
                await admin.merge_patch(WORKLOAD, ObjectKey.of(workload), {"spec": {"active": False}})

    async def lose(self) -> None:
        """A worker is out of reach."""
        self.shown.fleet.workers[self.dice.choice(WORKERS)].faults.partition(self.dice.choice(("hang", "reset")))

    async def heal(self) -> None:
        """All are back, and nothing is refused."""
        self.shown.fleet.manager.faults.clear()
        for worker in self.shown.fleet.workers.values():
            worker.faults.heal()

    async def refuse(self) -> None:
        """A quota, or a policy, keeps mirrors out for a while; or writes fail."""
        verb, code = self.dice.choice(("create", "patch", "delete")), self.dice.choice((403, 422, 409, 500, 503))
        faults = self.shown.fleet.manager.faults
        faults.add(
            Refuse(code), on=Match(user="mirrors", verbs=(verb,), resource="pods"), times=self.dice.randint(1, 3)
        )
        if verb == "create" and code < 500:
            self.unshown |= {""}  # any may be

    async def scribble(self) -> None:
        """Somebody takes the proof of a mirror away, where no policy keeps it."""
        if (mirror := self._any(await self.shown.mirrors())) is not None:
            with suppress(ApiError):
                await self.shown.fleet.admin.merge_patch(
                    POD, ObjectKey.of(mirror), {"metadata": {"annotations": {PROOF: None}}}
                )

    async def delete_node(self) -> None:
        """Somebody deletes a Node."""
        if (node := self._any((await self.shown.fleet.admin.list(NODE)).items)) is not None:
            with suppress(ApiError):
                await self.shown.fleet.admin.delete(NODE, ObjectKey.of(node))

    def _any(self, objects: list[Json]) -> Json | None:
        return self.dice.choice(sorted(objects, key=lambda obj: str(ObjectKey.of(obj)))) if objects else None

    async def broken(self) -> list[str]:
        """What does not hold although nothing has happened for long."""
        admin = self.shown.fleet.admin
        jobs = {uid(job): job for job in (await admin.list(JOB)).items}
        placed = {
            (workload["metadata"]["namespace"], of.name): cluster_name(workload)
            for workload in (await admin.list(WORKLOAD)).items
            if (of := owner(workload)) is not None
        }
        pods = {
            (worker, uid(pod)): pod for worker in WORKERS for pod in await self.shown.pods(worker) if _is_of_a_run(pod)
        }
        mirrors = await self.shown.mirrors()
        broken = list(_too_many(mirrors, pods, jobs, placed))
        if "" not in self.unshown:
            broken += _too_few(mirrors, pods, jobs, placed, self.unshown)
        return broken


def _is_of_a_run(pod: Json) -> bool:
    return labels_of(pod).get(RUNS_POD) == "true"


Pods = dict[tuple[str, str], Json]
Placed = Mapping[tuple[str, str], str | None]


def _too_many(mirrors: list[Json], pods: Pods, jobs: dict[str, Json], placed: Placed) -> Iterator[str]:
    for mirror in mirrors:
        said = annotations_of(mirror)
        worker, name = said[WORKER], f"mirror {name_of(mirror)} of {said[WORKER_POD]} on {said[WORKER]}"
        pod, job = pods.get((worker, said[WORKER_POD_UID])), jobs.get((controller_of(mirror) or {}).get("uid", ""))
        if pod is None:
            yield f"{name}: its pod is gone"
        elif job is None:
            yield f"{name}: its job is gone"
        elif has_ended(pod) and placed.get(_key(job)) != worker:
            yield f"{name}: its attempt is over, and has ended"


def _too_few(
    mirrors: list[Json], pods: Pods, jobs: dict[str, Json], placed: Placed, unshown: set[str]
) -> Iterator[str]:
    shown = {(annotations_of(mirror)[WORKER], annotations_of(mirror)[WORKER_POD_UID]) for mirror in mirrors}
    on = {name: worker for (_, name), worker in placed.items()}
    live = {name_of(job) for job in jobs.values() if not is_terminating(job)}
    for (worker, pod_uid), pod in pods.items():
        if has_ended(pod) and is_terminating(pod):
            continue  # its job there is gone, with whose it was, and somebody's finalizer holds it
        job = (controller_of(pod) or {}).get("name", "")
        if job in live and on.get(job) == worker and pod_uid not in unshown and (worker, pod_uid) not in shown:
            yield f"pod {name_of(pod)} on {worker} is not shown"


def _key(job: Json) -> tuple[str, str]:
    return job["metadata"]["namespace"], name_of(job)


async def run(seed: int) -> list[str]:
    """What one seed breaks."""
    shown = await prepared(await Fleet.connected(*WORKERS, cpu=2))
    dice = random.Random(f"mirrors/{seed}")
    here, broken = Chaos(shown, dice), list[str]()
    async with shown.fleet.kueues(RUNS):
        for _ in range(TERMS):
            async with shown.fleet.running(shown.manager(lost_timeout=LOST)):
                for _ in range(dice.randint(2, DEEDS)):
                    with suppress(ApiError):  # as on a worker that nobody reaches
                        await dice.choice(here.deeds)()
                    await anyio.sleep(dice.choice((0.0, dice.uniform(0, 2), dice.uniform(0, 90))))
                if dice.random() < 0.6:  # else the next one begins in the midst of it
                    await here.heal()
                    await anyio.sleep(QUIET)
                    broken += await here.broken()
        await here.heal()
        async with shown.fleet.running(shown.manager(OFF)):
            with suppress(AssertionError):
                await until(lambda: _is_over(shown), QUIET)
            broken += [f"mirror {name_of(mirror)} is left, though mirrors are off" for mirror in await shown.mirrors()]
            broken += [f"Node {name} is left, though mirrors are off" for name in await shown.nodes()]
    return broken


async def _is_over(shown: Shown) -> bool:
    return not await shown.mirrors() and not await shown.nodes()


def broken_by(seed: int) -> list[str]:
    """The same, on virtual time."""
    return run_on_virtual_time(run, seed)


@click.command()
@click.option("--seeds", default=100, help="How many.")
@click.option("--first-seed", default=0)
def main(seeds: int, first_seed: int) -> None:
    """Run seeds, and tell which break what."""
    failed, drawn = 0, range(first_seed, first_seed + seeds)
    with ProcessPoolExecutor(initializer=collect_rarely) as pool:
        for seed, broken in zip(drawn, pool.map(broken_by, drawn, chunksize=2), strict=True):
            if broken:
                failed += 1
                click.echo(f"seed {seed}: {'; '.join(broken)}")
    click.echo(f"{seeds} seeds, {failed} broken")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
