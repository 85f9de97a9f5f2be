"""Reads what may be read of a cluster, and notes what may not: that is "not checked", and never fine."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Set
from typing import Final, TypeVar

import attrs

from multikueue import JobKind
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.core.model.worker_kueue import WorkerKueue
from multikueue.errors import ApiError, Forbidden, NotFound, ServerFault, Unreadable
from multikueue.runtime.workers.kueue_check import kueue_on
from multikueued.clusters import ClusterClient
from multikueued.few_at_a_time import few_at_a_time
from multikueued.rbac.rules import OPTIONAL
from multikueued.reports.worker_facts import NotChecked, Permission
from multikueued.serving.reviews import ACCESS_REVIEW, SELF_REVIEW, WHO_AM_I, reviewed

MANAGER: Final = "the manager"
AT_ONCE: Final = 6
"""Reviews that are asked at the same time."""
ONE_ALONE: Final = (Forbidden, Unreadable, ServerFault, NotFound)
"""Errors that keep one thing of a server from being seen, and tell nothing of the others."""

R = TypeVar("R")


@attrs.define(eq=False)
class Sight:
    """One cluster, as somebody with these credentials sees it."""

    client: ClusterClient
    whose: str
    """Whose objects these are, in words: `the manager`, `worker1`."""
    remedy: str
    """Who could see more."""
    not_checked: list[NotChecked] = attrs.field(factory=list)

    def blind(self, what: str, why: str, who: str = "", *, worker: str = "") -> None:
        """Note what could not be seen."""
        self.not_checked.append(NotChecked(what, why, who or self.remedy, worker))

    def noted(self, what: str, resource: Resource, error: ApiError) -> bool:
        """Whether only this list cannot be read, which is noted; else nothing can."""
        if isinstance(error, ONE_ALONE):
            self.blind(what, why_unread(error, "list", resource, self.whose))
            return True
        return False

    async def items(self, resource: Resource, what: str, *, label_selector: str = "") -> tuple[Json, ...] | None:
        """A list; None: it may not be read, which is noted.

        Raises:
            ApiError: the server does not answer, or does not accept the credentials.
        """
        listed = await self._seen(self.client.list(resource, label_selector=label_selector), what, "list", resource)
        return tuple(listed.items) if listed is not None else None

    async def get(self, resource: Resource, key: ObjectKey, what: str) -> Json | None:
        """An object; None: it may not be read, or does not exist, which both are noted.

        Raises:
            ApiError: see `items`.
        """
        return await self._seen(self.client.get(resource, key), what, "get", resource, str(key))

    async def exists(self, resource: Resource, key: ObjectKey, what: str) -> bool | None:
        """Whether there is an object, of which nothing is read; None: it may not be read, which is noted.

        Raises:
            ApiError: see `items`.
        """
        return await self._seen(self.client.exists(resource, key), what, "get", resource, str(key))

    async def _seen(self, asking: Awaitable[R], what: str, verb: str, resource: Resource, name: str = "") -> R | None:
        """The answer; None: this alone may not be read, which is noted. Raises as `items`."""
        try:
            return await asking
        except ONE_ALONE as error:
            self.blind(what, why_unread(error, verb, resource, self.whose, name))
            return None

    async def served(self) -> Set[GVK]:
        """The kinds that the server tells of all at once; it may serve others: those of the core group, and all if it
        does not tell.

        Raises:
            ApiError: see `items`.
        """
        try:
            return await self.client.served() or frozenset()
        except ONE_ALONE:
            return frozenset()

    async def lacks(self, gvk: GVK, what: str) -> bool:
        """Whether the server does not serve a kind; False also if it does not tell, which is noted."""
        try:
            return await self.client.discover(gvk) is None
        except (Forbidden, Unreadable, ServerFault) as error:
            self.blind(what, str(error))
            return False

    async def kueue(self, what: str) -> WorkerKueue | None:
        """What is known of its Kueue; None: that cannot be read, which is noted. An unknown version is no fault.

        Raises:
            ApiError: see `items`.
        """
        try:
            return await kueue_on(self.client)
        except (Forbidden, Unreadable, ServerFault) as error:
            self.blind(what, str(error))
            return None

    async def reviewed(self, asked: list[Permission], what: str, user: str = "") -> tuple[Permission, ...]:
        """The permissions with what the server says of them; none if it may not be asked.

        Args:
            asked: the permissions.
            what: they are about, for what is not checked.
            user: whose; empty: one's own.

        Raises:
            ApiError: see `items`.
        """
        answered, refused = dict[Permission, Permission](), list[ApiError]()

        async def ask(permission: Permission) -> None:
            try:
                allowed = await self._allowed(permission, user)
                answered[permission] = attrs.evolve(permission, allowed=allowed)
            except ApiError as error:
                refused.append(error)

        await few_at_a_time(AT_ONCE, ask, asked)
        if refused and not isinstance(refused[0], Forbidden | ServerFault | NotFound):
            raise refused[0]
        if refused:
            self.blind(what, why_unread(refused[0], "create", ACCESS_REVIEW if user else SELF_REVIEW, self.whose))
        return tuple(answered[permission] for permission in asked if permission in answered)

    async def user(self) -> str:
        """Whom the server takes the credentials for; empty: it does not say.

        Raises:
            ApiError: see `items`.
        """
        try:
            return str(dig(await reviewed(self.client.create, WHO_AM_I, {}), "userInfo", "username") or "")
        except ONE_ALONE:
            return ""

    async def _allowed(self, permission: Permission, user: str) -> bool:
        resource, _, subresource = permission.resource.partition("/")
        wanted = {"verb": permission.verb, "group": permission.group, "resource": resource, "subresource": subresource}
        wanted |= {"namespace": permission.namespace, "name": permission.name}
        spec: Json = {"resourceAttributes": {name: value for name, value in wanted.items() if value}}
        if user:
            namespace = user.split(":")[2]
            groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
            spec |= {"user": user, "groups": groups}
        answer = await reviewed(self.client.create, ACCESS_REVIEW if user else SELF_REVIEW, spec)
        return bool(answer.get("allowed"))


def why_unread(error: ApiError, verb: str, resource: Resource, whose: str, name: str = "") -> str:
    """Why something cannot be read, in words."""
    match error:
        case Forbidden():
            who = "you may" if whose == MANAGER else "the user of its kubeconfig may"
            return f"{who} not {verb} {resource} there"
        case NotFound():
            return f'there is no {resource.gvk.kind} "{name}"' if name else f"{whose} does not serve {resource}"
    return str(error)


def permissions(rules: list[Json], namespace: str = "") -> list[Permission]:
    """What rules of a role permit, verb by verb; nothing is known yet of who has it."""
    return [
        Permission(verb, resource, rule["apiGroups"][0], namespace, name, allowed=False)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or ("",)
    ]


def needed(asked: Iterable[Permission], kinds: Collection[JobKind], lacking: Collection[GVK]) -> list[Permission]:
    """Those that are needed although some kinds are not served: without the others all works."""
    absent = {(kind.resource.gvk.group, kind.resource.plural) for kind in kinds if kind.resource.gvk in lacking}
    absent |= OPTIONAL
    names = {kind.resource.qualified for kind in kinds if kind.resource.gvk in lacking}
    return [
        permission
        for permission in asked
        if (permission.group, permission.resource.partition("/")[0]) not in absent and permission.name not in names
    ]
