"""HTTP bodies in and out: decode what clients send; encode objects in the form the Accept header asks for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

import attrs
from aiohttp import web

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import decode, decode_yaml, encode_answer
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.protobuf import CONTENT_TYPE, ProtobufError, decode_protobuf
from multikueue.sandbox.apiserver.serving.tables import Include, partial, table
from multikueue.sandbox.apiserver.status_errors import (
    StatusError,
    bad_request,
    not_acceptable,
    unsupported_media,
)
from multikueue.sandbox.apiserver.storage.store import Entry
from multikueue.sandbox.apiserver.verbs.listing import Page

Form: TypeAlias = Literal["object", "table", "partial"]
_INCLUDES: dict[str, Include] = {"None": "None", "Object": "Object"}
MAX_BODY = 3 * 1024 * 1024
"""Bytes; kube-apiserver's limit."""
_ACCEPTED = ("application/json", "application/yaml", CONTENT_TYPE)


@attrs.frozen
class Representation:
    """How one client wants objects of one kind."""

    row: ResourceType
    form: Form = "object"
    include: Include = "Metadata"

    @classmethod
    def wanted(cls, row: ResourceType, accept: str, query: Mapping[str, str]) -> Representation:
        """Read the Accept header: the first form in it that is known.

        Raises:
            StatusError: 406, only protobuf is wanted, which the server reads but does not write.
        """
        include = _INCLUDES.get(query.get("includeObject", ""), "Metadata")
        for part in accept.split(","):
            if "as=Table" in part:
                return cls(row, "table", include)
            if "as=PartialObjectMetadata" in part:
                return cls(row, "partial")
        if CONTENT_TYPE in accept and not ("json" in accept or "*/*" in accept):
            raise not_acceptable()
        return cls(row)

    def single(self, obj: Json, now: datetime) -> bytes:
        """A single object."""
        if self.form == "table":
            metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return encode_answer(table(self.row, [obj], metadata, now, include=self.include))
        return encode_answer(partial(obj) if self.form == "partial" else obj)

    def page(self, page: Page, now: datetime) -> bytes:
        """A list; items that are wanted as they are stored are not encoded again."""
        metadata: Json = {"resourceVersion": str(page.revision)}
        if page.token:
            metadata["continue"] = page.token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        if self.form == "table":
            objects = (self.row.viewed(entry.obj) for entry in page.entries)
            return encode_answer(table(self.row, objects, metadata, now, include=self.include))
        if self.form == "partial":
            items = [encode_answer(partial(entry.obj)) for entry in page.entries]
            return _list("PartialObjectMetadataList", "meta.k8s.io/v1", metadata, items)
        items = [self._item(entry) for entry in page.entries]
        return _list(self.row.kind + "List", self.row.api_version, metadata, items)

    def _item(self, entry: Entry) -> bytes:
        return (
            self._as_stored(entry)
            if self.row.custom
            else encode_answer(listed_item(self.row, self.row.viewed(entry.obj)))
        )

    def _as_stored(self, entry: Entry) -> bytes:
        if self.row.as_stored:
            return entry.raw
        return encode_answer(self.row.viewed(entry.obj))

    def event(self, entry: Entry, now: datetime, *, first: bool) -> bytes:
        """The object of a watch event."""
        if self.form == "object":
            return self._as_stored(entry)
        if self.form == "partial":
            return encode_answer(partial(entry.obj))
        metadata = {"resourceVersion": str(entry.revision)}
        objects = [self.row.viewed(entry.obj)]
        return encode_answer(table(self.row, objects, metadata, now, include=self.include, headers=first))

    def bookmark(self, revision: int, now: datetime, *, initial_end: bool) -> bytes:
        """The object of a bookmark."""
        metadata: Json = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self.form == "table":
            return encode_answer(table(self.row, (), metadata, now, headers=False))
        if self.form == "partial":
            return encode_answer({**partial({"metadata": metadata})})
        return encode_answer({"kind": self.row.kind, "apiVersion": self.row.api_version, "metadata": metadata})


def _list(kind: str, api_version: str, metadata: Json, items: list[bytes]) -> bytes:
    head = encode_answer({"kind": kind, "apiVersion": api_version, "metadata": metadata})
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


def listed_item(row: ResourceType, obj: Json) -> Json:
    """An object in a list: lists of builtin kinds leave out what every item would repeat."""
    return obj if row.custom else {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}


def deleted(row: ResourceType, obj: Json) -> Json:
    """The Status that answers a DELETE of an object that is gone."""
    details: Json = {"name": obj["metadata"]["name"]}
    if row.group:
        details["group"] = row.group
    details |= {"kind": row.plural, "uid": obj["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


async def read_body(request: web.BaseRequest) -> Any:
    """The decoded body; None if there is none.

    Raises:
        StatusError: 400, 413 or 415.
    """
    known = request.method == "PATCH" or request.content_type in _ACCEPTED or not request.headers.get("Content-Type")
    if not known and request.can_read_body:
        raise unsupported_media(_ACCEPTED)
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"Request entity too large: limit is {MAX_BODY}"
        raise StatusError(413, "RequestEntityTooLarge", message) from error
    if not raw:
        return None
    if request.content_type == CONTENT_TYPE:
        return _read_protobuf(raw)
    try:
        return decode(raw)
    except ValueError as error:
        if "yaml" in request.content_type:
            return _read_yaml(raw)
        raise bad_request(f"the object provided is unrecognized: error decoding body: {error}") from error


def _read_protobuf(raw: bytes) -> Any:
    try:
        return decode_protobuf(raw)
    except ProtobufError as error:
        raise bad_request(f"the object provided is unrecognized: error decoding body: {error}") from error


def _read_yaml(raw: bytes) -> Any:
    try:
        return decode_yaml(raw)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: {error}") from error


def json_response(body: Json | bytes, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer; bytes are sent as they are."""
    raw = body if isinstance(body, bytes) else encode_answer(body)
    return web.Response(body=raw, status=code, content_type="application/json", headers=headers)
