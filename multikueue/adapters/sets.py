"""`apps` StatefulSet and `leaderworkerset.x-k8s.io` LeaderWorkerSet. The whole set runs on a worker.

There is no `managedBy`: the pods are gated on the manager, and the manager's own controller goes on to write the
status, which counts gated pods.

All pods of a StatefulSet have one Workload. The worker's Kueue derives its name from the UID that the copy notes. Kueue
lets a StatefulSet be scaled to 0 and back only: its Workload loses its quota then, and the copy goes.

A LeaderWorkerSet has one Workload per replica, all of them for one copy. The copy names no Workload: the worker's Kueue
derives the names from the UID that it notes, so we do the same. It is removed with the last of its Workloads, and
follows the number of replicas: the pods of a new replica wait there, gated, for their Workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from multikueue.adapters.kind import JobKind
from multikueue.adapters.pod import with_origin_uid
from multikueue.adapters.rules import ALWAYS_DELEGATED, CopyRules, Membership, StatusRules, SyncRules
from multikueue.core.model.labels import ORIGIN_UID_ANNOTATION
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.model.workload_names import LONG, SHORT, workload_name

_GVK: Final = GVK("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
MAX_REPLICAS: Final = 1_000_000
"""Kueue's limit: it refuses to look after larger sets."""
MAX_NAMES: Final = 10_000
"""Replicas whose Workloads are told of each change of the copy; deriving their names takes 60 ms. The Workloads of
further ones find it by its own name. Whoever may scale a set could stop all other work otherwise."""


def replicas(job: Json) -> int:
    """How many replicas it has, and so how many Workloads."""
    count = dig(job, "spec", "replicas")
    return 1 if count is None else min(max(int(count), 0), MAX_REPLICAS)


def workload_names(copied: Json) -> Sequence[str]:
    """The Workloads that carry a copy, in both forms their names may have; none if it does not note its origin.

    At most those of `MAX_NAMES` replicas.
    """
    origin = annotations_of(copied).get(ORIGIN_UID_ANNOTATION)
    if not origin:
        return ()
    parts = [f"{copied['metadata']['name']}-{index}" for index in range(min(replicas(copied), MAX_NAMES))]
    return tuple(
        dict.fromkeys(workload_name(_GVK, part, origin, limit=limit) for part in parts for limit in (LONG, SHORT))
    )


STATEFUL_SET: Final = JobKind(
    resource=Resource(GVK("apps", "v1", "StatefulSet"), "statefulsets"),
    framework="statefulset",
    delegation=ALWAYS_DELEGATED,
    copies=CopyRules(suspend=None, prepared=with_origin_uid),
    status=StatusRules(rule=None),
    keeps_check_pending=True,
)
LEADER_WORKER_SET: Final = attrs.evolve(
    STATEFUL_SET,
    resource=Resource(_GVK, "leaderworkersets"),
    framework="leaderworkerset.x-k8s.io/leaderworkerset",
    sync=SyncRules(forwarded=(("spec", "replicas"),)),
    membership=Membership(carriers=workload_names, workloads=replicas),
)
KINDS = (STATEFUL_SET, LEADER_WORKER_SET)
