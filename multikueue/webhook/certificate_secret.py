"""The Secret with the webhook's certificate: all replicas read it, and the leader writes it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import datetime

import anyio
import anyio.abc
import attrs

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, resource_version
from multikueue.core.model.writers import drop_managed_fields
from multikueue.errors import SettingsError
from multikueue.kube.informers.informer import Informer
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.webhook.certificates import is_for
from multikueue.webhook.errors import UnusableError
from multikueue.webhook.rotation import FIELDS, WebhookCredentials, is_usable, renewed

log = get_logger(__name__)


@attrs.define(eq=False)
class CertificateSecret:
    """The shared certificate, as the Secret has it. Implements `registrar.Authorities`."""

    client: ApiClient
    key: ObjectKey
    """The Secret."""
    host: str
    """What the certificate is for."""
    clock: Callable[[], datetime]
    on_change: Callable[[WebhookCredentials], None] = attrs.field(default=lambda _: None, kw_only=True)
    """Called with the credentials to serve from now on; raises `UnusableError` if it cannot serve them."""
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    """The source of jitter: numbers in [0, 1)."""
    credentials: WebhookCredentials | None = attrs.field(default=None, init=False)
    """The newest that can be used. They stay in use if the Secret is deleted."""
    changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    """Set with the next change of the Secret."""
    _secrets: MutationCache = attrs.field(init=False)

    @_secrets.default
    def _cache(self) -> MutationCache:
        return MutationCache(
            Informer(
                self.client,
                SECRET,
                namespace=self.key.namespace,
                transform=self._only_ours,
                on_change=self._changed,
                fraction=self.fraction,
            )
        )

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the Secret until cancelled."""
        task_status.started()
        await self._secrets.informer.run()

    async def renew(self, trusted: str) -> str:
        """See `registrar.Authorities`."""
        await self._secrets.informer.wait_synced()
        if self.credentials is not None and not is_for(self.credentials.serving.certificate, self.host):
            log.warning(
                "certificate for another host: if another daemon uses the Secret, set webhook.serviceName",
                secret=str(self.key),
                host=self.host,
            )
        wanted = renewed(self.credentials, self.host, self.clock(), trusted)
        secret = self._secrets.get(self.key)
        if wanted is None and self.credentials is not None and self._is_kept(self.credentials, secret):
            return self.credentials.bundle
        wanted = wanted or self.credentials
        assert wanted is not None, "without a certificate one is made"
        self._secrets.wrote(await self._write(wanted, secret))
        log.info("certificate renewed", secret=str(self.key), host=self.host, until=_ends(wanted))
        self._use(wanted)
        return wanted.bundle

    def why_not_usable(self) -> str | None:
        """What is wrong with the certificate; None if API servers can accept it."""
        if self.credentials is None:
            return f"there is no certificate in Secret {self.key} yet: the replica that leads makes it"
        if not is_usable(self.credentials, self.clock()):
            return f"the certificate in Secret {self.key} has expired on {_ends(self.credentials)}"
        return None

    async def _write(self, wanted: WebhookCredentials, existing: Json | None) -> Json:
        data = {field: base64.b64encode(text.encode()).decode() for field, text in wanted.written().items()}
        if existing is not None:
            precondition = {"resourceVersion": resource_version(existing)}
            return await self.client.merge_patch(SECRET, self.key, {"metadata": precondition, "data": data})
        metadata = {"namespace": self.key.namespace, "name": self.key.name}
        secret = {"apiVersion": SECRET.gvk.api_version, "kind": SECRET.gvk.kind, "metadata": metadata, "data": data}
        return await self.client.create(SECRET, secret)

    def _is_kept(self, credentials: WebhookCredentials, secret: Json | None) -> bool:
        """Whether the Secret holds the credentials in use: it may hold unusable ones."""
        kept = credentials_in(secret) if secret is not None else None
        return kept is not None and kept.written() == credentials.written()

    def _only_ours(self, secret: Json) -> Json | None:
        return drop_managed_fields(secret) if ObjectKey.of(secret) == self.key else None

    def _changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        del key, old
        credentials = None if new is None else credentials_in(new)
        if credentials is not None:
            self._use(credentials)
        self.changed.set()
        self.changed = anyio.Event()

    def _use(self, credentials: WebhookCredentials) -> None:
        """Serve the credentials from now on; if that fails, the ones before stay in use."""
        try:
            self.on_change(credentials)
        except (UnusableError, SettingsError) as error:  # the latter: it cannot be loaded, as on a disk that is full
            log.warning("certificate unusable", secret=str(self.key), error=str(error))
        else:
            self.credentials = credentials


def credentials_in(secret: Json) -> WebhookCredentials | None:
    """The credentials in a Secret; None if they cannot be used. The log says why, without the content."""
    data = {field: value for field, value in (dig(secret, "data") or {}).items() if field in FIELDS}
    if not data:
        return None
    try:
        return WebhookCredentials.read({field: base64.b64decode(value).decode() for field, value in data.items()})
    except (UnusableError, binascii.Error, UnicodeDecodeError) as error:
        why = error if isinstance(error, UnusableError) else "it is not text"
        log.warning("certificate unusable", secret=str(ObjectKey.of(secret)), error=str(why))
        return None


def _ends(credentials: WebhookCredentials) -> str:
    return credentials.serving.certificate.not_valid_after_utc.strftime("%Y-%m-%d")
