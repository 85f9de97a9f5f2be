"""What the leader does beside dispatching: tasks of their own, whose requests have deadlines.

An unexpected exception in one of them is logged, and it begins again: none of them may end the dispatching.
"""

from __future__ import annotations

import random
import socket
from typing import Final

import anyio
import structlog

from multikueue import ApiClient
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.loop import Task
from multikueue.runtime.manager import Manager, utc_now
from multikueued.config import Settings
from multikueued.tokens.metrics import TokenMetrics
from multikueued.tokens.renewing import Renewer

AGAIN: Final = 60.0
"""Seconds after an unexpected exception."""

log = structlog.get_logger(__name__)


async def run_beside(settings: Settings, client: ApiClient, tokens: TokenMetrics, manager: Manager) -> None:
    """Work until cancelled, with the caches of a manager that runs."""
    events = EventRecorder(client, "multikueue-cluster", socket.gethostname(), utc_now)
    cluster = manager.cluster
    renewer = Renewer(
        cluster.clusters.values,
        cluster.secrets.get,
        client,
        str(settings.namespace),
        settings.bound_tokens.enabled,
        events.emit,
        utc_now,
        tokens,
        random.random,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(events.run)
        tasks.start_soon(unending, "tokens", renewer.run)


async def unending(name: str, task: Task) -> None:
    """Run a task until cancelled; again after `AGAIN` if it fails."""
    while True:
        try:
            await task()
        except Exception as error:  # never CancelledError
            log.error("unexpected exception", task=name, exc_info=error)
        await anyio.sleep(AGAIN)
