"""The one source of RBAC rules: what the daemon asks of the manager and of workers, and nothing else.

`multikueue rbac` prints them, `multikueue worker add` grants them, `tests/docs/chart_rules.py` writes the chart's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from multikueue import JobKind
from multikueue.core.dispatchers.dispatcher import SCORED
from multikueue.core.model.dependencies import COPIED, LOOKED_FOR
from multikueue.core.model.kinds import COHORT, KUEUE_GROUP, OCM_GROUP, RESOURCE_FLAVOR
from multikueue.core.model.names import Json, Resource
from multikueue.runtime.workers.cluster_identity import KUBE_SYSTEM
from multikueue.runtime.workers.kueue_check import CONTROLLER
from multikueued.rbac.logs import log_rules
from multikueued.rbac.mirrors import mirror_key_rules, mirroring_rules, shown_rules
from multikueued.rbac.policies import TAKING, taking_name
from multikueued.rbac.role_rule import merged, rule
from multikueued.rbac.spokes import PROFILES, SPOKES, SPOKES_IN_NAMESPACE, impersonation_rules, spokes_wanted
from multikueued.settings.config import Settings
from multikueued.settings.dispatcher import dispatcher_name, looks_at_queues
from multikueued.settings.kinds import chosen_kinds

RBAC_GROUP: Final = "rbac.authorization.k8s.io"


IDENTITY_RULE: Final = rule("", ["namespaces"], ["get"], [KUBE_SYSTEM.name])
"""In every cluster: the one namespace whose UID tells it from others, so that the manager knows itself."""


ON_MANAGER: Final[Mapping[str, Sequence[Json]]] = {
    "manager": (  # whatever the settings are
        rule(KUEUE_GROUP, ["workloads"], ["list", "watch", "patch"]),  # patch: for annotations of ours
        rule(KUEUE_GROUP, ["admissionchecks", "multikueueclusters", "multikueueconfigs"], ["list", "watch"]),
        rule(KUEUE_GROUP, ["workloads/status", "admissionchecks/status", "multikueueclusters/status"], ["patch"]),
        rule("events.k8s.io", ["events"], ["create", "patch"]),
        IDENTITY_RULE,
    ),
    "quota": (  # for quota automation
        rule(KUEUE_GROUP, ["clusterqueues", "localqueues"], ["list", "watch"]),
        rule(KUEUE_GROUP, ["clusterqueues", "clusterqueues/status"], ["patch"]),
    ),
    # For the scored dispatcher: it notes on a worker whose jobs failed there.
    "penalty": (rule(KUEUE_GROUP, ["multikueueclusters"], ["patch"]),),
    # For copies that say which namespace they come from.
    "origin": (rule("", ["namespaces"], ["get"]),),
    "ocm": (  # for the placement check
        rule(KUEUE_GROUP, ["admissionchecks"], ["patch"]),  # for a finalizer of ours
        rule(KUEUE_GROUP, ["multikueueconfigs"], ["create", "delete", "patch"]),
        rule(OCM_GROUP, ["addonplacementscores"], ["list", "watch"]),  # in the namespaces of all clusters
    ),
    **SPOKES,
    "inventory": (  # for configs that are filled by label
        rule(KUEUE_GROUP, ["multikueueconfigs"], ["create", "patch"]),
        rule(KUEUE_GROUP, ["multikueueclusters"], ["create", "delete", "patch"]),
    ),
    "metrics": (  # that only some may read
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ),
}
"""In the whole manager cluster, by the chart's name of what needs it."""

IN_NAMESPACE: Final[Mapping[str, Sequence[Json]]] = {
    **SPOKES_IN_NAMESPACE,
    "profiles": PROFILES,
    "ocmnamespace": (rule(OCM_GROUP, ["placements", "placementdecisions"], ["list", "watch"]),),
    "inventorynamespace": PROFILES,  # for configs that are filled by label
}
"""In the namespace of the kubeconfig Secrets, Placements and ClusterProfiles."""


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


def webhook_rules(configuration: str) -> list[Json]:
    """In the whole manager cluster, for the webhook; `configuration` is the MutatingWebhookConfiguration's name."""
    return [
        rule(KUEUE_GROUP, ["localqueues", "clusterqueues"], ["list", "watch"]),
        rule("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], ["patch"], [configuration]),
    ]


def certificate_rules(secret: str) -> list[Json]:
    """In the namespace, for a certificate that the daemon makes; `secret` is the Secret's name."""
    return [rule("", ["secrets"], ["patch"], [secret])]


ON_WORKER: Final[Mapping[str, Sequence[Json]]] = {
    "worker": (  # whatever the settings are
        # get: to read what has the name of a copy whose creation was not answered.
        rule(KUEUE_GROUP, ["workloads"], ["create", "delete", "get", "list", "watch", "patch"]),
        rule(KUEUE_GROUP, ["workloads/status"], ["patch"]),
        IDENTITY_RULE,
    ),
    "quota": (rule(KUEUE_GROUP, ["clusterqueues", "localqueues"], ["list", "watch"]),),
    # For a dispatcher that looks at what is free there; see also `OPTIONAL`.
    "figures": (
        rule(KUEUE_GROUP, ["clusterqueues", "localqueues", "cohorts"], ["list", "watch"]),
        rule(KUEUE_GROUP, [RESOURCE_FLAVOR.plural], ["list"]),
    ),
    # For those who ask why: queues and their quotas, namespaces, definitions, and Kueue's version. `multikueue drain
    # --move` needs them to know what could ever fit.
    "diagnose": (
        rule(KUEUE_GROUP, ["clusterqueues", "localqueues", "resourceflavors"], ["get", "list"]),
        rule("", ["namespaces"], ["get", "list"]),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get", "list"]),
        rule("apps", ["deployments"], ["get"], [CONTROLLER.name]),
    ),
    "exec": (rule("", ["pods/exec"], ["create", "get"]),),
}
"""In a whole worker cluster."""

OPTIONAL: Final = frozenset({(KUEUE_GROUP, COHORT.plural), (KUEUE_GROUP, RESOURCE_FLAVOR.plural)})
"""Groups and resources without which all works, but less well: to the scored dispatcher a queue has then what it does
not lend, and each flavor is one that any pods may use."""


def kind_rules_on_manager(kind: JobKind) -> list[Json]:
    """Follow the kind's jobs, and write their status where it is copied back; delete them only if that is set."""
    if kind.workload_only:
        return []
    group, plural = kind.resource.gvk.group, kind.resource.plural
    rules = [rule(group, [plural], ["list", "watch"])]
    if kind.status.rule is not None:
        rules.append(rule(group, [f"{plural}/status" if kind.status.subresource else plural], ["patch"]))
    return [*rules, *(expiry_rules(kind) if kind.deletes_expired else ()), *_definition(kind)]


def expiry_rules(kind: JobKind) -> list[Json]:
    """On the manager: to delete jobs that say themselves when they go."""
    lasts = kind.copies.time_to_live
    return (
        [rule(kind.resource.gvk.group, [kind.resource.plural], ["delete"])]
        if lasts is not None and lasts.deletes
        else []
    )


def kind_rules_on_worker(kind: JobKind) -> list[Json]:
    """Make the kind's copies and remove them, and change them where the kind has changes that follow."""
    if kind.workload_only:
        return []
    follows = kind.sync.forwarded or kind.sync.followed is not None or kind.sync.resized is not None
    verbs = ["create", "delete", "get", "list", "watch", *(["patch"] if follows else [])]
    pods = [rule("", ["pods"], ["list"])] if kind.pods_label else []
    return [rule(kind.resource.gvk.group, [kind.resource.plural], verbs), *pods, *_definition(kind)]


def _definition(kind: JobKind) -> list[Json]:
    """A declaration is checked against the kind's definition."""
    if kind.declaration is None or not kind.resource.gvk.group:
        return []
    return [rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get"], [kind.resource.qualified])]


def own_token_rules(account: str) -> list[Json]:
    """In the account's own namespace on a worker: to ask for tokens of itself, and of nobody else."""
    return [rule("", ["serviceaccounts/token"], ["create"], [account])]


def taking_rules(manager: str) -> list[Json]:
    """In a whole worker cluster, for the same: whether the policy is in force there."""
    return [rule(TAKING.gvk.group, [TAKING.plural], ["get"], [taking_name(manager)])]


def on_manager(settings: Settings, *, prepared: bool = False) -> list[Json]:
    """The rules of the ClusterRole on the manager, for these settings.

    Args:
        settings: the daemon's.
        prepared: without the right to create what is there before the daemon, as the chart makes it for the webhook.
    """
    wanted = {
        "manager": True,
        "quota": settings.quota_automation,
        "penalty": dispatcher_name(settings) == SCORED,
        "origin": bool(settings.manager_name),
        "ocm": settings.ocm.enabled,
        **spokes_wanted(settings.ocm),
        "inventory": bool(settings.inventory),
        "metrics": settings.serving.metrics.secure,
    }
    rules = [*_chosen(ON_MANAGER, wanted), *dependency_rules(dependency_kinds(settings))]
    if settings.webhook.enabled:
        rules += webhook_rules(settings.webhook.configuration_name)
        if not prepared:
            rules.append(rule("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], ["create"]))
    for kind in chosen_kinds(settings):
        rules += kind_rules_on_manager(kind)
    if settings.mirror_pods.needs_rights:
        rules += mirroring_rules(settings.mirrors_policy)
    return merged(rules)


def in_namespace(settings: Settings, *, prepared: bool = False) -> list[Json]:
    """The rules of the Role on the manager in the settings' namespace; see `on_manager`."""
    rules = secret_rules(settings.marks_secret)
    rules += mirror_key_rules(settings.mirrors_secret) if settings.mirror_pods.needs_rights else []
    if settings.findings.enabled:
        rules += findings_rules(settings.findings_config_map)
    if settings.bound_tokens.enabled:
        rules += bound_rules(settings.bound_tokens.secret_names)
    if settings.leader_election.enabled:
        rules += lease_rules(settings.name)
    if settings.ocm.grants:
        rules += impersonation_rules(settings.ocm.cluster_permissions.service_account_name)
    wanted = {
        **spokes_wanted(settings.ocm),
        "profiles": settings.cluster_profile is not None,
        "ocmnamespace": settings.ocm.enabled,
        "inventorynamespace": bool(settings.inventory),
    }
    rules += _chosen(IN_NAMESPACE, wanted)
    if settings.webhook.enabled and not settings.webhook.cert_dir:
        rules += certificate_rules(settings.webhook.service_name)
        rules += [] if prepared else [rule("", ["secrets"], ["create"])]
    return merged(rules)


def on_worker(settings: Settings, *, diagnose: bool = False, logs: bool = False, exec: bool = False) -> list[Json]:
    """The rules of the ClusterRole on each worker.

    Args:
        settings: the daemon's.
        diagnose: with what shows why a job waits there.
        logs: with what `multikueue pods` and `logs` read there.
        exec: with what `multikueue exec` does there: whoever has it may do what any pod of the cluster may.
    """
    figures = looks_at_queues(settings)
    quota = settings.quota_automation and not figures
    wanted = {"worker": True, "figures": figures, "quota": quota, "diagnose": diagnose, "exec": exec}
    rules = [*_chosen(ON_WORKER, wanted), *worker_dependency_rules(dependency_kinds(settings))]
    for kind in chosen_kinds(settings):
        rules += kind_rules_on_worker(kind)
    rules += taking_rules(settings.manager_name) if settings.manager_name else []
    rules += log_rules(chosen_kinds(settings)) if logs or exec else []
    rules += shown_rules(chosen_kinds(settings)) if settings.mirror_pods.logs else []
    return merged(rules)


def _chosen(table: Mapping[str, Sequence[Json]], wanted: Mapping[str, bool]) -> Iterator[Json]:
    return (role_rule for name, rules in table.items() if wanted.get(name) for role_rule in rules)


EXTRAS: Final[Mapping[str, Sequence[Json]]] = {
    "diagnose": ON_WORKER["diagnose"],
    "logs": (rule("", ["pods/log"], ["get"]),),
    "exec": (rule("", ["pods/exec"], ["create"]),),
}
"""What tells by the rules of a role with which options of `on_worker` it was made."""


def dependency_kinds(settings: Settings) -> list[str]:
    """The kinds that any config names."""
    return list(dict.fromkeys(kind for entry in settings.dependencies for kind in entry.kinds))


def copied_resources(settings: Settings) -> list[Resource]:
    """What of them is copied."""
    return [COPIED[kind] for kind in dependency_kinds(settings) if kind in COPIED]


def dependency_rules(kinds: Collection[str]) -> list[Json]:
    """In the whole manager cluster: to read what is copied."""
    return [rule(COPIED[kind].gvk.group, [COPIED[kind].plural], ["get"]) for kind in kinds if kind in COPIED]


def worker_dependency_rules(kinds: Collection[str]) -> list[Json]:
    """In a whole worker cluster: to make copies, and share them; to see whether what is never copied is there."""
    made = [COPIED[kind] for kind in kinds if kind in COPIED]
    seen = [LOOKED_FOR[kind] for kind in kinds if kind in LOOKED_FOR]
    return [
        *(rule(resource.gvk.group, [resource.plural], ["create", "get", "patch"]) for resource in made),
        *(rule(resource.gvk.group, [resource.plural], ["get"]) for resource in seen),
    ]
