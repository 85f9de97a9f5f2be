"""What a request for jobs asks for: selectors, pages, the form of the answer."""

from __future__ import annotations

import base64
import heapq
import json
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Final

import anyio.lowlevel
from aiohttp import web

from multikueue.core.model.names import Json, ObjectKey
from multikueued.serving.refusal import RefusedError

BREATH: Final = 500
"""Jobs that are looked at before others run."""
_SELECTOR: Final = "metadata.name="


def wanted_jobs(request: web.Request, namespace: str) -> Callable[[Json], bool]:
    """Which jobs are asked for.

    Raises:
        RefusedError: a selector that is not served.
    """
    if request.query.get("labelSelector"):
        raise RefusedError(400, "jobs have no labels here: labelSelector is not served")
    selector = request.query.get("fieldSelector", "")
    if selector and not selector.startswith(_SELECTOR):
        raise RefusedError(400, f"of fieldSelector only {_SELECTOR}NAME is served")
    name = selector.removeprefix(_SELECTOR)

    def wanted(job: Json) -> bool:
        metadata = job["metadata"]
        return namespace in ("", metadata["namespace"]) and name in ("", metadata["name"])

    return wanted


def as_table(request: web.Request) -> bool:
    """Whether kubectl wants to print it."""
    return "as=Table" in request.headers.get("Accept", "").replace(" ", "")


def list_metadata(version: int | str, last: ObjectKey | None = None) -> Json:
    """The metadata of a list: its version and, where there are more, the token with the last that this page has."""
    metadata: Json = {"resourceVersion": str(version)}
    if last is not None:
        token = json.dumps([version, last.namespace, last.name]).encode()
        metadata["continue"] = base64.urlsafe_b64encode(token).decode()
    return metadata


async def page_of(
    jobs: Mapping[ObjectKey, Json], wanted: Callable[[Json], bool], after: tuple[str, str], limit: float
) -> tuple[list[Json], ObjectKey | None]:
    """The jobs of a page, as they are now, and the last of these if there are more. Others run meanwhile: a place for a
    list is held as long as that takes.

    Args:
        jobs: all.
        wanted: which of them.
        after: the namespace and name behind which the page begins.
        limit: how many it may have.
    """
    keyed = list[tuple[ObjectKey, Json]]()
    for number, (key, job) in enumerate([*jobs.items()], 1):
        if (key.namespace, key.name) > after and wanted(job):
            keyed.append((key, job))
        if number % BREATH == 0:
            await anyio.lowlevel.checkpoint()
    keyed = heapq.nsmallest(len(keyed) if len(keyed) <= limit else int(limit) + 1, keyed, key=itemgetter(0))
    shown = keyed if len(keyed) <= limit else keyed[: int(limit)]
    return [job for _, job in shown], shown[-1][0] if len(shown) < len(keyed) else None


def job_version(job: Json) -> str:
    """The version of a job."""
    return str(job["metadata"]["resourceVersion"])


def continued(token: str) -> tuple[int, tuple[str, str]]:
    """The version of the list, and the namespace and name behind which the page begins.

    Raises:
        RefusedError: it is no token of ours.
    """
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token.encode()))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise RefusedError(400, "continue: this is no token of ours") from error
