"""The daemon's settings. The file has them in camelCase; `multikueued.settings.file` reads it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import attrs

from multikueue.adapters.declaration import Declaration
from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.machinery.lease import LeaseSettings
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.workload.seen.graces import LONGEST_GRACE
from multikueue.kube import AnswerLimits
from multikueued.settings.inventory import InventorySettings, OcmSettings
from multikueued.settings.profiles import ClusterProfileSettings
from multikueued.settings.sections import BoundTokenSettings, DependencySettings, FindingsSettings, MirrorPodSettings
from multikueued.settings.value_types import (
    ByteSize,
    ControllerName,
    Count,
    DispatcherName,
    DispatchProfiles,
    FrameworkName,
    GraceLimit,
    LabelValue,
    LongName,
    ObjectName,
    Port,
    RoundLength,
    ServerUrl,
    StepSize,
)

LEASE_DEFAULTS = LeaseSettings()
INCREMENTAL_DEFAULTS = Incremental()
LIMIT_DEFAULTS = AnswerLimits()
RENEWALS = LEASE_DEFAULTS.renew_deadline / LEASE_DEFAULTS.retry_period
"""How often a leader tries to renew the Lease until the deadline."""


@attrs.frozen
class IncrementalSettings:
    """Settings of the incremental dispatcher; see `multikueue.core.dispatchers.incremental.Incremental`."""

    step_size: StepSize = INCREMENTAL_DEFAULTS.step
    """How many more workers each round adds."""
    round: RoundLength = INCREMENTAL_DEFAULTS.round
    """How long the workers so far have to admit a job before more are added."""


@attrs.frozen
class DispatcherSettings:
    """Which workers a job is offered to."""

    name: DispatcherName | None = None
    """One of Kueue's, by default the one that offers a job to all workers at once; `multikueue.dev/scored`, which asks
    the best worker that has room; or one of an installed package, see `multikueue.runtime.plugins`. Any other name
    means that another controller writes `status.nominatedClusterNames`."""
    incremental: IncrementalSettings | None = None
    """Only for the incremental dispatcher."""
    profiles: DispatchProfiles | None = None
    """Only for `multikueue.dev/scored`: ways to choose, by name; a MultiKueueConfig names its own in the annotation
    `multikueue.dev/dispatch-profile`, and the others have the one called `default`. See docs/dispatch.md."""


@attrs.frozen
class IntegrationSettings:
    """The section `integrations` of Kueue's configuration."""

    frameworks: tuple[FrameworkName, ...] = ("batch/job",)
    """Kinds built into Kueue, by Kueue's names; the default is Kueue's, the kind every cluster serves. Each that the
    manager serves is watched on every worker. `auto`: all that the manager serves, without those made of pods."""


@attrs.frozen
class LeaderElectionSettings:
    """Which of several replicas works."""

    enabled: bool = True
    """On: during a rolling update two replicas run for a while, and only one may work. Turn it off only if there is
    never more than one process, as on a developer's machine."""
    lease_duration: timedelta = timedelta(seconds=LEASE_DEFAULTS.duration)
    """How long the others wait after a leader has died; see `multikueue.core.machinery.lease.LeaseSettings`."""
    renew_deadline: timedelta = timedelta(seconds=LEASE_DEFAULTS.renew_deadline)
    """How long a leader goes on without being able to renew the Lease. It tries five times in that time."""

    def lease_settings(self) -> LeaseSettings:
        """The same as the library's settings.

        Raises:
            SettingsError: the times contradict each other.
        """
        return LeaseSettings(
            duration=self.lease_duration.total_seconds(),
            renew_deadline=self.renew_deadline.total_seconds(),
            retry_period=self.renew_deadline.total_seconds() / RENEWALS,
        )


@attrs.frozen
class WorkerLimitSettings:
    """How much is read of what one worker answers; see `multikueue.AnswerLimits`. One with more gets no new jobs."""

    answer_size: ByteSize = LIMIT_DEFAULTS.answer_bytes
    """Of one answer, decompressed: room for the largest object that etcd takes."""
    list_size: ByteSize = LIMIT_DEFAULTS.list_bytes
    """Of all pages of a list. In memory they take about four times as much, at worst twenty times."""
    list_objects: Count = LIMIT_DEFAULTS.list_objects
    """Of one kind on one worker, with our label."""

    def answer_limits(self) -> AnswerLimits:
        """The same as the library's settings."""
        return AnswerLimits(self.answer_size, self.list_size, list_objects=self.list_objects)


@attrs.frozen
class LoggingSettings:
    """What is written to standard error."""

    format: Literal["json", "console"] = "json"
    """`json`: one object a line, for a cluster's log collector. `console`: for people at a terminal."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """`info` reports what happens to clusters and what is retried. A workload causes a line when it is placed, when it
    is moved, and when it ends; `debug` tells what is done for it."""


@attrs.frozen
class MetricsSettings:
    """Whether metrics are served to anybody who can connect, or over HTTPS to those who may read them."""

    secure: bool = False
    """On: `/metrics` is served on a port of its own over HTTPS, to bearers of a token who may `get` the path `/metrics`
    on the manager cluster, as by other controllers. The daemon asks the manager's API server for that. Off: it is
    beside health, over plain HTTP: nothing in it is secret."""
    port: Port = 8443
    """HTTPS, if `secure`. The address is `serving.bindAddress`."""
    cert_dir: str = ""
    """A folder with `tls.crt` and `tls.key`, which somebody else renews; new ones are taken within 30 s. Needed if
    `secure`."""


@attrs.frozen
class ServingSettings:
    """Where health and metrics are served."""

    bind_address: str = ""
    """Empty: all addresses, IPv4 and IPv6, because kubelet and Prometheus connect from outside the pod."""
    port: Port = 8080
    """One port for `/healthz`, `/readyz` and `/metrics`: nothing on it is secret, so it is plain HTTP."""
    metrics: MetricsSettings = attrs.field(factory=MetricsSettings)


@attrs.frozen
class PreemptionSettings:
    """Whether copies may preempt other workloads on workers."""

    orchestrated: bool = False
    """On: a copy may preempt on one worker at a time, so that one job does not preempt on several. Off as in Kueue,
    where it is an alpha feature. The workers' Kueue must have it on, too."""
    timeout: timedelta = timedelta(minutes=5)
    """How long one worker may take to preempt before the next one may. Kueue's default."""


@attrs.frozen
class PodSettings:
    """What the manager's Kueue is told about pods that run on a worker."""

    check: Literal["Pending", "Ready"] = "Pending"
    """The state of the check while they run. `Pending`: they never become Admitted, and when they are evicted they stay
    and are dispatched again. `Ready`: they become Admitted, and when they are evicted Kueue deletes them, as on one
    cluster. It needs the webhook, which puts our scheduling gate on new pods, and its `failurePolicy: Fail`: a pod
    without the gate would run on the manager."""
    copy_addresses: bool = False
    """Whether the manager's jobs show the addresses of their copies: of pods, nodes and Ray's heads. Only for clusters
    in one network: otherwise these are addresses of others there, and Services of the manager would lead to them."""


@attrs.frozen
class RetentionSettings:
    """What is kept after the end: on workers, and on the manager."""

    finished: timedelta = timedelta(0)
    """How long the Workload copy and the job stay on the worker that ran it, from the Workload's end on the manager, so
    that logs can be read. They keep no quota. 0 as in Kueue: they go at once. A job that is deleted goes at once."""
    failed: timedelta = timedelta(hours=1)
    """The same for jobs that have failed, if it is longer: 100 in a namespace of a worker, further ones go at once."""
    delete_expired_jobs: bool = False
    """Whether the daemon deletes jobs of the manager some time after their end, where they say so themselves by
    `ttlSecondsAfterFinished` and nobody else does: their own controllers pass over delegated ones; see kinds.md. It
    needs the right to delete them. Off: such a job stays, and an event on it says so."""


@attrs.frozen
class WebhookSettings:
    """The admission webhook that fills in `managedBy` of new jobs whose queue leads to worker clusters."""

    enabled: bool = False
    """Off: users write it themselves, and a job without it is Rejected with a message that says what to set. On: every
    replica serves the webhook, and the leader registers it."""
    bind_address: str = ""
    """Empty: all addresses, because API servers connect from outside the pod."""
    port: Port = 9443
    """HTTPS: API servers call webhooks by nothing else."""
    cert_dir: str = ""
    """A folder with `tls.crt` and `tls.key`, which somebody else renews, and `ca.crt` if the daemon is to write the
    `caBundle`. Empty: the daemon makes a certificate and its authority, and renews them."""
    configuration_name: LongName = "multikueue-webhook"
    """The MutatingWebhookConfiguration. API servers call webhooks in the order of these names. Kueue's must be first,
    because it gives jobs a default queue: `kueue-mutating-webhook-configuration`."""
    service_name: ObjectName = "multikueue-webhook"
    """The Service in front of the replicas; its port is 443. The Secret in the daemon's namespace through which
    replicas share the certificate that they make has the same name."""
    service_namespace: ObjectName = ""
    """The Service's namespace. Empty: the daemon's."""
    url: ServerUrl = ""
    """Instead of a Service: the address of a daemon that runs outside of the cluster."""
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """What API servers do when no replica answers. `Ignore`: they create the job, and it is Rejected because it has no
    `managedBy`. `Fail`: they refuse it, so nobody can create jobs with a queue while the daemon is down."""


@attrs.frozen
class Settings:
    """All settings. An empty file gives the defaults, which are Kueue's where Kueue has the same setting."""

    controller_name: ControllerName = CONTROLLER_NAME
    """Which AdmissionChecks are ours, and which value jobs may have in `managedBy`, beside Kueue's own name, which is
    the only one that many kinds accept. The default replaces the MultiKueue built into Kueue, which must then be off.
    With another name both can run; see docs/operating.md for what Kueue's does to workers that both use."""
    origin: LabelValue = "multikueue"
    """The label's value on our copies. Managers that share a worker need different ones."""
    manager_name: ObjectName = ""
    """How namespaces of workers name this manager in their annotation `multikueue.dev/allow-from`. With it copies say
    which namespace they come from, and `rbac worker --binding` prints the policy by which a worker refuses those of
    others; see docs/security.md. Managers that share a worker need different ones. Empty: they do not say it."""
    namespace: ObjectName = ""
    """Where the kubeconfig Secrets and the Lease are. Empty: the pod's own, or `kueue-system` outside a pod."""
    name: ObjectName = "multikueue"
    """What the daemon's objects in that namespace are named after: the Lease `NAME`, the Secret `NAME-marks` with the
    key by which copies are marked, `NAME-mirrors` with that of mirrors, and the ConfigMap `NAME-findings`. Replicas
    share it; two daemons in one namespace, with different `controllerName`s, need two. Another name is another key:
    change it only while nothing runs."""
    gc_interval: timedelta = timedelta(minutes=1)
    """How often copies are checked for leftovers, those of running jobs once in two hours; 0 turns it off."""
    worker_lost_timeout: timedelta = timedelta(minutes=15)
    """How long a job stays assigned to a worker that cannot be reached."""
    pod_grace_limit: GraceLimit = LONGEST_GRACE
    """The longest grace period of pods for which an evicted job keeps its quota on the manager while they end; a minute
    is added to it. At most five minutes. The next attempt waits for the pods' end all the same,
    but for pods of a job copy that somebody has deleted on its worker in the background: as long as this."""
    quota_automation: bool = False
    """Whether the daemon sets quotas to the sum of the workers' where a MultiKueueConfig asks for it. Off as in Kueue:
    it changes ClusterQueues of the manager, and needs permissions for that."""
    bound_tokens: BoundTokenSettings = attrs.field(factory=BoundTokenSettings)
    findings: FindingsSettings = attrs.field(factory=FindingsSettings)
    worker_limits: WorkerLimitSettings = attrs.field(factory=WorkerLimitSettings)
    preemption: PreemptionSettings = attrs.field(factory=PreemptionSettings)
    dispatcher: DispatcherSettings = attrs.field(factory=DispatcherSettings)
    integrations: IntegrationSettings = attrs.field(factory=IntegrationSettings)
    external_frameworks: tuple[Declaration, ...] = ()
    """Kinds that are not built into Kueue, each declared; see `multikueue.adapters.declaration`."""
    cluster_profile: ClusterProfileSettings | None = None
    """Workers that ClusterProfiles describe. None: they are refused."""
    leader_election: LeaderElectionSettings = attrs.field(factory=LeaderElectionSettings)
    logging: LoggingSettings = attrs.field(factory=LoggingSettings)
    serving: ServingSettings = attrs.field(factory=ServingSettings)
    webhook: WebhookSettings = attrs.field(factory=WebhookSettings)
    pods: PodSettings = attrs.field(factory=PodSettings)
    retention: RetentionSettings = attrs.field(factory=RetentionSettings)
    mirror_pods: MirrorPodSettings = attrs.field(factory=MirrorPodSettings)
    ocm: OcmSettings = attrs.field(factory=OcmSettings)
    dependencies: tuple[DependencySettings, ...] = ()
    """What jobs need beside themselves: entries with a `config` and its `kinds`; see docs/dependencies.md."""
    inventory: tuple[InventorySettings, ...] = ()
    """MultiKueueConfigs that are filled with ClusterProfiles by label, without OCM: each entry has a `selector`, a
    `config` and a `policy`."""

    @property
    def marks_secret(self) -> str:
        """The Secret with the key of marks."""
        return f"{self.name}-marks"

    @property
    def mirrors_secret(self) -> str:
        """The Secret with the key of mirrors."""
        return f"{self.name}-mirrors"

    @property
    def mirrors_policy(self) -> str:
        """The ValidatingAdmissionPolicy, and its binding, that bounds who makes mirrors."""
        return f"{self.name}-mirrors"

    @property
    def mirrors_certificate_secret(self) -> str:
        """The Secret with the certificate of who answers for mirrors."""
        return self.mirror_pods.certificate_secret or f"{self.mirrors_secret}-tls"

    @property
    def mirrors_certificate_is_brought(self) -> bool:
        """Whether somebody else writes that Secret."""
        return bool(self.mirror_pods.certificate_secret) and not self.mirror_pods.signer

    @property
    def findings_config_map(self) -> str:
        """The ConfigMap of what the leader sees of workers."""
        return f"{self.name}-findings"
