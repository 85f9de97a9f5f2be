"""The object that has the name of one which was to be created: perhaps it is the very copy, and its answer was lost."""

from __future__ import annotations

from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.marks import mark_of
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import is_terminating, labels_of
from multikueue.errors import ApiError
from multikueue.runtime.target import Target


async def object_there(target: Target, resource: Resource, key: ObjectKey) -> Json | None:
    """The object that has the name; None if it may not be read, which a worker need not allow, or is gone by now."""
    try:
        return await target.client.get(resource, key)
    except ApiError:
        return None


def is_the_copy(found: Json, wanted: Json) -> bool:
    """Whether this is the very copy that was to be created: the answer was lost, and no event came."""
    same = has_origin_of(found, wanted) and mark_of(found) == mark_of(wanted)
    return same and not is_terminating(found)


def has_origin_of(found: Json, wanted: Json) -> bool:
    """Whether it says that it is a copy of the same manager."""
    origin = labels_of(wanted).get(ORIGIN_LABEL)
    return origin is not None and labels_of(found).get(ORIGIN_LABEL) == origin
