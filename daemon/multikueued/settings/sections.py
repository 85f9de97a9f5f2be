"""Settings that have a section of their own: what jobs need beside themselves, and what the leader does as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import attrs

from multikueued.settings.kueue_configuration import Remark
from multikueued.settings.value_types import ConfigName, Count, IpAddress, LongName, Port, SignerName

DependencyKind: TypeAlias = Literal[
    "ConfigMap", "ResourceClaimTemplate", "Secret", "ServiceAccount", "PersistentVolumeClaim"
]


@attrs.frozen
class DependencySettings:
    """What is done about the dependencies of jobs that go to the workers of one MultiKueueConfig."""

    config: ConfigName = ""
    """The MultiKueueConfig."""
    kinds: tuple[DependencyKind, ...] = ()
    """ConfigMaps and ResourceClaimTemplates that pod templates name are copied to the worker. Secrets, ServiceAccounts
    and PersistentVolumeClaims are never copied: a worker that lacks one is not offered the job."""


def dependency_contradictions(entries: Sequence[DependencySettings]) -> Iterator[str]:
    """Entries that cannot be used: the setting, and why."""
    for number, entry in enumerate(entries):
        for name, value in (("config", entry.config), ("kinds", entry.kinds)):
            if not value:
                yield f"dependencies[{number}].{name}: it is missing: each entry needs a config and kinds"
    named = [entry.config for entry in entries if entry.config]
    for name in dict.fromkeys(name for name in named if named.count(name) > 1):
        yield f'dependencies: two entries are about the config "{name}": write one with the kinds of both'


@attrs.frozen
class BoundTokenSettings:
    """Tokens of workers that end, and are renewed by the leader (`multikueue worker add --bound`)."""

    enabled: bool = False
    """On: at 80 % of such a token's life the leader asks the worker for a new one, with the worker's own credentials,
    and writes it into the Secret with the kubeconfig. It needs the permission to patch Secrets for that."""
    secret_names: tuple[LongName, ...] = ()
    """The only Secrets that it may write: the role names them. Empty: any Secret of the daemon's namespace."""


@attrs.frozen
class FindingsSettings:
    """What the leader sees of workers, for people who may not read their credentials."""

    enabled: bool = True
    """On: the leader looks at each worker as `multikueue doctor` does, after each connection and every ten minutes,
    with the credentials that it has, and writes what it sees into the ConfigMap `NAME-findings` of its namespace.
    Whoever may read that sees names of queues and namespaces of workers, and their quotas; no credentials and no
    addresses. `doctor`, `explain` and `status` find it by its label `multikueue.dev/findings`; who may not list
    ConfigMaps there sees the one of the default name, where that may be read. Quotas are read every 30 s; what a worker
    has granted is asked for again once an hour, and by other credentials."""


@attrs.frozen
class MirrorPodSettings:
    """Pods of the manager that show those of the runs, so that `kubectl logs` works there; see docs/mirror-pods.md."""

    logs: bool | None = None
    """On: each worker is shown as a Node, each pod of a run as a pod on it, and the daemon answers for their logs. Off:
    what an earlier start has made of them is taken away, with the rights that this takes. Empty: they never were on."""
    exec: bool = False
    """On: also for exec, attach, cp and port-forward. It needs `logs`."""
    max_pods: Count = 2_000
    """How many are shown in all. Jobs with more are shown in part; nothing else waits for it."""
    max_pods_per_job: Count = 100
    """How many of one job."""
    address: IpAddress = ""
    """The IP address under which the manager's API server reaches the daemon: of a Service, or of the host. Needed if
    `logs`, but with a sandbox: without it no mirrors are made."""
    port: Port = 10260
    """HTTPS, of every replica."""
    certificate_secret: LongName = ""
    """A Secret of the daemon's namespace with `tls.crt` and `tls.key` for that address, which somebody else renews.
    Empty, and no `signer`: one is made and renewed that API servers without `--kubelet-certificate-authority` take."""
    signer: SignerName = ""
    """Instead of such a Secret: who signs the certificate that the daemon asks for by a CertificateSigningRequest, as
    `kubernetes.io/kubelet-serving`. An administrator approves it."""

    @property
    def needs_rights(self) -> bool:
        """Whether mirrors are made, or taken away that an earlier start has made."""
        return self.logs is not None


def mirror_remarks(mirrors: MirrorPodSettings) -> Iterator[Remark]:
    """What of the settings of mirrors has no effect. It ends nothing: the daemon dispatches with and without them."""
    if mirrors.exec and not mirrors.logs:
        why = "without mirrors there is nothing to enter: set mirrorPods.logs: true, too, or leave it out"
        yield Remark("mirrorPods.exec", why, important=True)
    if mirrors.logs and mirrors.max_pods_per_job > mirrors.max_pods:
        why = f"{mirrors.max_pods_per_job} are more than maxPods, {mirrors.max_pods}, in all: that bounds them"
        yield Remark("mirrorPods.maxPodsPerJob", why, important=True)
