"""Which changes of the manager make jobs anew."""

from __future__ import annotations

from typing import Any, cast

import pytest

from multikueue.core.model.names import Json, ObjectKey
from multikueue.testing import NOW
from multikueued.remoteapi.manager_view import ManagerView
from tests.commands.test_report_runner import NOBODY

KEY = ObjectKey("default", "queue")


def queue(**changed: Json) -> Json:
    return {"metadata": {"namespace": "default", "name": "queue"}, "spec": {"clusterQueue": "cq"}, **changed}


@pytest.mark.parametrize(
    ("kind", "old", "new", "due"),
    [
        ("local_queues", queue(status={"pendingWorkloads": 1}), queue(status={"pendingWorkloads": 2}), False),
        ("local_queues", queue(), queue(spec={"clusterQueue": "other"}), True),
        ("local_queues", queue(), None, True),
        ("cluster_queues", queue(status={"pendingWorkloads": 1}), queue(status={"pendingWorkloads": 2}), False),
        ("cluster_queues", queue(), queue(spec={"admissionChecks": ["multikueue"]}), True),
        ("checks", queue(), queue(status={}), True),
    ],
)
async def test_figures_of_queues_make_no_job_anew(kind: str, old: Json | None, new: Json | None, due: bool) -> None:
    """Kueue writes them with each admission, and there may be ten thousand jobs."""
    view = ManagerView(cast(Any, NOBODY), lambda: NOW, cast(Any, None))
    view._by_job[ObjectKey("default", "job.train")] = {ObjectKey("default", "w")}
    view._other_changed(kind, KEY, old, new)
    assert bool(view._due) is due
