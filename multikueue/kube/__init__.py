"""The only code that talks HTTP to API servers: clients, credentials and informers.

It raises the errors of `multikueue.errors` and no others. Only this layer imports aiohttp.
"""

from __future__ import annotations

from multikueue.core.model.writers import drop_managed_fields
from multikueue.kube.client import KubeClient
from multikueue.kube.client_options import ClientOptions
from multikueue.kube.http.response_limits import AnswerLimits
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.kube.kubeconfigs.config import ClusterConfig, load_incluster, load_kubeconfig
from multikueue.kube.kubeconfigs.worker_kubeconfig import parse_worker_kubeconfig
from multikueue.protocols import RequestHook

__all__ = [
    "AnswerLimits",
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
