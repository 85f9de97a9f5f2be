"""Where on a kubelet a subresource of a pod is: which node, which container, and its options as a kubelet knows them.

Pure. Names, order and words are kube-apiserver's: `tests/conformance/test_kubelets.py` holds them against a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC
from typing import Final, TypeAlias
from urllib.parse import quote, urlencode

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import Cause, StatusError, bad_request, invalid
from multikueue.sandbox.apiserver.storage.watching import is_true
from multikueue.sandbox.apiserver.validation.rules import forbidden_field, invalid_value

Query: TypeAlias = Mapping[str, Sequence[str]]
"""All values of each parameter, as `urllib.parse.parse_qs` reads them."""
_PREFERRED: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""Types of addresses in the order of `--kubelet-preferred-address-types`."""
_PORT: Final = 10250
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_OPTIONS: Final = ResourceType(plural="podlogoptions", kind="PodLogOptions")
_LEAST: Final[Mapping[str, int]] = {"sinceSeconds": 1, "tailLines": 0, "limitBytes": 1}
"""The smallest value of each number among the options of a log."""
_FLAGS: Final[Mapping[str, str]] = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""What a kubelet calls the streams."""


@attrs.frozen
class Kubelet:
    """Where a node's kubelet listens, and whether it takes WebSockets of `v5.channel.k8s.io` as they are."""

    host: str
    port: int
    takes_v5: bool = False

    @classmethod
    def of(cls, node: Json) -> Kubelet:
        """As the Node's status says.

        Raises:
            StatusError: 500, it has no address.
        """
        listed: list[Json] = dig(node, "status", "addresses") or []
        preferred = [address["address"] for kind in _PREFERRED for address in listed if address.get("type") == kind]
        if not preferred:
            raise StatusError(500, "", f"no preferred addresses found; known addresses: {listed}")
        port = dig(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port") or _PORT
        declared = dig(node, "status", "declaredFeatures") or ()
        return cls(preferred[0], port, "ExtendWebSocketsToKubelet" in declared)

    @property
    def address(self) -> str:
        """Host and port, as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def chosen_container(pod: Json, wanted: str) -> str:
    """The container that is meant.

    Raises:
        StatusError: 400, there is none of that name, or there are several and none is named.
    """
    name = pod["metadata"]["name"]
    listed = [container["name"] for field in _CONTAINERS for container in dig(pod, "spec", field) or ()]
    if wanted:
        if wanted not in listed:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(dig(pod, "spec", "containers") or ()) > 1:
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(listed)}]")
    return str(pod["spec"]["containers"][0]["name"])


def log_options(name: str, query: Mapping[str, str]) -> dict[str, str]:
    """The options of a log, as a kubelet is asked for them.

    Raises:
        StatusError: 400, a number or a time is none; 422, a value is too small, or two exclude each other.
    """
    given = {flag: "true" for flag in ("follow", "previous", "timestamps") if is_true(query.get(flag))}
    given |= {option: str(_number(query[option])) for option in _LEAST if query.get(option)}
    if text := query.get("sinceTime"):
        time = parse_timestamp(text)
        if time is None:
            why = f'cannot parse "{text}" as "2006"'
            raise bad_request(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": {why}')
        given["sinceTime"] = time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if wrong := list(_wrong(given | {"stream": query.get("stream", "")})):
        raise invalid(_OPTIONS, name, wrong)
    return given


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _wrong(given: Mapping[str, str]) -> Iterator[Cause]:
    if "sinceSeconds" in given and "sinceTime" in given:
        yield forbidden_field("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    if given["stream"]:
        yield forbidden_field("stream", "may not be specified")
    for option, least in _LEAST.items():
        if option in given and int(given[option]) < least:
            why = "must be greater than 0" if least else "must be greater than or equal to 0"
            yield invalid_value(option, why, int(given[option]))


def log_path(pod: Json, container: str, options: Mapping[str, str]) -> str:
    """Path and query of a container's log."""
    return _path("containerLogs", pod, container, sorted(options.items()))


def _first(query: Query, name: str) -> str | None:
    return next(iter(query.get(name, ())), None)


def _streams(query: Query) -> Iterator[tuple[str, str]]:
    yield from ((theirs, "1") for ours, theirs in _FLAGS.items() if is_true(_first(query, ours)))


def _exec_path(pod: Json, query: Query) -> str:
    commands = [("command", text) for text in query.get("command", ())]
    options = sorted([*_streams(query), *commands], key=lambda option: option[0])
    return _path("exec", pod, chosen_container(pod, _first(query, "container") or ""), options)


def _attach_path(pod: Json, query: Query) -> str:
    return _path("attach", pod, chosen_container(pod, _first(query, "container") or ""), sorted(_streams(query)))


def _forward_path(pod: Json, query: Query) -> str:
    ports = ",".join(query.get("ports", ()))
    return _path("portForward", pod, "", [("port", ports)] if ports else [])


def _path(what: str, pod: Json, container: str, options: list[tuple[str, str]]) -> str:
    metadata = pod["metadata"]
    parts = [what, metadata["namespace"], metadata["name"], *([container] if container else [])]
    return "/" + "/".join(map(quote, parts)) + (f"?{urlencode(options)}" if options else "")


STREAMS: Final[Mapping[str, Callable[[Json, Query], str]]] = {
    "exec": _exec_path,
    "attach": _attach_path,
    "portforward": _forward_path,
}
"""The subresources of pods that take a connection over, each with its path and query on a kubelet.

They raise StatusError (400) where the container is not clear.
"""
