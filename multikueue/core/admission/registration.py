"""The MutatingWebhookConfiguration that has API servers ask us about new jobs."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable
from typing import Final, Literal
from urllib.parse import urlsplit

import attrs

from multikueue.core.model.kinds import MUTATING_WEBHOOKS
from multikueue.core.model.labels import QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey, Resource

PATH: Final = "/managed-by"
"""Where reviews are sent."""
SERVICE_PORT: Final = 443
"""Of the Service in front of the replicas."""
WEBHOOK: Final = "managed-by.multikueue.dev"
TIMEOUT: Final = 3
"""Seconds an API server waits for an answer; it takes milliseconds. Whoever creates a job waits as long."""

FailurePolicy = Literal["Ignore", "Fail"]


@attrs.frozen
class Registration:
    """How API servers reach the webhook, and what they do without it."""

    name: str
    """The configuration's. Webhooks are asked in the order of these names, and ours must come after Kueue's
    `kueue-mutating-webhook-configuration`, which gives jobs without a queue their namespace's `default` one."""
    service: ObjectKey
    """The Service in front of the replicas."""
    url: str = ""
    """Instead of the Service: `https://HOST:PORT`, for a daemon outside of the cluster."""
    failure_policy: FailurePolicy = "Ignore"
    """`Ignore`: nobody's jobs depend on us, and one that is created without being asked about is Rejected. `Fail`: it
    is refused at once."""

    @property
    def host(self) -> str:
        """The name, or address, under which API servers know us: a certificate must be for it."""
        if not self.url:
            return f"{self.service.name}.{self.service.namespace}.svc"
        return urlsplit(self.url).hostname or ""

    def configuration(self, kinds: Iterable[Resource], authorities: str = "") -> Json:
        """The object to apply.

        Args:
            kinds: the job kinds to be asked about.
            authorities: the certificates API servers must trust, as PEM; empty: it is left to others to say.
        """
        client: Json = {"url": self.url.rstrip("/") + PATH} if self.url else {"service": self._service()}
        if authorities:
            client["caBundle"] = base64.b64encode(authorities.encode()).decode()
        webhook: Json = {
            "name": WEBHOOK,
            "clientConfig": client,
            "rules": _rules(kinds),
            # All others are not Kueue's: they are created without asking us, whatever our state.
            "objectSelector": {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "Exists"}]},
            "failurePolicy": self.failure_policy,
            "reinvocationPolicy": "IfNeeded",  # another webhook may move a job to another queue
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT,
            "admissionReviewVersions": ["v1"],
        }
        gvk = MUTATING_WEBHOOKS.gvk
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": self.name}, "webhooks": [webhook]}

    def _service(self) -> Json:
        return {"namespace": self.service.namespace, "name": self.service.name, "port": SERVICE_PORT, "path": PATH}


def _rules(kinds: Iterable[Resource]) -> list[Json]:
    by_version = itertools.groupby(sorted(kinds), lambda resource: (resource.gvk.group, resource.gvk.version))
    return [
        {
            "apiGroups": [group],
            "apiVersions": [served],
            "resources": [resource.plural for resource in resources],
            "operations": ["CREATE"],
            "scope": "Namespaced",
        }
        for (group, served), resources in by_version
    ]
