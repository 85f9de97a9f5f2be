"""Plays the stories: creates what the administrator and the users would, and waits for what shall come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import anyio
import attrs

from multikueue import Informer, Json, KubeClient, ObjectKey
from multikueue.core.model.kinds import EVENT, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.objects import annotations_of, dig
from multikueue.protocols import ApiClient
from multikueue.sandbox.jobs import DURATION_ANNOTATION
from multikueue.sandbox.kinds import BATCH_JOB
from multikueued.demo.jobs import Submission, drawn_job
from multikueued.demo.ocm.inventory import detach, let_go, report_gpus, tell
from multikueued.demo.ocm.stories import LONG, Change, Story
from multikueued.demo.run import LOST_AFTER, Demo
from multikueued.demo.tally import JobRecord, WorkerStay

RUNS_FOR: Final = 1.0
"""Seconds for which jobs run before something changes."""
HELD_FOR: Final = 2 * LOST_AFTER.total_seconds()
"""Seconds for which a cluster that is detached is held: its jobs would be gone, if the clock ran."""
DETACHED: Final = "Detached"
"""The reason of the daemon's event."""


@attrs.define(eq=False)
class Played:
    """What was seen of a story. Times are seconds since the demo began."""

    story: Story
    since: float
    until: float | None = None
    changed: list[float] = attrs.field(factory=list)
    """When something changed."""
    gone: float | None = None
    """When the ManagedCluster that was detached was gone."""
    said: str = ""
    """What the daemon said of that."""
    listed: list[WorkerStay] = attrs.field(factory=list)
    """Which clusters the config listed, and when."""

    @property
    def clusters(self) -> list[str]:
        """What the config lists now."""
        return [stay.worker for stay in self.listed if stay.until is None]


@attrs.define(eq=False)
class Stories:
    """Plays one story after the other."""

    demo: Demo
    played: dict[str, Played] = attrs.field(factory=dict)
    """By name."""

    async def follow(self) -> None:
        """Note which clusters each config lists, and what the daemon says of detached ones, until cancelled."""
        async with self.demo.user() as client, anyio.create_task_group() as tasks:
            tasks.start_soon(Informer(client, EVENT, on_change=self._saw_event).run)
            await Informer(client, MULTIKUEUE_CONFIG, on_change=self._saw_config).run()

    async def play(self, story: Story) -> None:
        """Play one story; its jobs have ended when this returns."""
        played = self.played[story.name] = Played(story, self.demo.elapsed)
        async with self.demo.user() as client:
            await tell(client, story)
            await self._until(lambda: story.chosen <= self.demo.tally.reached.intersection(played.clusters))
            await self.demo.submit(submissions(story.jobs, story.name))
            for change in story.changes:
                await self._until(lambda: all(job.stays and job.ready for job in self.jobs(story)))
                await anyio.sleep(RUNS_FOR)
                await self._change(client, played, change)
            await self._until(lambda: self.demo.tally.all_ended)
            if story.detached:
                await remove_left(self.demo.sandbox.workers[story.detached].client("admin"))
        await self.demo.wait()
        played.until = self.demo.elapsed

    async def _change(self, client: KubeClient, played: Played, change: Change) -> None:
        """Have something change, and submit the jobs that come then."""
        played.changed.append(self.demo.elapsed)
        if change.gpus:
            self._say("the numbers of free GPUs change")
            await report_gpus(client, change.gpus)
        if change.detached:
            self._say(f"{change.detached} is detached")
            await detach(client, change.detached)
        await self._until(lambda: played.clusters == sorted(change.chosen))
        await self.demo.submit(submissions(change.jobs, played.story.name))
        if change.detached:
            await self._until(lambda: bool(played.said))
            await anyio.sleep(HELD_FOR)
            self._say(f"the ManagedCluster of {change.detached} is gone")
            played.gone = self.demo.elapsed
            await let_go(client, change.detached)

    def jobs(self, story: Story) -> list[JobRecord]:
        """What has been seen of the jobs of a story, in the order of their submission."""
        records = {seen.key.name: seen for seen in self.demo.tally.stories.values()}
        return [records[name] for name in story.names if name in records]

    def strays(self) -> list[str]:
        """The jobs that ran where their Placement did not want them, or have moved, one sentence each."""
        return [line for played in self.played.values() for line in strays(played, self.jobs(played.story))]

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self.demo.changed()

    def _saw_config(self, key: ObjectKey, _: Json | None, new: Json | None) -> None:
        played, now = self.played.get(key.name), self.demo.elapsed
        if played is None or played.until is not None:  # later stories change the scores again
            return
        listed: Sequence[str] = dig(new, "spec", "clusters") or []
        before = played.clusters
        for stay in played.listed:
            if stay.until is None and stay.worker not in listed:
                stay.until = now
        played.listed += [WorkerStay(name, now) for name in listed if name not in before]
        if sorted(before) != sorted(listed):
            self._say(f"{key.name} is {', '.join(listed) or 'nowhere'}")

    def _saw_event(self, _: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is None or new.get("reason") != DETACHED:
            return
        for played in self.played.values():
            if played.story.detached == dig(new, "regarding", "name"):
                played.said = str(new.get("note") or "")
                self._say(played.said)

    def _say(self, text: str) -> None:
        self.demo.tally.news.append((self.demo.elapsed, text))
        self.demo.noticed()


def submissions(jobs: Iterable[tuple[str, int]], queue: str) -> list[Submission]:
    """Jobs for a queue, by name and CPUs; one that is called long runs for longer."""
    submitted = []
    for name, cpus in jobs:
        job = drawn_job(BATCH_JOB, name, cpus, queue)
        if name.endswith("-long"):
            for obj in job.objects:
                obj["metadata"]["annotations"] = {**annotations_of(obj), DURATION_ANNOTATION: LONG}
        submitted.append(job)
    return submitted


async def remove_left(client: ApiClient) -> None:
    """What whoever has a detached cluster does there: nobody else can any more."""
    for resource in (BATCH_JOB.resource, WORKLOAD):
        for obj in (await client.list(resource, label_selector=ORIGIN_LABEL)).items:
            await client.delete(resource, ObjectKey.of(obj), propagation="Background")


def strays(played: Played, jobs: Iterable[JobRecord]) -> list[str]:
    """The jobs of a story that ran where its Placement did not want them, or have moved before they may."""
    return [reason for job in jobs if (reason := _astray(played, job))]


def _astray(played: Played, job: JobRecord) -> str:
    name, wanted = job.key.name, played.story.chosen_for(job.key.name)
    if played.story.detached and name in dict(played.story.jobs):
        first, *others = job.stays
        left = first.until if others else None
        if left is None or played.gone is None or left < played.gone:
            return f'Job "{name}" did not stay on {first.worker} until its ManagedCluster was gone, and move then'
        return ""
    if job.moves:
        return f'Job "{name}" was moved from {" to ".join(stay.worker for stay in job.stays)}'
    return "" if job.clusters <= wanted else f'Job "{name}" ran on {job.cluster}, which its Placement had not chosen'
