"""Tries the way that `kubectl logs` goes: the manager's API server asks our Node, and who answers for it answers."""

from __future__ import annotations

from multikueue.core.model.names import GVK, ObjectKey, Resource
from multikueue.core.model.objects import name_of
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueued.doctor.cluster_reader import Sight
from multikueued.doctor.facts import Facts, MirrorFacts, MirrorWay
from multikueued.mirror_names import node_name
from multikueued.mirrors.endpoint.routes import HEALTH, WELL
from multikueued.rbac.policies import POLICY, TAKING

NODE = Resource(GVK("", "v1", "Node"), "nodes", namespaced=False)
"""Of the manager."""


async def mirrors_of(sight: Sight, facts: Facts) -> MirrorFacts | None:
    """What is known of mirrors; None: they are off, or nobody knows.

    Raises:
        ApiError: the manager does not accept the credentials.
    """
    if not facts.settings_known or not facts.settings.mirror_pods.logs:
        return None
    key, what = ObjectKey("", facts.settings.mirrors_policy), "whether the policy that bounds mirrors is in force"
    there = [await sight.exists(kind, key, what) for kind in (POLICY, TAKING)]
    bounded = False if False in there else None if None in there else True
    return MirrorFacts(bounded, await _way(sight, facts))


async def _way(sight: Sight, facts: Facts) -> MirrorWay | None:
    """One Node stands for all: they have one address."""
    workers = sorted(map(name_of, facts.objects.clusters))
    if not workers:
        return None
    node = node_name(workers[0])
    try:
        answer = await sight.client.part(NODE, ObjectKey("", node), f"proxy{HEALTH}")
    except NotFound as error:  # of the Node, or of a path: by who answers there in our place
        return MirrorWay(node, is_missing=True) if error.reason else MirrorWay(node, str(error))
    except ApiError as error:
        if isinstance(error, Forbidden) and error.reason:  # the API server's own word, about whoever asks
            why = f"you may not get nodes/proxy of {node}"
            sight.blind("whether the manager's API server reaches who answers for mirrors", why)
            return None
        return MirrorWay(node, str(error))
    return MirrorWay(node, "" if answer == WELL else f"it answers {str(answer)[:200]}")
