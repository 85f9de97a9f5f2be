"""From a MultiKueueCluster to its worker: the address and credentials that objects of the manager hold.

A command reads no settings of access providers: of a ClusterProfile the Secret that is for it is enough, by the rules
of the built-in providers. What an exec plugin gets, only the daemon has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Protocol, TypeAlias

import attrs

from multikueue.core.config.access_providers import AccessProvider, ProfileSettings
from multikueue.core.config.cluster_profiles import chosen_access, offered_clusters, profile_reference
from multikueue.core.config.profile_secrets import SYNCED_LABEL, is_for, secret_name, token_in
from multikueue.core.model.kinds import CLUSTER_PROFILE, SECRET
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of, name_of
from multikueue.errors import ClusterProfileError, Forbidden, KubeconfigError, MultiKueueError, NotFound
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient, parse_worker_kubeconfig
from multikueue.kube.http.requests import LogQuery
from multikueue.kube.kubeconfigs.profile_config import profile_config
from multikueue.kube.log_stream import LogLine
from multikueue.kube.served_kinds import ServedKind
from multikueue.protocols import ApiClient, Reader, read
from multikueued.settings.profiles import OCM_ACCOUNT


class ClusterClient(ApiClient, Protocol):
    """What the command line and the logs server ask of a cluster, the manager or a worker: a `KubeClient`."""

    async def discover(self, gvk: GVK) -> ServedKind | None:
        """See `KubeClient.discover`."""

    async def request_token(self, account: ObjectKey, spec: Json) -> Json:
        """See `KubeClient.request_token`."""

    async def part(self, resource: Resource, key: ObjectKey, name: str) -> Json:
        """See `KubeClient.part`."""

    async def pod_log(
        self,
        key: ObjectKey,
        query: LogQuery,
        on_line: Callable[[LogLine], None],
        *,
        on_open: Callable[[], Awaitable[None]],
        pause: Callable[[], Awaitable[None]],
    ) -> None:
        """See `KubeClient.pod_log`."""


Connect: TypeAlias = Callable[[str, ClusterConfig], AbstractAsyncContextManager[ClusterClient]]
"""Reaches a cluster, by its name and how it is reached."""


def over_http(options: ClientOptions) -> Connect:
    """Reaches clusters by connections of its own, with these options."""
    return lambda name, config: KubeClient(config, name=name, options=options)


class Lack(Enum):
    """Why nobody but the daemon, or nobody at all, reaches a worker."""

    ELSEWHERE = auto()
    """Its credentials are in no object of the manager: in a file beside the daemon, or an exec plugin makes them."""
    FORBIDDEN = auto()
    """Who asks may not read them."""
    MISSING = auto()
    """The Secret that is named does not exist."""
    UNUSABLE = auto()
    """They cannot be used."""


class NoAccess(MultiKueueError):
    """A worker cannot be reached with what the manager holds; the message says why, in a clause."""

    def __init__(self, lack: Lack, message: str) -> None:
        super().__init__(message)
        self.lack = lack


@attrs.frozen
class WorkerAccess:
    """How a worker is reached, and what says so."""

    config: ClusterConfig
    secret: Json
    """The Secret with the kubeconfig, or with the token of a profile."""
    profile: str = ""
    """Name of the ClusterProfile; empty: it is a kubeconfig."""


async def access_to(manager: Reader, cluster: Json, namespace: str) -> WorkerAccess:
    """How a worker is reached.

    Args:
        manager: its API server.
        cluster: the MultiKueueCluster.
        namespace: of the Secrets and ClusterProfiles.

    Raises:
        NoAccess: it cannot be.
        ApiError: the manager does not answer.
    """
    from multikueue.runtime.caches.manager_cluster import kubeconfig_path  # the whole runtime: most commands need none
    from multikueue.runtime.reconcilers.configuration import kubeconfig_in

    profile = profile_reference(cluster)
    if profile is not None:
        return await _by_profile(manager, name_of(cluster), ObjectKey(namespace, profile))
    worker, location = name_of(cluster), str(dig(cluster, "spec", "clusterSource", "kubeConfig", "location") or "")
    if kubeconfig_path(cluster) is not None or not location:
        where = location or "elsewhere"
        problem = f'the kubeconfig of worker cluster "{worker}" is in no Secret of the manager, but {where}'
        raise NoAccess(Lack.ELSEWHERE, problem)
    key = ObjectKey(namespace, location)
    try:
        secret = await manager.get(SECRET, key)
        return WorkerAccess(parse_worker_kubeconfig(kubeconfig_in(secret, location)), secret)
    except Forbidden as error:
        problem = f'you may not get the Secret "{key}", which has the credentials for worker cluster "{worker}"'
        raise NoAccess(Lack.FORBIDDEN, problem) from error
    except NotFound as error:
        problem = f'there is no Secret "{key}" with the kubeconfig of worker cluster "{worker}"'
        raise NoAccess(Lack.MISSING, problem) from error
    except KubeconfigError as error:
        problem = f'the kubeconfig of worker cluster "{worker}" cannot be used: {error}'
        raise NoAccess(Lack.UNUSABLE, problem) from error


async def _by_profile(manager: Reader, worker: str, key: ObjectKey) -> WorkerAccess:
    begin = f'worker cluster "{worker}" is reached by ClusterProfile "{key}"'
    try:
        access = await _access_by_profile(manager, key)
    except Forbidden as error:
        raise NoAccess(Lack.FORBIDDEN, f"{begin}, and you may not get that or its Secret") from error
    except KubeconfigError as error:
        raise NoAccess(Lack.UNUSABLE, f"{begin}: {error}") from error
    if access is None:
        raise NoAccess(Lack.ELSEWHERE, f"{begin}: only the daemon has its credentials")
    return access


async def _access_by_profile(manager: Reader, named: ObjectKey) -> WorkerAccess | None:
    """How the worker of a profile is reached; None: no Secret is for it.

    Raises:
        ClusterProfileError: there is no such profile, or what it says cannot be used.
    """
    profile = await read(manager, CLUSTER_PROFILE, named)
    for settings in _possible(profile, await _account(manager, named)):
        access = chosen_access(profile, named.name, settings)
        try:
            key = ObjectKey(named.namespace, secret_name(access))
        except ClusterProfileError:
            continue  # it does not say which cluster it is
        secret = await read(manager, SECRET, key)
        if profile is not None and secret is not None and is_for(secret, profile, access.provider):
            token = token_in(secret, str(key), profile, access.provider)
            return WorkerAccess(profile_config(access, settings, token), secret, named.name)
    return None


async def _account(manager: Reader, profile: ObjectKey) -> str:
    """The managed service account of a cluster whose token the manager holds; its usual name if that cannot be told.

    Raises:
        NoAccess: there are several: which of them the daemon uses stands in its settings alone.
    """
    try:
        secrets = (await manager.list(SECRET, namespace=profile.namespace, label_selector=SYNCED_LABEL)).items
    except Forbidden:
        return OCM_ACCOUNT
    begin = f"{profile.name}-"
    labels = {str(labels_of(secret).get(SYNCED_LABEL)) for secret in secrets}
    accounts = sorted(label.removeprefix(begin) for label in labels if label.startswith(begin))
    own = [account for account in accounts if f"{begin}{account}" in {name_of(secret) for secret in secrets}]
    if len(own) > 1:
        several = f"there are tokens of several accounts ({', '.join(own)}): only the daemon knows its own"
        raise NoAccess(Lack.ELSEWHERE, f'for ClusterProfile "{profile}" {several}')
    return own[0] if own else OCM_ACCOUNT


def _possible(profile: Json | None, account: str) -> Iterator[ProfileSettings]:
    """Each provider of a profile as each of those that are built in, with that account."""
    for name in offered_clusters(profile) if profile is not None else ("",):
        yield ProfileSettings((AccessProvider(name, builtin="cp-creds", managed_service_account=account),))
        yield ProfileSettings((AccessProvider(name, builtin="secretreader"),))
