"""The names Kueue gives to Workloads, for the few decisions that depend on them."""

from __future__ import annotations

import hashlib
from typing import Final

from multikueue.core.model.labels import RAY_CLUSTER_GENERATION_ANNOTATION
from multikueue.core.model.names import GVK, Json
from multikueue.core.model.objects import annotations_of, dig, uid

LONG, SHORT = 253, 63
"""How long names may be; the short form is Kueue's feature gate `ShortWorkloadNames`."""
_SUFFIX: Final = 5


def workload_name(gvk: GVK, name: str, owner_uid: str, extra: str = "", *, limit: int = LONG) -> str:
    """The Workload's name for a job.

    Args:
        gvk: the job's kind.
        name: the job's name.
        owner_uid: the job's UID.
        extra: for elastic jobs, what tells their slices apart.
        limit: `LONG` or `SHORT`.
    """
    lines = [gvk.kind, gvk.group, name, owner_uid, *([extra] if extra else [])]
    suffix = hashlib.sha1("\n".join(lines).encode(), usedforsecurity=False).hexdigest()[:_SUFFIX]
    return f"{f'{gvk.kind.lower()}-{name}'[: limit - _SUFFIX - 1]}-{suffix}"


def is_latest_slice(gvk: GVK, job: Json, workload: str) -> bool:
    """Whether an elastic job's slice of that name was made for the job as it is now, not for an earlier size."""
    extra = str(dig(job, "metadata", "generation") or 0)
    if cluster := annotations_of(job).get(RAY_CLUSTER_GENERATION_ANNOTATION):
        extra += f"_{cluster}"
    name = dig(job, "metadata", "name") or ""
    return workload in {workload_name(gvk, name, uid(job), extra, limit=limit) for limit in (LONG, SHORT)}
