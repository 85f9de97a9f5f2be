"""Several workers that lead to one cluster: the first gets what is new, and each copy counts on one of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.names import ClusterName, Json
from tests.core.building import copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import NOW, Connecting, CreateWorkload, JobCopy, Lost, Reach, Worker, decide, those
from tests.core.wording import in_words

PENDING, RECORDED = workload(), workload(cluster="w2", check="Ready")
SECOND = worker("w2", second_of="w1")


def words(local: Json, *workers: Worker, siblings: tuple[Json, ...] = (), last_worker: str | None = None) -> list[str]:
    last = ClusterName(last_worker) if last_worker is not None else None
    seen = attrs.evolve(snapshot(local, *workers), siblings=siblings, last_worker=last)
    return in_words(seen, decide(seen))


def named(name: str, shown: Worker, **facts: Any) -> Worker:
    """Another worker that shows the same."""
    return attrs.evolve(shown, name=ClusterName(name), **facts)


def test_a_second_name_is_offered_nothing_and_says_why() -> None:
    seen = snapshot(workload(nominated=("w1", "w2")), worker("w1"), SECOND)
    assert [effect.cluster for effect in those(CreateWorkload, decide(seen).effects)] == ["w1"]
    text = " ".join(map(str, (*decide(seen).effects, *decide(seen).telling)))
    assert "w2: it leads to the same cluster as w1, and gets nothing beside it" in text


def test_what_it_was_offered_before_is_withdrawn_and_a_job_there_is_recorded() -> None:
    """As on a cordoned worker."""
    local = workload(nominated=("w2",))
    offered = worker("w2", copy_of(local, admitted=True), second_of="w1")
    made = ["create workload on w1", "delete workload on w2"]
    assert words(local, worker("w1"), offered)[1:] == made, "what w1 shows is behind"
    assert words(local, named("w1", offered, second_of=""), offered)[1:] == made[1:], "its name is free after that"
    runs = worker("w2", copy_of(local, admitted=True, owned=True), job_copy_of(local), second_of="w1")
    assert words(local, worker("w1"), runs)[0] == "admit on w2 as Ready"


@pytest.mark.parametrize("reach", [None, Lost(NOW), Connecting()], ids=["shows it", "lost", "connecting"])
def test_what_it_has_goes_on_there_to_its_end(reach: Reach | None) -> None:
    """The first one shows the same, with the mark of another worker: it removed that as often as it was made."""
    has = worker("w2", copy_of(RECORDED, admitted=True, owned=True), job_copy_of(RECORDED), second_of="w1")
    first = named("w1", has, second_of="")
    shown = has if reach is None else attrs.evolve(has, reach=reach)
    assert words(RECORDED, first, shown) == (["copy job status"] if reach is None else [])


def test_so_it_does_without_proof() -> None:
    """Kueue's own controller has made it, or the key is lost."""
    made = [copy_of(RECORDED, admitted=True, owned=True), job_copy_of(RECORDED)]
    for copy in made:
        del copy["metadata"]["annotations"]["multikueue.dev/attempt"]
    has = worker("w2", *made, second_of="w1")
    assert words(RECORDED, named("w1", has, second_of=""), has) == ["copy job status"]
    unrecorded = workload(check="Ready")
    seen = words(unrecorded, worker("w1", *made), worker("w2", *made, second_of="w1"))
    assert seen == ["nominate w1"], "one of them has it, not both"


def test_once_it_is_evicted_it_is_stopped_there_and_starts_under_the_first() -> None:
    evicted = workload(evicted="preempted", evictions=1)
    has = worker("w2", copy_of(RECORDED, admitted=True, owned=True), job_copy_of(RECORDED), second_of="w1")
    stopped = words(evicted, named("w1", has, second_of=""), has, last_worker="w2")
    assert {word.rsplit(" on ", 1)[1][:2] for word in stopped if " on w" in word} == {"w2"}
    again = workload(evictions=1)
    waits = words(again, named("w1", has, second_of=""), has, last_worker="w2")
    assert any(word.startswith("delete job on w1") for word in waits), "what an earlier attempt left, by the first"
    assert not any(word.startswith("delete job on w2") for word in waits)
    assert words(again, worker("w1"), SECOND, last_worker="w2")[0] == "nominate w1"


LOST = Lost(NOW - timedelta(hours=1))
ENDED: Json = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}


def lost_name(local: Json, **facts: Any) -> tuple[Worker, Worker]:
    """The first name of a cluster, in reach, and the lost one that a run there was made for."""
    has = worker("w2", copy_of(local, admitted=True, owned=True), job_copy_of(local, status={"active": 1}))
    return named("w1", has), attrs.evolve(has, reach=LOST, second_of="w1", **facts)


def test_once_a_name_is_given_up_what_it_had_is_stopped_by_another_one_that_shows_it() -> None:
    """Its job was shown to have stopped while its cluster was in sight."""
    shown, lost = lost_name(RECORDED)
    local = workload(evicted="AdmissionCheck", evictions=1)
    running = job(suspended=False, status={"active": 1})
    seen = attrs.evolve(snapshot(local, shown, lost, worker("w3"), job=running), last_worker=ClusterName("w2"))
    steps = in_words(seen, decide(seen))
    assert "stop on w1" in steps
    assert "copy job status" not in steps, "its quota is not free"
    assert not any("on w2" in word for word in steps)


@pytest.mark.parametrize("elastic", [False, True], ids=["its own", "of the slice before"])
def test_nobody_else_gets_it_while_another_name_shows_it(elastic: bool) -> None:
    before = workload(name="before", elastic=True, cluster="w2", check="Ready", finished="WorkloadSliceReplaced")
    shown, lost = lost_name(before if elastic else RECORDED)
    local = workload(evictions=1, elastic=elastic, nominated=("w3",))
    steps = words(local, shown, lost, worker("w3"), siblings=(before,) if elastic else (), last_worker="w2")
    assert not any("on w3" in word for word in steps), steps
    assert any(word.startswith(("stop on w1", "delete job on w1")) for word in steps), steps


@pytest.mark.parametrize("evicted", [True, False], ids=["being evicted", "quota again"])
def test_what_has_ended_under_a_lost_name_has_ended(evicted: bool) -> None:
    """It was removed under the name in reach, which is not the one it was made for, and ran again."""
    has = worker("w2", copy_of(RECORDED, admitted=True, owned=True), job_copy_of(RECORDED, status=ENDED))
    shown, lost = named("w1", has), attrs.evolve(has, reach=LOST, second_of="w1")
    local = workload(evicted="AdmissionCheck" if evicted else None, evictions=1)
    seen = snapshot(local, shown, lost, worker("w3"), job=job(suspended=False, status={"active": 1}))
    steps = in_words(seen, decide(attrs.evolve(seen, last_worker=ClusterName("w2"))))
    assert "copy job status" in steps, steps
    assert not any(word.startswith(("delete", "stop on")) and " on w1" in word for word in steps), steps


@pytest.mark.parametrize("deleting", [False, True], ids=["gone", "being deleted"])
def test_what_has_ended_under_a_lost_name_has_ended_though_its_workload_is_gone(deleting: bool) -> None:
    """It was removed, and ran again for the Workload that came next."""
    has = worker("w2", copy_of(RECORDED, admitted=True, owned=True), job_copy_of(RECORDED, status=ENDED))
    shown, lost = named("w1", has), attrs.evolve(has, reach=LOST, second_of="w1")
    local = workload(cluster="w2", check="Ready", deleting=True) if deleting else None
    seen = snapshot(local, shown, lost, worker("w3"), job=job(suspended=True, status={"active": 1}))
    assert in_words(seen, decide(seen))[0] == "copy job status"


def test_its_copy_alone_tells_it_under_another_name_too() -> None:
    """The job has a TTL, and the Workload is known to have been on that cluster."""
    has = worker("w2", copy_of(RECORDED, admitted=True, owned=True, finished="Succeeded"))
    shown, lost = named("w1", has), attrs.evolve(has, reach=LOST, second_of="w1")
    seen = snapshot(workload(evictions=1), shown, lost, worker("w3"), quiet_for=timedelta(minutes=1))
    steps = in_words(seen, decide(attrs.evolve(seen, last_worker=ClusterName("w2"))))
    assert any(word.startswith("finish Succeeded") for word in steps), steps


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "another cluster"])
def test_so_it_has_under_a_name_that_no_worker_has_any_more(gone: bool) -> None:
    """Its MultiKueueCluster was made anew under another one. While the name is there, somebody has carried the copy."""
    has = worker("w2", None, job_copy_of(RECORDED, status=ENDED))
    facts: dict[str, Any] = {"reach": LOST, "removed": True, "configured": False, "identified": False} if gone else {}
    seen = snapshot(workload(evictions=1), named("w1", has), worker("w2", **facts), last_worker="w2")
    assert ("copy job status" in in_words(seen, decide(seen))) is gone


def test_other_slices_of_an_elastic_job_are_spared_under_their_name() -> None:
    other = workload(name="other", cluster="w2", check="Ready")
    (job,) = worker("w2", None, job_copy_of(other)).jobs
    shown = (JobCopy(job.resource, job.object),)
    steps = words(PENDING, attrs.evolve(worker("w1"), jobs=shown), SECOND, siblings=(other,))
    assert not any(word.startswith("delete") for word in steps)


UNKNOWN: dict[str, Any] = {"identified": False}


@pytest.mark.parametrize("reach", [None, Lost(NOW - timedelta(hours=2), seen=False), Connecting()])
def test_where_nobody_may_ask_which_cluster_it_is_the_others_mark_is_left_alone(reach: Reach | None) -> None:
    """And nothing is made beside it: the other one may be the same cluster."""
    offered = worker("w1", copy_of(PENDING), **UNKNOWN)
    first = offered if reach is None else worker("w1", reach=reach, **UNKNOWN)
    steps = words(workload(nominated=("w1", "w2")), first, named("w2", offered))
    assert [word for word in steps if not word.startswith("say")] == []


def test_another_clusters_offers_in_anothers_name_go() -> None:
    """Two kubeconfigs were swapped: the copies there are of no use to anybody. One that has run is lost, and waits."""
    offered = workload(nominated=("w1", "w2"))
    there = named("w2", worker("w1", copy_of(offered)))
    assert words(offered, worker("w1"), there)[-1] == "delete workload on w2"
    assert words(offered, there) == ["nominate w2", "delete workload on w2"], "of a MultiKueueCluster that is gone"


def test_of_a_worker_that_is_gone_what_runs_stays() -> None:
    gone = worker("w1", reach=Lost(NOW, seen=False), removed=True, configured=False, **UNKNOWN)
    recorded = workload(cluster="w1", check="Ready")
    runs = worker("w1", copy_of(recorded, admitted=True, owned=True), job_copy_of(recorded))
    assert words(recorded, named("w2", runs), gone) == ["patch workload on "], "which notes the worker"
    finished = workload(cluster="w1", check="Ready", finished="Succeeded")
    assert words(finished, named("w2", runs), gone) != [], "nobody else could remove it once it has ended"


def test_what_only_one_of_two_shows_that_are_told_to_be_one_is_removed_there() -> None:
    """Clusters that were made from one image have one UID, and nobody has said yet that these are different."""
    local, before = workload(evictions=1), workload()
    left = worker("w2", copy_of(before, admitted=True, owned=True), job_copy_of(before), second_of="w1")
    steps = words(local, worker("w1"), left)
    assert any(word.startswith(("stop on w2", "delete job on w2")) for word in steps)
    assert not any("create" in word for word in steps), "it may run twice else"
