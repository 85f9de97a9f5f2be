"""Job kinds as rows of data, and the registry that finds them.

A row says what is special about a kind: where `managedBy` is, what a copy leaves out, when status comes home. What
all kinds share is in `JobKind` once. Nothing here does I/O; rows may only import `multikueue.core`.
"""

from __future__ import annotations

from multikueue.adapters import (
    appwrapper,
    job,
    jobset,
    kubeflow,
    leaderworkerset,
    pod,
    ray,
    statefulset,
    trainer,
)
from multikueue.adapters.kind import JobKind
from multikueue.adapters.registry import AdapterRegistry

BUILTIN: tuple[JobKind, ...] = (*job.KINDS,)
"""The rows in use by default: the kind every cluster serves."""

AVAILABLE: tuple[JobKind, ...] = (
    *BUILTIN,
    *jobset.KINDS,
    *kubeflow.KINDS,
    *trainer.KINDS,
    *ray.KINDS,
    *appwrapper.KINDS,
    *pod.KINDS,
    *statefulset.KINDS,
    *leaderworkerset.KINDS,
)
"""All rows that come with the library, for a registry of your own: every kind in it is watched on every worker."""

__all__ = ["AVAILABLE", "BUILTIN", "AdapterRegistry", "JobKind"]
