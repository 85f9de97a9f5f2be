"""Who has written the status of a job."""

from __future__ import annotations

import pytest

from multikueue.core.model.names import Json
from multikueue.core.model.writers import other_status_writers, with_other_writers_only


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
        (written_by(status_of("manager"), status_of("manager"), status_of("kubectl")), ("manager", "kubectl")),
        (written_by({**status_of("manager"), "subresource": ""}), ()),
        (written_by({"operation": "Update", "subresource": "status"}, "odd"), ()),
        ({"metadata": {"managedFields": "odd"}}, ()),
    ],
    ids=["none", "no fields", "ours and Kueue's", "a controller", "two", "the object", "nameless", "odd"],
)
def test_only_writers_of_the_status_count_and_neither_we_nor_kueue(job: Json, others: tuple[str, ...]) -> None:
    assert other_status_writers(job) == others
    kept = with_other_writers_only(job)
    assert other_status_writers(kept) == others
    assert ("managedFields" in kept["metadata"]) == bool(others)
