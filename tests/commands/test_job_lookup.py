"""How people name jobs, where nothing is read for it."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.protocols import ObjectList
from multikueued.exits import USAGE, CommandError
from multikueued.reading.job_lookup import find_job
from multikueued.reading.placed_job import PlacedJob
from multikueued.reading.pod_lookup import LocatorOfManager
from tests.commands.breaking import Person, asked_about, seen_after
from tests.runtime.fleet import Fleet

NOBODY: Any = None
"""A manager that cannot be asked."""


@pytest.mark.parametrize("text", ["", "job/", "job/%2e%2e", "job/..", "..", "job/a b", "job/--all", "job/$(id)"])
async def test_what_is_no_name_is_refused_before_anything_is_asked(text: str) -> None:
    with pytest.raises(CommandError, match="names no job: write TYPE/NAME, as job/train-1") as refused:
        await find_job(NOBODY, asked_about(text))
    assert refused.value.exit_code == USAGE


class Counting(Person):
    """A person's client that notes what is read."""

    asked: list[str]

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        self.asked.append(f"get {resource.plural}")
        return await super().get(resource, key)

    async def list(self, resource: Resource, **options: Any) -> ObjectList:
        self.asked.append(f"list {resource.plural}")
        return await super().list(resource, **options)


@pytest.mark.looptime
async def test_who_follows_a_job_reads_its_workload_alone() -> None:
    """`logs -f` read eight lists, a job and a Secret every two seconds."""

    async def follow(fleet: Fleet) -> tuple[list[str], list[str]]:
        client: Any = Counting(fleet.manager)
        client.asked = []
        places = LocatorOfManager(client, asked_about("job/job"))
        assert isinstance(await places.look(), PlacedJob)
        first, client.asked = client.asked, []
        assert isinstance(await places.look(), PlacedJob)
        return first, client.asked

    first, later = await seen_after(follow)
    assert "list clusterqueues" in first
    assert later == ["get workloads"]
