"""Bodies of reviews and token requests, whose kinds are not stored and so have no schema here: fields of a type."""

from __future__ import annotations

from typing import Any, TypeVar

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import bad_request

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
    found = of_type(body, field, list) or []
    if not all(isinstance(item, str) for item in found):
        raise bad_request(f"the field {field} is no list of strings")
    return found


def of_type(body: Any, field: str, kind: type[T]) -> T | None:
    """A field of this type; None if it is not there.

    Raises:
        StatusError: 400, it is something else, or the body has no fields.
    """
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized")
    found = body.get(field)
    if found is None or (isinstance(found, kind) and not (kind is int and isinstance(found, bool))):
        return found
    raise bad_request(f"json: cannot unmarshal {field} into Go type {kind.__name__}")
