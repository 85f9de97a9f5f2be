"""Who may ask, what they may do by the roles that are stored, and how often they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Final

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import packaged
from multikueue.sandbox.apiserver.faults import Call
from multikueue.sandbox.apiserver.identity import rbac
from multikueue.sandbox.apiserver.identity.rbac import GROUP, Attributes
from multikueue.sandbox.apiserver.identity.tokens import AUDIENCE, TokenIssuer
from multikueue.sandbox.apiserver.identity.users import (
    ADMINISTRATORS,
    ANONYMOUS,
    AUTHENTICATED,
    User,
    account_of,
    impersonated,
    user_named,
)
from multikueue.sandbox.apiserver.status_errors import denied, unauthorized
from multikueue.sandbox.apiserver.storage.cluster import Cluster
from multikueue.sandbox.apiserver.verbs.registry import Registry

_EVERYBODY: Final = User(ANONYMOUS, (ADMINISTRATORS, AUTHENTICATED))


class Access:
    """Tokens and their users, their roles, and a count of requests.

    Args:
        registry: of the cluster, where service accounts and roles are.
        tokens: user by token. None: everyone may ask.

    Attributes:
        tokens: user by token; change it while the server runs to revoke or add one.
        requests: how many requests came in by (user, verb, resource), the refused and the failed ones too.
    """

    def __init__(self, registry: Registry, tokens: dict[str, str] | None) -> None:
        self.tokens = tokens
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self._registry = registry
        self._roles: StoredRoles | None = None

    def enforce_roles(self) -> None:
        """From now on service accounts, and users whom an administrator acts as, may only do what roles allow.

        The other users of `tokens` are administrators. The roles that every cluster begins with are created.
        """
        self._roles = StoredRoles(self._registry.cluster)
        for obj in first_roles():
            self._registry.create_object(obj, manager="kube-apiserver")

    @property
    def enforces_roles(self) -> bool:
        """Whether anything can be refused."""
        return self._roles is not None

    @cached_property
    def issuer(self) -> TokenIssuer:
        """Of tokens that service accounts ask for."""
        return TokenIssuer(self._registry.cluster)

    def user_of(self, token: str) -> str | None:
        """The name of whose a token is; None if nobody's."""
        identity = self.identify(token)
        return identity[0].name if identity else None

    def identify(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> tuple[User, list[str]] | None:
        """Whose a token is, and for which of the audiences; None if nobody's, or for none of them."""
        if self.tokens is None:
            return _EVERYBODY, list(audiences)
        name = self.tokens.get(token)
        if name is not None:
            return (user_named(name), [AUDIENCE]) if AUDIENCE in audiences else None
        return self.issuer.read(token, audiences) if "." in token else None

    def token_of(self, user: str) -> str | None:
        """A token of a user."""
        return next((token for token, name in (self.tokens or {}).items() if name == user), None)

    def asking(self, token: str, acts_as: str, groups: Sequence[str]) -> User:
        """Who asks with a token, or as whom.

        Raises:
            StatusError: 401, it is nobody's; 403, its user may not act as another one.
        """
        identity = self.identify(token)
        if identity is None:
            raise unauthorized()
        user = identity[0]
        if not acts_as:
            return user
        account = account_of(acts_as)
        whom = ("serviceaccounts", *account) if account else ("users", "", acts_as)
        for resource, within, named in (whom, *(("groups", "", group) for group in groups)):
            self.authorize(user, Attributes("impersonate", resource=resource, namespace=within, name=named))
        return impersonated(acts_as, groups)

    def count(self, call: Call) -> None:
        """Note a request."""
        self.requests[call.user, call.verb, call.resource] += 1

    def authorize(self, user: User, asked: Attributes) -> None:
        """Let a user do something.

        Raises:
            StatusError: 403, no role allows it.
        """
        if self._roles is not None and self.reason(user, asked) is None:
            raise denied(user.name, asked.verb, asked.group, asked.combined, asked.namespace, asked.name)

    def reason(self, user: User, asked: Attributes) -> str | None:
        """Why a user may do something; None if it is refused."""
        if self._roles is None:
            return "roles have no effect here: whoever has a token may do everything"
        return rbac.reason(self._roles, user, asked)

    def rules_of(self, user: User, namespace: str) -> list[Json]:
        """All rules that hold for a user in a namespace."""
        if self._roles is None:
            return rbac.rules_of(StoredRoles(self._registry.cluster), _EVERYBODY, namespace)
        return rbac.rules_of(self._roles, user, namespace)


@attrs.frozen
class StoredRoles:
    """Reads roles and bindings; a `Roles`."""

    cluster: Cluster

    def bindings(self, namespace: str) -> Iterator[Json]:
        """The ClusterRoleBindings, then the RoleBindings of a namespace."""
        yield from self._all("clusterrolebindings", "")
        if namespace:
            yield from self._all("rolebindings", namespace)

    def rules(self, kind: str, namespace: str, name: str) -> Sequence[Json] | None:
        """The rules of a Role or ClusterRole; None if there is no such role."""
        plural, within = ("roles", namespace) if kind == "Role" else ("clusterroles", "")
        entry = self.cluster.store.get((GROUP, plural), (within, name))
        return (entry.obj.get("rules") or ()) if entry else None

    def _all(self, plural: str, namespace: str) -> Iterator[Json]:
        bucket = self.cluster.store.buckets.get((GROUP, plural))
        if bucket is not None:
            yield from (bucket.objects[key].obj for key in bucket.keys_of(namespace))


@cache
def first_roles() -> list[Json]:
    """What a cluster has from the start; `first_roles.yaml` says what. Treat it as read-only: it is shared."""
    roles: list[Json] = packaged(__package__, "first_roles.yaml")
    return roles
