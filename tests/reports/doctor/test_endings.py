"""Job copies that do not end: one finding for each cause, with what holds them and the way out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import GIVE_UP_ANNOTATION, GIVE_UP_BEFORE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueued.diagnosis.checks.table import CHECKS
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import diagnose
from multikueued.reports.ending_copies import EndingCopy, LatePod
from multikueued.reports.remedies.remedy import Finding
from tests.core.door import EarlierRun
from tests.reports.doctor.healthy import NOW, healthy, objects_of, worker_facts
from tests.reports.objects import job, saying, stored, waiting_for, worker, workload

DELETED, DUE = NOW - timedelta(minutes=10), NOW - timedelta(minutes=8)
SLOW = ("example.com/slow",)


def copy(name: str = "train", **changed: Any) -> EndingCopy:
    made = EndingCopy("Job", ObjectKey("default", name), f"uid-{name}", DELETED, DELETED, DUE, SLOW)
    return attrs.evolve(made, **changed)


def on_dead_node(name: str) -> EndingCopy:
    return copy(name, finalizers=(), pods=(LatePod(f"{name}-x", "n1", DUE),))


def facts(*copies: EndingCopy, workloads: tuple[Json, ...] = (), **metadata: Any) -> Facts:
    workers = {"worker1": worker_facts(overdue=copies), "worker2": worker_facts("worker2")}
    made = healthy(*workloads, workers=workers)
    return objects_of(made, clusters=(worker("worker1", **metadata), worker("worker2")))


def findings(seen: Facts) -> list[Finding]:
    return [finding for finding in diagnose(seen, CHECKS).findings if finding.id == "copy-does-not-end"]


def test_it_names_job_and_uid_and_the_finalizer_and_a_command_that_gives_it_up() -> None:
    (finding,) = findings(facts(copy()))
    assert finding.where == "worker1, Job default/train"
    assert finding.why == (
        f"Job default/train (UID uid-train): deleted at {timestamp(DELETED)}, should have ended at {timestamp(DUE)}; "
        "held by the finalizer example.com/slow"
    )
    before = timestamp(DELETED + timedelta(seconds=1))
    assert finding.remedy == (
        "look at what the finalizer waits for; if nothing of it runs, give up what was made there until then: "
        f"kubectl annotate multikueuecluster worker1 {GIVE_UP_BEFORE_ANNOTATION}={before} --overwrite"
    )


def test_one_whose_workload_is_there_is_given_up_by_its_uid() -> None:
    made = workload(stored(job("train")))
    key = ObjectKey.of(made)
    (finding,) = findings(facts(copy(workload=key), workloads=(made,)))
    annotation = f"{GIVE_UP_ANNOTATION}=worker1/uid-train"
    assert finding.remedy.endswith(f"kubectl -n default annotate workload {key.name} {annotation}")
    (other,) = findings(facts(copy(workload=ObjectKey("default", "gone"))))
    assert "annotate multikueuecluster" in other.remedy


def test_a_node_that_is_down_is_one_finding_whatever_it_holds() -> None:
    copies = [on_dead_node(f"train-{number}") for number in range(9)]
    (finding,) = findings(facts(*copies))
    assert f"pod train-0-x on node n1 should have ended at {timestamp(DUE)}: the node may be down" in finding.why
    assert "the same holds of Job default/train-1 (UID uid-train-1), " in finding.why
    assert finding.why.endswith("and 3 more")
    assert finding.remedy.startswith("look at that node; ")
    assert len(findings(facts(*copies, copy("other")))) == 2


def test_where_pods_may_not_be_read_it_says_so() -> None:
    (finding,) = findings(facts(copy(finalizers=(), pods_unseen="they may not be listed there")))
    assert finding.why.endswith("its pods are not known: they may not be listed there")
    assert finding.remedy.startswith("look at the node of its pods; ")


@pytest.mark.parametrize("by_uid", [True, False])
def test_what_a_person_has_given_up_is_none(by_uid: bool) -> None:
    named = workload(stored(job("train")))
    named["metadata"]["annotations"] = {GIVE_UP_ANNOTATION: "worker1/uid-train"}
    before = {GIVE_UP_BEFORE_ANNOTATION: timestamp(DELETED + timedelta(seconds=1))}
    own = attrs.evolve(copy(), workload=ObjectKey.of(named))
    given_up = facts(own, workloads=(named,)) if by_uid else facts(copy(), annotations=before)
    assert findings(given_up) == []


def test_the_job_that_waits_for_it_is_no_second_finding() -> None:
    """Seen from the manager alone it is one."""
    run = EarlierRun("worker1", "Job", "train", "uid-train", DELETED, DUE, SLOW)
    waits = waiting_for(saying(workload(stored(job("train"))), "words"), run)
    assert [finding.where for finding in findings(facts(copy(), workloads=(waits,)))] == ["worker1, Job default/train"]
    assert [finding.where for finding in findings(facts(workloads=(waits,)))] == ["worker1"]


def test_a_job_whose_earlier_run_has_time_to_end_is_none() -> None:
    run = EarlierRun("worker1", "Job", "train", "uid-train", NOW, NOW + timedelta(seconds=90))
    waits = waiting_for(saying(workload(stored(job("train"))), "words"), run)
    assert diagnose(facts(workloads=(waits,)), CHECKS).findings == ()


def test_words_of_a_worker_end_no_terminal_and_enter_no_command() -> None:
    odd = copy("\x1b[2J", uid="$(reboot)", finalizers=("a\nb/c",), workload=ObjectKey("default", "$(reboot)"))
    made = workload(stored(job("train")))
    made["metadata"]["name"] = "$(reboot)"
    (finding,) = findings(facts(odd, workloads=(made,)))
    assert "\x1b" not in finding.why
    assert "\n" not in finding.why
    assert "reboot" not in finding.remedy
