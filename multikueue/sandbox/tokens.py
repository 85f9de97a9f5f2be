"""The token controller of a sandbox cluster: Secrets of service accounts get a token that the API server knows.

As in a real cluster: a Secret of the type `kubernetes.io/service-account-token` is filled in, and its token is worth
nothing once the Secret is gone. What it may do is for RBAC, where the server enforces that.
"""

from __future__ import annotations

import base64
import secrets

import anyio.abc
import attrs

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig
from multikueue.errors import ApiError
from multikueue.kube.informers.informer import Informer
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.sandbox.apiserver.serving.server import ApiServer

_TYPE = "kubernetes.io/service-account-token"
_ACCOUNT = "kubernetes.io/service-account.name"
SERVICE_ACCOUNT = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts")

log = get_logger(__name__)


@attrs.define(eq=False)
class TokenController:
    """Fills in the token Secrets of one cluster."""

    server: ApiServer
    client: ApiClient
    _issued: dict[ObjectKey, str] = attrs.field(factory=dict, init=False, repr=False)
    _wanted: set[ObjectKey] = attrs.field(factory=set, init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled."""
        informer = Informer(self.client, SECRET, on_change=self._on_change)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(informer.run)
            await informer.wait_settled()
            task_status.started()
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                for key in sorted(self._wanted):
                    await self._fill(key, informer.get(key))

    def _on_change(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is None and self.server.tokens is not None:
            self.server.tokens.pop(self._issued.pop(key, ""), None)
        if new is not None and new.get("type") == _TYPE and not dig(new, "data", "token"):
            self._wanted.add(key)
            self._changed.set()

    async def _fill(self, key: ObjectKey, secret: Json | None) -> None:
        self._wanted.discard(key)
        if secret is None or self.server.tokens is None:
            return
        name, token = annotations_of(secret).get(_ACCOUNT, ""), secrets.token_urlsafe(24)
        data = {"token": token, "ca.crt": self.server.ca_pem or "", "namespace": key.namespace}
        encoded = {field: base64.b64encode(text.encode()).decode() for field, text in data.items()}
        try:
            await self.client.get(SERVICE_ACCOUNT, ObjectKey(key.namespace, name))
            await self.client.merge_patch(SECRET, key, {"data": encoded})
        except ApiError as error:  # without its account a Secret gets no token
            log.info("no token", secret=str(key), error=str(error))
            return
        self._issued[key] = token
        self.server.tokens[token] = f"system:serviceaccount:{key.namespace}:{name}"
