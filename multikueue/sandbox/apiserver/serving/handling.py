"""One HTTP request: who asks, what happens to it on the way, what the registry says, and in what form."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs
from aiohttp import web

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import repeated_fields
from multikueue.sandbox.apiserver.faults import ConnectionLostError, Fault, Faults
from multikueue.sandbox.apiserver.identity.access import Access
from multikueue.sandbox.apiserver.identity.reviews import GROUPS, review
from multikueue.sandbox.apiserver.serving.discovery import AGGREGATED, VERSION, Discovery
from multikueue.sandbox.apiserver.serving.httpwatch import stream_watch
from multikueue.sandbox.apiserver.serving.kubelets import Kubelets
from multikueue.sandbox.apiserver.serving.locations import STREAMS
from multikueue.sandbox.apiserver.serving.openapi import OpenApi
from multikueue.sandbox.apiserver.serving.podlogs import stream_log
from multikueue.sandbox.apiserver.serving.representations import (
    Representation,
    deleted,
    json_response,
    listed_item,
    read_body,
)
from multikueue.sandbox.apiserver.serving.routing import LOG, PROXY, TOKEN, Route, group_version, route, split
from multikueue.sandbox.apiserver.status_errors import StatusError, bad_request, invalid_options, unsupported_media
from multikueue.sandbox.apiserver.storage.cluster import WriteOptions
from multikueue.sandbox.apiserver.storage.watching import is_true
from multikueue.sandbox.apiserver.validation.rules import unsupported
from multikueue.sandbox.apiserver.verbs.deleting import DeleteOptions, is_dry_run
from multikueue.sandbox.apiserver.verbs.listing import ListOptions
from multikueue.sandbox.apiserver.verbs.patching import APPLY_PATCH, accepted_formats
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.apiserver.verbs.updating import scale_of, scaled

_log = logging.getLogger(__name__)

_VALIDATIONS = ("Ignore", "Strict", "Warn")
"""What may be done about fields that a kind does not have."""


@attrs.define(eq=False)
class Handler:
    """Serves requests; one for the whole server."""

    _registry: Registry
    _access: Access
    _faults: Faults
    _address: Callable[[], str]
    """Host and port, for discovery."""
    _kubelets: Kubelets

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; whatever goes wrong is answered as a Status."""
        try:
            await self._faults.reach()
            return await self._dispatch(request)
        except StatusError as error:
            return json_response(error.body(), error.code, error.headers)
        except (ConnectionLostError, OSError):  # the client is gone, or is to think so of us
            if request.transport:
                request.transport.abort()
            return web.Response()  # it cannot be written any more, which aiohttp takes for a client gone
        except Exception as error:
            _log.exception("the sandbox API server failed on %s %s", request.method, request.path)
            failure = StatusError(500, "InternalError", f"Internal error occurred: {error!r}")
            return json_response(failure.body(), 500)

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = request.headers
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        user = self._access.asking(token, headers.get("Impersonate-User", ""), headers.getall("Impersonate-Group", ()))
        segments = split(request.path)
        place = group_version(segments)
        if place is None:
            return self._information(request, segments)
        if place[0] in GROUPS:
            answer = review(self._access, user, request.method, place, await read_body(request))
            return json_response(answer, 201)
        asked = route(self._registry.cluster, request.method, segments, request.query)
        call = asked.call(user.name)
        self._access.count(call)
        self._access.authorize(user, asked.attributes)
        applied = request.content_type == APPLY_PATCH and asked.verb == "patch" and self._is_new(asked)
        if applied or asked.subresource in STREAMS:  # to read a stream into a container is not enough
            self._access.authorize(user, attrs.evolve(asked.attributes, verb="create"))
        hit = self._faults.match(call)
        await self._faults.apply(hit, "request")
        response = await self._serve(request, asked, hit)
        await self._faults.apply(hit, "reply")
        return response

    def _is_new(self, asked: Route) -> bool:
        """Whether an apply would create its object."""
        key = (asked.namespace or "", asked.name)
        return self._registry.cluster.store.get(asked.row.group_resource, key) is None

    def _information(self, request: web.BaseRequest, segments: list[str]) -> web.Response:
        """Everything that is not about objects."""
        types = self._registry.cluster.types.values()
        match segments:
            case ["healthz" | "readyz" | "livez", *_]:
                return web.Response(text="ok")
            case ["version"]:
                return json_response(VERSION)
            case ["openapi", *rest]:
                if "protobuf" in request.headers.get("Accept", "") and rest == ["v2"]:
                    raise StatusError(406, "NotAcceptable", "only JSON is served")
                return json_response(OpenApi(types).answer(rest))
            case []:
                return json_response({"paths": ["/api", "/apis", "/healthz", "/openapi/v3", "/version"]})
        aggregated = "v=v2;as=APIGroupDiscoveryList" in request.headers.get("Accept", "")
        body = Discovery(types, self._address()).answer(segments, aggregated=aggregated)
        response = json_response(body)
        if body["kind"] == "APIGroupDiscoveryList":
            response.headers["Content-Type"] = AGGREGATED
        return response

    async def _serve(self, request: web.BaseRequest, asked: Route, hit: list[Fault]) -> web.StreamResponse:
        if asked.subresource == LOG:
            return await stream_log(request, self._registry, self._kubelets, asked)
        if asked.subresource == PROXY:
            return await self._kubelets.proxy(request, asked)
        if asked.subresource in STREAMS:
            pod = self._registry.get(asked.row, asked.namespace, asked.name)
            return await self._kubelets.stream(request, pod, asked.subresource)
        form = Representation.wanted(asked.row, request.headers.get("Accept", ""), request.query)
        match asked.verb:
            case "get":
                obj = self._registry.get(asked.row, asked.namespace, asked.name)
                if asked.subresource == "scale":
                    return json_response(scale_of(asked.row, obj))
                return json_response(form.single(obj, self._registry.cluster.moment()))
            case "list":
                options = ListOptions.from_query(asked.row, request.query)
                page = self._registry.list(asked.row, asked.namespace, options)
                return json_response(form.page(page, self._registry.cluster.moment()))
            case "watch":
                return await stream_watch(request, self._registry, self._faults, asked, form, hit)
        return await self._write(request, asked, form)

    async def _write(self, request: web.BaseRequest, asked: Route, form: Representation) -> web.Response:
        body = await read_body(request)
        options = _write_options(request)
        repeated = await self._repeated(request, asked, options)
        match asked.verb:
            case "create" if asked.subresource == TOKEN:
                answer = self._access.issuer.issue(asked.namespace or "", asked.name, body), 201
            case "create":
                answer = self._registry.create(asked.row, asked.namespace, body, options), 201
            case "update":
                answer = self._update(asked, body, options), 200
            case "patch":
                answer = self._patch(request, asked, body, options)
            case "delete":
                answer = self._delete(request, asked, body), 200
            case _:
                answer = self._delete_collection(request, asked, body), 200
        obj, code = answer
        if form.form != "object" and obj["kind"] == asked.row.kind:
            response = json_response(form.single(obj, self._registry.cluster.moment()), code)
        else:
            response = json_response(obj, code)
        warnings = [
            *(("unknown", field) for field in options.unknown or ()),
            *(("duplicate", field) for field in repeated),
        ]
        for what, field in warnings:
            response.headers.add("Warning", f'299 - "{what} field \\"{field}\\""')
        return response

    async def _repeated(self, request: web.BaseRequest, asked: Route, options: WriteOptions) -> list[str]:
        """The fields that stand twice in what is written, where whoever sends it wants to know.

        Raises:
            StatusError: 400, there are some, and that is an error.
        """
        checked = options.strict or options.unknown is not None
        if asked.verb not in ("create", "update", "patch") or not checked or "json" not in request.content_type:
            return []
        repeated = repeated_fields(await request.read())
        if repeated and options.strict:
            listed = ", ".join(f'duplicate field "{field}"' for field in repeated)
            raise bad_request(f"strict decoding error: {listed}")
        return repeated

    def _update(self, asked: Route, body: Any, options: WriteOptions) -> Json:
        if asked.subresource == "scale":
            return self._scale(asked, body, options)
        return self._registry.update(asked.target, body, options)

    def _scale(self, asked: Route, body: Any, options: WriteOptions) -> Json:
        row = asked.row
        obj = scaled(row, self._registry.get(row, asked.namespace, asked.name), body)
        main = Route(asked.verb, row, asked.namespace, asked.name).target
        return scale_of(row, self._registry.update(main, obj, options))

    def _patch(self, request: web.BaseRequest, asked: Route, body: Any, options: WriteOptions) -> tuple[Json, int]:
        accepted = accepted_formats(asked.row)
        if request.content_type not in accepted:
            raise unsupported_media(accepted)
        if asked.subresource == "scale":
            return self._scale(asked, body, options), 200
        if request.content_type == APPLY_PATCH:
            manager = request.query.get("fieldManager") or ""
            force = is_true(request.query.get("force"))
            options = attrs.evolve(options, manager=manager, force=force)
        obj, created = self._registry.patch(asked.target, request.content_type, body, options)
        return obj, 201 if created else 200

    def _delete(self, request: web.BaseRequest, asked: Route, body: Any) -> Json:
        obj, gone = self._registry.delete(asked.target, _delete_options(request, body))
        return deleted(asked.row, obj) if gone and not asked.row.returns_object else obj

    def _delete_collection(self, request: web.BaseRequest, asked: Route, body: Any) -> Json:
        which = ListOptions.from_query(asked.row, request.query)
        options = _delete_options(request, body)
        items = self._registry.delete_collection(asked.row, asked.namespace, which, options)
        return {
            "kind": asked.row.kind + "List",
            "apiVersion": asked.row.api_version,
            "metadata": {"resourceVersion": str(self._registry.cluster.store.revision)},
            "items": [listed_item(asked.row, item) for item in items],
        }


def _write_options(request: web.BaseRequest) -> WriteOptions:
    query = request.query
    agent = request.headers.get("User-Agent", "unknown").split("/")[0]
    validation = query.get("fieldValidation") or "Warn"
    kind = {"POST": "CreateOptions", "PUT": "UpdateOptions"}.get(request.method, "PatchOptions")
    if validation not in _VALIDATIONS:
        raise invalid_options(kind, unsupported("fieldValidation", validation, ("", *_VALIDATIONS)))
    return WriteOptions(
        manager=query.get("fieldManager") or agent,
        dry_run=is_dry_run(kind, query.getall("dryRun", [])),
        strict=validation == "Strict",
        unknown=[] if validation == "Warn" else None,
    )


def _delete_options(request: web.BaseRequest, body: Any) -> DeleteOptions:
    """The options in the body; those in the query count only without a body."""
    if body is not None:
        return DeleteOptions.from_body(body)
    query = request.query
    given: Json = {"propagationPolicy": query.get("propagationPolicy") or ""}
    if "gracePeriodSeconds" in query:
        grace = query["gracePeriodSeconds"]
        given["gracePeriodSeconds"] = int(grace) if grace.removeprefix("-").isdecimal() else grace
    given["dryRun"] = query.getall("dryRun", [])
    given["orphanDependents"] = is_true(query.get("orphanDependents"))
    return DeleteOptions.from_body(given)
