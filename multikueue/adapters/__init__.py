"""Job kinds as rows of data, and the registry that finds them.

A row says what is special about a kind: where `managedBy` is, what a copy leaves out, what the manager's job shows of
its copy. What all kinds share is in `JobKind` once. Nothing here does I/O; rows may only import `multikueue.core`.
"""

from __future__ import annotations

from multikueue.adapters.kind import JobKind
from multikueue.adapters.managed_by_support import ManagedBySupport
from multikueue.adapters.registry import AVAILABLE, BUILTIN, AdapterRegistry
from multikueue.adapters.rules import CopyRules, Delegation, HoldRules, Membership, StatusRules, SyncRules, TimeToLive
from multikueue.adapters.safe import SafeAdapter
from multikueue.adapters.templates import PodTemplates
from multikueue.adapters.words import Words
from multikueue.core.model.adapter import Outcome, Stamp

__all__ = [
    "AVAILABLE",
    "BUILTIN",
    "AdapterRegistry",
    "CopyRules",
    "Delegation",
    "HoldRules",
    "JobKind",
    "ManagedBySupport",
    "Membership",
    "Outcome",
    "PodTemplates",
    "SafeAdapter",
    "Stamp",
    "StatusRules",
    "SyncRules",
    "TimeToLive",
    "Words",
]
