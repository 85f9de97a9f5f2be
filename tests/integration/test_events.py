"""Events on a real API server, with the chart's permissions: what `kubectl describe` lists, in its order."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.names import Json
from multikueue.kube import KubeClient
from multikueue.runtime.event_series import ONE_TIME
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.loop import utc_now
from multikueue.testing import running
from tests.controlplane.polling import poll_until
from tests.integration.planes import Planes, connection

pytestmark = [pytest.mark.real, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]

TOLD: Json = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "metadata": {"name": "told-again", "namespace": "default", "uid": "00000000-0000-0000-0000-000000000001"},
}


async def test_repeats_are_counted_and_the_newest_message_is_the_last(planes: Planes) -> None:
    async with KubeClient(connection(planes.daemon_kubeconfig), name="manager") as client:
        events = EventRecorder(client, "kueue-workload-controller", "test", utc_now)
        async with running(events.run):

            async def say(note: str, sent: int) -> None:
                noted = {"example.com/sent": str(sent)}
                events.emit(TOLD, "Normal", "MultiKueue", "MultiKueue", note, annotations=noted)
                await poll_until(lambda: _sent(events, sent), seconds=20, otherwise=f"not sent: {events}")
                await anyio.sleep(2 * ONE_TIME)  # what is said next is said later

            await say("admitted", 1)
            await say("evicted", 2)
            await say("admitted", 3)
            await say("admitted", 4)

    listed = await planes.manager.admin.get(
        "/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=told-again"
    )
    told = [(event["message"], (event.get("series") or {}).get("count")) for event in listed["items"]]
    assert told == [("admitted", None), ("evicted", None), ("admitted", 2)]
    assert listed["items"][-1]["metadata"]["annotations"] == {"example.com/sent": "4"}, "that of the last time"
    assert listed["items"][-1]["series"]["lastObservedTime"] > listed["items"][-1]["eventTime"]
    assert events.statistics().dropped == 0


async def _sent(events: EventRecorder, count: int) -> bool:
    return events.statistics().sent == count
