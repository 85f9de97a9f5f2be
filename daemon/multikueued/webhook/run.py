"""Runs the webhook in the daemon: every replica serves it, and the leader registers it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import structlog

from multikueue import AdapterRegistry, ApiClient, ObjectKey, ReviewHook
from multikueue.core.admission.registration import Registration
from multikueue.runtime.loop import utc_now
from multikueue.webhook.certificate_secret import CertificateSecret
from multikueue.webhook.certificates import pem
from multikueue.webhook.registrar import WebhookRegistrar
from multikueue.webhook.reviewer import Reviewer
from multikueue.webhook.rotation import WebhookCredentials
from multikueued.serving.certificate_files import CertificateFolder
from multikueued.serving.serving_tls import ServingTls
from multikueued.settings.config import Settings
from multikueued.webhook.server import reviewing

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class Webhook:
    """A webhook that is being served."""

    reviewer: Reviewer
    certificate: CertificateSecret | CertificateFolder
    registrar: WebhookRegistrar
    """Keeps it registered; runs while this process leads."""

    def why_not_ready(self) -> str | None:
        """What readiness waits for; None: ready."""
        if not self.reviewer.ready:
            return "webhook: the queues of the manager cluster are not all read yet"
        complaint = self.certificate.why_not_usable()
        return None if complaint is None else f"webhook: {complaint}"


@asynccontextmanager
async def webhook(
    settings: Settings, client: ApiClient, adapters: AdapterRegistry, hook: ReviewHook | None = None
) -> AsyncIterator[Webhook]:
    """Serve the webhook while the context lasts.

    Args:
        settings: of the daemon.
        client: of the manager cluster.
        adapters: the job kinds.
        hook: gets the outcome of every review.

    Raises:
        SettingsError: the port cannot be opened, or the certificate's folder cannot be used.
    """
    tls, where, holds = ServingTls(), registration(settings), settings.pods.check == "Ready"
    reviewer = Reviewer.build(
        client,
        adapters,
        settings.controller_name,
        hook=hook,
        holds=holds,
        origin=settings.origin,
        fraction=random.random,
    )
    certificate: CertificateSecret | CertificateFolder
    if settings.webhook.cert_dir:
        otherwise = "leave certDir out to have a certificate made and renewed"
        certificate = await CertificateFolder.open(settings.webhook.cert_dir, tls, "webhook.certDir", otherwise)
    else:
        certificate = _shared(settings, client, where, tls)
    kinds = [kind.resource for kind in adapters if kind.row.delegation.path or (holds and kind.row.holding)]
    async with reviewing(settings.webhook, tls, reviewer.review) as port:
        log.info("serving webhook", port=port, host=where.host, configuration=where.name)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reviewer.run)
            tasks.start_soon(certificate.run)
            yield Webhook(reviewer, certificate, WebhookRegistrar(client, where, kinds, certificate))
            tasks.cancel_scope.cancel()


def registration(settings: Settings) -> Registration:
    """How API servers reach the webhook."""
    chosen = settings.webhook
    return Registration(
        name=chosen.configuration_name,
        service=ObjectKey(chosen.service_namespace or settings.namespace, chosen.service_name),
        url=chosen.url,
        failure_policy=chosen.failure_policy,
    )


def _shared(settings: Settings, client: ApiClient, where: Registration, tls: ServingTls) -> CertificateSecret:
    def serve(credentials: WebhookCredentials) -> None:
        tls.load(pem(credentials.serving.certificate), credentials.serving.key_pem)

    key = ObjectKey(settings.namespace, settings.webhook.service_name)
    return CertificateSecret(client, key, where.host, utc_now, on_change=serve, fraction=random.random)
