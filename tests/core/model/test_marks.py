"""A mark proves that we have made a copy, for this attempt and on this worker; what has none proves nothing."""

from __future__ import annotations

import pytest

from multikueue.core.model.labels import ATTEMPT_ANNOTATION
from multikueue.core.model.marks import Marks, Proof, mark_of
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import attempt
from tests.core.building import workload

LOCAL = workload()
MARKS = Marks(b"secret")
MINE = MARKS.of(LOCAL, attempt(LOCAL), "w1")


def proof(mark: str | None, *, cluster: str = "w1", local: Json = LOCAL, marks: Marks = MARKS) -> Proof:
    annotations = {} if mark is None else {ATTEMPT_ANNOTATION: mark}
    return marks.proof({"metadata": {"annotations": annotations}}, local, cluster)


def test_a_copy_of_ours_is_proven() -> None:
    assert proof(MINE) is Proof.EXACT


def test_its_mark_proves_nothing_on_another_worker() -> None:
    """Whoever reads it on one worker may write it on another."""
    assert proof(MINE, cluster="w2") is Proof.OTHER


def test_nor_in_another_attempt() -> None:
    assert proof(MINE, local=workload(evictions=1)) is Proof.OTHER


def test_nor_for_another_workload_of_that_name() -> None:
    again = workload()
    again["metadata"]["uid"] = "another"
    assert proof(MINE, local=again) is Proof.OTHER


@pytest.mark.parametrize("mark", [None, "", attempt(LOCAL), "what anybody may write"])
def test_what_anybody_may_write_proves_nothing_and_excludes_nothing(mark: str | None) -> None:
    """Unmarked: Kueue's own controller. The attempt itself: a former version of ours."""
    assert proof(mark) is Proof.NONE


def test_a_former_versions_mark_of_another_attempt_is_one() -> None:
    assert proof("0123456789abcdef") is Proof.OTHER


def test_a_key_that_is_lost_proves_nothing_and_excludes_nothing() -> None:
    assert proof(MINE, marks=Marks(b"another")) is Proof.NONE


def test_a_mark_of_our_key_cannot_be_made_up() -> None:
    assert proof(MINE[:-1] + ("0" if MINE[-1] != "0" else "1")) is Proof.OTHER


def test_marks_and_their_maker_do_not_tell_the_key() -> None:
    assert "secret" not in MINE + repr(MARKS)
    assert b"secret".hex() not in MINE


def test_it_fits_an_annotation_and_says_nothing_that_a_user_wrote() -> None:
    assert mark_of({"metadata": {"annotations": {ATTEMPT_ANNOTATION: MINE}}}) == MINE
    assert len(MINE) == 41
