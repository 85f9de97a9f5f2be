"""Puts the endpoint together: whom it believes, its certificate, its port."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from multikueue.core.model.names import ObjectKey
from multikueue.protocols import ApiClient
from multikueue.runtime.loop import utc_now
from multikueued.mirrors.endpoint.callers import KubeletTls, NodeRights
from multikueued.mirrors.endpoint.certificate import MirrorCertificate
from multikueued.mirrors.endpoint.places import Places
from multikueued.mirrors.endpoint.relay import Relay, Workers
from multikueued.mirrors.endpoint.serving import EndpointPort
from multikueued.mirrors.node import LOOPBACK
from multikueued.serving.caller_tls import follow_authorities
from multikueued.settings.config import Settings


async def run_endpoint(
    manager: ApiClient, workers: Workers, settings: Settings, on_open: Callable[[int], None] = lambda _: None
) -> None:
    """Answer for mirrors until cancelled; streams that are open then have some time to end.

    Args:
        manager: a client of the manager cluster.
        workers: how workers are reached, with accounts that may read logs there.
        settings: the daemon's; `mirrorPods.logs` is on.
        on_open: called with the port, once it is open.
    """
    chosen, namespace = settings.mirror_pods, str(settings.namespace)
    tls = KubeletTls()
    certificate = MirrorCertificate(
        manager,
        ObjectKey(namespace, settings.mirrors_certificate_secret),
        chosen.address or LOOPBACK,
        tls,
        utc_now,
        chosen.signer,
        settings.mirrors_certificate_is_brought,
    )
    key = ObjectKey(namespace, settings.mirrors_secret)
    relay = Relay(manager, key, NodeRights(manager.create), workers, Places(), chosen.exec)
    port = EndpointPort(relay, tls, "", chosen.port, on_open)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(certificate.run)
        tasks.start_soon(follow_authorities, manager.get, tls)
        tasks.start_soon(port.run)
