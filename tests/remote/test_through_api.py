"""`multikueue logs` through the API of the manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import ObjectKey, Resource
from multikueue.errors import Forbidden
from multikueue.kube import ClusterConfig
from multikueue.kube.http.requests import LogQuery, pod_log
from multikueue.kube.log_stream import LogLine
from multikueue.sandbox.apiserver import Match, Refuse
from multikueued.api_answers import END, NOTE
from multikueued.exits import CommandError
from multikueued.reading.asked import ReportTarget
from multikueued.reading.log_output import LogSelection
from multikueued.reading.through_api import show_log
from tests.remote.test_on_servers import fleet

TARGET = ReportTarget(ClusterConfig("https://manager"), "default", "kueue-system")


@attrs.define
class Manager:
    """A manager that serves the API, and one job's log."""

    lines: list[LogLine] = attrs.field(factory=list)
    breaks: Exception | None = None
    """Once its lines are read."""
    asked: list[str] = attrs.field(factory=list)

    async def pod_log(
        self,
        key: ObjectKey,
        query: LogQuery,
        on_line: Callable[[LogLine], None],
        *,
        on_open: Callable[[], Awaitable[None]],
        resource: Resource,
        idle: float,
    ) -> None:
        del idle
        self.asked.append(pod_log(resource, key, query).path)
        await on_open()
        for line in self.lines:
            on_line(line)
        if self.breaks is not None:
            raise self.breaks


async def shown(manager: Manager, job: str = "job.train", **options: Any) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    notes: list[str] = []
    client: Any = manager
    wanted = LogSelection(show=lambda line: lines.append(line.removesuffix("\n")), tell=notes.append, **options)
    await show_log(client, ObjectKey("default", job), wanted, follow=True)
    return lines, notes


async def test_a_request_names_the_job_and_at_most_one_of_its_pods() -> None:
    manager = Manager()
    await shown(manager, "rayjobs.tune", all_pods=True, tail=3)
    await shown(manager, "job.batch.volcano.sh:tune.1")
    await shown(manager, pod="a", previous=True)
    jobs = "/apis/remote.multikueue.dev/v1alpha1/namespaces/default/remotejobs"
    assert manager.asked == [
        f"{jobs}/rayjobs.tune/log?follow=true&timestamps=true&tailLines=3&allPods=true",
        f"{jobs}/job.batch.volcano.sh%3Atune.1/log?follow=true&timestamps=true",
        f"{jobs}/job.train/log?follow=true&timestamps=true&pod=a&previous=true",
    ]


async def test_lines_of_the_servers_own_are_told_and_a_job_cannot_write_any() -> None:
    time = "2026-01-01T00:00:00Z"
    lines = [LogLine(f"{NOTE}it has moved"), LogLine(f"{NOTE}forged", time), LogLine("step 1", time), LogLine("odd")]
    assert await shown(Manager(lines)) == ([f"{NOTE}forged", "step 1", "odd"], ["it has moved"])
    timed = [f"{time} {NOTE}forged", f"{time} step 1", "odd"]
    assert (await shown(Manager(lines), timestamps=True))[0] == timed


async def test_a_log_that_ends_early_is_an_error() -> None:
    with pytest.raises(CommandError, match=r"it has lasted for 3600 s; ask again") as raised:
        await shown(Manager([LogLine(f"{NOTE}{END}it has lasted for 3600 s; ask again")]))
    assert raised.value.exit_code == 1


async def test_one_that_breaks_after_its_first_line_ends_early() -> None:
    """It is not shown once more, from its beginning, by one's own rights."""
    manager = Manager([LogLine("step 1", "2026-01-01T00:00:00Z")], breaks=Forbidden("manager: no", status=403))
    with pytest.raises(CommandError, match="the log ends early: manager: no") as raised:
        await shown(manager)
    assert raised.value.exit_code == 4


async def test_a_manager_without_the_api_leaves_the_error_as_it_is(tmp_path: Path) -> None:
    """Who may not get the Secret is told that; the real server's test has the API."""
    async with fleet(tmp_path) as here:
        await here.run_with_pod()
        here.person.server.faults.add(Refuse(403), on=Match(verbs=("get",), resource=SECRET.plural))
        refused = await here.person.run("logs", "job/train")
    assert refused.exit_code == 4
    assert 'you may not get the Secret "kueue-system/worker1-secret"' in refused.stderr
