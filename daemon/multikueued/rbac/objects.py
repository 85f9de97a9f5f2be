"""Roles and their bindings, as objects."""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.core.model.names import GVK, Json, Resource
from multikueued.config import Settings
from multikueued.rbac.rules import RBAC_GROUP, in_namespace, on_manager, on_worker, token_rules

CLUSTER_ROLE: Final = Resource(GVK(RBAC_GROUP, "v1", "ClusterRole"), "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Resource(
    GVK(RBAC_GROUP, "v1", "ClusterRoleBinding"), "clusterrolebindings", namespaced=False
)
ROLE: Final = Resource(GVK(RBAC_GROUP, "v1", "Role"), "roles")
ROLE_BINDING: Final = Resource(GVK(RBAC_GROUP, "v1", "RoleBinding"), "rolebindings")
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


def manager_objects(settings: Settings, name: str, account: Account) -> list[Json]:
    """What the daemon's account needs on the manager."""
    namespace = str(settings.namespace)
    return [
        account.object,
        role(name, on_manager(settings)),
        binding(name, account),
        role(name, in_namespace(settings), namespace),
        binding(name, account, namespace),
    ]


def worker_objects(
    settings: Settings, name: str, account: Account, *, bound: bool = False, **options: bool
) -> list[Json]:
    """What the account of a worker's kubeconfig needs there.

    Args:
        settings: the daemon's.
        name: of the roles and their bindings.
        account: whose token is in the kubeconfig.
        bound: whether its tokens are bound: it must be able to ask for new ones of itself.
        options: those of `on_worker`.
    """
    own = [
        role(name, token_rules(account.name), account.namespace),
        binding(name, account, account.namespace),
    ]
    everywhere = [account.object, role(name, on_worker(settings, **options)), binding(name, account)]
    return [*everywhere, *(own if bound else ())]
