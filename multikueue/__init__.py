"""A multi-cluster batch dispatcher: what Kueue's MultiKueue does, as a library.

Names, decisions, errors and seams are imported with the package; job kinds, and all that does I/O, on first use. So
`import multikueue` costs little: the client, for one, needs aiohttp.

The subpackages, bottom-up: `core`, `adapters`, `kube`, `runtime`, `webhook`, `sandbox`, `testing`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from multikueue import field_help as _field_help
from multikueue.core.config.access_providers import AccessProvider, PluginCommand, ProfileSettings
from multikueue.core.dispatchers.dispatcher import (
    AllAtOnce,
    Candidate,
    Candidates,
    Dispatcher,
    External,
    Facts,
    Figures,
    Nomination,
    NotTaken,
    Remembering,
    Waiting,
)
from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.effects import ConfigStatistics
from multikueue.core.inventory.settings import Adopt, PlacementSettings, Policy
from multikueue.core.machinery.action import Action
from multikueue.core.machinery.connection import Health
from multikueue.core.machinery.lease import LeaseSettings
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.core.workload.seen.snapshot import PlanSettings
from multikueue.errors import (
    AdapterError,
    AlreadyExists,
    ApiError,
    Cause,
    ClusterProfileError,
    Conflict,
    DeadlineExceeded,
    DependencyUnavailable,
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
    Unreadable,
)
from multikueue.protocols import (
    ApiClient,
    Caches,
    ControllerHook,
    Describer,
    Lister,
    ManagerHook,
    ObjectList,
    PlacementHook,
    Reader,
    Reconciler,
    RequestHook,
    ReviewHook,
    UnreadableObject,
    Watcher,
    WatchEvent,
    Writer,
)

if TYPE_CHECKING:  # the names of `_LAZY`
    from multikueue.adapters import (
        AVAILABLE,
        BUILTIN,
        AdapterRegistry,
        CopyRules,
        Delegation,
        HoldRules,
        JobKind,
        Membership,
        StatusRules,
        SyncRules,
    )
    from multikueue.kube import (
        AnswerLimits,
        ClientOptions,
        ClusterConfig,
        Informer,
        InformerStatus,
        KubeClient,
        load_incluster,
        load_kubeconfig,
        parse_worker_kubeconfig,
    )
    from multikueue.runtime.cluster_pool import Cluster, ClusterPool, Connect, health_of
    from multikueue.runtime.controller import Controller, KeyQueue
    from multikueue.runtime.election import Elector
    from multikueue.runtime.inventory.service import Inventory, PlacementController, PlacementOptions
    from multikueue.runtime.inventory_part import InventoryOptions
    from multikueue.runtime.manager import Manager, ManagerSettings
    from multikueue.runtime.parts import BringsPart, Part, PartHost, PartOf

    __version__: str

__all__ = [
    "AVAILABLE",
    "BUILTIN",
    "GVK",
    "JOB",
    "WORKLOAD",
    "AccessProvider",
    "Action",
    "AdapterError",
    "AdapterRegistry",
    "Adopt",
    "AllAtOnce",
    "AlreadyExists",
    "AnswerLimits",
    "ApiClient",
    "ApiError",
    "BringsPart",
    "Caches",
    "Candidate",
    "Candidates",
    "Cause",
    "ClientOptions",
    "Cluster",
    "ClusterConfig",
    "ClusterName",
    "ClusterPool",
    "ClusterProfileError",
    "ConfigStatistics",
    "Conflict",
    "Connect",
    "Controller",
    "ControllerHook",
    "CopyRules",
    "DeadlineExceeded",
    "Delegation",
    "DependencyUnavailable",
    "Describer",
    "Dispatcher",
    "Elector",
    "Expired",
    "External",
    "Facts",
    "Figures",
    "Forbidden",
    "Health",
    "HoldRules",
    "Incremental",
    "Informer",
    "InformerStatus",
    "Invalid",
    "Inventory",
    "InventoryOptions",
    "JobKind",
    "Json",
    "KeyQueue",
    "KubeClient",
    "KubeconfigError",
    "LeaseSettings",
    "Lister",
    "Manager",
    "ManagerHook",
    "ManagerSettings",
    "Membership",
    "MultiKueueError",
    "Nomination",
    "NotFound",
    "NotSent",
    "NotTaken",
    "ObjectKey",
    "ObjectList",
    "Part",
    "PartHost",
    "PartOf",
    "PlacementController",
    "PlacementHook",
    "PlacementOptions",
    "PlacementSettings",
    "PlanSettings",
    "PluginCommand",
    "Policy",
    "ProfileSettings",
    "Reader",
    "Reason",
    "Reconciler",
    "Remembering",
    "RequestHook",
    "Resource",
    "ReviewHook",
    "RuleError",
    "SandboxError",
    "ServerFault",
    "SettingsError",
    "StatusRules",
    "SyncRules",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "Unreadable",
    "UnreadableObject",
    "Waiting",
    "WatchEvent",
    "Watcher",
    "Writer",
    "health_of",
    "load_incluster",
    "load_kubeconfig",
    "parse_worker_kubeconfig",
]

_LAZY = {
    "multikueue.adapters": (
        "AVAILABLE",
        "BUILTIN",
        "AdapterRegistry",
        "CopyRules",
        "Delegation",
        "HoldRules",
        "JobKind",
        "Membership",
        "StatusRules",
        "SyncRules",
    ),
    "multikueue.kube": (
        "AnswerLimits",
        "ClientOptions",
        "ClusterConfig",
        "Informer",
        "InformerStatus",
        "KubeClient",
        "load_incluster",
        "load_kubeconfig",
        "parse_worker_kubeconfig",
    ),
    "multikueue.runtime.cluster_pool": ("Cluster", "ClusterPool", "Connect", "health_of"),
    "multikueue.runtime.controller": ("Controller", "KeyQueue"),
    "multikueue.runtime.election": ("Elector",),
    "multikueue.runtime.inventory_part": ("InventoryOptions",),
    "multikueue.runtime.manager": ("Manager", "ManagerSettings"),
    "multikueue.runtime.parts": ("BringsPart", "Part", "PartHost", "PartOf"),
    "multikueue.runtime.inventory.service": ("Inventory", "PlacementController", "PlacementOptions"),
}
"""The names that are imported when they are first used, by module."""

if not TYPE_CHECKING:  # a type checker would take any name for one of the module

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return importlib.import_module("importlib.metadata").version("multikueue")
        for module, names in _LAZY.items():
            if name in names:
                return _field_help.explained(getattr(importlib.import_module(module), name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _name in __all__:
    _field_help.explained(globals().get(_name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
