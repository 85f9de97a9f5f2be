"""The clusters that a command works on: how they are named on the command line, and what is done to their objects."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import attrs
import click

from multikueue.core.model.kinds import NAMESPACE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, resource_version, uid
from multikueue.core.model.outside_text import one_line
from multikueue.errors import AlreadyExists, Conflict, NotFound
from multikueue.protocols import ApiClient, read
from multikueued.exits import CommandError
from multikueued.rbac.objects import RESOURCES
from multikueued.reading.manager_lists import cluster_of
from multikueued.settings.config import Settings
from multikueued.workers.objects import namespace_object

Say: TypeAlias = Callable[[str], None]
"""Tells the user how it goes on."""

FIELD_MANAGER: Final = "multikueue-cli"
_TRIES: Final = 5


def tell(text: str) -> None:
    """Progress goes to standard error: what a command prints can be piped."""
    click.echo(one_line(text), err=True)


@attrs.frozen
class ManagerAccess:
    """The manager cluster and what a command was told about the daemon there."""

    client: ApiClient
    settings: Settings
    """The daemon's: namespace of the Secrets, kinds, origin."""
    say: Say = tell

    @property
    def namespace(self) -> str:
        """Where the kubeconfig Secrets are."""
        return str(self.settings.namespace)

    async def cluster(self, worker: str) -> Json:
        """The MultiKueueCluster of a worker.

        Raises:
            CommandError: there is none.
        """
        return await cluster_of(self.client, worker)


async def make_namespace(client: ApiClient, name: str) -> bool:
    """Make a namespace unless it is there; return whether it was made."""
    if await read(client, NAMESPACE, ObjectKey("", name)) is not None:
        return False
    try:
        await client.create(NAMESPACE, namespace_object(name))
    except AlreadyExists:
        return False
    return True


async def apply_all(client: ApiClient, made: Iterable[Json]) -> None:
    """Apply an account and what it may do."""
    for obj in made:
        await client.apply(RESOURCES[obj["kind"]], obj, field_manager=FIELD_MANAGER)


async def remove(client: ApiClient, resource: Resource, obj: Json) -> bool:
    """Delete an object that was read; return whether it was still there.

    Raises:
        CommandError: another one has its name by now.
    """
    key = ObjectKey.of(obj)
    try:
        await client.delete(resource, key, uid=uid(obj))
    except NotFound:
        return False
    except Conflict as error:
        again = "it was made anew meanwhile, and stays: run the same command again if that one is to go, too"
        raise CommandError(f"{resource.gvk.kind} {key}: {again}") from error
    return True


async def change_list(
    client: ApiClient, resource: Resource, key: ObjectKey, change: Callable[[Json], Sequence[str] | None]
) -> bool:
    """Change `spec.clusters` of an object as it is now; return whether that changed anything.

    Args:
        client: of its cluster.
        resource: its kind.
        key: its name.
        change: the new list; None: it is right. It may raise.

    Raises:
        Conflict: somebody else changes it all the time.
    """
    for attempt in range(_TRIES):
        obj = await client.get(resource, key)
        wanted = change(obj)
        if wanted is None:
            return False
        patch = {"metadata": {"resourceVersion": resource_version(obj)}, "spec": {"clusters": [*wanted]}}
        try:
            await client.merge_patch(resource, key, patch)
        except Conflict:
            if attempt == _TRIES - 1:
                raise
            continue
        return True
    return False


def decoded(secret: Json, field: str) -> str:
    """A field of a Secret; empty if it is not there or no text."""
    try:
        return base64.b64decode(dig(secret, "data", field) or "").decode()
    except (ValueError, TypeError):
        return ""
