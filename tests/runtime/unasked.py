"""A server that a test wants nothing of: a fake of one answers what the test is about, and no other request."""

from __future__ import annotations

from typing import NoReturn

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.protocols import ObjectList, Propagation, Subresource


class Unasked:
    """Reads and writes of one API server, none of which may come."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        _refuse(resource)

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        _refuse(resource)

    async def create(self, resource: Resource, obj: Json) -> Json:
        _refuse(resource)

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        _refuse(resource)

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        _refuse(resource)

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        _refuse(resource)

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace: int | None = None,
    ) -> None:
        _refuse(resource)


def _refuse(resource: Resource) -> NoReturn:
    raise AssertionError(f"nobody asks for {resource} in this way")
