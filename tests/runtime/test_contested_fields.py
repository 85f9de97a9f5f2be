"""Two who set one field of a copy: after the third time we set it back no more, and it is told who the other one is."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import EVENT, JOB
from multikueue.core.model.labels import FINDING_LABEL, ToldFinding
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, labels_of, uid
from multikueue.runtime import contested_fields
from multikueue.runtime.contested_fields import KEPT, MOST, WITHIN, ContestedFields, contested
from multikueue.sandbox.apiserver import DirectClient
from tests.core.door import MANAGER, PatchJob
from tests.runtime.executing import W1, Fleet, a_job, a_workload

pytestmark = pytest.mark.looptime

COPY = ObjectKey("default", "job")


class Contest:
    """A copy on a worker, and an autoscaler there."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self.client = self.fleet.clusters[W1].client
        self.scaler = DirectClient(self.client.registry, user="vertical-scaler")
        self.uid = ""

    async def begin(self) -> None:
        self.uid = uid(await self.client.create(JOB, a_job()))

    async def scale(self, size: int) -> None:
        await self.scaler.merge_patch(JOB, COPY, {"spec": {"parallelism": size}})

    async def set_back(self, size: int = 1) -> int:
        """Have it as on the manager; returns what it is then."""
        patch = {"metadata": {"uid": self.uid}, "spec": {"parallelism": size}}
        await self.fleet.executor.execute(a_workload(), (PatchJob(W1, JOB, COPY, patch),))
        return int(dig(await self.client.get(JOB, COPY), "spec", "parallelism"))

    async def fight(self, times: int) -> list[int]:
        given_up = []
        for _ in range(times):
            await self.scale(4)
            given_up.append(await self.set_back())
            await anyio.sleep(15.0)
        return given_up


async def test_it_is_set_back_three_times_and_then_told_once() -> None:
    """A HorizontalPodAutoscaler looks every 15 s: both wrote for as long as the job was there, without a word."""
    contest = Contest()
    await contest.begin()
    assert await contest.fight(6) == [1, 1, 1, 4, 4, 4]
    events = contest.fleet.events
    with anyio.move_on_after(5.0):
        await events.run()
    listed = (await contest.fleet.clusters[MANAGER].client.list(EVENT)).items
    (event,) = [event for event in listed if labels_of(event).get(FINDING_LABEL) == ToldFinding.CONTESTED_FIELD]
    note = event["note"]
    assert "spec.parallelism (set there by vertical-scaler)" in note
    assert 'jobs.batch "default/job" on worker cluster "w1"' in note


async def test_what_is_changed_on_the_manager_is_copied_again() -> None:
    contest = Contest()
    await contest.begin()
    await contest.fight(5)
    assert await contest.set_back(2) == 2
    assert await contest.fight(4) == [1, 1, 1, 4], "and that may begin again"


async def test_what_people_change_now_and_then_is_set_back() -> None:
    contest = Contest()
    await contest.begin()
    for _ in range(5):
        assert await contest.fight(1) == [1]
        await anyio.sleep(WITHIN)


async def test_the_copies_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contested_fields, "KEPT", 10)
    assert KEPT > 10
    fields = ContestedFields()
    for number in range(100):
        for _ in range(MOST):
            fields.made(W1, {"metadata": {"uid": str(number)}, "spec": {"a": 1}})
    assert len(fields) == 10
    assert fields.is_left_to_others(W1, {"metadata": {"uid": "99"}, "spec": {"a": 1}})
    assert not fields.is_left_to_others(W1, {"metadata": {"uid": "99"}, "spec": {"a": 2}})
    assert not fields.is_left_to_others(W1, {"metadata": {"uid": "1"}, "spec": {"a": 1}})


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (
            {"metadata": {"uid": "u", "resourceVersion": "3"}, "spec": {"a": None}},
            "spec.a (which that API may not have)",
        ),
        ({"metadata": {"uid": "u", "labels": {"x": "1"}}}, "metadata.labels.x (set there by kubectl)"),
        ({"spec": {"b": {"c": [1]}}}, "spec.b.c (set there by hpa)"),
    ],
)
def test_the_fields_and_who_sets_them_are_named(patch: Json, words: str) -> None:
    entries = [
        {"manager": "hpa", "fieldsV1": {"f:spec": {"f:b": {"f:c": {}}}}},
        {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}},
    ]
    assert contested(patch, {"metadata": {"managedFields": entries}}) == words
