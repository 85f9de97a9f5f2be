"""The events of a watch: from the window of changes, so that a reader who is slow costs nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

import anyio

from multikueue.core.model.names import Json
from multikueued.api_answers import REMOTE_JOB
from multikueued.logserver.answering import status
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.remoteapi.objects import API_VERSION

BOOKMARK: Final = 30.0
"""Seconds of silence after which a watch says which version it has reached."""

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


async def job_events(
    view: ManagerView, version: int | None, wanted: Callable[[Json], bool], *, initial: bool = False
) -> AsyncIterator[tuple[str, Json]]:
    """Changes from a version on, itself included: one event of the manager may have changed several jobs.

    Args:
        view: of the manager.
        version: where to begin; None: with all jobs as they are.
        wanted: which jobs.
        initial: whether a bookmark tells the end of the jobs as they are, as clients ask for by `sendInitialEvents`.
    """
    place = view.dropped
    if version is None:
        place += len(view.changes)
        for job in [there for there in view.jobs.values() if wanted(there)]:
            yield "ADDED", job
        if initial:
            yield "BOOKMARK", _bookmark(view, {"annotations": {INITIAL_EVENTS_END: "true"}})
    last_sent = anyio.current_time()
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
                last_sent = anyio.current_time()
        if anyio.current_time() >= last_sent + BOOKMARK:
            yield "BOOKMARK", _bookmark(view, {})
            last_sent = anyio.current_time()
        with anyio.move_on_at(last_sent + BOOKMARK):
            await changed.wait()


def _bookmark(view: ManagerView, more: Json) -> Json:
    metadata = {"resourceVersion": str(view.version), **more}
    return {"apiVersion": API_VERSION, "kind": REMOTE_JOB.gvk.kind, "metadata": metadata}
