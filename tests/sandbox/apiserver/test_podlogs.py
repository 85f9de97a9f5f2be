"""What a played container says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.apiserver.serving.locations import chosen_container
from multikueue.sandbox.apiserver.serving.podlogs import MAX_STEPS, said
from multikueue.sandbox.apiserver.status_errors import StatusError

START = datetime(2026, 1, 1, tzinfo=UTC)


def pod(**state: Json) -> Json:
    shown = [{"name": "main", "state": state}]
    return {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"startTime": "2026-01-01T00:00:00Z", "containerStatuses": shown},
    }


def test_it_says_that_it_has_started_and_each_step() -> None:
    lines = said(pod(running={}), "main", START + timedelta(seconds=2.5))
    assert [(line.text, line.at - START) for line in lines] == [
        ("started", timedelta(0)),
        ("step 1", timedelta(seconds=1)),
        ("step 2", timedelta(seconds=2)),
    ]
    assert len(said(pod(running={}), "main", START + timedelta(days=1))) == MAX_STEPS + 1


def test_how_it_has_ended_stays() -> None:
    ended = pod(terminated={"exitCode": 1, "finishedAt": "2026-01-01T00:00:01Z"})
    for later in (2, 3000):
        lines = said(ended, "main", START + timedelta(seconds=later))
        assert [line.text for line in lines] == ["started", "step 1", "ended with exit code 1"]


def test_one_that_waits_has_no_log() -> None:
    with pytest.raises(StatusError, match='container "main" in pod "a" is waiting to start: ImagePullBackOff'):
        said(pod(waiting={"reason": "ImagePullBackOff"}), "main", START)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"limitBytes": "10"}, "started\nst"),
        ({"limitBytes": "10", "follow": "true"}, "started\nst"),
        ({"limitBytes": "3", "tailLines": "1"}, "end"),
        ({"limitBytes": "100"}, "started\nstep 1\nended with exit code 1\n"),
    ],
)
async def test_no_more_than_the_limit_is_said(query: dict[str, str], text: str) -> None:
    """`kubectl logs --limit-bytes`; a followed log ends there, too."""
    ended = pod(terminated={"exitCode": 1, "finishedAt": "2026-01-01T00:00:01Z"})
    running = pod(running={})
    shown = running if "follow" in query else ended
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        spec = {"nodeName": "node-1", "containers": [{"name": "main", "image": "x"}]}
        body = {"metadata": {"name": "a", "namespace": "default"}, "spec": spec}
        made = await DirectClient(server).create(POD, {"apiVersion": "v1", "kind": "Pod", **body})
        await DirectClient(server).replace(POD, {**made, "status": shown["status"]}, subresource="status")
        async with session.get("/api/v1/namespaces/default/pods/a/log", params=query) as response:
            assert await response.text() == text


def test_one_of_several_containers_must_be_named() -> None:
    several = {**pod(), "spec": {"containers": [{"name": "main"}, {"name": "side"}]}}
    assert chosen_container(several, "side") == "side"
    with pytest.raises(StatusError, match="choose one of"):
        chosen_container(several, "")
    with pytest.raises(StatusError, match="is not valid"):
        chosen_container(several, "other")
