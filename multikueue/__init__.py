"""A multi-cluster batch dispatcher: what Kueue's MultiKueue does, as a library.

This package holds the words everything else speaks in: identities, seams and errors. The parts are in the subpackages,
bottom-up: `core`, `adapters`, `kube`, `runtime`, `sandbox`.
"""

from __future__ import annotations

import importlib.metadata

from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.errors import (
    AdapterError,
    AlreadyExists,
    ApiError,
    Conflict,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    KubeconfigError,
    MultiKueueError,
    NotFound,
    NotSent,
    RuleError,
    SandboxError,
    ServerFault,
    SettingsError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from multikueue.protocols import ApiClient, ObjectList, Reader, Watcher, WatchEvent, Writer

__all__ = [
    "GVK",
    "AdapterError",
    "AlreadyExists",
    "ApiClient",
    "ApiError",
    "ClusterName",
    "Conflict",
    "DeadlineExceeded",
    "Expired",
    "Forbidden",
    "Invalid",
    "Json",
    "KubeconfigError",
    "MultiKueueError",
    "NotFound",
    "NotSent",
    "ObjectKey",
    "ObjectList",
    "Reader",
    "Resource",
    "RuleError",
    "SandboxError",
    "ServerFault",
    "SettingsError",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "WatchEvent",
    "Watcher",
    "Writer",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # looked up when asked for: it reads files
        return importlib.metadata.version("multikueue")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
