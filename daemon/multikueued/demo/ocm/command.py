"""Runs the four stories: a hub in the sandbox, the daemon with its placement check, a picture of each story."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio
import attrs
import click
import orjson
from rich.console import Console

from multikueue.core.model.quantities import thousandths, written
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxOptions
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.ocm.kinds import MANAGER
from multikueue.sandbox.setting_up import set_up_queues
from multikueued.demo.jobs import ROOM, with_kinds
from multikueued.demo.kept_clusters import keep
from multikueued.demo.live_view import shown
from multikueued.demo.ocm.inventory import QueuesOnSpokes, set_up_hub
from multikueued.demo.ocm.pictures import print_story, story_item
from multikueued.demo.ocm.stories import STORIES, WORKERS
from multikueued.demo.ocm.story_player import Stories
from multikueued.demo.output import giving_up, print_problems, problems, summary
from multikueued.demo.run import Demo, with_short_patience
from multikueued.settings.config import Settings
from multikueued.settings.inventory import OcmSettings
from multikueued.settings.profiles import AccessProviderSettings, ClusterProfileSettings

TOTAL: Final = {name: written(name, WORKERS * thousandths(amount)) for name, amount in ROOM.items()}
"""Of all workers."""


def with_inventory(settings: Settings) -> Settings:
    """The daemon's settings for the stories: what a user of Open Cluster Management sets."""
    providers = (AccessProviderSettings(MANAGER, builtin="cp-creds"),)
    return attrs.evolve(
        with_short_patience(settings),
        ocm=OcmSettings(enabled=True),
        cluster_profile=ClusterProfileSettings(access_providers=providers),
    )


async def tell_stories(daemon: Settings, console: Console, options: Mapping[str, Any]) -> int:
    """Play the stories one after the other, and print a picture of each.

    Args:
        daemon: its settings.
        console: where the pictures go.
        options: those of the command line.

    Returns:
        The exit code: 0 if every job ran where its Placement wanted it, and nothing is left.
    """
    runner = RunnerOptions(mean=2.0, minimum=0.8, maximum=4.0)
    box = SandboxOptions(runner=runner, connect=False, ocm=True, port=options["port"])
    demo = Demo(Sandbox(WORKERS, seed=options["seed"], options=box, kinds=(BATCH_JOB,)))
    stories = Stories(demo)
    async with demo.sandbox:
        hub = demo.sandbox.manager.client("admin")
        await set_up_hub(hub, TOTAL)
        spokes = {name: worker.client("admin") for name, worker in demo.sandbox.workers.items()}
        for client in spokes.values():
            await set_up_queues(client, ROOM)
        async with demo.dispatched(with_kinds(with_inventory(daemon), demo.sandbox.kinds)) as tasks:
            tasks.start_soon(QueuesOnSpokes(hub, spokes).run)
            tasks.start_soon(stories.follow)
            in_time = await _tell(stories, options["timeout"], console)
            if not in_time:
                console.print(giving_up(demo.tally), style="red")
            wrong = [*problems(demo.tally), *stories.strays()]
            print_problems(console, wrong)
            if options["as_json"]:
                click.echo(orjson.dumps(outcome(stories)).decode())
            if options["keep_up"]:
                await keep(demo.sandbox, console)
    return 1 if wrong or demo.tally.leftovers or not in_time else 0


async def _tell(stories: Stories, timeout: float, console: Console) -> bool:
    """Play all stories; False if that takes too long."""
    workers = list(stories.demo.sandbox.workers)
    with anyio.move_on_after(timeout) as limit:
        for story in STORIES:
            async with shown(stories.demo, console):
                await stories.play(story)
            print_story(console, stories.played[story.name], stories.jobs(story), workers)
    return not limit.cancelled_caught


def outcome(stories: Stories) -> dict[str, Any]:
    """The object that `--json` prints: that of the other demos, and a part for each story."""
    demo = stories.demo
    shared = summary(demo.tally, list(demo.sandbox.workers), demo.elapsed)
    parts = [story_item(played, stories.jobs(played.story)) for played in stories.played.values()]
    return {**shared, "stories": parts, "strays": stories.strays()}
