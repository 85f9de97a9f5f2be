"""Who may do what: RBAC rules and service accounts, the same on every kind of cluster."""

from __future__ import annotations

from collections.abc import Sequence

from multikueue.core.model.names import Json
from tests.controlplane.api import Api
from tests.controlplane.polling import poll_until

_NAMESPACE = "default"
_RBAC = "rbac.authorization.k8s.io/v1"
_TOKEN_SECONDS = 24 * 3600  # outlives any test run
_RULES_SECONDS = 20.0
_REVOKED_SECONDS = 30.0  # the API server remembers a good token for 10 s; the rest is for a busy machine


def user_subject(name: str) -> Json:
    """Return the RBAC subject of a user with a static token."""
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def service_account_subject(name: str) -> Json:
    """Return the RBAC subject of one of our service accounts."""
    return {"kind": "ServiceAccount", "namespace": _NAMESPACE, "name": name}


async def grant(admin: Api, user: Api, name: str, subject: Json, rules: Sequence[Json]) -> None:
    """Let the subject do exactly what the rules of a ClusterRole say, in all namespaces, and wait until it may.

    A later grant replaces the rules. `name` is of the ClusterRole and its binding; `user` asks as the subject.

    Raises:
        NotReady: the API server does not apply the rules in time.
    """
    role = {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}
    binding = {
        "apiVersion": _RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [subject],
    }
    before = (await admin.send("GET", f"/apis/{_RBAC}/clusterroles/{name}")).body.get("rules") or []
    await admin.apply(role)
    await admin.apply(binding)
    wanted = {_normal(rule) for rule in rules if "resources" in rule}
    unwanted = {_normal(rule) for rule in before if "resources" in rule} - wanted

    async def in_force() -> bool:
        held = await _rules_of(user)
        return wanted <= held and not unwanted & held

    otherwise = f"The RBAC rules of {name} were not in force after {_RULES_SECONDS:g} s."
    await poll_until(in_force, seconds=_RULES_SECONDS, otherwise=otherwise)


async def create_service_account(admin: Api, name: str) -> str:
    """Create a service account and return a token for it."""
    await admin.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": _NAMESPACE}}
    )
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = await admin.call("POST", f"{_account_path(name)}/token", request)
    return str(answer["status"]["token"])


async def revoke_service_account(admin: Api, user: Api, name: str) -> None:
    """Delete a service account and wait until its token is refused (401).

    That takes up to 10 s: the API server caches a token's success that long, in memory and without a setting for it.
    Watches that are open stay open: as in any cluster, only requests are authenticated.

    Raises:
        NotReady: the token still works.
    """
    await admin.delete(_account_path(name))

    async def refused() -> bool:
        return (await user.send("GET", "/version")).status == 401

    otherwise = f"The token of service account {name} still works {_REVOKED_SECONDS:g} s after its deletion."
    await poll_until(refused, seconds=_REVOKED_SECONDS, otherwise=otherwise, interval=0.2)


def _account_path(name: str) -> str:
    return f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/{name}"


async def _rules_of(user: Api) -> set[tuple[tuple[str, ...], ...]]:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": _NAMESPACE},
    }
    answer = await user.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)
    return {_normal(rule) for rule in answer["status"]["resourceRules"]}


def _normal(rule: Json) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(rule.get(key) or ())) for key in ("verbs", "apiGroups", "resources", "resourceNames"))
