"""A job that waits for an earlier run of it: what `explain` and `get jobs` say, by what is declared on the Workload."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json, ObjectKey
from multikueued.reports.ending_copies import EndingCopy, LatePod
from multikueued.reports.explanation import Explanation, explain
from multikueued.reports.jobs import JobState, job_report
from multikueued.reports.published import Published, config_map, written
from multikueued.reports.seen import Seen
from multikueued.reports.worker_facts import WorkerFacts
from tests.core.door import EarlierRun
from tests.reports.objects import NOW, fleet, job, saying, stored, waiting_for, workload

TRAIN = stored(job("train"))
DUE = NOW + timedelta(seconds=90)
RUN = EarlierRun("worker1", "Job", "train", "uid-left", NOW, DUE)
HELD = attrs.evolve(RUN, finalizers=("example.com/slow",))
WORDS = "whatever the check says"


def waits(*runs: EarlierRun, **options: Any) -> Json:
    return waiting_for(saying(workload(TRAIN), WORDS), *runs, **options)


def explained(made: Json, now: datetime = NOW) -> Explanation:
    return explain(Seen(made, TRAIN, fleet(made), (), now))


def test_it_says_what_it_waits_for_since_when_and_what_comes_next() -> None:
    explanation = explained(waits(RUN))
    assert explanation.job.state is JobState.WAITING
    assert explanation.summary == 'It waits for an earlier run of it to end on worker cluster "worker1".'
    (finding,) = explanation.findings
    assert (finding.id, finding.where, finding.blocking) == ("earlier-run", "worker1", False)
    assert finding.why == (
        'worker cluster "worker1" still has Job "train" (UID uid-left) of an earlier attempt: '
        f"it was deleted at {timestamp(NOW)}, its pods have until {timestamp(DUE)} to end"
    )
    assert [(step.text, step.at) for step in explanation.next] == [
        ("by then its earlier run should have ended", DUE),
        ("once its earlier run is gone from its worker, it is offered to workers", None),
    ]


@pytest.mark.parametrize(
    ("run", "holds", "look"),
    [
        (HELD, ", held by the finalizer example.com/slow", "look on worker1 at what the finalizer waits for"),
        (RUN, ", and a pod of it has not", "the node of one may be down"),
    ],
)
def test_after_the_grace_period_it_says_what_holds_it_and_the_way_out(run: EarlierRun, holds: str, look: str) -> None:
    explanation = explained(made := waits(run), DUE)
    (finding,) = explanation.findings
    assert (finding.id, finding.where, finding.blocking) == ("copy-does-not-end", "worker1", True)
    assert finding.why.endswith(f"should have ended at {timestamp(DUE)}{holds}")
    assert look in finding.remedy
    name = made["metadata"]["name"]
    give_up = f"kubectl -n default annotate workload {name} multikueue.dev/give-up=worker1/uid-left"
    assert finding.remedy.endswith(give_up)
    assert explanation.summary == f"It does not run, and somebody has to act: {finding.why}."


def test_the_node_of_a_pod_that_has_not_ended_is_named_as_the_daemon_has_seen_it() -> None:
    key = ObjectKey("default", "train")
    copy = EndingCopy("Job", key, "uid-left", NOW, NOW, DUE, pods=(LatePod("train-x", "n1", NOW),))
    seen = Published(WorkerFacts("worker1", overdue=(copy,)), NOW)
    findings = config_map("kueue-system", "multikueue-findings", {"worker1": written(seen)})
    made = waits(RUN)
    (finding,) = explain(Seen(made, TRAIN, attrs.evolve(fleet(made), findings=findings), (), DUE)).findings
    assert finding.why.endswith(f"; pod train-x on node n1 should have ended at {timestamp(NOW)}: the node may be down")
    assert finding.remedy.startswith("look at that node of worker1; if nothing of it runs, give it up: kubectl ")


def test_what_could_not_be_deleted_is_told_after_a_while() -> None:
    """A webhook of the worker refuses it: its events say so."""
    made = waits(attrs.evolve(RUN, deleted=None, due=None))
    (soon,) = explained(made, NOW + timedelta(seconds=89)).findings
    assert (soon.id, "it may run, and is being removed" in soon.why) == ("earlier-run", True)
    (late,) = explained(made, NOW + timedelta(seconds=90)).findings
    assert (late.id, "it may run, and could not be deleted" in late.why) == ("copy-does-not-end", True)


def test_one_that_was_sent_back_for_it_says_so_while_it_is_queued() -> None:
    made = waiting_for(saying(workload(TRAIN, quota=False), f"Waiting for {HELD}"), HELD)
    report = job_report(fleet(made).chain(made))
    assert (report.state, report.reason) == (
        JobState.QUEUED,
        'sent back: worker cluster "worker1" still has Job "train" (UID uid-left) of an earlier attempt',
    )
    explanation = explained(made, DUE)
    assert "copy-does-not-end" in [finding.id for finding in explanation.findings]
    assert explained(made).summary == 'It waits for an earlier run of it to end on worker cluster "worker1".'


def test_the_checks_words_alone_tell_nothing() -> None:
    made = saying(workload(TRAIN), 'Waiting for worker cluster "worker1": Job "train" of an earlier attempt')
    assert explained(made).findings == ()


@pytest.mark.parametrize("cluster", [None, "worker1"])
def test_what_is_told_beside_other_words_is_over(cluster: str | None) -> None:
    made = saying(waits(RUN), "Offered to worker1")
    made["status"]["clusterName"] = cluster
    assert explained(made).findings == ()


@pytest.mark.parametrize(
    ("now", "id", "summary"),
    [
        (NOW, "earlier-run", 'It waits for an earlier run of it to end on worker cluster "worker1".'),
        (DUE, "copy-does-not-end", "It does not run, and somebody has to act: "),
    ],
)
def test_a_slice_says_what_its_worker_still_has(now: datetime, id: str, summary: str) -> None:
    """It is recorded there before its job is seen to go; its job was said to be created."""
    slice_ = waiting_for(saying(workload(TRAIN, cluster="worker1"), WORDS), RUN)
    explanation = explained(slice_, now)
    assert (explanation.job.state, explanation.job.reason) == (JobState.STARTING, WORDS)
    assert [finding.id for finding in explanation.findings] == [id]
    assert explanation.summary.startswith(summary)
    assert explanation.next[-1].text == "once its earlier run is gone from its worker, its job is created there"


def test_a_name_that_is_none_enters_no_command() -> None:
    """Whoever may write to a worker chooses it."""
    (finding,) = explained(waits(attrs.evolve(HELD, uid="$(reboot)")), DUE).findings
    assert "reboot" not in finding.remedy
