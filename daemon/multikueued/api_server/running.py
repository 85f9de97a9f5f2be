"""Runs the server: its certificate, whom it believes, and its port, until it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

import anyio
import attrs
import orjson
import structlog
from aiohttp import web

from multikueue.core.model.kinds import CONFIG_MAP, LEASE
from multikueue.core.model.names import ObjectKey
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.kube.http.response_limits import LISTS_UNLIMITED
from multikueue.runtime.loop import utc_now
from multikueued.logserver.access import FrontProxyCallers, FrontTls, ReviewedRights, Slots
from multikueued.logserver.answering import fixed
from multikueued.logserver.certificate import OwnCertificate
from multikueued.logserver.reading import Bounds
from multikueued.logserver.resolving import CLIENT, LocatorOfTenant, ReadableWorkers
from multikueued.mirrors.endpoint.running import run_endpoint
from multikueued.page.hosted import PageOptions, serving_page
from multikueued.remoteapi.discovery import documents
from multikueued.remoteapi.handlers import JobHandlers
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.serving.caller_tls import follow_authorities
from multikueued.serving.certificate_files import CertificateFolder
from multikueued.serving.gate import Limits
from multikueued.serving.port import health_check, listening
from multikueued.settings.config import Settings

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
    lease: ObjectKey
    """The daemon's Lease, which says whether anybody dispatches."""
    marks: ObjectKey
    """The Secret with the key of marks."""
    origin: str
    service: str
    """In front of it; the Secret of the same name has the certificate that it makes."""
    cert_dir: str = ""
    """With a certificate that somebody else makes; empty: it makes one."""
    address: str = ""
    port: int = 8443
    streams: int = 32
    streams_per_user: int = 4
    bounds: Bounds = attrs.field(factory=Bounds)
    mirrors: Settings | None = None
    """The daemon's, with `mirrorPods`; None: nobody is answered for mirrors."""
    on_mirrors: Callable[[int], None] = lambda _: None
    """Called with the port on which it answers for mirrors."""
    page: PageOptions | None = None
    """Where the page is; None: there is none."""
    on_page: Callable[[int], None] = lambda _: None
    """Called with the page's port."""

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
        workers = ReadableWorkers(client, options.namespace, options.workers)
        lease = partial(client.get, LEASE, options.lease)
        findings, where = partial(client.get, CONFIG_MAP, options.findings), options.marks.namespace
        view = ManagerView(whole, utc_now, findings, where, read_lease=lease)
        jobs = JobHandlers(
            view,
            client,
            ReviewedRights(client.create, FrontProxyCallers(tls)),
            partial(LocatorOfTenant, workers, options.origin, options.marks),
            logs=Slots(options.streams, options.streams_per_user),
            lists=Slots(options.streams, options.streams_per_user, "lists"),
            watches=Slots(WATCHES, WATCHES_PER_USER, "watches"),
            bounds=options.bounds,
        )
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(serving_logs(tls, jobs, options.address, options.port))
            if options.page is not None:
                options.on_page(await stack.enter_async_context(serving_page(options.page, jobs, client.create)))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(certificate.run)
            tasks.start_soon(view.run)
            tasks.start_soon(follow_authorities, client.get, tls)
            if options.mirrors is not None:
                tasks.start_soon(run_endpoint, client, workers, options.mirrors, options.on_mirrors)
            yield port
            tasks.cancel_scope.cancel()


async def _certificate(options: Options, client: KubeClient, tls: FrontTls) -> CertificateFolder | OwnCertificate:
    if not options.cert_dir:
        key = ObjectKey(options.namespace, options.service)
        return OwnCertificate(client, key, options.host, tls, utc_now)
    otherwise = "leave --cert-dir out to have a certificate made and renewed"
    return await CertificateFolder.open(options.cert_dir, tls, "--cert-dir", otherwise)


def served(tls: FrontTls, jobs: JobHandlers) -> web.Application:
    """What is at which path."""
    application = web.Application()
    application.router.add_get("/healthz", health_check(lambda: None))
    application.router.add_get("/readyz", health_check(lambda: tls.why_not_ready))
    for path, document in documents().items():
        application.router.add_get(path, jobs.answering.handler(fixed(orjson.dumps(document))))
    jobs.add_to(application)
    return application


@asynccontextmanager
async def serving_logs(tls: FrontTls, jobs: JobHandlers, address: str, port: int) -> AsyncIterator[int]:
    """Serve while the context lasts; it yields the port.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    limits = Limits(connections=2 * jobs.logs.most + jobs.watches.most + 64)
    application = served(tls, jobs)
    async with listening(application, address, port, settings="", tls=tls, limits=limits, streams=True) as open_port:
        yield open_port
