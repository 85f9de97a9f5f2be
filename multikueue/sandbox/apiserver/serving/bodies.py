"""HTTP bodies in and out: decoding what clients send, and JSON answers."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.serving.encoding import decode, decode_yaml, encode
from multikueue.sandbox.apiserver.verbs.statuses import StatusError, bad_request, unsupported_media

MAX_BODY = 3 * 1024 * 1024
"""Bytes; kube-apiserver's limit."""
_ACCEPTED = ("application/json", "application/yaml")


async def read_body(request: web.BaseRequest) -> Any:
    """The decoded body; None if there is none.

    Raises:
        StatusError: 400, 413 or 415.
    """
    if "protobuf" in request.content_type:
        raise unsupported_media(_ACCEPTED)
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"Request entity too large: limit is {MAX_BODY}"
        raise StatusError(413, "RequestEntityTooLarge", message) from error
    if not raw:
        return None
    try:
        return decode(raw)
    except ValueError as error:
        if "yaml" in request.content_type:
            return _read_yaml(raw)
        raise bad_request(f"the object provided is unrecognized: error decoding body: {error}") from error


def _read_yaml(raw: bytes) -> Any:
    try:
        return decode_yaml(raw)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: {error}") from error


def json_response(body: Json | bytes, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer; bytes are sent as they are."""
    raw = body if isinstance(body, bytes) else encode(body)
    return web.Response(body=raw, status=code, content_type="application/json", headers=headers)
