"""Events: one object, served by two groups."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from multikueue.core.model.kinds import EVENT
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import Invalid
from multikueue.protocols import WatchEvent
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.apiserver.storage.selectors import Selector
from multikueue.sandbox.apiserver.verbs.listing import ListOptions
from multikueue.testing import running
from tests.sandbox.apiserver.objects import turn_until

OLD = Resource(GVK("", "v1", "Event"), "events")
KEY = ObjectKey("default", "told.1")


def reported(**fields: Any) -> Json:
    """An event as a controller of today reports it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "kueue-workload-controller",
        "reportingInstance": "multikueue-0",
        "action": "MultiKueue",
        "reason": "MultiKueue",
        "type": "Normal",
        "regarding": {"kind": "Workload", "name": "job-a", "namespace": "default"},
        "note": "The workload was admitted",
        **fields,
    }


async def test_what_was_reported_in_the_new_group_is_read_in_the_old_one() -> None:
    """`kubectl describe` asks the old one."""
    client = DirectClient(ApiServer("a"))
    await client.create(EVENT, reported())
    old = await client.get(OLD, KEY)
    assert (old["apiVersion"], old["message"]) == ("v1", "The workload was admitted")
    assert old["involvedObject"]["name"] == "job-a"
    assert old["reportingComponent"] == "kueue-workload-controller"
    assert "note" not in old
    assert (await client.list(OLD)).items == [old]


async def test_what_was_reported_in_the_old_group_is_read_in_the_new_one() -> None:
    """With the fields that only the old one has under their new names."""
    client = DirectClient(ApiServer("a"))
    fields = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "message": "pulled", "count": 2}
    made = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": KEY.name, "namespace": KEY.namespace}, **fields}
    assert (await client.create(OLD, made))["message"] == "pulled"
    new = await client.get(EVENT, KEY)
    assert (new["note"], new["deprecatedCount"], new["regarding"]["name"]) == ("pulled", 2, "p")
    await client.merge_patch(OLD, KEY, {"count": 3})
    assert (await client.get(EVENT, KEY))["deprecatedCount"] == 3
    await client.delete(EVENT, KEY)
    assert (await client.list(OLD)).items == []


async def test_each_group_selects_by_its_own_names() -> None:
    """As `kubectl describe` does by `involvedObject.name`."""
    server = ApiServer("a")
    await DirectClient(server).create(EVENT, reported())
    for resource, field in ((OLD, "involvedObject.name"), (EVENT, "regarding.name")):
        row = server.registry.type_of(resource)
        for name, number in (("job-a", 1), ("job-b", 0)):
            options = ListOptions(Selector.parse(row, fields=f"{field}={name}"))
            assert len(server.registry.list(row, "default", options).entries) == number


async def test_a_watch_of_the_old_group_tells_of_both() -> None:
    """In its own words."""
    client, events = DirectClient(ApiServer("a")), list[WatchEvent]()
    await client.create(EVENT, reported())
    async with running(functools.partial(client.watch, OLD, events.append, resource_version="0")):
        await turn_until(lambda: bool(events))
    assert events[0].object["message"] == "The workload was admitted"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        *(
            ({name: None}, name)
            for name in ("eventTime", "reportingController", "reportingInstance", "action", "reason")
        ),
        *(({name: "x" * 129}, name) for name in ("reportingInstance", "action", "reason")),
        *(({"type": word}, "type") for word in ("normal", "", None, "Error")),
        ({"note": "é" * 513}, "note"),
    ],
)
async def test_an_event_that_a_server_refuses_is_refused(wrong: Json, field: str) -> None:
    client = DirectClient(ApiServer("a"))
    with pytest.raises(Invalid, match=field):
        await client.create(EVENT, reported(**wrong))
    await client.create(EVENT, reported(note="x" * 1024, reason="x" * 128))


async def test_only_the_series_of_an_event_goes_on() -> None:
    client = DirectClient(ApiServer("a"))
    await client.create(EVENT, reported())
    for change in ({"note": "other"}, {"reason": "Other"}, {"type": "Warning"}, {"action": "Other"}):
        with pytest.raises(Invalid, match=next(iter(change))):
            await client.merge_patch(EVENT, KEY, change)
    series: Json = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    assert (await client.merge_patch(EVENT, KEY, {"series": series}))["series"] == series
