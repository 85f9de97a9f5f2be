"""Writes of OCM's controllers: an object is brought to what it shall be, and nothing is sent if it is that."""

from __future__ import annotations

from contextlib import suppress

from multikueue.core.model.conditions import updated
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, dig, labels_of, pruned, uid
from multikueue.errors import NotFound
from multikueue.protocols import ApiClient, read


async def ensure(client: ApiClient, resource: Resource, wanted: Json, *fields: str) -> Json:
    """Create an object, or give it these fields and labels, others are left alone; return what is there then.

    Raises:
        ApiError: a write failed.
    """
    old = await read(client, resource, ObjectKey.of(wanted))
    if old is None:
        return await client.create(resource, wanted)
    new = clone(old)
    new.update({field: wanted[field] for field in fields if field in wanted})
    if labels_of(wanted):
        new["metadata"]["labels"] = {**labels_of(old), **labels_of(wanted)}
    return old if pruned(new) == pruned(old) else await client.replace(resource, new)


async def write_status(client: ApiClient, resource: Resource, obj: Json, status: Json) -> Json:
    """Give an object's status these fields; conditions are merged by their type.

    Raises:
        ApiError: the write failed.
    """
    old = obj.get("status") or {}
    new = {**old, **status}
    if "conditions" in status:
        new["conditions"] = list(old.get("conditions") or [])
        for condition in status["conditions"]:
            new["conditions"] = updated(new["conditions"], condition)
    if pruned(new) == pruned(old) and obj.get("status") is not None:
        return obj
    return await client.replace(resource, {**obj, "status": new}, subresource="status")


async def remove(client: ApiClient, resource: Resource, obj: Json) -> None:
    """Delete exactly this object.

    Raises:
        ApiError: it is still there.
    """
    with suppress(NotFound):
        await client.delete(resource, ObjectKey.of(obj), uid=uid(obj))


def is_owned_by(obj: Json, owner: Json) -> bool:
    """Whether an object has this owner."""
    return any(reference["uid"] == uid(owner) for reference in dig(obj, "metadata", "ownerReferences") or [])
