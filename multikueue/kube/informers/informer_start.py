"""Starts informers together."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.abc

from multikueue.kube.informers.informer import Informer


async def start_informers(informers: Sequence[Informer], tasks: anyio.abc.TaskGroup) -> None:
    """Run informers in a task group; return once all have synced."""
    for informer in informers:
        tasks.start_soon(informer.run)
    for informer in informers:
        await informer.wait_synced()
