"""Plays the stories: creates what the administrator and the users would, and waits for what shall come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import anyio
import attrs

from multikueue import Informer, Json, ObjectKey
from multikueue.core.model.kinds import MULTIKUEUE_CONFIG
from multikueue.core.model.objects import annotations_of, dig
from multikueue.sandbox.jobs import DURATION_ANNOTATION
from multikueue.sandbox.kinds import BATCH_JOB
from multikueued.demo.jobs import Submission, drawn_job
from multikueued.demo.ocm.inventory import report_gpus, tell
from multikueued.demo.ocm.stories import LONG, Story
from multikueued.demo.run import Demo
from multikueued.demo.tally import JobRecord, WorkerStay

RUNS_FOR = 1.0
"""Seconds for which jobs run before the scores change."""


@attrs.define(eq=False)
class Played:
    """What was seen of a story. Times are seconds since the demo began."""

    story: Story
    since: float
    until: float | None = None
    changed: float | None = None
    """When the scores changed."""
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

    async def follow_configs(self) -> None:
        """Note which clusters each config lists, until cancelled."""
        async with self.demo.user() as client:
            await Informer(client, MULTIKUEUE_CONFIG, on_change=self._saw_config).run()

    async def play(self, story: Story) -> None:
        """Play one story; its jobs have ended when this returns."""
        played = self.played[story.name] = Played(story, self.demo.elapsed)
        async with self.demo.user() as client:
            await tell(client, story)
            await self._until(lambda: story.chosen <= self.demo.tally.reached.intersection(played.clusters))
            await self.demo.submit(submissions(story.jobs, story.name))
            if story.later is not None:
                await self._until(lambda: all(job.stays and job.ready for job in self.jobs(story)))
                await anyio.sleep(RUNS_FOR)
                played.changed = self.demo.elapsed
                self._say("the numbers of free GPUs change")
                await report_gpus(client, story.later.gpus)
                later = sorted(story.later.chosen)
                await self._until(lambda: played.clusters == later)
                await self.demo.submit(submissions(story.later.jobs, story.name))
        await self.demo.wait()
        played.until = self.demo.elapsed

    def jobs(self, story: Story) -> list[JobRecord]:
        """What has been seen of the jobs of a story, in the order of their submission."""
        names = [name for name, _ in (*story.jobs, *(story.later.jobs if story.later else ()))]
        found = {seen.key.name: seen for seen in self.demo.tally.stories.values()}
        return [found[name] for name in names if name in found]

    def strays(self) -> list[str]:
        """The jobs that ran where their Placement did not want them, or have moved, one sentence each."""
        return [line for played in self.played.values() for line in strays(played.story, self.jobs(played.story))]

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self.demo.changed()

    def _saw_config(self, key: ObjectKey, _: Json | None, new: Json | None) -> None:
        played, now = self.played.get(key.name), self.demo.elapsed
        if played is None:
            return
        listed: Sequence[str] = dig(new, "spec", "clusters") or []
        before = played.clusters
        for stay in played.listed:
            if stay.until is None and stay.worker not in listed:
                stay.until = now
        played.listed += [WorkerStay(name, now) for name in listed if name not in before]
        if sorted(before) != sorted(listed):
            self._say(f"{key.name} is {', '.join(listed) or 'nowhere'}")

    def _say(self, told: str) -> None:
        self.demo.tally.news.append((self.demo.elapsed, told))
        self.demo.noticed()


def submissions(jobs: Iterable[tuple[str, int]], queue: str) -> list[Submission]:
    """Jobs for a queue, by name and CPUs; one that is called long runs for longer."""
    found = []
    for name, cpus in jobs:
        job = drawn_job(BATCH_JOB, name, cpus, queue)
        if name.endswith("-long"):
            for obj in job.objects:
                obj["metadata"]["annotations"] = {**annotations_of(obj), DURATION_ANNOTATION: LONG}
        found.append(job)
    return found


def strays(story: Story, jobs: Iterable[JobRecord]) -> list[str]:
    """The jobs of a story that ran where its Placement did not want them, or have moved."""
    later = {name for name, _ in story.later.jobs} if story.later else set()
    found = []
    for job in jobs:
        wanted = story.later.chosen if story.later and job.key.name in later else story.chosen
        if job.moves:
            found.append(f'Job "{job.key.name}" was moved from {" to ".join(stay.worker for stay in job.stays)}')
        elif not job.clusters <= wanted:
            found.append(f'Job "{job.key.name}" ran on {job.cluster}, which its Placement had not chosen')
    return found
