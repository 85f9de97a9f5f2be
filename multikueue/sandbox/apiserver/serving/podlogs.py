"""The subresource `log` of pods. A kubelet is asked for it where the pod's Node is there; else it is played.

What a played container says follows from the pod's status: that it has started, a step each second, and how it has
ended. Nothing is stored, so the same log can be read again and again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import anyio
import attrs
from aiohttp import web

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, uid
from multikueue.sandbox.apiserver.serving.kubelets import Kubelets
from multikueue.sandbox.apiserver.serving.locations import chosen_container, log_options
from multikueue.sandbox.apiserver.serving.routing import Route
from multikueue.sandbox.apiserver.status_errors import StatusError, bad_request
from multikueue.sandbox.apiserver.verbs.registry import Registry

STEP: Final = timedelta(seconds=1)
MAX_STEPS: Final = 1000
"""A container says no more, however long it runs."""
EVERY: Final = 0.2
"""Seconds between two looks at a pod whose log is followed."""


@attrs.frozen
class Said:
    """One line of a log."""

    at: datetime
    text: str


@attrs.define
class _Writer:
    """Writes lines, as a log's options have them."""

    response: web.StreamResponse
    timed: bool
    left: int
    """How many bytes may be written yet."""

    async def write(self, lines: Iterable[Said]) -> None:
        text = b"".join(_line(line, timed=self.timed) for line in lines)[: self.left]
        self.left -= len(text)
        await self.response.write(text)


def said(pod: Json, container: str, now: datetime) -> list[Said]:
    """What a container has said so far.

    Raises:
        StatusError: there is no such container, or it waits to start.
    """
    shown = next(
        (status for status in dig(pod, "status", "containerStatuses") or [] if status["name"] == container), None
    )
    state: Json = (shown or {}).get("state") or {}
    started = parse_timestamp(dig(pod, "status", "startTime") or dig(state, "running", "startedAt"))
    if shown is None or started is None or "waiting" in state:
        why = dig(state, "waiting", "reason") or "ContainerCreating"
        name = pod["metadata"]["name"]
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {why}')
    ended = state.get("terminated")
    until = parse_timestamp(dig(ended, "finishedAt")) or now
    steps = min(MAX_STEPS, int((until - started) / STEP))
    lines = [Said(started, "started"), *(Said(started + n * STEP, f"step {n}") for n in range(1, steps + 1))]
    return [*lines, Said(until, f"ended with exit code {ended.get('exitCode')}")] if ended else lines


async def stream_log(
    request: web.BaseRequest, registry: Registry, kubelets: Kubelets, asked: Route
) -> web.StreamResponse:
    """Serve a log, to the container's end if it is followed: the kubelet's, or where no Node is, what is played.

    Raises:
        StatusError: there is nothing to be read.
        OSError: the client is gone.
    """
    pod = registry.get(asked.row, asked.namespace, asked.name)
    container = chosen_container(pod, request.query.get("container", ""))
    options = log_options(asked.name, request.query)
    if not dig(pod, "spec", "nodeName"):
        return web.Response(status=204)
    kubelet = kubelets.of_pod(pod)
    if kubelet is not None:
        return await kubelets.log(request, pod, kubelet)
    if "previous" in options:
        raise bad_request(f'previous terminated container "{container}" in pod "{asked.name}" not found')
    lines = said(pod, container, registry.cluster.moment())
    first = list(_wanted(lines, request.query, registry.cluster.moment()))
    response = web.StreamResponse(headers={"Content-Type": "text/plain", "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    writer = _Writer(response, "timestamps" in options, int(options.get("limitBytes", sys.maxsize)))
    await writer.write(first)
    written = len(lines)
    while "follow" in options and writer.left and not _has_ended(pod):
        await anyio.sleep(EVERY)
        try:
            again = registry.get(asked.row, asked.namespace, asked.name)
        except StatusError:
            break
        if uid(again) != uid(pod):
            break
        pod, lines = again, said(again, container, registry.cluster.moment())
        await writer.write(lines[written:])
        written = max(written, len(lines))
    await response.write_eof()
    return response


def _has_ended(pod: Json) -> bool:
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")


def _wanted(lines: list[Said], query: Mapping[str, str], now: datetime) -> Iterator[Said]:
    """What the query asks for of what has been said."""
    since = parse_timestamp(query.get("sinceTime"))
    if (seconds := query.get("sinceSeconds", "")).isdecimal():
        since = now - timedelta(seconds=int(seconds))
    left = [line for line in lines if since is None or line.at >= since]
    tail = query.get("tailLines", "")
    return iter(left[max(0, len(left) - int(tail)) :] if tail.isdecimal() else left)


def _line(line: Said, *, timed: bool) -> bytes:
    time = line.at.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ") if timed else ""
    return f"{time}{line.text}\n".encode()
