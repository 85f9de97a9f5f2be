"""How long pods may take to end."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

DEFAULT_GRACE: Final = 30
"""Kubernetes' own `terminationGracePeriodSeconds`."""
MAX_GRACE: Final = 366 * 24 * 3600
"""The most seconds of a grace period that count: an API server takes any whole number."""
MARGIN: Final = timedelta(seconds=60)
"""How much longer than that a run may take to end before somebody should look."""


def longest_grace(templates: Iterable[Json]) -> timedelta:
    """The longest grace period of pods of these templates; Kubernetes' default where one does not say."""
    graces = (dig(template, "spec", "terminationGracePeriodSeconds") for template in templates)
    seconds = max((grace if isinstance(grace, int) else DEFAULT_GRACE for grace in graces), default=DEFAULT_GRACE)
    return timedelta(seconds=min(seconds, MAX_GRACE))


def pod_grace(workload: Json) -> timedelta:
    """The longest grace period of a Workload's pods."""
    return longest_grace(pod_set.get("template") or {} for pod_set in dig(workload, "spec", "podSets") or [])


def ends_by(deleted: datetime, grace: timedelta) -> datetime:
    """When what was deleted then should have ended, and `MARGIN`."""
    try:
        return deleted + grace + MARGIN
    except OverflowError:  # whoever may write to a worker chooses the year
        return datetime.max.replace(tzinfo=UTC)
