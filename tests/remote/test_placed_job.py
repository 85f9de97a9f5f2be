"""Which objects on a worker are a job's copies."""

from __future__ import annotations

import attrs
import pytest

from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    NAMESPACE_ON_ANNOTATION,
    ORIGIN_LABEL,
    ORIGIN_UID_ANNOTATION,
    PREBUILT_WORKLOAD,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import uid, with_value
from multikueue.testing import job, stored, workload
from multikueued.reading.placed_job import PlacedJob, siblings_of
from tests.remote.objects import LOCAL, LOCAL_JOB, SOUGHT, WITHOUT_KEY, job_copy, owned_by, workload_copy


@pytest.mark.parametrize("sought", [SOUGHT, WITHOUT_KEY], ids=["with the key", "without it"])
class TestCopies:
    def test_the_copy_is_found(self, sought: PlacedJob) -> None:
        assert sought.copies([job_copy()]) == [job_copy()]

    def test_a_second_origins_copy_is_not_shown(self, sought: PlacedJob) -> None:
        """Two managers may have jobs and Workloads of the same names."""
        assert sought.copies([job_copy(origin="other", mark_key=b"o" * 32)]) == []

    def test_a_job_that_is_no_copy_is_not_shown(self, sought: PlacedJob) -> None:
        assert sought.copies([stored(job())]) == []

    def test_a_copy_of_another_workload_is_not_shown(self, sought: PlacedJob) -> None:
        made = with_value(job_copy(), ("metadata", "annotations", PREBUILT_WORKLOAD), "job-other-12345")
        assert sought.copies([made]) == []

    def test_a_copy_of_another_object_is_not_shown(self, sought: PlacedJob) -> None:
        made = with_value(job_copy(), ("metadata", "annotations", ORIGIN_UID_ANNOTATION), "another")
        assert sought.copies([made]) == []


class TestANamespaceMadeAgain:
    """The manager's namespace was deleted and made again, and with it the job: the same names, other UIDs."""

    AGAIN = workload(stored(job(), uid="again"), cluster="worker1")

    def _sought(self) -> PlacedJob:
        made = with_value(self.AGAIN, ("metadata", "uid"), "workload-made-again")
        return attrs.evolve(SOUGHT, workload=made, object=stored(job(), uid="again"))

    def test_the_copy_of_the_earlier_job_is_not_shown(self) -> None:
        assert self._sought().copies([job_copy()]) == []

    def test_the_earlier_workload_copy_says_nothing(self) -> None:
        copy = with_value(workload_copy(), ("metadata", "ownerReferences"), [owned_by(job_copy())])
        assert SOUGHT.owners_of_copy([copy]) == {uid(job_copy())}
        assert self._sought().owners_of_copy([copy]) == frozenset()

    def test_an_owner_that_is_not_the_controller_is_not_the_job(self) -> None:
        """Anybody who may write the copy can add one: its pods' logs would be shown as the job's."""
        forged = owned_by(with_value(job_copy(), ("metadata", "uid"), "forged"), controller=False)
        copy = with_value(workload_copy(), ("metadata", "ownerReferences"), [owned_by(job_copy()), forged])
        assert SOUGHT.owners_of_copy([copy]) == {uid(job_copy())}

    def test_an_earlier_workload_of_the_name_is_no_sibling(self) -> None:
        assert siblings_of(self.AGAIN, [LOCAL, self.AGAIN]) == ()


def test_its_copies_are_looked_for_in_the_namespace_that_was_chosen_there() -> None:
    assert SOUGHT.namespace_there == SOUGHT.namespace
    noted = with_value(LOCAL, ("metadata", "annotations"), {NAMESPACE_ON_ANNOTATION: '{"worker1": "mk-default"}'})
    assert attrs.evolve(SOUGHT, workload=noted).namespace_there == "mk-default"


def test_the_mark_of_another_worker_is_not_believed() -> None:
    assert SOUGHT.copies([job_copy(cluster="worker2")]) == []


@pytest.mark.parametrize("key", [b"", b"o" * 32], ids=["none", "lost"])
def test_where_it_must_be_certain_a_copy_needs_our_mark(key: bytes) -> None:
    """A copy of Kueue's own controller, or with the mark of a lost key, could be anybody's."""
    strict = attrs.evolve(SOUGHT, strict=True)
    made = job_copy(mark_key=key)
    if not key:
        del made["metadata"]["annotations"][ATTEMPT_ANNOTATION]
    assert SOUGHT.copies([made]) == [made]
    assert strict.copies([made]) == []
    assert strict.copies([job_copy()]) == [job_copy()]
    assert attrs.evolve(strict, mark_key=None).copies([job_copy()]) == []


def test_a_slice_that_made_the_job_counts() -> None:
    """The job of an elastic job has the mark of the slice that made it, and the name of the newest."""
    newer = with_value(with_value(LOCAL, ("metadata", "uid"), "newer"), ("metadata", "name"), "slice-2")
    siblings = siblings_of(newer, [LOCAL, newer])
    assert siblings == (LOCAL,)
    assert attrs.evolve(SOUGHT, workload=newer, siblings=siblings).copies([job_copy()]) == [job_copy()]


def test_the_pods_of_a_group_are_its_members() -> None:
    references: list[Json] = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-of-{name}"} for name in ("a", "b")
    ]
    group = with_value(LOCAL, ("metadata", "ownerReferences"), references)
    group = with_value(group, ("metadata", "annotations"), {"kueue.x-k8s.io/is-group-workload": "true"})
    listed = [
        {
            "metadata": {
                "name": name,
                "labels": {ORIGIN_LABEL: "multikueue", PREBUILT_WORKLOAD: LOCAL["metadata"]["name"]},
            }
        }
        for name in ("a", "b", "c")
    ]
    sought = attrs.evolve(WITHOUT_KEY, workload=group, object=None)
    assert [copy["metadata"]["name"] for copy in sought.copies(listed)] == ["a", "b"]


def test_the_managers_job_is_known() -> None:
    assert uid(LOCAL_JOB) in {owner["uid"] for owner in LOCAL["metadata"]["ownerReferences"]}
