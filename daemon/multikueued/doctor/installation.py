"""How the daemon is installed: its settings and its service account, from the command line or from its Deployment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from multikueue.core.model.kinds import CONFIG_MAP, DEPLOYMENT
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, namespace_of
from multikueue.errors import Forbidden, SettingsError
from multikueued.diagnosis.facts import SETTINGS_FIELD, Installation
from multikueued.doctor.cluster_reader import Sight
from multikueued.rbac.objects import Account
from multikueued.settings.config import Settings
from multikueued.settings.file import load_settings, parse_settings

LABEL: Final = "app.kubernetes.io/name=multikueued"
"""What the chart's Deployment carries."""


@attrs.frozen
class Daemon:
    """What is known of the daemon."""

    settings: Settings
    settings_known: bool
    account: str
    """`system:serviceaccount:NAMESPACE:NAME`; empty: not known."""
    source: Path | ObjectKey | None = None
    """The settings' file or ConfigMap; None: the defaults are assumed."""
    installations: tuple[Installation, ...] = ()
    """Those of the chart, this one among them if it is one."""


async def find_daemon(sight: Sight, file: Path | None, account: Account | None, namespace: str) -> Daemon:
    """Find the daemon's settings and account; what is not found is noted.

    Args:
        sight: of the manager.
        file: the settings, if they are named.
        account: the service account, if it is named.
        namespace: of the Lease and the Secrets, for settings that name none.

    Raises:
        SettingsError: the file cannot be used.
    """
    settings = load_settings(file).settings if file is not None else None
    source: Path | ObjectKey | None = file
    deployments = sorted(await _deployments(sight), key=lambda each: namespace_of(each) != namespace)
    found = [
        await _settings_of(sight, deployment, noted=file is None and at == 0)
        for at, deployment in enumerate(deployments)
    ]
    deployment = deployments[0] if deployments else None
    if settings is None and found:
        settings, source = found[0]
    if settings is None:
        why = "no Deployment of the chart was found that names them" if deployment is None else "they cannot be read"
        sight.blind("settings: the defaults are assumed, kinds included", why, "name them with --config-file")
    known = settings is not None
    settings = settings or Settings()
    if file is None and not settings.namespace:
        settings = attrs.evolve(settings, namespace=namespace)
    account = account or _account_of(deployment or {})
    if account is None:
        unknown = "nobody knows its service account"
        sight.blind("the daemon's permissions on the manager", unknown, "name it with --service-account NAMESPACE/NAME")
    installed = [
        _installation(each, said) for each, (said, _) in zip(deployments, found, strict=True) if said is not None
    ]
    running = tuple(each for each in installed if each.replicas > 0)
    return Daemon(settings, known, account.user if account is not None else "", source, running)


async def _deployments(sight: Sight) -> list[Json]:
    """The daemons'; none if they may not be seen."""
    try:
        return (await sight.client.list(DEPLOYMENT, label_selector=LABEL)).items
    except Forbidden:
        return []


def _installation(deployment: Json, settings: Settings) -> Installation:
    key, replicas = ObjectKey.of(deployment), dig(deployment, "spec", "replicas")
    settings = attrs.evolve(settings, namespace=settings.namespace or key.namespace)
    return Installation(key, 1 if replicas is None else int(replicas), settings)


def _account_of(deployment: Json) -> Account | None:
    name = dig(deployment, "spec", "template", "spec", "serviceAccountName")
    return Account(namespace_of(deployment), str(name)) if name else None


async def _settings_of(sight: Sight, deployment: Json, *, noted: bool) -> tuple[Settings | None, ObjectKey | None]:
    volumes: Iterable[Json] = dig(deployment, "spec", "template", "spec", "volumes") or []
    names = [str(dig(volume, "configMap", "name")) for volume in volumes if dig(volume, "configMap", "name")]
    namespace = ObjectKey.of(deployment).namespace
    for name in names:
        try:
            config_map = await sight.client.get(CONFIG_MAP, ObjectKey(namespace, name))
            text = dig(config_map, "data", SETTINGS_FIELD)
            if text is not None:
                key = ObjectKey(namespace, name)
                return parse_settings(str(text), source=f"ConfigMap {key}"), key
        except (Forbidden, SettingsError) as error:
            if noted:
                sight.blind("the daemon's settings", str(error), "name them with --config-file")
    return None, None
