"""Copies that nobody can tell from what a user of a worker has made: they win nothing, and take nothing that runs.

Unmarked ones, those of a former version or of a lost key are believed where the Workload is recorded, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeAlias

import attrs
import pytest

from multikueue.core.model.labels import ATTEMPT_ANNOTATION
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import attempt
from tests.core.building import EARLIER, copy_of, job_copy_of, mark_on, snapshot, worker, workload
from tests.core.door import (
    NOW,
    SETTINGS,
    Connecting,
    CreateWorkload,
    Lost,
    Reach,
    Worker,
    decide,
    notes,
    sole,
)
from tests.core.wording import in_words, words

OFFERED = workload(nominated=("w1", "w2"))
DONE: Json = {"conditions": [{"type": "Complete", "status": "True"}]}


def marked(obj: Json, mark: str) -> Json:
    """The object with another mark."""
    annotations = {**obj["metadata"].get("annotations", {}), ATTEMPT_ANNOTATION: mark}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def former(local: Json, cluster: str) -> str:
    """What former versions wrote."""
    del cluster
    return attempt(local)


def of_lost_key(local: Json, cluster: str) -> str:
    """What was written with a key that is lost."""
    return Marks(b"another").of(local, attempt(local), cluster)


def of_worker1(local: Json, cluster: str) -> str:
    """What was read on w1."""
    del cluster
    return mark_on("w1", local)


def unmarked(local: Json, cluster: str) -> str:
    """Nothing, as Kueue's own controller."""
    del local, cluster
    return ""


How: TypeAlias = Callable[[Json, str], str]
UNPROVEN = pytest.mark.parametrize("how", [unmarked, former, of_lost_key])
FORGED = pytest.mark.parametrize("how", [unmarked, former, of_lost_key, of_worker1])


def theirs(name: str, local: Json, how: How, *, status: Json | None = None, **facts: Any) -> Worker:
    """A worker that runs, or has run, a job and a Workload with a mark of that sort."""
    mark = how(local, name)
    copied = marked(copy_of(local, admitted=True, owned=True, finished="Succeeded" if status else None), mark)
    return worker(name, copied, marked(job_copy_of(local, status=status), mark), **facts)


@pytest.mark.parametrize(
    ("how", "left"), [(unmarked, False), (former, False), (of_worker1, False), (of_lost_key, True)]
)
def test_of_a_workload_that_is_not_here_what_another_key_has_marked_is_left_alone(how: How, left: bool) -> None:
    """Another manager may have the same origin, which is the default: what it runs was deleted as soon as it showed."""
    seen = attrs.evolve(snapshot(OFFERED, theirs("w2", OFFERED, how)), workload=None, check=None, jobs={})
    assert (words(seen) == []) == left
    assert words(attrs.evolve(seen, was_here=True)) != [], "the key may have changed since it was made"


class TestNothingIsRecorded:
    @FORGED
    @pytest.mark.parametrize("facts", [{}, {"configured": False}], ids=["in the config", "outside of it"])
    def test_they_do_not_win(self, how: How, facts: dict[str, Any]) -> None:
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED)), theirs("w2", OFFERED, how, **facts))
        assert words(seen)[-2:] == ["stop on w2", "delete job on w2 unless it is stopped"]

    @FORGED
    def test_nor_does_their_end(self, how: How) -> None:
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED)), theirs("w2", OFFERED, how, status=DONE))
        assert words(seen) == ["delete job on w2", "delete workload on w2"]

    @UNPROVEN
    def test_nobody_is_recorded_until_they_are_gone_from_the_config(self, how: How) -> None:
        """Kueue's own controller creates the job before it records the worker, and may have been stopped in between."""
        admitted = worker("w1", copy_of(OFFERED, admitted=True))
        seen = snapshot(OFFERED, admitted, theirs("w2", OFFERED, how))
        assert words(seen) == ["warn", "stop on w2", "delete job on w2 unless it is stopped"]
        (warnings,) = notes(decide(seen))
        assert warnings.startswith('Waiting for worker cluster "w2"')
        without_job = snapshot(OFFERED, admitted, attrs.evolve(theirs("w2", OFFERED, how), jobs=()))
        assert words(without_job) == ["warn", "delete workload on w2"]
        gone = snapshot(OFFERED, admitted, worker("w2"))
        assert words(gone)[0] == "record w1"

    @FORGED
    def test_outside_of_the_config_they_hold_up_nobody(self, how: How) -> None:
        """The built-in controller has never had it there."""
        seen = snapshot(
            OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), theirs("w2", OFFERED, how, configured=False)
        )
        assert words(seen) == ["record w1", "stop on w2", "delete job on w2 unless it is stopped"]

    def test_a_mark_of_another_worker_holds_up_nobody(self) -> None:
        """It proves that it is not ours: we have made none for this attempt there."""
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), theirs("w2", OFFERED, of_worker1))
        assert words(seen) == ["record w1", "stop on w2", "delete job on w2 unless it is stopped"]

    @FORGED
    def test_their_job_does_not_put_their_worker_first(self, how: How) -> None:
        """w2 has admitted our copy; somebody there has made the job under it."""
        mark = how(OFFERED, "w2")
        there = worker("w2", copy_of(OFFERED, admitted=True), marked(job_copy_of(OFFERED), mark))
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), there)
        assert "w2" not in " ".join(word for word in words(seen) if "record" in word or "admit" in word)

    def test_a_lost_worker_outside_of_the_config_is_not_waited_for_because_of_them(self) -> None:
        lost = theirs("w2", OFFERED, unmarked, configured=False, reach=Lost(NOW))
        assert words(snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), lost)) == ["record w1"]

    def test_an_admitted_copy_of_ours_wins_only_where_it_is_nominated(self) -> None:
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local)), worker("w2", copy_of(local, admitted=True)))
        assert not any("record" in word for word in words(seen))


class TestRecorded:
    RECORDED = workload(cluster="w1", check="Ready")
    PENDING = workload(cluster="w1")

    @UNPROVEN
    def test_there_they_are_believed(self, how: How) -> None:
        """A key that is lost, or an upgrade, takes nothing."""
        assert words(snapshot(self.RECORDED, theirs("w1", self.RECORDED, how))) == ["copy job status"]

    @UNPROVEN
    def test_there_they_are_believed_before_the_check_is_ready(self, how: How) -> None:
        seen = snapshot(self.PENDING, theirs("w1", self.PENDING, how))
        assert words(seen)[0] == "admit on w1 as Ready"

    @UNPROVEN
    def test_the_job_is_made_for_such_a_copy(self, how: How) -> None:
        copied = marked(copy_of(self.PENDING, admitted=True), how(self.PENDING, "w1"))
        assert words(snapshot(self.PENDING, worker("w1", copied))) == ["create job on w1"]

    @UNPROVEN
    def test_a_job_that_was_there_before_our_copy_is_not_its_job(self, how: How) -> None:
        """Ours is made after its Workload copy: an earlier one has the name, and is deleted first."""
        job = marked(job_copy_of(self.PENDING), how(self.PENDING, "w1"))
        seen = snapshot(self.PENDING, worker("w1", copy_of(self.PENDING, admitted=True), job))
        assert words(seen) == ["delete job on w1"]

    @FORGED
    @pytest.mark.parametrize("facts", [{}, {"configured": False}], ids=["in the config", "outside of it"])
    def test_elsewhere_they_are_removed(self, how: How, facts: dict[str, Any]) -> None:
        ours = worker("w1", copy_of(self.RECORDED, admitted=True, owned=True), job_copy_of(self.RECORDED))
        seen = snapshot(self.RECORDED, ours, theirs("w2", self.RECORDED, how, status=DONE, **facts))
        gone = ["delete job on w2", "delete workload on w2"]
        assert words(seen) == ["copy job status", *(gone if how is not of_worker1 else [])]

    @pytest.mark.parametrize("reach", [Connecting(), Lost(NOW)])
    @pytest.mark.parametrize("identified", [True, False])
    def test_what_the_recorded_worker_got_stays_wherever_it_shows(self, reach: Reach, identified: bool) -> None:
        """Two kubeconfigs may have been swapped: what shows there is the job, and it runs."""
        there = theirs("w2", self.RECORDED, of_worker1, status=DONE)
        assert words(snapshot(self.RECORDED, worker("w1", reach=reach, identified=identified), there)) == []

    def test_the_recorded_worker_counts_though_it_has_left_the_config(self) -> None:
        ours = theirs("w1", self.RECORDED, unmarked, configured=False)
        assert words(snapshot(self.RECORDED, ours, worker("w2"))) == ["copy job status"]


class TestEvicted:
    """An eviction erases the record. The attempt that ends keeps its marks; only Kueue has counted the eviction."""

    BEFORE = workload()
    EVICTED = workload(evicted="preempted", evictions=1)

    @FORGED
    @pytest.mark.parametrize("last", [None, "w1"])
    def test_their_end_is_not_its_end(self, how: How, last: str | None) -> None:
        seen = snapshot(self.EVICTED, worker("w1"), theirs("w2", self.BEFORE, how, status=DONE), last_worker=last)
        steps = words(seen)
        assert not any(word.startswith("finish") for word in steps)
        assert {"delete job on w2", "delete workload on w2"} <= set(steps)

    @FORGED
    @pytest.mark.parametrize("last", [None, "w1"])
    def test_their_job_does_not_hold_its_quota_nor_tell_its_status(self, how: How, last: str | None) -> None:
        seen = snapshot(self.EVICTED, worker("w1"), theirs("w2", self.BEFORE, how), last_worker=last)
        held = attrs.evolve(seen, jobs={name: {**job, "status": {"active": 1}} for name, job in seen.jobs.items()})
        assert "release job" in " ".join(words(held)) or "copy job status" in in_words(held, decide(held))

    def test_our_end_is(self) -> None:
        ended = worker(
            "w1",
            copy_of(self.BEFORE, admitted=True, owned=True, finished="Succeeded"),
            job_copy_of(self.BEFORE, status=DONE),
        )
        assert words(snapshot(self.EVICTED, ended, quiet_for=timedelta(seconds=10))) == ["copy job status"]

    @UNPROVEN
    def test_where_it_was_recorded_they_are_believed(self, how: How) -> None:
        seen = snapshot(self.EVICTED, theirs("w1", self.BEFORE, how, status=DONE), last_worker="w1")
        assert words(seen)[0] == "copy job status"

    def test_a_workload_that_is_not_ours_is_not_touched_because_of_them(self) -> None:
        """No check of ours is on it: they have made a copy of any Workload of the manager, to write its status."""
        local = workload(check=None, evicted="preempted", evictions=1)
        seen = snapshot(local, theirs("w1", workload(check=None), unmarked, status=DONE), check=None)
        assert words(seen) == ["delete job on w1", "delete workload on w1"]


class TestReadyWithoutARecord:
    READY = workload(check="Ready", nominated=("w1", "w2"))

    @FORGED
    def test_they_are_not_asked_where_ours_is(self, how: How) -> None:
        ours = worker("w1", copy_of(self.READY, admitted=True, owned=True), job_copy_of(self.READY))
        seen = snapshot(self.READY, ours, theirs("w2", self.READY, how))
        assert words(seen)[0] == "admit on w1 as Ready"

    @UNPROVEN
    def test_what_runs_without_a_proof_is_found(self, how: How) -> None:
        seen = snapshot(self.READY, theirs("w1", self.READY, how), worker("w2"))
        assert words(seen)[0] == "admit on w1 as Ready"

    @UNPROVEN
    def test_not_on_another_worker_than_the_one_that_had_it(self, how: How) -> None:
        seen = snapshot(self.READY, worker("w1"), theirs("w2", self.READY, how), last_worker="w1")
        assert words(seen)[0].startswith("retry")

    @UNPROVEN
    def test_not_outside_of_the_config(self, how: How) -> None:
        seen = snapshot(self.READY, worker("w1"), theirs("w2", self.READY, how, configured=False))
        assert words(seen)[0].startswith("retry")

    @UNPROVEN
    def test_of_two_without_a_proof_neither_is_chosen(self, how: How) -> None:
        seen = snapshot(self.READY, theirs("w1", self.READY, how), theirs("w2", self.READY, how))
        assert words(seen)[-1] == "warn"

    def test_not_by_another_attempts_mark(self) -> None:
        there = worker(
            "w1",
            copy_of(self.READY, owned=True, admitted=True, attempt=EARLIER),
            job_copy_of(self.READY, attempt=EARLIER),
        )
        seen = snapshot(self.READY, there)
        assert words(seen)[0].startswith("retry")


class TestGroups:
    """The parts of a group share a job: it has the mark of the part that made it."""

    FIRST = workload(name="first", index="0", nominated=("w1",))
    SECOND = workload(name="second", index="1", nominated=("w1",))

    def shared(self, mark: str) -> list[str]:
        second = copy_of(self.SECOND, admitted=True)
        job = marked(job_copy_of(self.FIRST), mark)
        seen = snapshot(
            self.SECOND, worker("w1", second, shared=job), siblings=(workload(name="first", index="0", cluster="w1"),)
        )
        return words(seen)

    def test_the_mark_of_the_part_that_made_it_is_a_proof(self) -> None:
        assert "admit on w1 as Ready" in self.shared(mark_on("w1", self.FIRST))

    def test_where_another_part_is_recorded_it_is_believed_without(self) -> None:
        assert "admit on w1 as Ready" in self.shared("")


def test_copies_are_marked_with_the_key_of_the_settings() -> None:
    local = workload(nominated=("w1",))
    made = sole(
        CreateWorkload,
        decide(snapshot(local, worker("w1")), settings=attrs.evolve(SETTINGS, mark_key=b"secret")).effects,
    )
    assert made.object["metadata"]["annotations"][ATTEMPT_ANNOTATION] == Marks(b"secret").of(
        local, attempt(local), "w1"
    )


def test_settings_do_not_show_the_key() -> None:
    assert "secret" not in repr(attrs.evolve(SETTINGS, mark_key=b"secret"))
