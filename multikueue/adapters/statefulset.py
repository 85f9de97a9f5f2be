"""`apps` StatefulSet. Its pods are gated on the manager, one Workload for all of them; the whole set runs on a worker.

There is no `managedBy`, so the manager's own controller goes on to write the status: it counts gated pods. The worker's
Kueue derives the Workload's name from the UID that the copy notes. Kueue lets a set be scaled to 0 and back only: its
Workload loses its quota then, and the copy goes.
"""

from __future__ import annotations

from multikueue.adapters.kind import JobKind
from multikueue.adapters.pod import with_origin_uid
from multikueue.core.model.names import GVK, Resource

KINDS = (
    JobKind(
        resource=Resource(GVK("apps", "v1", "StatefulSet"), "statefulsets"),
        framework="statefulset",
        managed_by=None,
        suspend=None,
        status=None,
        prepared=with_origin_uid,
        keeps_check_pending=True,
    ),
)
