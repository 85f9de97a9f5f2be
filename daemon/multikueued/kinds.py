"""The rows the daemon works with: chosen by the settings and by installed packages, completed by the manager."""

from __future__ import annotations

import itertools
from typing import Final

import anyio
import structlog

from multikueue.adapters import AdapterRegistry, JobKind
from multikueue.errors import ApiError
from multikueue.runtime.discovery import Discoverer, resolve
from multikueue.runtime.plugins import installed_kinds
from multikueued.config import Settings

RETRY: Final = 5.0
"""Seconds between two attempts to ask a manager that does not answer: nothing can be done before it does."""
PATIENCE: Final = 6
"""Attempts for a manager that answers, but has trouble with some kind: an API group of its own may be down for long,
and the others must not wait for it."""

log = structlog.get_logger(__name__)


def chosen_kinds(settings: Settings) -> list[JobKind]:
    """All rows, before any server is asked.

    Raises:
        AdapterError: an installed package's row cannot be used, or there are two for one kind.
    """
    kinds = [*settings.kinds.rows(), *installed_kinds()]
    AdapterRegistry(kinds)  # refuses two rows for one kind
    return kinds


async def known_kinds(kinds: list[JobKind], manager: Discoverer) -> AdapterRegistry:
    """The rows as the manager has their kinds; waits until it answers, and logs what it does not have."""
    for attempt in itertools.count(1):
        try:
            resolved = await resolve(kinds, manager, patient=attempt < PATIENCE)
        except ApiError as error:
            log.warning("the manager does not answer", error=str(error), retry_in=RETRY)
            await anyio.sleep(RETRY)
            continue
        for finding in resolved.findings:
            log.warning("job kind", setting=finding.setting, problem=finding.problem)
        log.info("job kinds", kinds=[str(kind.resource) for kind in resolved.kinds])
        return AdapterRegistry(resolved.kinds)
    raise AssertionError("the loop returns")
