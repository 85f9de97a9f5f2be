"""Users and their groups, as tokens and impersonation name them, and bodies whose kinds are not stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import bad_request

ANONYMOUS: Final = "system:anonymous"
ADMINISTRATORS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
_ACCOUNT: Final = "system:serviceaccount:"


@attrs.frozen
class User:
    """Who asks.

    Attributes:
        name: `system:serviceaccount:NAMESPACE:NAME` for a service account.
        groups: `system:masters` may do everything.
        uid: a service account's, if it is known.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def is_administrator(self) -> bool:
        """Whether no role is asked."""
        return ADMINISTRATORS in self.groups

    def described(self) -> Json:
        """The `userInfo` of a review."""
        info: Json = {"username": self.name, "groups": list(self.groups)}
        return {**info, "uid": self.uid} if self.uid else info


def account_user(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{_ACCOUNT}{namespace}:{name}"


def user_named(name: str, uid: str = "") -> User:
    """The user whom a token names: a service account, else one of the sandbox's administrators."""
    groups = account_groups(name)
    return User(name, groups or (ADMINISTRATORS, AUTHENTICATED), uid)


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user name means; None for every other user."""
    namespace, _, name = user.removeprefix(_ACCOUNT).partition(":")
    return (namespace, name) if user.startswith(_ACCOUNT) and name else None


def account_groups(user: str) -> tuple[str, ...]:
    """The groups of a service account; none for every other user."""
    account = account_of(user)
    if account is None:
        return ()
    return ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}", AUTHENTICATED)


def impersonated(name: str, groups: Iterable[str]) -> User:
    """Whom an administrator acts as: a service account has its groups, others those that are named."""
    own = tuple(groups) or account_groups(name)
    return User(name, tuple(dict.fromkeys((*own, AUTHENTICATED))))


T = TypeVar("T")


def struct(body: Any, field: str) -> Json:
    """A field with fields; empty if it is not there.

    Raises:
        StatusError: 400, it is something else.
    """
    return of_type(body, field, dict) or {}


def texts(body: Json, field: str) -> list[str]:
    """A list of texts; empty if it is not there.

    Raises:
        StatusError: 400, it is something else.
    """
    items = of_type(body, field, list) or []
    if not all(isinstance(item, str) for item in items):
        raise bad_request(f"the field {field} is no list of strings")
    return items


def of_type(body: Any, field: str, kind: type[T]) -> T | None:
    """A field of this type; None if it is not there.

    Raises:
        StatusError: 400, it is something else, or the body has no fields.
    """
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized")
    value = body.get(field)
    if value is None or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
        return value
    raise bad_request(f"json: cannot unmarshal {field} into Go type {kind.__name__}")
