"""Takes away what mirrors have left: with `mirrorPods` off nothing of them stays."""

from __future__ import annotations

from contextlib import suppress

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.errors import Conflict, Forbidden, NotFound
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueued.mirror_names import MIRROR, NODE_PREFIX, WORKER
from multikueued.mirrors.foreign import end_foreign
from multikueued.mirrors.node import NODE, is_ours
from multikueued.mirrors.nodes import SELECTOR

ADVICE = f"kubectl delete pods -A -l {MIRROR}; kubectl delete nodes -l {SELECTOR}"
"""What an administrator runs where the daemon may not."""

log = get_logger(__name__)


async def end_mirror(client: ApiClient, mirror: Json) -> None:
    """Delete a mirror at once, however somebody else has deleted it: with a grace, or to wait for what it owns.

    Raises:
        ApiError: the manager does not answer, or refuses.
    """
    with suppress(NotFound, Conflict):  # it is gone, or another pod has its name
        await client.delete(POD, ObjectKey.of(mirror), uid=uid(mirror), propagation="Background", grace=0)


async def take_away(client: ApiClient, origin: str) -> None:
    """Delete all mirrors, then their nodes; their Leases go with these. Pods of others there end first.

    Raises:
        ApiError: the manager cannot be read or written, for now.
    """
    try:
        for pod in (await client.list(POD, label_selector=f"{MIRROR}={origin}")).items:
            if (dig(pod, "spec", "nodeName") or "").startswith(NODE_PREFIX):
                await end_mirror(client, pod)
        for node in (await client.list(NODE, label_selector=SELECTOR)).items:
            if is_ours(node, worker := annotations_of(node).get(WORKER) or ""):
                await end_foreign(client, worker, origin)
                with suppress(NotFound, Conflict):
                    await client.delete(NODE, ObjectKey.of(node), uid=uid(node))
    except Forbidden as error:
        log.warning("mirrors of an earlier start may be left", error=str(error), advice=ADVICE)
