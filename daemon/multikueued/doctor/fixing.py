"""Does what `doctor --fix` has shown, if that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from multikueue.errors import ApiError, Conflict, NotFound
from multikueued.doctor.cluster_reader import Client
from multikueued.reports.doctor.fixes import Fix
from multikueued.workers.places import tell


async def mend(client: Client, wanted: Sequence[Fix], agreed: Callable[[str], bool]) -> int:
    """Show what would be done, ask, and do it; returns how many changes were made.

    Args:
        client: of the manager.
        wanted: the changes.
        agreed: asks a question.
    """
    if not wanted:
        tell("Nothing that --fix may change: gates, RBAC, quotas, queues and configs are yours.")
        return 0
    for one in wanted:
        tell(f"would {one.told}")
    if not agreed(f"Do {'this' if len(wanted) == 1 else f'these {len(wanted)}'}?"):
        return 0
    return sum([await _done(client, one) for one in wanted])


async def _done(client: Client, fix: Fix) -> bool:
    """Make one change; what cannot be made is told, and the others go on."""
    try:
        if fix.patch is None:
            await client.delete(fix.resource, fix.key, uid=fix.uid, resource_version=fix.version)
        else:
            await client.merge_patch(fix.resource, fix.key, fix.patch)
    except (NotFound, Conflict):
        tell(f"not done, it was changed or deleted meanwhile: {fix.told}")
        return False
    except ApiError as error:
        tell(f"not done: {fix.told}: {error}")
        return False
    tell(f"done: {fix.told}")
    return True
