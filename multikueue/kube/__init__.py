"""The only code that talks HTTP to API servers: clients, credentials, and the caches that follow a kind.

Everything below raises `multikueue.errors` and nothing else; aiohttp and kubernetes-asyncio stay behind this door.
"""

from __future__ import annotations

from multikueue.kube.client import KubeClient
from multikueue.kube.config import ClusterConfig
from multikueue.kube.exchange import ClientOptions, RequestHook
from multikueue.kube.incluster import load_incluster
from multikueue.kube.informer import Informer, drop_managed_fields
from multikueue.kube.informer_status import InformerStatus
from multikueue.kube.kubeconfig import load_kubeconfig
from multikueue.kube.worker_kubeconfig import parse_worker_kubeconfig

__all__ = [
    "ClientOptions",
    "ClusterConfig",
    "Informer",
    "InformerStatus",
    "KubeClient",
    "RequestHook",
    "drop_managed_fields",
    "load_incluster",
    "load_kubeconfig",
    "parse_worker_kubeconfig",
]
