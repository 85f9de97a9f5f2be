"""Runs the server: its certificate, whom it believes, and its port, until it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs
import structlog

from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import AnswerLimits, ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.response_limits import LISTS_UNLIMITED
from multikueue.runtime.loop import utc_now
from multikueued.logserver.access import AccessReviews, Slots
from multikueued.logserver.certificate import OwnCertificate
from multikueued.logserver.reading import Bounds
from multikueued.logserver.resolving import LocatorOfTenant, ReadableWorkers
from multikueued.logserver.rights import FrontProxyRights
from multikueued.logserver.serving import LogsServer, serving_logs
from multikueued.logserver.tls import FrontTls, follow_front_proxy
from multikueued.remoteapi.handlers import JobHandlers
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.reports.typenames import JobName, type_name
from multikueued.webhook.files import CertificateFolder

LIMITS: Final = AnswerLimits(list_bytes=32 << 20, list_pages=100, list_objects=10_000)
"""Of the Workloads of one namespace: a tenant may make as many as a quota of objects lets him."""
CLIENT: Final = ClientOptions(deadline=20.0, connection_wait=10.0, user_agent="multikueue-logs", limits=LIMITS)
"""For the manager."""

WHOLE: Final = attrs.evolve(CLIENT, limits=LISTS_UNLIMITED)
"""For its informers, which read the Workloads of all namespaces."""
WATCHES: Final = 256
"""Watches at a time; half of them of one namespace, or of all namespaces."""
WATCHES_PER_USER: Final = 16

log = structlog.get_logger(__name__)


@attrs.frozen
class Options:
    """How the server runs."""

    manager: ClusterConfig
    namespace: str
    """Of its own Secrets and its Service."""
    workers: Mapping[str, str]
    """Names of the Secrets with kubeconfigs, by worker."""
    findings: ObjectKey
    """The ConfigMap in which the daemon publishes what it sees of workers."""
    marks: ObjectKey
    """The Secret with the key of marks."""
    origin: str
    service: str
    secret: str
    """With the certificate that it makes."""
    cert_dir: str = ""
    """With a certificate that somebody else makes; empty: it makes one."""
    address: str = ""
    port: int = 8443
    streams: int = 32
    streams_per_user: int = 4
    bounds: Bounds = attrs.field(factory=Bounds)

    @property
    def host(self) -> str:
        """What API servers call it."""
        return f"{self.service}.{self.namespace}.svc"


async def serve(options: Options) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        SettingsError: the port cannot be opened, or the folder's certificate cannot be used.
        KubeconfigError: the manager's certificates cannot be used.
    """
    async with running(options) as port:
        log.info("serving logs", port=port, host=options.host, workers=sorted(options.workers))
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for received in signals:
                log.info("stopping", signal=received.name)
                return


@asynccontextmanager
async def running(options: Options) -> AsyncIterator[int]:
    """Serve while the context lasts; it yields the port. Raises as `serve`."""
    tls = FrontTls()
    async with (
        KubeClient(options.manager, name="manager", options=CLIENT) as client,
        KubeClient(options.manager, name="manager", options=WHOLE) as whole,
    ):
        certificate = await _certificate(options, client, tls)
        server = LogsServer(
            tls,
            AccessReviews(client.create),
            Slots(options.streams, options.streams_per_user),
            ReadableWorkers(client, options.namespace, options.workers),
            options.origin,
            options.marks,
            options.bounds,
        )
        view = ManagerView.over(whole, utc_now, options.findings)
        server.jobs = JobHandlers(
            view,
            client,
            FrontProxyRights(server.access, server.user),
            Slots(options.streams, options.streams_per_user, "lists"),
            Slots(WATCHES, WATCHES_PER_USER, "watches"),
            partial(_located, server),
            options.marks.namespace,
        )
        async with serving_logs(server, options.address, options.port) as port, anyio.create_task_group() as tasks:
            tasks.start_soon(certificate.run)
            tasks.start_soon(view.run)
            tasks.start_soon(follow_front_proxy, client.get, tls)
            yield port
            tasks.cancel_scope.cancel()


def _located(server: LogsServer, workload: Json) -> LocatorOfTenant:
    kind, _, name = type_name(workload).partition("/")
    namespace = ObjectKey.of(workload).namespace
    return LocatorOfTenant(server.workers, JobName(kind, name), namespace, server.origin, server.marks)


async def _certificate(options: Options, client: KubeClient, tls: FrontTls) -> CertificateFolder | OwnCertificate:
    if not options.cert_dir:
        key = ObjectKey(options.namespace, options.secret)
        return OwnCertificate(client, key, options.host, tls, utc_now)
    folder, otherwise = Path(options.cert_dir), "leave --cert-dir out to have a certificate made and renewed"
    return await CertificateFolder.open(folder, tls, utc_now, setting="--cert-dir", otherwise=otherwise)
