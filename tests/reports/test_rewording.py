"""What we say may be reworded, or said in another language: the remedies stay the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json
from multikueue.errors import Cause
from multikueued.diagnosis.fleet import status_report
from multikueued.reports.events import event_reports
from multikueued.reports.explanation import explain
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.remedies.trouble import BY_CAUSE
from multikueued.reports.seen import Seen
from tests.core.door import RefusalFacts
from tests.reports.objects import CHECK, NOW, fleet, job, refused, saying, stored, worker, workload

TRAIN = stored(job("train"))
NEED = {"kind": "ConfigMap", "name": "settings", "user": "job-other"}
LATER = f"asked again at {timestamp(NOW)}"
REFUSALS: Mapping[Cause, str] = {
    Cause.NAME_TAKEN: "its name is taken by an object that is not known as a copy of ours",
    Cause.NEED_UNREAD: 'ConfigMap "settings" cannot be read on the manager cluster',
    Cause.NEED_NOWHERE: 'ConfigMap "settings" is neither on the manager cluster nor there',
    Cause.NEED_NOT_COPIED: 'Secret "settings" is not there, and is never copied',
    Cause.NEED_IN_USE: 'ConfigMap "settings" has other content there, which Workload "job-other" uses',
    Cause.NEED_FOREIGN: 'ConfigMap "settings" there is not a copy of ours, or was changed, and has other content',
    Cause.NEED_GOING: 'ConfigMap "settings" of an earlier job is still being removed there',
    Cause.NEED_TOO_MUCH: "it names more than 64 objects that would have to be copied",
}
LOST: Mapping[Cause, str] = {
    Cause.PLUGIN: "getting credentials: exec: executable /bin/login failed with exit code 3",
    Cause.BAD_TOKEN: "Unauthorized",
    Cause.CERTIFICATE: "the server's certificate is not trusted",
    Cause.HOST_NAME: "cannot connect: Name or service not known",
    Cause.OUT_OF_REACH: "cannot connect: Connection refused",
    Cause.NO_ANSWER: "no answer to anything for 20 s",
    Cause.ANSWERS_UNREADABLE: "the list has more than 5 objects, more than may be read",
}
REWORDED = "二十秒没有任何回应"


def offered(words: str) -> Json:
    """A Workload that is offered to a worker, which says that."""
    return saying(workload(TRAIN, nominated=("worker1",)), f"Offered to worker1 — worker1: {words}")


def of_refusal(words: str, cause: Cause, facts: Mapping[str, str] = NEED) -> tuple[Finding, ...]:
    return explained(refused(offered(words), worker1=RefusalFacts(cause, facts)))


def explained(made: Json) -> tuple[Finding, ...]:
    return explain(Seen(made, TRAIN, fleet(made), (), NOW)).findings


def gist(findings: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    return [(finding.id, finding.where, finding.remedy) for finding in findings]


@pytest.mark.parametrize(("cause", "words"), REFUSALS.items())
def test_a_refusal_that_is_reworded_has_the_same_remedy(cause: Cause, words: str) -> None:
    said, reworded = of_refusal(f"refuses it, {LATER}: {words}", cause), of_refusal(REWORDED, cause)

    assert [finding.id for finding in said] == [BY_CAUSE[cause].id]
    assert gist(said) == gist(reworded)
    assert "{" not in said[0].why + said[0].remedy


@pytest.mark.parametrize("words", [REFUSALS[Cause.NEED_FOREIGN], REWORDED])
def test_an_event_tells_the_cause_before_the_check_does(words: str) -> None:
    made = workload(TRAIN, nominated=("worker1",))
    noted = RefusalFacts(Cause.NEED_FOREIGN, NEED).annotations
    event: Json = {
        "metadata": {"name": "e", "creationTimestamp": timestamp(NOW), "annotations": noted},
        "regarding": {"kind": made["kind"], "name": made["metadata"]["name"]},
        "related": {"name": "worker1"},
        "action": "Refused",
        "note": words,
    }
    told_by = event_reports([event], [made])
    (finding,) = explain(Seen(made, TRAIN, fleet(made), told_by, NOW)).findings
    assert (finding.id, finding.told) == ("dependency-foreign", words)
    without = event_reports([{**event, "metadata": {**event["metadata"], "annotations": {}}}], [made])
    (finding,) = explain(Seen(made, TRAIN, fleet(made), without, NOW)).findings
    assert finding.id == "unknown"


@pytest.mark.parametrize("words", REFUSALS.values())
def test_of_a_daemon_that_tells_no_cause_the_words_lead_nowhere(words: str) -> None:
    made = saying(
        workload(TRAIN, nominated=("worker1",)), f"Offered to worker1 — worker1: refuses it, {LATER}: {words}"
    )
    assert gist(explained(made)) == []


def test_causes_that_stand_beside_another_message_tell_nothing() -> None:
    later = saying(refused(offered(REWORDED), worker1=RefusalFacts(Cause.NAME_TAKEN)), "Offered — worker1: pending")
    assert gist(explained(later)) == []


def of_loss(words: str, cause: Cause | None) -> tuple[Finding, ...]:
    facts = None if cause is None else ConnectionFacts(error=words, cause=cause)
    reason = "AnswersUnreadable" if cause is Cause.ANSWERS_UNREADABLE else "ClientConnectionFailed"
    lost = worker("worker1", words, reason=reason, facts=facts)
    made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    objects = fleet(made, workers=(lost, worker("worker2")))
    findings = explain(Seen(made, TRAIN, objects, (), NOW)).findings
    assert gist(findings) == gist(status_report(objects, NOW).findings)
    return findings


@pytest.mark.parametrize(("cause", "words"), LOST.items())
def test_a_loss_that_is_reworded_has_the_same_remedy(cause: Cause, words: str) -> None:
    assert [finding.id for finding in of_loss(words, cause)] == [BY_CAUSE[cause].id]
    assert gist(of_loss(words, cause)) == gist(of_loss(REWORDED, cause))


def test_of_a_daemon_that_tells_no_cause_the_reason_alone_tells() -> None:
    assert [finding.id for finding in of_loss(LOST[Cause.NO_ANSWER], None)] == ["worker-not-connected"]
    unreadable = worker("worker1", "words", reason="AnswersUnreadable")
    (finding,) = status_report(fleet(workers=(unreadable,), listed=("worker1",)), NOW).findings
    assert finding.id == "answers-unreadable"


@pytest.mark.parametrize("cause", [Cause.NOT_SERVED, Cause.FIELD_MISSING, Cause.ANSWERS_UNREADABLE])
@pytest.mark.parametrize("words", ["404", REWORDED])
def test_a_kind_that_cannot_be_used_has_the_same_remedy_however_it_is_said(cause: Cause, words: str) -> None:
    facts = ConnectionFacts(unusable={"Job.v1.batch": words}, causes={"Job.v1.batch": cause}, is_manager=False)
    made = workload(TRAIN, nominated=("worker1",))
    objects = fleet(made, workers=(worker("worker1", facts=facts), worker("worker2")))
    findings = explain(Seen(made, TRAIN, objects, (), NOW)).findings
    assert [finding.id for finding in findings] == [BY_CAUSE[cause].id]
    assert [finding.id for finding in status_report(objects, NOW).findings] == [BY_CAUSE[cause].id]


def test_a_refusal_is_one_where_no_event_of_it_may_be_read_either() -> None:
    """An event is kept for an hour, and not everybody may read it; the check and the page tell the same after that."""
    made = refused(offered(REWORDED), worker1=RefusalFacts(Cause.NAME_TAKEN))
    explanation = explain(Seen(made, TRAIN, fleet(made), (), NOW))
    first = explanation.workers[0]
    assert (first.state, first.source, first.told) == ("Refused", "check", REWORDED)
    assert any(step.text.startswith("worker1: asked again by itself") for step in explanation.next)
