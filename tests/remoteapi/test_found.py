"""A job as the API explains it, by what its informers hold: the same as who reads it himself finds."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from multikueue.core.model.names import Json, ObjectKey
from multikueued.remoteapi.manager_view import ManagerView
from tests.reports.objects import NOW, job, stored, workload

TRAIN = stored(job("train"))


async def nothing_published() -> Json | None:
    return None


def now() -> datetime:
    return NOW


def view_of(*made: Json) -> ManagerView:
    """A view whose informer holds these Workloads."""
    view = ManagerView(cast(Any, None), now, nothing_published, "kueue-system")
    listed = {ObjectKey.of(workload_made): workload_made for workload_made in made}
    view.informers["workloads"] = cast(Any, listed)
    view._by_job[ObjectKey("default", "job.train")] = {*listed}
    return view


def named(made: Json, name: str) -> Json:
    return {**made, "metadata": {**made["metadata"], "name": name}}


async def test_the_other_workloads_of_a_job_are_named_unless_they_have_ended() -> None:
    """The API explained one of them and did not say that there are more."""
    counting = workload(TRAIN, cluster="worker1")
    other, ended = named(counting, "a-slice"), named(workload(TRAIN, finished="Succeeded"), "b-slice")
    assert view_of(counting, other, ended).others_of(ObjectKey("default", "job.train")) == ("workload/a-slice",)
