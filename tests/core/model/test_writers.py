"""Who has written the status of a job."""

from __future__ import annotations

import pytest

from multikueue.core.model.names import Json
from multikueue.core.model.writers import status_controllers, with_status_controllers_only


def written_by(*entries: object) -> Json:
    return {"metadata": {"name": "a", "managedFields": list(entries)}}


def status_of(manager: str) -> Json:
    return {"manager": manager, "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}


@pytest.mark.parametrize(
    ("job", "others"),
    [
        (written_by(), ()),
        ({"metadata": {"name": "a"}}, ()),
        (written_by(status_of("multikueue"), status_of("kueue"), status_of("kueue-job-controller")), ()),
        (written_by(status_of("multikueue"), status_of("manager")), ("manager",)),
        (
            written_by(status_of("manager"), status_of("manager"), status_of("mpi-operator")),
            ("manager", "mpi-operator"),
        ),
        (written_by(status_of("kubectl-edit"), status_of("my-own-client")), ()),
        (written_by({**status_of("manager"), "subresource": ""}), ()),
        (written_by({"operation": "Update", "subresource": "status"}, "odd"), ()),
        ({"metadata": {"managedFields": "odd"}}, ()),
    ],
    ids=[
        "none",
        "no fields",
        "ours and Kueue's",
        "a controller",
        "two",
        "others",
        "the object",
        "nameless",
        "odd",
    ],
)
def test_only_controllers_that_write_the_status_count(job: Json, others: tuple[str, ...]) -> None:
    assert status_controllers(job) == others
    kept = with_status_controllers_only(job)
    assert status_controllers(kept) == others
    assert ("managedFields" in kept["metadata"]) == bool(others)
