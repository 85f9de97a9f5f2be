"""The events of a watch: from the window of changes, so that a reader who is slow costs nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

import anyio

from multikueue.core.model.names import Json
from multikueued.logserver.answers import REMOTE_JOB, status
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.remoteapi.objects import API_VERSION

BOOKMARK: Final = 30.0
"""Seconds of silence after which a watch says which version it has reached."""


async def job_events(
    view: ManagerView, version: int | None, wanted: Callable[[Json], bool]
) -> AsyncIterator[tuple[str, Json]]:
    """Changes from a version on, itself included: one event of the manager may have changed several jobs."""
    place = view.dropped
    if version is None:
        place += len(view.changes)
        for job in [one for one in view.jobs.values() if wanted(one)]:
            yield "ADDED", job
    while True:
        changed = view.changed
        while place < view.dropped + len(view.changes):
            if place < view.dropped:
                yield "ERROR", status(410, "the watch is too slow: list again")
                return
            change = view.changes[place - view.dropped]
            place += 1
            if (version is None or change.version >= version) and wanted(change.job):
                yield change.type, change.job
        with anyio.move_on_after(BOOKMARK) as silence:
            await changed.wait()
        if silence.cancelled_caught:
            metadata = {"resourceVersion": str(view.version)}
            yield "BOOKMARK", {"apiVersion": API_VERSION, "kind": REMOTE_JOB.gvk.kind, "metadata": metadata}
