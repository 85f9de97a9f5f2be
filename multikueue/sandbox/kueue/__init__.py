"""A small Kueue: quota, queues, admission checks and eviction, for one cluster of the sandbox.

What it writes is what a real Kueue writes: the same conditions, reasons and messages, under the same field managers.
What to do is decided by functions of objects (`deciding_workloads`, `deciding_jobs`, `scheduling`); the rest watches
and writes. It leaves out fair sharing, `borrowWithinCohort`, `blockAdmission`, nodes (a topology is one made-up node),
partial jobs and reclaimable pods. A bigger slice of an elastic job needs room beside the one it replaces.
"""

from __future__ import annotations

from multikueue.sandbox.kueue.applying import evict
from multikueue.sandbox.kueue.running import SmallKueue
from multikueue.sandbox.kueue.starting import suspended_when_queued

__all__ = ["SmallKueue", "evict", "suspended_when_queued"]
