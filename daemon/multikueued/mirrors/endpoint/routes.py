"""What API servers ask a kubelet, and what the worker's API server is asked for it. Pure.

A path is matched as a whole, without decoding any of it: `/run`, `/pods`, `/stats`, `/configz` and all else that a real
kubelet has are 404.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import parse_qsl, urlencode

import attrs

from multikueue.core.model.names import OBJECT_NAME, SHORT_NAME, Json, ObjectKey
from multikueued.mirrors.endpoint.heads import RequestHead
from multikueued.serving.refusal import RefusedError

HEALTH: Final = "/healthz"
WELL: Final[Json] = {"ok": "multikueue answers for the pods of its nodes"}
"""What is said there: nobody else says it."""
MAX_FIELDS: Final = 1_024
"""Of a query: a command's words are one each."""

Verb = Literal["get", "create"]


@attrs.frozen
class Route:
    """One kind of request."""

    methods: frozenset[str]
    verb: Verb
    """Of `nodes/proxy`, that the caller must have. `create` for what enters a container, whatever the method: `get`
    must not be enough."""
    subresource: str
    """Of the worker's pod."""
    has_container: bool
    fields: Mapping[str, str]
    """Of the query: the kubelet's name of each, and the API's. No other is passed on."""
    flags: frozenset[str] = frozenset()
    """Those that are on or off, by the kubelet's names."""
    enters: bool = False
    """Whether the connection becomes another one, into a container."""


_ENTER: Final = frozenset({"GET", "POST"})
_STREAMS: Final = {"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty"}
_AS_IN_THE_API: Final = (
    "follow",
    "tailLines",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
    "previous",
    "limitBytes",
    "stream",
)
ROUTES: Final[Mapping[str, Route]] = {
    "containerLogs": Route(frozenset({"GET"}), "get", "log", True, {name: name for name in _AS_IN_THE_API}),
    "exec": Route(_ENTER, "create", "exec", True, {**_STREAMS, "command": "command"}, frozenset(_STREAMS), True),
    "attach": Route(_ENTER, "create", "attach", True, _STREAMS, frozenset(_STREAMS), True),
    "portForward": Route(_ENTER, "create", "portforward", False, {"port": "ports"}, enters=True),
}
"""By the first segment of the path."""


@attrs.frozen
class Asked:
    """A request that we know."""

    what: str
    """Key of `ROUTES`."""
    mirror: ObjectKey
    container: str
    fields: tuple[tuple[str, str], ...]
    """For the worker's API server."""

    @property
    def route(self) -> Route:
        """Its kind."""
        return ROUTES[self.what]

    def path_on_worker(self, pod: ObjectKey) -> str:
        """Path and query for a pod of the worker, encoded."""
        container = (("container", self.container),) if self.container else ()
        query = urlencode([*container, *self.fields])
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/{self.route.subresource}"
        return f"{path}?{query}" if query else path


def asked_in(head: RequestHead) -> Asked:
    """What a request asks for.

    Raises:
        RefusedError: nothing that is served.
    """
    what, *names = head.path.removeprefix("/").split("/")
    route = ROUTES.get(what)
    if route is None or len(names) != 2 + route.has_container:
        raise RefusedError(404, "404 page not found\n")
    if head.method not in route.methods:
        raise RefusedError(405, f"/{what} is not served for {head.method}\n")
    namespace, pod, container = (*names, "") if not route.has_container else names
    if not is_pod(ObjectKey(namespace, pod)) or (route.has_container and SHORT_NAME.fullmatch(container) is None):
        raise RefusedError(400, "this is no name of a pod and its container\n")
    if route.enters and not head.upgrade:
        raise RefusedError(400, "you must specify Upgrade: SPDY/3.1 or websocket to enter a container\n")
    return Asked(what, ObjectKey(namespace, pod), container, _fields(route, head.query))


def is_pod(key: ObjectKey) -> bool:
    """Whether these are names that Kubernetes lets a pod have: they stand in paths."""
    return SHORT_NAME.fullmatch(key.namespace) is not None and OBJECT_NAME.fullmatch(key.name) is not None


def _fields(route: Route, query: str) -> tuple[tuple[str, str], ...]:
    try:
        given = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise RefusedError(400, f"the query cannot be read, or has more than {MAX_FIELDS} fields\n") from None
    return tuple(
        (route.fields[name], _flag(value) if name in route.flags else value)
        for name, value in given
        if name in route.fields
    )


def _flag(value: str) -> str:
    return "false" if value.lower() in ("", "0", "false") else "true"
