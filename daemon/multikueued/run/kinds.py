"""The job kinds as the manager serves them: it is asked at the start, and again for those that it lacks."""

from __future__ import annotations

import itertools
import math
from typing import Final

import anyio
import structlog

from multikueue import AdapterRegistry, ApiError, JobKind
from multikueue.protocols import Reader
from multikueue.runtime.caches.discovery import Discoverer, newly_served, resolve
from multikueue.runtime.caches.unregistered_kinds import RunningKinds, with_running_kinds

log = structlog.get_logger(__name__)

RETRY: Final = 5.0
"""Seconds between two attempts to ask a manager that does not answer."""
PATIENCE: Final = 6
"""Attempts for a manager that answers, but not about some kind: an aggregated API may be down for long, and the other
kinds must not wait for it."""
LOOK_AGAIN: Final = 60.0
"""Seconds after which a manager that does not serve a kind is asked about it again: its CRD may be installed later."""


async def known_kinds(kinds: list[JobKind], manager: Discoverer) -> AdapterRegistry:
    """The rows of all kinds, those that the manager lacks marked as `unserved`. It waits for the manager's answer."""
    for attempt in itertools.count(1):
        try:
            resolved = await resolve(kinds, manager, patient=attempt < PATIENCE)
            break
        except ApiError as error:
            log.warning("the manager does not answer", error=str(error), retry_in=RETRY)
            await anyio.sleep(RETRY)
    for finding in resolved.findings:
        log.warning("job kind", setting=finding.setting, problem=finding.problem)
    log.info("job kinds", kinds=[str(kind.resource) for kind in resolved.kinds if not kind.unserved])
    if lacking := [str(kind.resource) for kind in resolved.kinds if kind.unserved]:
        advice = f"they are not watched; the manager is asked again every {LOOK_AGAIN:.0f} s"
        log.info("job kinds that the manager does not serve", kinds=lacking, advice=advice)
    return AdapterRegistry(resolved.kinds)


async def until_more_served(adapters: AdapterRegistry, manager: Discoverer) -> None:
    """Wait until the manager serves one of the kinds that it lacked; if it lacked none, for ever."""
    rows = [adapter.row for adapter in adapters if adapter.row.unserved]
    while True:
        await anyio.sleep(LOOK_AGAIN if rows else math.inf)
        if newly := await newly_served(rows, manager):
            log.info("the manager serves more job kinds now", kinds=[str(kind.resource) for kind in newly])
            return


async def with_assigned_kinds(adapters: AdapterRegistry, manager: Reader) -> RunningKinds:
    """These rows, and those of kinds of which a worker still runs jobs; it logs which setting lacks each.

    It waits for the manager's answer.
    """
    while True:
        try:
            running = await with_running_kinds(adapters, manager)
            break
        except ApiError as error:
            log.warning("the manager does not give its Workloads", error=str(error), retry_in=RETRY)
            await anyio.sleep(RETRY)
    for gvk, waiting in sorted(running.waiting.items(), key=str):
        setting = adapters.missing_setting(gvk)
        lacks = "is not in the settings" if setting else "the manager does not serve"
        advice = f"{setting}; until then these run to their end, and new ones are rejected"
        log.warning(
            f"workers run jobs of a kind that {lacks}",
            kind=str(gvk),
            workloads=waiting,
            advice=advice if setting else "it is watched all the same",
        )
    return running
