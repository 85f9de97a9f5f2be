"""What Kueue calls a job's Workload, and how a job names the Workload it was built for."""

from __future__ import annotations

import hashlib

from multikueue.core.model.labels import PREBUILT_WORKLOAD, QUEUE_LABEL
from multikueue.core.model.names import GVK, Json
from multikueue.core.model.objects import annotations_of, labels_of

_MAX_NAME = 253
_HASH_LENGTH = 5


def workload_name(gvk: GVK, name: str, uid: str, extra: str = "") -> str:
    """Kueue's name of the Workload of a job: kind, job name and five digits of a hash that holds the job's UID."""
    lines = [gvk.kind, gvk.group, name, uid, *([extra] if extra else [])]
    digits = hashlib.sha1("\n".join(lines).encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    prefix = f"{gvk.kind.lower()}-{name}"[: _MAX_NAME - _HASH_LENGTH - 1]
    return f"{prefix}-{digits}"


def prebuilt_name(job: Json) -> str:
    """The Workload the job was built for; empty if Kueue makes one. The annotation goes before the label."""
    return annotations_of(job).get(PREBUILT_WORKLOAD) or labels_of(job).get(PREBUILT_WORKLOAD) or ""


def queue_name(job: Json) -> str:
    """The LocalQueue the job asks for; empty if Kueue has nothing to do with it."""
    return labels_of(job).get(QUEUE_LABEL) or ""
