"""Roles and their bindings, as objects."""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.spokes.objects import permission_spec
from multikueued.config import Settings
from multikueued.rbac.policies import policy_objects
from multikueued.rbac.rules import RBAC_GROUP, in_namespace, on_manager, on_worker
from multikueued.rbac.spokes import granting_rules, spoke_agent_rules

CLUSTER_ROLE: Final = Resource(GVK(RBAC_GROUP, "v1", "ClusterRole"), "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Resource(
    GVK(RBAC_GROUP, "v1", "ClusterRoleBinding"), "clusterrolebindings", namespaced=False
)
SERVICE_ACCOUNT: Final = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts")


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
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def object(self) -> Json:
        """The object itself."""
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(self.name, self.namespace)}


def _metadata(name: str, namespace: str = "") -> Json:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def role(name: str, rules: list[Json], namespace: str = "") -> Json:
    """A ClusterRole, or a Role if there is a namespace."""
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": _metadata(name, namespace), "rules": rules}


def binding(name: str, account: Account, namespace: str = "") -> Json:
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
        *(granting_objects(settings) if settings.ocm.grants else ()),
    ]


def granting_objects(settings: Settings) -> list[Json]:
    """The ServiceAccount that writes ClusterPermissions, and the policy by which it can grant nothing else."""
    account = granting_account(settings)
    return [
        account.object,
        role(account.name, granting_rules()),
        binding(account.name, account),
        *policy_objects(account.name, account.user, permission_spec(on_worker(settings))),
    ]


def spoke_objects(settings: Settings, name: str, account: Account) -> list[Json]:
    """What OCM's work agent needs on a spoke to apply our ClusterPermission.

    It writes the role and its binding, and has the rules itself: nobody can grant what he does not have.
    """
    return [role(name, spoke_agent_rules(on_worker(settings), RBAC_GROUP)), binding(name, account)]


def worker_objects(settings: Settings, name: str, account: Account, **options: bool) -> list[Json]:
    """What the account of a worker's kubeconfig needs there; the options are those of `on_worker`."""
    return [account.object, role(name, on_worker(settings, **options)), binding(name, account)]
