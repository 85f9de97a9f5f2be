"""Where a job is, looked up again and again for one request."""

from __future__ import annotations

import base64
from typing import Any

import attrs
import pytest

from multikueue.core.model.kinds import SECRET, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import with_value
from multikueue.errors import Forbidden, NotFound, Unreachable
from multikueue.protocols import ObjectList
from multikueue.sandbox.kueue import statuses
from multikueue.testing import NOW, job, stored, workload
from multikueued.exits import FINDING, NOT_FOUND, USAGE, CommandError
from multikueued.logserver.resolving import LocatorOfTenant, ReadableWorkers
from multikueued.reading.placed_job import PlacedJob
from multikueued.reading.pod_lookup import UnplacedJob
from multikueued.reports.typenames import JobName
from tests.logserver.stage import KEY
from tests.remote.objects import LOCAL
from tests.reports.test_jobs import of_kind

MARKS = ObjectKey("kueue-system", "multikueue-marks")


@attrs.define
class Manager:
    """The manager's Workloads, and the key of marks."""

    workloads: list[Json] = attrs.field(factory=lambda: [LOCAL])
    asked: list[str] = attrs.field(factory=list)
    error: Exception | None = None

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        self.asked.append(f"get {resource.plural}")
        if self.error is not None:
            raise self.error
        if resource == SECRET:
            assert key == MARKS
            return {"data": {"key": base64.b64encode(KEY).decode()}}
        assert resource == WORKLOAD
        for known in self.workloads:
            if ObjectKey.of(known) == key:
                return known
        raise NotFound("gone")

    async def list(self, resource: Resource, *, namespace: str) -> ObjectList:
        assert (resource, namespace) == (WORKLOAD, "default")
        self.asked.append("list workloads")
        return ObjectList(list(self.workloads), "1")

    def places(self) -> LocatorOfTenant:
        client: Any = self
        workers = ReadableWorkers(client, "multikueue", {})
        return LocatorOfTenant(workers, "multikueue", MARKS, JobName("job", "train"), "default")


def changed(**metadata: str) -> Json:
    """The Workload with other metadata."""
    made = LOCAL
    for field, value in metadata.items():
        made = with_value(made, ("metadata", field), value)
    return made


async def sought(places: LocatorOfTenant) -> PlacedJob:
    place = await places.look()
    assert isinstance(place, PlacedJob)
    return place


async def test_what_is_known_is_asked_for_by_its_name() -> None:
    """A namespace may have thousands of Workloads, and many logs may be followed."""
    manager = Manager()
    places = manager.places()
    for _ in range(3):
        place = await sought(places)
    assert (place.worker, place.strict, place.mark_key) == ("worker1", True, KEY)
    assert manager.asked == ["get secrets", "list workloads", "get workloads", "get workloads"]
    assert KEY.decode() not in repr(places)


async def test_another_workload_under_its_name_is_not_it() -> None:
    manager = Manager()
    places = manager.places()
    await places.look()
    again = workload(stored(job(), uid="another-job"), cluster="worker1")
    again["metadata"] |= {"name": LOCAL["metadata"]["name"], "uid": "another-workload"}
    manager.workloads = [again]
    with pytest.raises(CommandError) as raised:
        await places.look()
    assert raised.value.exit_code == NOT_FOUND


async def test_the_next_slice_of_the_same_job_is_followed() -> None:
    manager = Manager()
    places = manager.places()
    await places.look()
    manager.workloads = [statuses.finished(LOCAL, "Succeeded", "done", NOW), changed(name="slice-2", uid="slice-2")]
    place = await sought(places)
    assert place.workload["metadata"]["name"] == "slice-2"
    assert [sibling["metadata"]["name"] for sibling in place.siblings] == [LOCAL["metadata"]["name"]]


async def test_a_job_that_no_worker_has() -> None:
    waiting = workload(stored(job()))
    said = "no worker has it; it is Waiting (multikueue explain job/train -n default says more)"
    assert await Manager([waiting]).places().look() == UnplacedJob("job/train", said, known=True, ended=False)
    ended = await Manager([statuses.finished(waiting, "Succeeded", "done", NOW)]).places().look()
    assert isinstance(ended, UnplacedJob)
    assert ended.ended
    assert "retention.finished" in ended.why


async def test_a_job_of_another_group_does_not_answer_for_it() -> None:
    with pytest.raises(CommandError) as raised:
        await Manager([of_kind("batch.volcano.sh/v1alpha1", "Job")]).places().look()
    assert raised.value.exit_code == NOT_FOUND


async def test_a_name_of_jobs_of_two_groups_must_say_which() -> None:
    manager = Manager([of_kind("a.example/v1", "Widget"), of_kind("b.example/v1", "Widget")])
    with pytest.raises(
        CommandError, match=r"widget/train is the name of several jobs: write TYPE\.GROUP:NAME"
    ) as raised:
        await attrs.evolve(manager.places(), name=JobName("widget", "train")).look()
    assert raised.value.exit_code == USAGE
    place = await attrs.evolve(manager.places(), name=JobName("widget.b.example", "train")).look()
    assert isinstance(place, UnplacedJob)


async def test_a_permission_that_is_missing_ends_it_and_silence_does_not() -> None:
    with pytest.raises(CommandError) as raised:
        await Manager(error=Forbidden("no")).places().look()
    assert raised.value.exit_code == FINDING
    with pytest.raises(Unreachable):
        await Manager(error=Unreachable("https://10.0.0.1: reset")).places().look()
    assert Manager().places().words(Unreachable("https://10.0.0.1: reset")) == "the manager cluster does not answer"
