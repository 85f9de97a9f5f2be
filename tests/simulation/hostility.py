"""What a hostile worker, or a proxy before it, answers: odd shapes, endless lists, bombs, lines that are no events."""

from __future__ import annotations

import gzip
import random
from enum import Enum
from functools import cache
from typing import Any, Final

import orjson

from multikueue.core.model.names import Json

INVENTED: Final = "invented-"
"""How the names of Workloads begin that a worker's user has invented."""


class Hostility(Enum):
    """How a worker answers."""

    ODD = "odd shapes"
    """What it lists and sends of our objects has fields of other types than those of the API."""
    ENDLESS = "an endless list"
    """Every page of a list names another one."""
    BOMB = "a bomb"
    """A list unpacks to more than may be read."""
    NO_EVENTS = "lines that are no events"
    """Its watches send something else than events."""


def odd(obj: Json, dice: random.Random) -> Json:
    """An object with the same name and version, and with a field of another type."""
    metadata = obj.get("metadata") or {}
    status = obj.get("status")
    status = status if isinstance(status, dict) else {}
    shapes: list[Json] = [
        {**obj, "status": {**status, "conditions": [1]}},
        {**obj, "status": {**status, "conditions": {"type": "Admitted"}}},
        {**obj, "status": {**status, "conditions": [{"type": "Admitted", "status": ["True"]}]}},
        {**obj, "status": [1]},
        {**obj, "spec": "none"},
        {**obj, "metadata": {**metadata, "annotations": ["a"]}},
        {**obj, "metadata": {**metadata, "finalizers": 7}},
        {**obj, "metadata": {**metadata, "ownerReferences": {"uid": 1}}},
    ]
    return dice.choice(shapes)


def endless(page: bytes) -> bytes:
    """A page of a list that names another one; so does what would be the error that there is no other."""
    answer: Any = orjson.loads(page)
    metadata = {"resourceVersion": "1", **(answer.get("metadata") or {}), "continue": "and-so-on"}
    return orjson.dumps({**answer, "metadata": metadata, "items": answer.get("items") or []})


@cache
def bomb() -> bytes:
    """Two megabytes, in two thousand bytes of gzip."""
    return gzip.compress(b'{"kind":"List","metadata":{"resourceVersion":"1"},"items":[]' + b" " * (2 << 20) + b"}")
