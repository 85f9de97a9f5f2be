"""Fleets whose daemon chooses: its profile, what jobs ask for, and what the workers say and are.

Everything is drawn by dice of its own, in runs that are unusual and have no hub.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import anyio
import attrs

from multikueue.core.dispatchers.scored.job_annotations import (
    FLAVORS,
    NAMES,
    SELECTOR,
    TAINTS,
    TOGETHER,
    TOLERATIONS,
)
from multikueue.core.dispatchers.scored.profile import Hold, Profile, Then, Weights
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    RESOURCE_FLAVOR,
    WORKLOAD,
)
from multikueue.core.model.labels import PROFILE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, name_of, uid
from multikueue.core.model.quantities import MILLI
from multikueue.core.model.workloads import CheckState, check, check_state, has_quota, is_evicted, is_finished
from multikueue.errors import ApiError
from multikueue.protocols import Subresource
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, FLAVOR, admission_check
from tests.simulation.daemon import PREEMPTION_TIMEOUT
from tests.simulation.objects import objects
from tests.simulation.population import ELASTIC, Submission, draw_job
from tests.simulation.virtual_time import wall_clock
from tests.simulation.wishes import REGION, SPOT, Site, Wish, draw_site, draw_wish
from tests.simulation.world import SimCluster, World

SHARE: Final = 0.5
"""Of the unusual runs without a hub."""
NARROWING: Final = (NAMES, SELECTOR, TOGETHER, TOLERATIONS)
"""What may keep a job from a worker."""
SITE_CHECK: Final = "site-check"
"""An admission check of a worker's own."""


@attrs.define(eq=False)
class Choosing:
    """What is drawn for a run with the scored dispatcher."""

    seed: int
    profile: Profile
    named: bool
    """Whether the config names its profile; if not, it is the default one."""
    sites: dict[str, Site]
    shut: dict[str, float] = attrs.field(factory=dict)
    """Workers whose queue takes nothing, and since when."""
    opened: bool = False
    """Whether everything that keeps jobs away was taken back."""
    _wishes: dict[str, Wish] = attrs.field(factory=dict)
    _asked: dict[str, float] = attrs.field(factory=dict)
    """Since when a worker's own check is asked about a copy, by UID."""

    @classmethod
    def draw(cls, world: World) -> Choosing | None:
        """What is chosen by in this run; None: the daemon has another dispatcher."""
        drawn = random.Random(f"choosing/{world.seed}").random() < SHARE
        return cls.made(world) if world.unusual and world.inventory is None and drawn else None

    @classmethod
    def made(cls, world: World) -> Choosing:
        """In any case."""
        dice = random.Random(f"choosing/{world.seed}/profile")
        profile = Profile(
            candidates=dice.choice((1, 1, 2)),
            most=dice.choice((2, 3)),
            retry=timedelta(seconds=dice.choice((15, 20))),
            hold=dice.choice((*4 * (Hold.AUTO,), Hold.NEVER)),
            weights=Weights(*(float(dice.randint(0, 100)) for _ in attrs.fields(Weights))),
            give_up_after=dice.choice((None, None, timedelta(seconds=60), timedelta(seconds=150))),
            then=dice.choice((Then.REQUEUE, Then.REQUEUE, Then.DEACTIVATE)),
        )
        sites = {name: draw_site(dice, first=index == 0) for index, name in enumerate(sorted(world.workers))}
        return cls(world.seed, profile, dice.random() < 0.7, sites)

    @property
    def dispatcher(self) -> ScoredDispatcher:
        """The daemon's."""
        profiles = {"default": Profile(), "fleet": self.profile} if self.named else {"default": self.profile}
        return ScoredDispatcher(profiles, preemption_timeout=PREEMPTION_TIMEOUT)

    def wish_of(self, job: Json | None) -> Wish:
        """What the user of a Job asks for: until everything is opened, and if it was not made again without that."""
        wish = self._wishes.get(name_of(job), Wish()) if job is not None and not self.opened else Wish()
        return wish if wish.annotations.items() <= annotations_of(job or {}).items() else Wish()

    def site(self, worker: str) -> Site:
        """A worker as it is now."""
        site = self.sites[worker]
        kept = {name: value for name, value in site.annotations.items() if name not in (TAINTS, FLAVORS)}
        return attrs.evolve(site, annotations=kept, split=False) if self.opened else site

    def quota(self, worker: str, usual: int) -> Counter[str]:
        """The CPU that a worker has of each flavor, in thousandths: the second one of a split worker stays."""
        site = self.sites[worker]
        if not site.split:
            return Counter({FLAVOR: usual * MILLI})
        return Counter({FLAVOR: (usual if self.opened else 1) * MILLI, SPOT: MILLI})

    def wish(self, submission: Submission) -> None:
        """Have the user of a Job ask for something."""
        for job in submission.objects if submission.resource == JOB else ():
            name = job["metadata"]["name"]
            made = draw_wish(random.Random(f"wish/{self.seed}/{name}"), self.sites)
            self._wishes[name] = made
            job["metadata"].setdefault("annotations", {}).update(made.annotations)

    def burst(self, world: World) -> Iterator[tuple[Submission, float]]:
        """More jobs than there is room for, and when each comes."""
        dice = random.Random(f"burst/{self.seed}")
        for number in range(dice.randint(4, 5 * len(world.workers)) if world.population is not ELASTIC else 0):
            submission = draw_job(dice, 100 + number)
            for job in submission.objects:
                job["metadata"]["annotations"] = {DURATION_ANNOTATION: f"{dice.choice((20, 60, 150))}s"}
            yield submission, dice.choice((30.0, dice.uniform(0, 300)))

    async def set_up(self, world: World) -> None:
        """Write what the workers and the config say, and make the workers what they are."""
        for name in self.sites:
            await self._say(world, name)
            await _make(world.workers[name], self.sites[name], world.quota)
        if self.named:
            patch = {"metadata": {"annotations": {PROFILE_ANNOTATION: "fleet"}}}
            await world.manager.api.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), patch)

    def cluster_of(self, worker: str, made: Json) -> Json:
        """The MultiKueueCluster of a worker."""
        site, metadata = self.site(worker), made["metadata"]
        annotations = {**annotations_of(made), **site.annotations}
        return {**made, "metadata": {**metadata, "labels": {REGION: site.region}, "annotations": annotations}}

    async def open(self, world: World) -> None:
        """Take back everything that keeps jobs away: each can end now."""
        self.opened = True
        for job in list(objects(world.manager, JOB)):
            kept = dict.fromkeys(name for name in NARROWING if name in annotations_of(job))
            if kept:
                await _patch(world.manager, JOB, ObjectKey.of(job), {"metadata": {"annotations": kept}})
        for name, site in self.sites.items():
            if site.tainted or site.closed:
                gone = {"metadata": {"annotations": {TAINTS: None, FLAVORS: None}}}
                await _patch(world.manager, MULTIKUEUE_CLUSTER, ObjectKey("", name), gone)
            if site.split:
                await _patch(world.workers[name], CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), _quota(world.quota))

    async def run(self, world: World) -> None:
        """Answer the workers' own checks until cancelled."""
        while True:
            await anyio.sleep(2.0)
            for name, site in self.sites.items():
                for copy in list(objects(world.workers[name], WORKLOAD)) if site.checked else ():
                    await self._answer(world.workers[name], site, copy)

    async def _answer(self, worker: SimCluster, site: Site, copy: Json) -> None:
        entry, key = check(copy, SITE_CHECK), ObjectKey.of(copy)
        if entry is None or not has_quota(copy) or is_evicted(copy) or is_finished(copy):
            self._asked.pop(uid(copy), None)
        elif check_state(copy, SITE_CHECK) is CheckState.PENDING:
            since = self._asked.setdefault(uid(copy), anyio.current_time())
            if anyio.current_time() - since >= site.checked:
                now = timestamp(wall_clock(worker.skew)())
                ready = {"name": SITE_CHECK, "state": "Ready", "message": "", "lastTransitionTime": now}
                patch = {"status": {"admissionChecks": [{**entry, **ready}]}}
                await _patch(worker, WORKLOAD, key, patch, "status")

    async def _say(self, world: World, name: str) -> None:
        metadata = self.cluster_of(name, {"metadata": {}})["metadata"]
        await _patch(world.manager, MULTIKUEUE_CLUSTER, ObjectKey("", name), {"metadata": metadata})


async def _make(worker: SimCluster, site: Site, quota: int) -> None:
    queue = ObjectKey("", CLUSTER_QUEUE_NAME)
    if site.split:
        gvk = RESOURCE_FLAVOR.gvk
        flavor = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": SPOT}, "spec": {}}
        await worker.api.create(RESOURCE_FLAVOR, flavor)
        await worker.api.merge_patch(CLUSTER_QUEUE, queue, _quota(1))
    if site.checked:
        await worker.api.create(ADMISSION_CHECK, admission_check("example.com/site", SITE_CHECK))
        now = timestamp(wall_clock(worker.skew)())
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": now}
        status = {"status": {"conditions": [active]}}
        await worker.api.merge_patch(ADMISSION_CHECK, ObjectKey("", SITE_CHECK), status, subresource="status")
        named = {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": SITE_CHECK}]}}}
        await worker.api.merge_patch(CLUSTER_QUEUE, queue, named)


def _quota(usual: int) -> Json:
    """So many CPUs of the usual flavor, and one of another."""
    flavors = [
        {
            "name": flavor,
            "resources": [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "64Gi"}],
        }
        for flavor, cpu in ((FLAVOR, str(usual)), (SPOT, "1"))
    ]
    return {"spec": {"resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}]}}


async def _patch(
    cluster: SimCluster, resource: Resource, key: ObjectKey, patch: Json, subresource: Subresource = ""
) -> None:
    """It may be gone, or somebody else has just written it."""
    with contextlib.suppress(ApiError):
        await cluster.api.merge_patch(resource, key, patch, subresource=subresource)
