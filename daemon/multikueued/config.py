"""The daemon's settings. In the file they are written in camelCase; `multikueued.loading` reads it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, NewType

import attrs

from multikueue.adapters.declaration import Declaration
from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.machinery.lease import LeaseSettings
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.runtime.kubeconfig_files import KUBECONFIG_PREFIX

ControllerName = NewType("ControllerName", str)
"""A domain and a path, `example.com/dispatcher`: what Kubernetes takes in a job's `managedBy`."""
LabelValue = NewType("LabelValue", str)
"""A text that Kubernetes takes as a label's value."""
ObjectName = NewType("ObjectName", str)
"""A text that Kubernetes takes as the name of a namespace or a Lease."""
Port = NewType("Port", int)
"""A TCP port; 0 for any free one."""
ServerUrl = NewType("ServerUrl", str)
"""`https://HOST:PORT`."""

DispatcherName = NewType("DispatcherName", str)
"""One of Kueue's two dispatchers, one of an installed package's, or another controller's domain and path."""
StepSize = NewType("StepSize", int)
"""How many workers; at least 1."""
RoundLength = NewType("RoundLength", timedelta)
"""How long a round lasts; at least a second."""

FrameworkName = NewType("FrameworkName", str)
"""What Kueue calls a kind that is built into it: `batch/job`."""

LEASE_DEFAULTS = LeaseSettings()
INCREMENTAL_DEFAULTS = Incremental()
DEFAULT_ROUND = RoundLength(INCREMENTAL_DEFAULTS.round)


@attrs.frozen
class IncrementalSettings:
    """How the incremental dispatcher asks; see `multikueue.core.dispatchers.incremental.Incremental`."""

    step_size: StepSize = StepSize(INCREMENTAL_DEFAULTS.step)
    """How many more workers a round asks."""
    order: Literal["config", "alphabetical"] = "config"
    """Who is asked first: the first of the MultiKueueConfig's list, or of the alphabet."""
    round: RoundLength = DEFAULT_ROUND
    """How long those asked so far are left alone with a job before more are asked."""


@attrs.frozen
class DispatcherSettings:
    """Which workers a job is offered to."""

    name: DispatcherName | None = None
    """One of Kueue's, by default the one that asks all workers at once; or one that an installed package brings, see
    `multikueue.runtime.plugins`. Any other name says that another controller writes `status.nominatedClusterNames`."""
    incremental: IncrementalSettings | None = None
    """Only for the incremental dispatcher."""


@attrs.frozen
class IntegrationSettings:
    """The section `integrations` of Kueue's configuration."""

    frameworks: tuple[FrameworkName, ...] = (FrameworkName("batch/job"),)
    """Kinds built into Kueue, by Kueue's names; the default is the kind every cluster serves. Each is watched on every
    worker, so list those in use."""
    external_frameworks: tuple[Declaration, ...] = ()
    """As `externalFrameworks`. Kueue has its list of such kinds here."""


@attrs.frozen
class LeaderElectionSettings:
    """Which of several replicas works."""

    enabled: bool = True
    """On: during a rolling update two replicas run for a while, and only one may work. Turn it off where there is
    never more than one process, such as on a developer's machine."""
    lease_name: ObjectName = ObjectName("multikueue")
    """The Lease in the daemon's namespace. Two daemons with different `controllerName`s need two names."""
    lease_duration: timedelta = timedelta(seconds=LEASE_DEFAULTS.duration)
    """How long a leader that died keeps others waiting; see `multikueue.core.machinery.lease.LeaseSettings`."""
    renew_deadline: timedelta = timedelta(seconds=LEASE_DEFAULTS.renew_deadline)
    """How long a leader works on without being able to renew the Lease."""
    retry_period: timedelta = timedelta(seconds=LEASE_DEFAULTS.retry_period)
    """Between two attempts to get or renew it."""

    def lease_settings(self) -> LeaseSettings:
        """The same in the library's words.

        Raises:
            SettingsError: the times do not leave room for each other.
        """
        return LeaseSettings(
            duration=self.lease_duration.total_seconds(),
            renew_deadline=self.renew_deadline.total_seconds(),
            retry_period=self.retry_period.total_seconds(),
        )


@attrs.frozen
class LoggingSettings:
    """What is written to standard error."""

    format: Literal["json", "console"] = "json"
    """`json`: one object a line, for a cluster's log collector. `console`: for people at a terminal."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """`info` says what happens to clusters and what is retried; a workload that goes its way costs no line."""


@attrs.frozen
class ServingSettings:
    """Where health and metrics are served."""

    bind_address: str = ""
    """Empty: all addresses, of IPv4 and IPv6, since kubelet and Prometheus come from outside the pod."""
    port: Port = Port(8080)
    """One port for `/healthz`, `/readyz` and `/metrics`: nothing on it is secret, so it is plain HTTP."""


@attrs.frozen
class PreemptionSettings:
    """Whether workers may preempt for our copies."""

    orchestrated: bool = False
    """On: a copy may preempt on one worker at a time, so that one job does not clear several. Off as in Kueue, where it
    is an alpha feature that the workers' Kueue must have on, too."""
    timeout: timedelta = timedelta(minutes=5)
    """How long a worker may take to preempt before the next one is let. Kueue's."""


@attrs.frozen
class WebhookSettings:
    """The admission webhook that fills in `managedBy` of new jobs whose queue leads to worker clusters."""

    enabled: bool = False
    """Off: users write it themselves, and a job without it is Rejected with what to set. On: every replica serves the
    webhook, and the one that leads registers it."""
    bind_address: str = ""
    """Empty: all addresses, since API servers come from outside the pod."""
    port: Port = Port(9443)
    """HTTPS only: API servers speak nothing else to webhooks."""
    cert_dir: str = ""
    """A folder with `tls.crt` and `tls.key`, which somebody else renews, and `ca.crt` if API servers are to be told
    whom to trust. Empty: the daemon makes a certificate and its authority, and renews them."""
    secret_name: ObjectName = ObjectName("multikueue-webhook")
    """The Secret in the daemon's namespace in which replicas share a certificate of their own making."""
    configuration_name: ObjectName = ObjectName("multikueue-webhook")
    """The MutatingWebhookConfiguration. API servers ask in the order of the names, and Kueue's, which gives jobs a
    default queue, is to be asked first: `kueue-mutating-webhook-configuration`."""
    service_name: ObjectName = ObjectName("multikueue-webhook")
    """The Service in front of the replicas."""
    service_namespace: ObjectName = ObjectName("")
    """Where it is. Empty: the daemon's namespace."""
    service_port: Port = Port(443)
    url: ServerUrl = ServerUrl("")
    """Instead of a Service: where API servers reach a daemon that runs outside of the cluster."""
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """What API servers do when no replica answers. `Ignore`: they create the job, and it is Rejected for lack of
    `managedBy`. `Fail`: they refuse it, so that nobody can create jobs with a queue while the daemon is down."""


@attrs.frozen
class MultiKueueSettings:
    """The section `multiKueue` of Kueue's configuration: copied from there it says what the settings of the same names
    say, and takes their place."""

    origin: LabelValue | None = None
    gc_interval: timedelta | None = None
    worker_lost_timeout: timedelta | None = None
    dispatcher_name: DispatcherName | None = None
    incremental_dispatcher_config: IncrementalSettings | None = None
    external_frameworks: tuple[Declaration, ...] = ()


@attrs.frozen
class Settings:
    """All settings. An empty file gives the defaults, which are Kueue's where Kueue has the same setting."""

    controller_name: ControllerName = ControllerName(CONTROLLER_NAME)
    """Which AdmissionChecks are ours, and what delegated jobs may say in `managedBy`, beside Kueue's own name, which
    is the only one that many kinds accept. The default takes the place of the MultiKueue built into Kueue, which must
    then be off. Another name leaves that one alone, and its AdmissionChecks; see
    docs/operating.md for what it still does to workers that both use."""
    origin: LabelValue = LabelValue("multikueue")
    """Marks our copies on the workers. Managers that share a worker need different ones."""
    namespace: ObjectName = ObjectName("")
    """Where the kubeconfig Secrets and the Lease are. Empty: the pod's own, or `kueue-system` outside a pod."""
    gc_interval: timedelta = timedelta(minutes=1)
    """How often all copies are looked at again; 0 turns it off. It reads caches only, so it costs little."""
    worker_lost_timeout: timedelta = timedelta(minutes=15)
    """How long a job stays assigned to a worker that cannot be reached, before it is sent elsewhere."""
    kubeconfig_path_prefix: str = KUBECONFIG_PREFIX
    """The only folder from which kubeconfig files of workers are read (`locationType: Path`). Kueue's."""
    quota_automation: bool = False
    """Whether MultiKueueConfigs may ask for quotas to be kept as the sum of the workers'. Off as in Kueue: it changes
    ClusterQueues of the manager, and needs permissions for that."""
    preemption: PreemptionSettings = attrs.field(factory=PreemptionSettings)
    dispatcher: DispatcherSettings = attrs.field(factory=DispatcherSettings)
    dispatcher_name: DispatcherName | None = None
    """`dispatcher.name` as Kueue calls it."""
    incremental_dispatcher_config: IncrementalSettings | None = None
    """`dispatcher.incremental` as Kueue calls it."""
    integrations: IntegrationSettings = attrs.field(factory=IntegrationSettings)
    external_frameworks: tuple[Declaration, ...] = ()
    """Kinds that are not built into Kueue, each declared; see `multikueue.adapters.declaration`."""
    multi_kueue: MultiKueueSettings = attrs.field(factory=MultiKueueSettings)
    leader_election: LeaderElectionSettings = attrs.field(factory=LeaderElectionSettings)
    logging: LoggingSettings = attrs.field(factory=LoggingSettings)
    serving: ServingSettings = attrs.field(factory=ServingSettings)
    webhook: WebhookSettings = attrs.field(factory=WebhookSettings)
