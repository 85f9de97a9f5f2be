"""Job kinds as rows of data, and the registry that finds them.

A row says what is special about a kind: where `managedBy` is, what a copy leaves out, when status comes home. What
all kinds share is in `JobKind` once. Nothing here does I/O; rows may only import `multikueue.core`.
"""

from __future__ import annotations

from multikueue.adapters import job
from multikueue.adapters.kind import JobKind
from multikueue.adapters.registry import AdapterRegistry

BUILTIN: tuple[JobKind, ...] = (*job.KINDS,)
"""The rows that come with the library."""

__all__ = ["BUILTIN", "AdapterRegistry", "JobKind"]
