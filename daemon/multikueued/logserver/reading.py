"""One request for a log: what it may ask for, and how it is answered within its bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Self

import anyio
import attrs

from multikueue.core.model.names import OBJECT_NAME, ObjectKey
from multikueue.errors import ApiError, MultiKueueError
from multikueue.kube.http.requests import LogQuery
from multikueued.api_answers import END
from multikueued.exits import FINDING, NOT_FOUND, NOT_REACHABLE, USAGE, CommandError, known_error
from multikueued.logserver.access import Check, until_refused
from multikueued.logserver.outgoing import Outgoing
from multikueued.reading.log_output import LogSelection
from multikueued.reading.placement_watch import show_logs
from multikueued.reading.pod_lookup import JobLocator
from multikueued.reports.typenames import JobName
from multikueued.serving.refusal import RefusedError

EVERY: Final = 5.0
"""Seconds between two looks at the pods and the Workload of a job that is followed: many may be."""
BEGIN: Final = 5.0
"""Seconds after which the answer begins for a log that is followed, though there is nothing to read yet: clients wait
for that only so long."""
PODS: Final = 16
"""Pods of a job that are followed at a time."""
_CODES: Final = {NOT_FOUND: 404, NOT_REACHABLE: 503, USAGE: 400, FINDING: 500}


PARAMETERS: Final = (
    *("follow", "allPods", "pod", "previous", "timestamps", "container", "sinceSeconds", "tailLines", "limitBytes"),
)


@attrs.frozen
class Query(LogQuery):
    """What is asked for, as `kubectl logs` words it."""

    timestamps: bool = False
    limit: int | None = None
    """Bytes."""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Read the query of a request. A worker cannot be named, and a pod only to choose among the job's own.

        Raises:
            RefusedError: it is not understood.
        """
        unknown = sorted(set(query) - set(PARAMETERS))
        if unknown:
            raise RefusedError(400, f"the parameter {unknown[0]!r} is not known, but {', '.join(PARAMETERS)}")
        container, pod = query.get("container", ""), query.get("pod", "")
        for what, name in (("container", container), ("pod", pod)):
            if name and OBJECT_NAME.fullmatch(name) is None:
                raise RefusedError(400, f"{what}: {name!r} is no {what}'s name")
        return cls(
            container,
            flag(query, "follow"),
            number_in(query, "sinceSeconds") or 0,
            tail=number_in(query, "tailLines"),
            all_pods=flag(query, "allPods"),
            pod=pod,
            previous=flag(query, "previous"),
            timestamps=flag(query, "timestamps"),
            limit=number_in(query, "limitBytes"),
        )


def flag(query: Mapping[str, str], name: str) -> bool:
    """A parameter that is true or false; false without it.

    Raises:
        RefusedError: it is neither.
    """
    text = query.get(name, "false").lower()
    if text not in ("true", "1", "false", "0"):
        raise RefusedError(400, f"{name}: {text!r} is neither true nor false")
    return text in ("true", "1")


def number_in(query: Mapping[str, str], name: str) -> int | None:
    """A parameter that is a number; None without it.

    Raises:
        RefusedError: it is none.
    """
    text = query.get(name) or None
    if text is not None and re.fullmatch("[0-9]{1,18}", text) is None:
        raise RefusedError(400, f"{name}: {text[:20]!r} is no number")
    return None if text is None else int(text)


def job_name(key: ObjectKey) -> JobName:
    """The job that is named `TYPE.NAME` or `TYPE.GROUP:NAME`.

    Raises:
        RefusedError: no job can have that name.
    """
    kind, separator, name = key.name.partition(":" if ":" in key.name else ".")
    if not separator or not kind or not all(map(OBJECT_NAME.fullmatch, (key.namespace, kind, name))):
        raise RefusedError(404, f'"{key.name}" names no job: write TYPE.NAME, as job.train-1, or TYPE.GROUP:NAME')
    return JobName(kind, name)


@attrs.frozen
class Bounds:
    """Of one request."""

    size: int = 256 << 20
    """Bytes of log lines."""
    time: float = 3600.0
    """Seconds."""


async def read(query: Query, places: JobLocator, bounds: Bounds, out: Outgoing, check: Check) -> str:
    """Answer with the logs of a job, up to the bounds; returns why it has ended early, if it has.

    Args:
        query: what is asked for.
        places: where the job is.
        bounds: of the answer.
        out: the answer.
        check: raises RefusedError if the user may not read it, or nobody says.

    Raises:
        RefusedError: nothing has been written, and this is why.
    """
    why, code = "", 200
    with anyio.move_on_after(bounds.time) as scope:
        try:
            await _until_over(query, places, out, check)
        except (MultiKueueError, BaseExceptionGroup) as error:
            known = known_error(error)
            if known is None:
                raise
            why, code = _told(known, places)
    if why and not out.begun:
        raise RefusedError(code, why)
    if scope.cancelled_caught:
        why = f"it has lasted for {bounds.time:g} s; ask again"
    elif out.revoked:
        why = "you may not read it any more"
    elif out.full and query.limit is None:
        why = f"it has {out.most} bytes; ask for less with sinceSeconds or tailLines"
    if why:
        out.note(END + why)
    await out.end()
    return why


async def _until_over(query: Query, places: JobLocator, out: Outgoing, check: Check) -> None:
    """Show what is asked for while there is a reader who may read it, and room."""
    async with anyio.create_task_group() as tasks:

        async def show() -> None:
            await _show(query, places, out)
            out.over.set()

        async def ask_again() -> None:
            await until_refused(check)
            out.revoked = True
            out.over.set()

        async def begin() -> None:
            await anyio.sleep(BEGIN)
            out.begin()

        if query.follow:
            tasks.start_soon(begin)
        for task in (out.run, out.watch_reader, ask_again, show):
            tasks.start_soon(task)
        await out.over.wait()
        tasks.cancel_scope.cancel()


def _told(error: MultiKueueError, places: JobLocator) -> tuple[str, int]:
    """Words for users, and the HTTP status."""
    if isinstance(error, CommandError):
        return str(error), _CODES.get(error.exit_code, 500)
    if isinstance(error, ApiError):
        return places.words(error), 503
    return "this server has failed: ask an operator", 500


async def _show(query: Query, places: JobLocator, out: Outgoing) -> None:
    wanted = LogSelection(
        query.all_pods,
        query.container,
        query.since_seconds,
        query.tail,
        show=out.show,
        tell=out.note,
        pause=out.pause,
        timestamps=query.timestamps,
        pod=query.pod,
        previous=query.previous,
        max_streams=PODS,
        every=EVERY,
    )
    await show_logs(places, wanted, follow=query.follow)
