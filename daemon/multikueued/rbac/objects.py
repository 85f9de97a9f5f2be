"""Roles and their bindings, as objects, and the roles of those who submit jobs and of those who look at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from multikueue import JobKind
from multikueue.core.inventory.ocm_workers.objects import permission_spec
from multikueue.core.model.kinds import CORE_EVENT, EVENT, KUEUE_GROUP, WORKLOAD
from multikueue.core.model.names import GVK, SERVICE_ACCOUNT_USER, Json, Resource
from multikueued.api_answers import API_SERVICE_NAME, GROUP, PARTS, REMOTE_JOB, WHOLE
from multikueued.rbac.logs import (
    api_server_rules,
    daemon_rules,
    logs_on_worker,
    named_secret_rules,
    own_certificate_rules,
    page_rules,
)
from multikueued.rbac.mirrors import (
    NODE_LEASES,
    endpoint_rules,
    endpoint_secret_rules,
    mirror_policy_objects,
    mirrored_rules,
    node_lease_rules,
)
from multikueued.rbac.policies import policy_objects, taking_objects
from multikueued.rbac.role_rule import merged, rule
from multikueued.rbac.rules import (
    RBAC_GROUP,
    copied_resources,
    in_namespace,
    on_manager,
    on_worker,
    own_token_rules,
)
from multikueued.rbac.spokes import GRANTING, spoke_agent_rules
from multikueued.settings.config import Settings
from multikueued.settings.kinds import chosen_kinds

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "delete", "patch", "update")
AGGREGATED: Final = {"viewer": "view", "submitter": "edit"}
"""By role: the role of Kubernetes that it may be made a part of. `view` shows the jobs of a namespace, their pods and
logs already, and no Secret: this shows the same of where they run. `edit` creates and deletes them already."""


def viewer_rules() -> list[Json]:
    """In a namespace of the manager, whatever kinds its jobs have: the API, and what is read without it."""
    return [
        rule(GROUP, [REMOTE_JOB.plural], READ),
        rule(GROUP, [f"{REMOTE_JOB.plural}/{part}" for part in PARTS], ["get"]),
        rule(GROUP, [*WHOLE], ["list"]),
        rule(KUEUE_GROUP, ["workloads", "localqueues"], READ),
        # kubectl describe reads the latter.
        *(rule(resource.gvk.group, [resource.plural], READ) for resource in (EVENT, CORE_EVENT)),
    ]


def user_kind_rules(kind: JobKind, verbs: Sequence[str]) -> list[Json]:
    """To read jobs of a kind, or to submit, change and delete them. Clients read a status by its own path as well."""
    if kind.workload_only:
        return []
    group, plural = kind.resource.gvk.group, kind.resource.plural
    status = [rule(group, [f"{plural}/status"], ["get"])] if kind.status.subresource else []
    return [rule(group, [plural], verbs), *status]


def role_rules(name: str, kinds: Sequence[JobKind]) -> list[Json]:
    """The rules of one of the two roles, for these kinds."""
    return merged(
        [*viewer_rules(), *(role_rule for kind in kinds for role_rule in user_kind_rules(kind, verbs_of(name)))]
    )


def verbs_of(name: str) -> Sequence[str]:
    """What one of the two roles may do with jobs."""
    return READ if name == "viewer" else (*WRITE, *READ)


CLUSTER_ROLE: Final = Resource(GVK(RBAC_GROUP, "v1", "ClusterRole"), "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Resource(
    GVK(RBAC_GROUP, "v1", "ClusterRoleBinding"), "clusterrolebindings", namespaced=False
)
ROLE: Final = Resource(GVK(RBAC_GROUP, "v1", "Role"), "roles")
ROLE_BINDING: Final = Resource(GVK(RBAC_GROUP, "v1", "RoleBinding"), "rolebindings")
FRONT_PROXY_READER: Final = "extension-apiserver-authentication-reader"
"""Kubernetes' own Role in `kube-system`: who signs the certificate of the API servers' front proxy."""
SERVICE_ACCOUNT: Final = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts")
RESOURCES: Final = {
    resource.gvk.kind: resource
    for resource in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, SERVICE_ACCOUNT)
}
"""By kind, what an account and what it may do are made of."""


@attrs.frozen
class Account:
    """A service account."""

    namespace: str
    name: str

    @property
    def subject(self) -> Json:
        """As a role binding names it."""
        return {"kind": "ServiceAccount", "namespace": self.namespace, "name": self.name}

    @property
    def user(self) -> str:
        """As API servers name it."""
        return f"{SERVICE_ACCOUNT_USER}{self.namespace}:{self.name}"

    @property
    def object(self) -> Json:
        """The object itself."""
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(self.name, self.namespace)}


@attrs.frozen
class NamedUser:
    """Whom a server knows by another way than as a service account, as by a client certificate."""

    user: str

    @property
    def subject(self) -> Json:
        """As a role binding names it."""
        return {"kind": "User", "apiGroup": RBAC_GROUP, "name": self.user}


def _metadata(name: str, namespace: str = "") -> Json:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def role(name: str, rules: Iterable[Json], namespace: str = "") -> Json:
    """A ClusterRole, or a Role if there is a namespace."""
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": _metadata(name, namespace), "rules": [*rules]}


def binding(name: str, account: Account | NamedUser, namespace: str = "") -> Json:
    """What gives an account the role of the same name."""
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
        "subjects": [account.subject],
    }


def granting_account(settings: Settings) -> Account:
    """The ServiceAccount as which ClusterPermissions are written."""
    return Account(settings.namespace, settings.ocm.cluster_permissions.service_account_name)


def manager_objects(settings: Settings, name: str, account: Account) -> list[Json]:
    """What the daemon's account needs on the manager."""
    namespace = str(settings.namespace)
    return [
        account.object,
        role(name, on_manager(settings)),
        binding(name, account),
        role(name, in_namespace(settings), namespace),
        binding(name, account, namespace),
        # Empty: the daemon puts the key there, so it needs no right to create Secrets.
        {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(settings.marks_secret, namespace)},
        *(granting_objects(settings) if settings.ocm.grants else ()),
        *(mirroring_objects(settings, name, account) if settings.mirror_pods.needs_rights else ()),
    ]


def mirroring_objects(settings: Settings, name: str, account: Account) -> list[Json]:
    """What the daemon's account needs to make Nodes and mirrors beside its role, and the policy that bounds it."""
    secrets = [settings.mirrors_secret]
    if not settings.mirrors_certificate_is_brought:
        secrets.append(settings.mirrors_certificate_secret)
    return [
        role(name, node_lease_rules(), NODE_LEASES),
        binding(name, account, NODE_LEASES),
        # Empty: the first has its key put there by the daemon, the other its certificate by who answers for mirrors.
        *(
            {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(secret, str(settings.namespace))}
            for secret in secrets
        ),
        *mirror_policy_objects(settings.mirrors_policy, account.user),
    ]


def granting_objects(settings: Settings) -> list[Json]:
    """The ServiceAccount that writes ClusterPermissions, and the policy by which it can grant nothing else."""
    account = granting_account(settings)
    return [
        account.object,
        role(account.name, GRANTING),
        binding(account.name, account),
        *policy_objects(account.name, account.user, permission_spec(on_worker(settings))),
    ]


def spoke_objects(settings: Settings, name: str, account: Account) -> list[Json]:
    """What OCM's work agent needs on a spoke to apply our ClusterPermission.

    It writes the role and its binding, and has the rules itself: nobody can grant what he does not have.
    """
    return [role(name, spoke_agent_rules(on_worker(settings), RBAC_GROUP)), binding(name, account)]


def api_server_objects(
    settings: Settings, name: str, account: Account, secrets: Sequence[str], *, page: bool = False
) -> list[Json]:
    """What `multikueue api-server` needs on the manager.

    Args:
        settings: the daemon's.
        name: of the roles, and of the Secret with the server's certificate.
        account: the server's; its namespace has its Secrets.
        secrets: names of those with kubeconfigs of workers.
        page: with what its page needs.
    """
    marks, there = f"{name}-marks", str(settings.namespace)
    secret, findings = settings.marks_secret, settings.findings_config_map
    own = [*own_certificate_rules(name), *named_secret_rules(secrets)]
    brought, mirrors = settings.mirrors_certificate_is_brought, settings.mirror_pods
    pair = settings.mirrors_secret, settings.mirrors_certificate_secret
    everywhere = endpoint_rules(signed=bool(mirrors.signer)) if mirrors.logs else []
    everywhere += page_rules() if page else []
    shared = endpoint_secret_rules(*pair, brought=brought) if mirrors.logs else []
    return [
        account.object,
        role(name, [*api_server_rules(API_SERVICE_NAME), *everywhere]),
        binding(name, account),
        role(name, own, account.namespace),
        binding(name, account, account.namespace),
        role(marks, [*daemon_rules(secret, findings, str(settings.name)), *shared], there),
        binding(marks, account, there),
        {
            **binding(f"{name}-front-proxy", account, "kube-system"),
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": FRONT_PROXY_READER},
        },
    ]


def logs_worker_objects(settings: Settings, name: str, account: Account) -> list[Json]:
    """What the account of `multikueue api-server` needs on a worker."""
    mirrors = settings.mirror_pods
    more = mirrored_rules(exec=mirrors.exec) if mirrors.logs else []
    rules = merged([*logs_on_worker(chosen_kinds(settings)), *more])
    return [account.object, role(name, rules), binding(name, account)]


def user_objects(settings: Settings, name: str, *, aggregate: bool = False) -> list[Json]:
    """The ClusterRoles of those who submit jobs and who look at them.

    Args:
        settings: the daemon's.
        name: what theirs begin with.
        aggregate: whether they are parts of `view` and `edit`.
    """
    kinds = chosen_kinds(settings)
    made = {part: role(f"{name}-{part}", role_rules(part, kinds)) for part in AGGREGATED}
    for part, whole in AGGREGATED.items() if aggregate else ():
        made[part]["metadata"]["labels"] = {f"{RBAC_GROUP}/aggregate-to-{whole}": "true"}
    return list(made.values())


def worker_objects(
    settings: Settings,
    name: str,
    account: Account | NamedUser,
    *,
    bound: bool = False,
    taking: bool = False,
    **options: bool,
) -> list[Json]:
    """What the account of a worker's kubeconfig needs there.

    Args:
        settings: the daemon's.
        name: of the roles and their bindings.
        account: whose token is in the kubeconfig.
        bound: whether its tokens are bound: it must be able to ask for new ones of itself.
        taking: with the policy by which its namespaces take the copies of those that they name.
        options: those of `on_worker`.
    """
    everywhere = [role(name, on_worker(settings, **options)), binding(name, account)]
    if isinstance(account, Account):
        everywhere = [account.object, *everywhere]
        if bound:
            own = role(name, own_token_rules(account.name), account.namespace)
            everywhere += [own, binding(name, account, account.namespace)]
    kinds = (kind.resource for kind in chosen_kinds(settings) if not kind.workload_only)
    made = [WORKLOAD, *kinds, *copied_resources(settings)]
    policy = taking_objects(settings.manager_name, account.user, made) if taking else ()
    return [*everywhere, *policy]
