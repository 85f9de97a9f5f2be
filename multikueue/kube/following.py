"""Starting several caches at once."""

from __future__ import annotations

from collections.abc import Iterable

import anyio.abc

from multikueue.kube.informer import Informer


async def follow(caches: Iterable[Informer], tasks: anyio.abc.TaskGroup) -> None:
    """Run caches in a task group; returns once each has been complete."""
    started = tuple(caches)
    for cache in started:
        tasks.start_soon(cache.run)
    for cache in started:
        await cache.wait_synced()
