"""Job kinds as rows of data, and the registry that finds them.

A row says what is special about a kind: where `managedBy` is, what a copy leaves out, what the manager's job shows of
its copy. What all kinds share is in `JobKind` once. Nothing here does I/O; rows may only import `multikueue.core`.
"""

from __future__ import annotations

from multikueue.adapters import appwrapper, job, pod, ray, sets, training
from multikueue.adapters.kind import JobKind
from multikueue.adapters.registry import AdapterRegistry
from multikueue.adapters.rules import CopyRules, Delegation, Membership, StatusRules, SyncRules
from multikueue.adapters.safe import SafeAdapter

BUILTIN: tuple[JobKind, ...] = job.KINDS
"""The rows in use by default: the kind every cluster serves."""

AVAILABLE: tuple[JobKind, ...] = tuple(
    kind for module in (job, training, ray, appwrapper, pod, sets) for kind in module.KINDS
)
"""All rows that come with the library, for a registry of your own: every kind in it is watched on every worker."""

__all__ = [
    "AVAILABLE",
    "BUILTIN",
    "AdapterRegistry",
    "CopyRules",
    "Delegation",
    "JobKind",
    "Membership",
    "SafeAdapter",
    "StatusRules",
    "SyncRules",
]
