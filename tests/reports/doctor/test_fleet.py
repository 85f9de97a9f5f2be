"""`status` runs the doctor's table on what stands on the manager: what that tells, both find."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Final

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import ToldFinding
from multikueue.core.model.names import ObjectKey
from multikueued.diagnosis.checks.table import GROUPS
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.fleet import status_report
from multikueued.reports.explanation import explain
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.published import NAME, Published, config_map, seen, written
from multikueued.reports.remedies.remedy import Severity
from multikueued.reports.seen import Seen
from tests.reports.doctor.healthy import ALLOWED, NOW, QUEUE, healthy, objects_of, queues
from tests.reports.doctor.test_checks import CASES, on_manager, with_worker
from tests.reports.objects import CHECK, fleet, job, stored, worker, workload

DOCTORS_OWN: Final = frozenset(
    {
        *(
            "two-daemons",
            "gate-on",
            "gate-seems-on",
            "kueue-too-old",
            "kind-without-managed-by",
        ),  # Kueue's controller
        *("permission-missing", "own-clock", "worker-without-kind", "mirror-logs-not-kept"),
        *(check.id for check in (*GROUPS["The webhook's registration"], *GROUPS["Pods of the runs on the manager"])),
        *(check.id for check in GROUPS["What the scored dispatcher holds by"]),  # if the settings say so
        *("dependencies-unused", "order-unused"),
        *(ToldFinding.STATUS_REFUSED, ToldFinding.CONTESTED_FIELD, ToldFinding.COPY_WAITS),  # events
        *("worker-unlisted", "worker-cordoned", "bound-token", "kind-not-served"),  # nobody has to act
        *("kind-not-enabled", "not-delegated", "name-taken", "webhook", "namespace-missing"),  # see `with_waiting`
    }
)
"""What is known only to who asks servers, or reads settings, Secrets and events; or what needs nobody."""


def published(facts: Facts) -> ManagerObjects:
    """The manager's objects, with what a daemon that saw this of its workers has published."""
    documents = {
        name: written(Published(seen(each, facts.clock), NOW, (), NOW, facts.credentials.get(name)))
        for name, each in facts.workers.items()
    }
    return attrs.evolve(facts.objects, findings=config_map("kueue-system", NAME, documents))


@pytest.mark.parametrize(("id", "facts"), [case[:2] for case in CASES], ids=[case[0] for case in CASES])
def test_status_finds_what_the_manager_tells(id: str, facts: Facts) -> None:
    """It had checks of its own: two names of one cluster, and whatever was wrong on workers, it did not tell."""
    ids = {finding.id for finding in status_report(published(facts), NOW).findings}
    assert (id in ids) is (id not in DOCTORS_OWN), ids


def test_nothing_is_wrong_with_a_healthy_fleet() -> None:
    assert status_report(published(healthy()), NOW).findings == ()


def test_a_worker_that_is_gone_under_a_job_is_told_by_what_becomes_of_the_job() -> None:
    """`status` told the weaker of two findings: that a config lists it, and nothing of the job."""
    runs = workload(stored(job("train")), cluster="worker1", checks={CHECK: "Ready"})
    facts = objects_of(healthy(runs), clusters=(worker("worker2"),))
    reported = status_report(facts.objects, NOW).findings
    explanation = explain(Seen(runs, None, facts.objects, (), NOW))

    assert [finding.id for finding in reported] == [finding.id for finding in explanation.findings] == ["worker-gone"]
    assert reported[0].why.endswith("it has default/job/train")


def test_what_breaks_under_a_job_that_runs_is_told_where_it_is_explained() -> None:
    """A queue of its worker: the doctor alone told it."""
    runs = workload(stored(job("train")), cluster="worker1", checks={CHECK: "Ready"})
    stopped = with_worker(runs, queues=attrs.evolve(queues(), stopped=frozenset({QUEUE})))
    missing = with_worker(runs, queues=queues(local={}))
    for facts, wanted in ((missing, "worker-local-queue-missing"), (stopped, "worker-local-queue-stopped")):
        objects = published(facts)
        fleet = tuple(status_report(objects, NOW).findings)
        about = explain(Seen(runs, None, objects, (), NOW, fleet=fleet))
        assert [finding.id for finding in fleet] == [finding.id for finding in about.findings] == [wanted]
        assert about.findings[0].severity is Severity.WARNING
        elsewhere = workload(stored(job("train")), cluster="worker2", checks={CHECK: "Ready"})
        assert explain(Seen(elsewhere, None, objects, (), NOW, fleet=fleet)).findings == ()


def test_a_queue_that_cannot_hold_copies_is_told_of_the_jobs_that_wait_for_it() -> None:
    """The head of the check said what is wrong, and no finding what to do."""
    waits = workload(stored(job("train")), checks={CHECK: "Pending"})
    facts = on_manager(checks=[CHECK])
    there = attrs.evolve(facts.workers["worker1"], queues=queues(local={ObjectKey("local", QUEUE.name): "pool"}))
    facts = attrs.evolve(facts, workers={**facts.workers, "worker1": there})
    objects = attrs.evolve(published(facts), workloads=(waits,))
    fleet = tuple(status_report(objects, NOW).findings)
    told = explain(Seen(waits, None, objects, (), NOW, fleet=fleet)).findings

    assert "own-worker-queue" in [finding.id for finding in told]
    assert "own-worker-queue" not in [finding.id for finding in explain(Seen(waits, None, objects, (), NOW)).findings]


def test_rights_that_the_daemons_settings_need_are_not_printed_for_the_defaults() -> None:
    """`status` does not read the settings: for a verb that one of them needs, the command had granted all but that."""
    refused = attrs.evolve(ALLOWED, verb="create", allowed=False)
    facts = with_worker(permissions=(refused,), user="system:serviceaccount:kueue-system:multikueue")
    (finding,) = status_report(published(facts), NOW).findings
    assert "multikueue rbac worker --config FILE --least --service-account kueue-system/multikueue" in finding.remedy


def test_settings_that_nobody_has_read_are_in_no_file() -> None:
    """A file of that name stood for them, which nothing told from one that somebody had named."""
    source = Facts.on_manager(fleet(), NOW).settings_source
    assert source is not None
    assert not isinstance(source, Path | ObjectKey)


def test_what_the_daemon_saw_last_does_not_outlive_a_worker() -> None:
    facts = with_worker(queues=queues(local={}))
    alone = attrs.evolve(published(facts), clusters=(worker("worker2"),), configs=())
    assert "worker-local-queue-missing" not in {finding.id for finding in status_report(alone, NOW).findings}


@pytest.mark.parametrize("newer", ["queue", "job", ""])
def test_what_was_seen_before_says_nothing_of_what_came_since(newer: str) -> None:
    """A namespace made after the daemon's look did not exist on workers for ten minutes, where its jobs ran."""
    later = timestamp(NOW + timedelta(minutes=1))
    ran = workload(stored(job("train")), cluster="worker1", checks={CHECK: "Ready"})
    ran["status"]["admissionChecks"][0]["lastTransitionTime"] = later if newer == "job" else timestamp(NOW)
    facts = with_worker(ran, queues=queues(local={}), namespaces=frozenset())
    if newer == "queue":
        local = [deepcopy(queue) for queue in facts.objects.local_queues]
        for queue in local:
            queue["metadata"]["creationTimestamp"] = later
        facts = attrs.evolve(facts, objects=attrs.evolve(facts.objects, local_queues=tuple(local)))
    ids = {finding.id for finding in status_report(published(facts), NOW + timedelta(minutes=2)).findings}
    assert ("worker-namespace-missing" in ids) is (not newer), ids
