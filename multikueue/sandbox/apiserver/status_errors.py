"""
The server's own errors: a `StatusError` is a `metav1.Status` on its way to the client.

Wording, reasons and details are kube-apiserver 1.36's, because clients read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import ResourceType

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_STALE = "the object has been modified; please apply your changes to the latest version and try again"


@attrs.frozen
class Cause:
    """One thing that is wrong with an object: the machine-readable reason, the field's path, the words."""

    reason: str
    field: str
    message: str


class StatusError(Exception):
    """The request is answered with this failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}

    def body(self) -> Json:
        """The Status object."""
        status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def _details(row: ResourceType, name: str | None, kind: str = "") -> Json:
    details: Json = {"name": name} if name else {}
    if row.group:
        details["group"] = row.group
    details["kind"] = kind or row.plural
    return details


def not_found(row: ResourceType, name: str) -> StatusError:
    """404: no such object."""
    return StatusError(404, "NotFound", f'{row.qualified} "{name}" not found', details=_details(row, name))


def no_route() -> StatusError:
    """404: no such resource."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(row: ResourceType, name: str) -> StatusError:
    """409: the name is taken."""
    message = f'{row.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(row, name))


def conflict(row: ResourceType, name: str, why: str = _STALE) -> StatusError:
    """409: the object is not the one the client read."""
    message = f'Operation cannot be fulfilled on {row.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(row, name))


def precondition(row: ResourceType, name: str, why: str) -> StatusError:
    """409: a precondition of a DELETE does not hold."""
    message = f'Operation cannot be fulfilled on {row.qualified_kind} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(row, name, row.kind))


def bad_request(message: str) -> StatusError:
    """400."""
    return StatusError(400, "BadRequest", message)


def forbidden(row: ResourceType, name: str | None, why: str, causes: Iterable[Cause] = ()) -> StatusError:
    """403."""
    details = _details(row, name)
    if listed := [_cause(cause) for cause in causes]:
        details["causes"] = listed
    return StatusError(403, "Forbidden", f'{row.qualified} "{name}" is forbidden: {why}', details=details)


def unauthorized() -> StatusError:
    """401."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def denied(user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> StatusError:
    """403: no role allows it; `resource` is `jobs`, or `jobs/status`."""
    plural = resource.partition("/")[0]
    qualified = f"{plural}.{group}" if group else plural
    what = f'{qualified} "{name}"' if name else qualified
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    why = f'User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'
    details = {"name": name, "group": group, "kind": plural}
    given = {key: value for key, value in details.items() if value}
    return StatusError(403, "Forbidden", f"{what} is forbidden: {why}", details=given)


def method_not_allowed() -> StatusError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def expired(revision: int, oldest: int) -> StatusError:
    """410: the history does not reach back that far."""
    return StatusError(410, "Expired", f"too old resource version: {revision} ({oldest})")


def not_acceptable() -> StatusError:
    """406: the client takes none of the forms that the server writes."""
    message = "only the following media types are accepted: application/json"
    return StatusError(406, "NotAcceptable", message)


def unsupported_media(accepted: Iterable[str]) -> StatusError:
    """415."""
    message = "the body of the request was in an unknown format - accepted media types include: "
    return StatusError(415, "UnsupportedMediaType", message + ", ".join(accepted))


_RESPONSES = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
"""What is said instead of the words of a server behind this one."""
_THEIR_REASONS = REASONS | {405: "MethodNotAllowed", 406: "NotAcceptable", 415: "UnsupportedMediaType"}


def server_response(code: int, resource: str, name: str, words: str) -> StatusError:
    """What a server behind this one has refused, about `pods/log` of a name."""
    if code == 500:
        return StatusError(
            500, "InternalError", f"Internal error occurred: {words}", details={"causes": [{"message": words}]}
        )
    if code == 400:
        return bad_request(words)
    said = f"the server responded with the status code {code} but did not return more information"
    if code in (403, 406, 415):
        said = words
    elif code >= 500:
        said = f"an error on the server ({json.dumps(words)}) has prevented the request from succeeding"
    reason = _THEIR_REASONS.get(code) or ("InternalError" if code >= 500 else "")
    message = f"{_RESPONSES.get(code, said)} ( {resource} {name})"
    return StatusError(code, reason, message, details={"name": name, "kind": resource})


def invalid(row: ResourceType, name: str, causes: Sequence[Cause], *, by_resource: bool = False) -> StatusError:
    """422: the object breaks rules.

    Args:
        row: the kind.
        name: the object's.
        causes: what is wrong.
        by_resource: name the kind by its plural, as the store's own checks do.
    """
    qualified = row.qualified if by_resource else row.qualified_kind
    messages = [f"{cause.field}: {cause.message}" for cause in causes]
    text = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    details = _details(row, name, row.plural if by_resource else row.kind)
    details["causes"] = [_cause(cause) for cause in causes]
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details=details)


def invalid_options(kind: str, cause: Cause) -> StatusError:
    """422: the options of a request, such as DeleteOptions, break a rule."""
    details = {"group": "meta.k8s.io", "kind": kind, "causes": [_cause(cause)]}
    message = f'{kind}.meta.k8s.io "" is invalid: {cause.field}: {cause.message}'
    return StatusError(422, "Invalid", message, details=details)


def _cause(cause: Cause) -> Json:
    return {"reason": cause.reason, "message": cause.message, "field": cause.field}


def too_large_revision(requested: str, current: int) -> StatusError:
    """504: the client asks for a revision that is not there yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {requested}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers={"Retry-After": "1"},
    )
