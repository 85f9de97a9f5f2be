"""The objects that connect a worker, and the list of workers that it is put into. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from multikueue.core.model.labels import NAMESPACES_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of, name_of
from multikueue.errors import KubeconfigError
from multikueue.kube import parse_worker_kubeconfig
from multikueue.runtime.reconcilers.configuration import KUBECONFIG_KEY
from multikueued.exits import USAGE, CommandError
from multikueued.rbac.objects import Account, worker_objects
from multikueued.reports.worker_facts import secret_name
from multikueued.settings.config import Settings
from multikueued.tokens.bound import ACCOUNT, Bound
from multikueued.workers.kept import check_writable

MAX_CLUSTERS: Final = 20
"""Kueue's limit on `spec.clusters` of a MultiKueueConfig."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OURS: Final = {MANAGED_BY: "multikueue"}
"""On everything that `multikueue worker` makes: it changes and deletes nothing else."""
TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_ANNOTATION: Final = "kubernetes.io/service-account.name"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")


@attrs.frozen
class WorkerSide:
    """Where a worker keeps what the daemon uses there."""

    namespace: str = "kueue-system"
    account: str = "multikueue"
    """Of the service account, and of its role and binding."""

    @property
    def key(self) -> ObjectKey:
        """Of the service account."""
        return ObjectKey(self.namespace, self.account)

    @property
    def subject(self) -> Account:
        """The service account, to be bound."""
        return Account(self.namespace, self.account)

    @property
    def role(self) -> str:
        """The ClusterRole and its binding. Two accounts on one worker have two."""
        return f"{self.namespace}-{self.account}"

    @property
    def token(self) -> str:
        """The first token Secret; rotation makes others beside it."""
        return f"{self.account}-token"

    def objects(self, settings: Settings, **options: bool) -> list[Json]:
        """The account and what it may do, marked as ours; the options are those of `on_worker`."""
        return [ours(obj) for obj in worker_objects(settings, self.role, self.subject, **options)]

    @property
    def holder(self) -> str:
        """The first Secret that bound tokens are bound to; rotation makes others beside it."""
        return f"{self.account}-bound"

    def token_objects(self, settings: Settings) -> list[Json]:
        """What lets the account ask for tokens of itself."""
        made = self.objects(settings, bound=True)
        return [obj for obj in made if obj["kind"] in ("Role", "RoleBinding")]

    def holder_secret(self, name: str) -> Json:
        """An empty Secret that tokens are bound to: they are void once it is deleted."""
        metadata: Json = {"name": name, "namespace": self.namespace, "labels": dict(OURS)}
        metadata["annotations"] = {ACCOUNT: str(self.key)}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}

    def token_secret(self, name: str) -> Json:
        """A Secret that the worker fills with a token that does not expire."""
        metadata: Json = {"name": name, "namespace": self.namespace}
        metadata |= {"labels": dict(OURS), "annotations": {ACCOUNT_ANNOTATION: self.account}}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TOKEN_TYPE}


def ours(obj: Json) -> Json:
    """The object with our label."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **OURS}}}


def is_ours(obj: Json) -> bool:
    """Whether we made it."""
    return labels_of(obj).get(MANAGED_BY) == OURS[MANAGED_BY]


def check_name(name: str) -> str:
    """A worker's name: of its MultiKueueCluster, and with an ending of its Secret.

    Raises:
        CommandError: it cannot be one.
    """
    if not _NAME.fullmatch(name):
        raise CommandError(
            f"{name!r} cannot be a worker's name: use up to 50 lower-case letters, digits and dashes, as in worker1",
            USAGE,
        )
    return name


def kubeconfig(worker: str, server: str, authority: str, token: str, server_name: str = "") -> Json:
    """What the daemon connects with.

    Args:
        worker: its name.
        server: its address.
        authority: PEM of who signed the server's certificate; empty: somebody whom every system trusts.
        token: of the service account.
        server_name: the name in the server's certificate, if it is not that of the address.
    """
    cluster: Json = {"server": server}
    if server_name:
        cluster["tls-server-name"] = server_name
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": worker,
        "clusters": [{"name": worker, "cluster": cluster}],
        "users": [{"name": "multikueue", "user": {"token": token}}],
        "contexts": [{"name": worker, "context": {"cluster": worker, "user": "multikueue"}}],
    }


def check_kubeconfig(document: Json) -> bytes:
    """The kubeconfig as it stands in the Secret.

    Raises:
        CommandError: the daemon would refuse it.
    """
    data = json.dumps(document, indent=1).encode()
    try:
        parse_worker_kubeconfig(data)
    except KubeconfigError as error:
        raise CommandError(f"the daemon would refuse this kubeconfig: {error}") from None
    return data


def manager_secret(worker: str, namespace: str, data: bytes | None, bound: Bound | None = None) -> Json:
    """The Secret with a worker's kubeconfig; without one if that is not to be shown. `bound`: about its token."""
    metadata: Json = {"name": secret_name(worker), "namespace": namespace, "labels": dict(OURS)}
    if bound is not None:
        metadata["annotations"] = dict(bound.annotations)
    secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}
    return secret if data is None else {**secret, "data": {KUBECONFIG_KEY: base64.b64encode(data).decode()}}


def naming(namespaces: str) -> dict[str, str]:
    """The annotation of a MultiKueueCluster that says how namespaces are called there; none if nothing is said."""
    return {NAMESPACES_ANNOTATION: namespaces} if namespaces else {}


def multikueue_cluster(worker: str, namespaces: str = "") -> Json:
    """The MultiKueueCluster of a worker."""
    reference = {"locationType": "Secret", "location": secret_name(worker)}
    made = plain_object(MULTIKUEUE_CLUSTER, worker, {"clusterSource": {"kubeConfig": reference}})
    if namespaces:
        made["metadata"]["annotations"] = naming(namespaces)
    return ours(made)


def namespace_object(name: str) -> Json:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def multikueue_config(name: str, listed: Iterable[str]) -> Json:
    """A MultiKueueConfig."""
    return plain_object(MULTIKUEUE_CONFIG, name, {"clusters": [*listed]})


def plain_object(resource: Resource, name: str, spec: Json, namespace: str = "") -> Json:
    """An object with a name and a spec; an empty namespace: it is in none."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return resource.object({"metadata": metadata, "spec": spec})


def location(cluster: Json) -> str:
    """The Secret that a MultiKueueCluster names; empty: its kubeconfig is elsewhere."""
    reference = dig(cluster, "spec", "clusterSource", "kubeConfig") or {}
    return str(reference.get("location") or "") if reference.get("locationType", "Secret") == "Secret" else ""


def check_cluster(cluster: Json | None, worker: str) -> None:
    """
    Raises:
        CommandError: there is a MultiKueueCluster of that name that takes its kubeconfig from elsewhere.
    """
    if cluster is None or location(cluster) == secret_name(worker):
        return
    secret = location(cluster)
    where = f'the Secret "{secret}"' if secret else "elsewhere"
    raise CommandError(
        f'MultiKueueCluster "{worker}" exists and has its kubeconfig from {where}, which this command did not make: '
        "choose another name, or delete that MultiKueueCluster first"
    )


def choose_config(configs: Sequence[Json], wanted: str | None) -> tuple[str, Json | None]:
    """The MultiKueueConfig to list a worker in: its name, and the object if there is one.

    Raises:
        CommandError: it is not clear which.
    """
    known = {name_of(config): config for config in configs}
    if wanted is not None:
        return wanted, known.get(wanted)
    if len(known) > 1:
        names = ", ".join(sorted(known))
        raise CommandError(f"there are several MultiKueueConfigs: say which with --multikueue-config, one of {names}")
    return next(iter(known.items()), ("multikueue", None))


def with_entry(config: Json, worker: str) -> list[str] | None:
    """The list of a config with a worker; None if it is in it already.

    Raises:
        CommandError: it may not be added.
    """
    listed = clusters(config)
    if worker in listed:
        return None
    check_writable(config)
    if len(listed) >= MAX_CLUSTERS:
        what = f'MultiKueueConfig "{name_of(config)}" lists {len(listed)} clusters, and Kueue allows {MAX_CLUSTERS}'
        raise CommandError(f"{what}: remove one, or use another config and another queue for the rest")
    return [*listed, worker]


def without_entry(config: Json, worker: str) -> list[str] | None:
    """The list of a config without a worker; None if it is not in it.

    Raises:
        CommandError: it may not be removed.
    """
    listed = clusters(config)
    if worker not in listed:
        return None
    check_writable(config)
    if len(listed) == 1:
        what = f'"{worker}" is the last cluster of MultiKueueConfig "{name_of(config)}", and Kueue allows no empty one'
        raise CommandError(
            f"{what}: add another worker first, or delete the config and the AdmissionCheck that uses it"
        )
    return [name for name in listed if name != worker]
