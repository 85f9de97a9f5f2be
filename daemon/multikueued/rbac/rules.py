"""The one source of RBAC rules: what the daemon asks of the manager and of workers, and nothing else.

`multikueue rbac` prints them, `multikueue worker add` grants them, `multikueued.rbac.chart` writes them into the chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from multikueue import AVAILABLE, JobKind
from multikueue.core.dispatchers.scored.profile import SCORED
from multikueue.core.model.kinds import CLUSTER_PROFILE, KUEUE_GROUP, OCM_GROUP
from multikueue.core.model.names import Json
from multikueue.runtime.workers.cluster_identity import KUBE_SYSTEM
from multikueue.runtime.workers.kueue_check import CONTROLLER
from multikueued.rbac.dependencies import dependency_kinds, dependency_rules, worker_dependency_rules
from multikueued.rbac.logs import log_rules
from multikueued.rbac.policies import TAKING, taking_name
from multikueued.rbac.role_rule import merged, rule
from multikueued.rbac.spokes import impersonation_rules, profile_rules, spoke_namespace_rules, spoke_rules
from multikueued.run.dispatcher import dispatcher_name
from multikueued.run.kinds import chosen_kinds
from multikueued.settings.config import Settings

RBAC_GROUP: Final = "rbac.authorization.k8s.io"


IDENTITY_RULE: Final = rule("", ["namespaces"], ["get"], [KUBE_SYSTEM.name])
"""In every cluster: the one namespace whose UID tells it from others, so that the manager knows itself."""


def manager_rules() -> list[Json]:
    """In the whole manager cluster, whatever the settings are."""
    return [
        rule(KUEUE_GROUP, ["workloads"], ["list", "watch", "patch"]),  # patch: for annotations of ours
        rule(KUEUE_GROUP, ["admissionchecks", "multikueueclusters", "multikueueconfigs"], ["list", "watch"]),
        rule(KUEUE_GROUP, ["workloads/status", "admissionchecks/status", "multikueueclusters/status"], ["patch"]),
        rule("events.k8s.io", ["events"], ["create", "patch"]),
        IDENTITY_RULE,
    ]


def secret_rules(marks: str) -> list[Json]:
    """In the namespace of the kubeconfig Secrets; `marks` is the Secret with the key of marks, made beforehand."""
    return [rule("", ["secrets"], ["list", "watch"]), rule("", ["secrets"], ["get", "patch"], [marks])]


def bound_rules(secrets: Sequence[str] = ()) -> list[Json]:
    """In the same namespace, to renew bound tokens; `secrets` are the only ones to write, empty: any."""
    return [rule("", ["secrets"], ["patch"], secrets)]


def findings_rules(config_map: str) -> list[Json]:
    """In the same namespace, to publish what is seen of workers. Server-side apply creates by name."""
    return [rule("", ["configmaps"], ["create", "patch"], [config_map])]


def lease_rules(lease: str) -> list[Json]:
    """In the same namespace, with leader election; `lease` is the Lease's name."""
    return [
        rule("coordination.k8s.io", ["leases"], ["create"]),  # RBAC knows no name when an object is created
        rule("coordination.k8s.io", ["leases"], ["get", "update"], [lease]),
    ]


def metrics_rules() -> list[Json]:
    """In the whole manager cluster, for metrics that only some may read."""
    return [
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ]


def quota_rules() -> list[Json]:
    """In the whole manager cluster, for quota automation."""
    return [
        rule(KUEUE_GROUP, ["clusterqueues", "localqueues"], ["list", "watch"]),
        rule(KUEUE_GROUP, ["clusterqueues", "clusterqueues/status"], ["patch"]),
    ]


def penalty_rules() -> list[Json]:
    """In the whole manager cluster, for the scored dispatcher: it notes on a worker whose jobs failed there."""
    return [rule(KUEUE_GROUP, ["multikueueclusters"], ["patch"])]


def ocm_rules() -> list[Json]:
    """In the whole manager cluster, for the placement check."""
    return [
        rule(KUEUE_GROUP, ["admissionchecks"], ["patch"]),  # for a finalizer of ours
        rule(KUEUE_GROUP, ["multikueueconfigs"], ["create", "delete", "patch"]),
        rule(OCM_GROUP, ["addonplacementscores"], ["list", "watch"]),  # in the namespaces of all clusters
    ]


def ocm_namespace_rules() -> list[Json]:
    """In the namespace of the Placements, for the placement check."""
    return [rule(OCM_GROUP, ["placements", "placementdecisions"], ["list", "watch"])]


def inventory_rules() -> list[Json]:
    """In the whole manager cluster, for configs that are filled by label."""
    return [
        rule(KUEUE_GROUP, ["multikueueconfigs"], ["create", "patch"]),
        rule(KUEUE_GROUP, ["multikueueclusters"], ["create", "delete", "patch"]),
    ]


def inventory_namespace_rules() -> list[Json]:
    """In the namespace of the ClusterProfiles, for configs that are filled by label."""
    return [rule(CLUSTER_PROFILE.gvk.group, [CLUSTER_PROFILE.plural], ["list", "watch"])]


def webhook_rules(configuration: str) -> list[Json]:
    """In the whole manager cluster, for the webhook; `configuration` is the MutatingWebhookConfiguration's name."""
    return [
        rule(KUEUE_GROUP, ["localqueues", "clusterqueues"], ["list", "watch"]),
        rule("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], ["patch"], [configuration]),
    ]


def certificate_rules(secret: str) -> list[Json]:
    """In the namespace, for a certificate that the daemon makes; `secret` is the Secret's name."""
    return [rule("", ["secrets"], ["patch"], [secret])]


def webhook_creation() -> list[Json]:
    """In the whole manager cluster, unless the MutatingWebhookConfiguration is there before the daemon."""
    return [rule("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], ["create"])]


def certificate_creation() -> list[Json]:
    """In the namespace, unless the webhook's Secret is there before the daemon."""
    return [rule("", ["secrets"], ["create"])]


def kind_rules_on_manager(kind: JobKind) -> list[Json]:
    """Follow the kind's jobs, and write their status where it is copied back."""
    if kind.workload_only:
        return []
    group, plural = kind.resource.gvk.group, kind.resource.plural
    rules = [rule(group, [plural], ["list", "watch"])]
    if kind.status.rule is not None:
        rules.append(rule(group, [f"{plural}/status" if kind.status.subresource else plural], ["patch"]))
    return [*rules, *_definition(kind)]


def kind_rules_on_worker(kind: JobKind) -> list[Json]:
    """Make the kind's copies and remove them, and change them where the kind has changes that follow."""
    if kind.workload_only:
        return []
    follows = kind.sync.forwarded or kind.sync.followed is not None or kind.sync.resized is not None
    verbs = ["create", "delete", "get", "list", "watch", *(["patch"] if follows else [])]
    return [rule(kind.resource.gvk.group, [kind.resource.plural], verbs), *_definition(kind)]


def _definition(kind: JobKind) -> list[Json]:
    """A declaration is checked against the kind's definition."""
    if kind.declaration is None or not kind.resource.gvk.group:
        return []
    return [rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get"], [kind.resource.qualified])]


def worker_rules() -> list[Json]:
    """In a whole worker cluster, whatever the settings are."""
    return [
        # get: to read what has the name of a copy whose creation was not answered.
        rule(KUEUE_GROUP, ["workloads"], ["create", "delete", "get", "list", "watch", "patch"]),
        rule(KUEUE_GROUP, ["workloads/status"], ["patch"]),
        IDENTITY_RULE,
    ]


def worker_quota_rules() -> list[Json]:
    """In a whole worker cluster, for quota automation."""
    return [rule(KUEUE_GROUP, ["clusterqueues", "localqueues"], ["list", "watch"])]


def worker_figure_rules() -> list[Json]:
    """In a whole worker cluster, for the scored dispatcher. Without `cohorts` it reckons with a queue's own quota."""
    return [rule(KUEUE_GROUP, ["clusterqueues", "localqueues", "cohorts"], ["list", "watch"])]


def diagnosis_rules() -> list[Json]:
    """In a whole worker cluster, for those who ask why: queues and their quotas, namespaces, definitions, and Kueue's
    version.

    `multikueue drain --move` needs them to know what could ever fit.
    """
    return [
        rule(KUEUE_GROUP, ["clusterqueues", "localqueues", "resourceflavors"], ["get", "list"]),
        rule("", ["namespaces"], ["get", "list"]),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get", "list"]),
        rule("apps", ["deployments"], ["get"], [CONTROLLER.name]),
    ]


def own_token_rules(account: str) -> list[Json]:
    """In the account's own namespace on a worker: to ask for tokens of itself, and of nobody else."""
    return [rule("", ["serviceaccounts/token"], ["create"], [account])]


def origin_rules() -> list[Json]:
    """In the whole manager cluster, for copies that say which namespace they come from."""
    return [rule("", ["namespaces"], ["get"])]


def taking_rules(manager: str) -> list[Json]:
    """In a whole worker cluster, for the same: whether the policy is in force there."""
    return [rule(TAKING.gvk.group, [TAKING.plural], ["get"], [taking_name(manager)])]


def on_manager(settings: Settings) -> list[Json]:
    """The rules of the ClusterRole on the manager, for these settings."""
    rules = manager_rules()
    if settings.quota_automation:
        rules += quota_rules()
    if dispatcher_name(settings) == SCORED:
        rules += penalty_rules()
    if settings.manager_name:
        rules += origin_rules()
    rules += dependency_rules(dependency_kinds(settings))
    if settings.ocm.enabled:
        rules += ocm_rules()
    if settings.ocm.makes_workers:
        rules += spoke_rules(settings.ocm)
    if settings.inventory:
        rules += inventory_rules()
    if settings.webhook.enabled:
        rules += [*webhook_rules(settings.webhook.configuration_name), *webhook_creation()]
    if settings.serving.metrics.secure:
        rules += metrics_rules()
    for kind in chosen_kinds(settings):
        rules += kind_rules_on_manager(kind)
    return merged(rules)


def in_namespace(settings: Settings) -> list[Json]:
    """The rules of the Role on the manager in the settings' namespace."""
    rules = secret_rules(settings.marks.secret_name)
    if settings.findings.enabled:
        rules += findings_rules(settings.findings.config_map_name)
    if settings.bound_tokens.enabled:
        rules += bound_rules(settings.bound_tokens.secret_names)
    if settings.leader_election.enabled:
        rules += lease_rules(settings.leader_election.lease_name)
    if settings.ocm.makes_workers:
        rules += spoke_namespace_rules(settings.ocm)
    if settings.ocm.grants:
        rules += impersonation_rules(settings.ocm.cluster_permissions.service_account_name)
    if settings.cluster_profile is not None:
        rules += profile_rules()
    if settings.ocm.enabled:
        rules += ocm_namespace_rules()
    if settings.inventory:
        rules += inventory_namespace_rules()
    if settings.webhook.enabled and not settings.webhook.cert_dir:
        rules += [*certificate_rules(settings.webhook.secret_name), *certificate_creation()]
    return merged(rules)


def on_worker(settings: Settings, *, diagnose: bool = False, logs: bool = False, exec: bool = False) -> list[Json]:
    """The rules of the ClusterRole on each worker.

    Args:
        settings: the daemon's.
        diagnose: with what shows why a job waits there.
        logs: with what `multikueue pods` and `logs` read there.
        exec: with what `multikueue exec` does there: whoever has it may do what any pod of the cluster may.
    """
    rules = worker_rules()
    if dispatcher_name(settings) == SCORED:
        rules += worker_figure_rules()
    elif settings.quota_automation:
        rules += worker_quota_rules()
    for kind in chosen_kinds(settings):
        rules += kind_rules_on_worker(kind)
    rules += worker_dependency_rules(dependency_kinds(settings))
    rules += taking_rules(settings.manager_name) if settings.manager_name else []
    rules += diagnosis_rules() if diagnose else []
    rules += log_rules(chosen_kinds(settings)) if logs or exec else []
    rules += [rule("", ["pods/exec"], ["create", "get"])] if exec else []
    return merged(rules)


EXTRAS: Final[Mapping[str, Callable[[], list[Json]]]] = {
    "diagnose": diagnosis_rules,
    "logs": lambda: [rule("", ["pods/log"], ["get"])],
    "exec": lambda: [rule("", ["pods/exec"], ["create"])],
}
"""What tells by the rules of a role with which options of `on_worker` it was made."""


def framework_rules() -> dict[str, list[Json]]:
    """By Kueue's name of a built-in framework: its rules on the manager."""
    found: dict[str, list[Json]] = {}
    for kind in AVAILABLE:
        found.setdefault(kind.framework, []).extend(kind_rules_on_manager(kind))
    return {name: merged(rules) for name, rules in found.items()}
