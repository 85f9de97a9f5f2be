"""Evict a Workload from outside, as Kueue would: for tests and for trying things out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Conflict
from multikueue.protocols import ApiClient
from multikueue.sandbox.kueue.applying import ADMISSION, admission_body
from multikueue.sandbox.kueue.statuses import PREEMPTED, evicted


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def evict(
    client: ApiClient,
    key: ObjectKey,
    *,
    reason: str = PREEMPTED,
    message: str = "Evicted by a tester",
    clock: Callable[[], datetime] = _utc_now,
) -> Json:
    """Evict a Workload; whoever runs its job stops it, and Kueue then gives the quota back.

    Args:
        client: of the cluster the Workload is on.
        key: of the Workload.
        reason: `Preempted`, `PodsReadyTimeout`, or another of Kueue's reasons.
        message: of the Evicted condition.
        clock: the wall clock that goes into the condition.

    Returns:
        The Workload as written.

    Raises:
        NotFound: there is no such Workload.
    """
    while True:
        workload = await client.get(WORKLOAD, key)
        body = admission_body(evicted(workload, reason, message, clock()))
        try:
            return await client.apply(WORKLOAD, body, field_manager=ADMISSION, subresource="status")
        except Conflict:
            continue  # somebody else wrote in between: read again
