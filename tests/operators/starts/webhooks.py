"""Registers a controller's webhooks as its project does, at a port of this machine instead of a Service."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Any, Final

import yaml

from multikueue.core.model.names import Json
from tests.controlplane.interface import Cluster
from tests.controlplane.polling import poll_until
from tests.operators.table import Operator

_API: Final = "/apis/admissionregistration.k8s.io/v1"
_SECONDS: Final = 60.0
_PLURALS: Final = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_PATCHES: Final = {
    "MutatingWebhookConfiguration": "mutating-patch.yaml",
    "ValidatingWebhookConfiguration": "validating-patch.yaml",
}


def registered(operator: Operator, url: str, authority: bytes, only: Collection[str] = ()) -> tuple[Json, ...]:
    """The configurations of `manifests.yaml`, with the project's patches, that have the API server ask `url`.

    Args:
        operator: whose they are.
        url: where its webhooks are served.
        authority: who has signed the server's certificate.
        only: the kinds to ask for; all if not told.
    """
    text = (operator.folder / "manifests.yaml").read_text()
    patched = [_patched(operator, obj) for obj in yaml.safe_load_all(text) if obj and obj["kind"] in _PLURALS]
    bundle = base64.b64encode(authority).decode()
    for obj in patched:
        obj["metadata"]["name"] = f"{operator.name}-{obj['metadata']['name']}"
        obj["webhooks"] = [
            webhook
            for webhook in obj["webhooks"]
            if not only or webhook["clientConfig"]["service"]["path"].endswith(tuple(only))
        ]
        for webhook in obj["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"{url}{path}", "caBundle": bundle}
    return tuple(patched)


async def in_force(cluster: Cluster, configurations: tuple[Json, ...]) -> None:
    """Wait until each says what it is asked about: some controllers write that themselves.

    Raises:
        NotReady: one does not say so in time.
    """

    async def have_rules() -> bool:
        current = [await cluster.admin.get(_path(obj)) for obj in configurations]
        return all(webhook.get("rules") for obj in current for webhook in obj["webhooks"])

    await poll_until(have_rules, seconds=_SECONDS, otherwise="A webhook's configuration has no rules.")


async def withdrawn(cluster: Cluster, configurations: tuple[Json, ...]) -> None:
    """Have the API server ask nobody any more: it would refuse every object of whom nobody answers."""
    for obj in configurations:
        await cluster.admin.send("DELETE", _path(obj))


def _path(obj: Json) -> str:
    return f"{_API}/{_PLURALS[obj['kind']]}/{obj['metadata']['name']}"


def _patched(operator: Operator, obj: Json) -> Json:
    """The object with its JSON patch, which replaces entries of a list."""
    file = operator.folder / _PATCHES[obj["kind"]]
    for step in yaml.safe_load(file.read_text()) if file.exists() else ():
        *path, last = step["path"].strip("/").split("/")
        holder: Any = obj
        for part in path:
            holder = holder[part]
        assert step["op"] == "replace", f"{file} has a step that is not known here: {step['op']}"
        holder[int(last)] = step["value"]
    return obj
