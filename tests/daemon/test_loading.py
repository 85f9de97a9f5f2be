"""The settings file: defaults, what is refused, and the errors."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.machinery.lease import LeaseSettings
from multikueue.errors import SettingsError
from multikueue.kube import AnswerLimits
from multikueue.kube.kubernetes_yaml import MAX_SIZE
from multikueued.settings.config import (
    LeaderElectionSettings,
    LoggingSettings,
    PodSettings,
    RetentionSettings,
    ServingSettings,
    Settings,
    WebhookSettings,
)
from multikueued.settings.dispatcher import chosen_dispatcher
from multikueued.settings.file import load_settings, parse, parse_settings
from multikueued.settings.kinds import chosen_kinds
from multikueued.settings.sections import DependencySettings

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
FULL = """
controllerName: example.com/dispatcher
origin: site-a
namespace: batch-system
gcInterval: 0
workerLostTimeout: 1m30s
leaderElection:
  enabled: false
  leaseDuration: 30s
  renewDeadline: 20s
name: site-a
logging:
  format: console
  level: debug
serving:
  bindAddress: 127.0.0.1
  port: 0
webhook:
  enabled: true
  bindAddress: 127.0.0.1
  port: 9500
  certDir: /certificates
  configurationName: site-a
  serviceName: site-a-webhook
  serviceNamespace: site-a
  url: https://[fd00::1]:9500
  failurePolicy: Fail
pods:
  check: Ready
  copyAddresses: true
retention:
  finished: 6h
  failed: 2h
  deleteExpiredJobs: true
dependencies:
- config: gpus
  kinds: [ConfigMap, ResourceClaimTemplate]
"""


@pytest.mark.parametrize("text", ["", "# nothing\n", "leaderElection:\nlogging: {}\n"])
def test_an_empty_file_gives_the_defaults(text: str) -> None:
    assert parse_settings(text) == Settings()


def test_the_defaults_are_kueues() -> None:
    """Whoever migrates from the MultiKueue built into Kueue needs no settings."""
    settings = Settings()

    assert settings.controller_name == "kueue.x-k8s.io/multikueue"
    assert settings.origin == "multikueue"
    assert settings.gc_interval == timedelta(minutes=1)
    assert settings.worker_lost_timeout == timedelta(minutes=15)
    assert settings.leader_election.lease_settings() == LeaseSettings()


def test_every_setting_can_be_set() -> None:
    assert parse_settings(FULL) == Settings(
        controller_name="example.com/dispatcher",
        origin="site-a",
        namespace="batch-system",
        gc_interval=timedelta(0),
        worker_lost_timeout=timedelta(seconds=90),
        leader_election=LeaderElectionSettings(
            enabled=False,
            lease_duration=timedelta(seconds=30),
            renew_deadline=timedelta(seconds=20),
        ),
        name="site-a",
        logging=LoggingSettings(format="console", level="debug"),
        serving=ServingSettings(bind_address="127.0.0.1", port=0),
        webhook=WebhookSettings(
            enabled=True,
            bind_address="127.0.0.1",
            port=9500,
            cert_dir="/certificates",
            configuration_name="site-a",
            service_name="site-a-webhook",
            service_namespace="site-a",
            url="https://[fd00::1]:9500",
            failure_policy="Fail",
        ),
        pods=PodSettings(check="Ready", copy_addresses=True),
        retention=RetentionSettings(finished=timedelta(hours=6), failed=timedelta(hours=2), delete_expired_jobs=True),
        dependencies=(DependencySettings("gpus", ("ConfigMap", "ResourceClaimTemplate")),),
    )


KUEUES = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
multiKueue:
  gcInterval: 2m0s
  origin: site-a
  workerLostTimeout: 1m30s
  dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental
  incrementalDispatcherConfig: {stepSize: 5}
  externalFrameworks:
  - name: PipelineRun.v1.tekton.dev
"""


def test_a_section_copied_from_kueues_configuration_means_what_it_means_there() -> None:
    settings = parse_settings(KUEUES)

    assert settings.origin == "site-a"
    assert settings.gc_interval == timedelta(minutes=2)
    assert settings.worker_lost_timeout == timedelta(seconds=90)
    assert chosen_dispatcher(settings) == Incremental(step=5)
    assert "pipelineruns.tekton.dev" in {str(kind.resource) for kind in chosen_kinds(settings)}


@pytest.mark.parametrize("name", ["namespace", "webhook.certDir", "webhook.serviceNamespace", "webhook.url"])
def test_an_empty_text_is_the_default_where_the_default_is_empty(name: str) -> None:
    """It stands so in the documentation."""
    group, _, setting = name.rpartition(".")
    assert parse_settings(f'{group}: {{{setting}: ""}}' if group else f'{setting}: ""') == Settings()


@pytest.mark.parametrize(
    "setting",
    [
        "boundTokens: {secretNames: [%s]}",
        "mirrorPods: {certificateSecret: %s}",
        "webhook: {configurationName: %s}",
        "ocm: {clusterPermissions: {serviceAccountName: %s}}",
    ],
)
def test_what_may_have_dots_in_its_name_may_be_named(setting: str) -> None:
    """As Kubernetes takes it, of Secrets for one: cert-manager's are often called after a host."""
    for name in ("oslo.example.com-tls", "a" * 64, "a" * 253):
        parse_settings(setting % name)
    for name in ("oslo..com", "oslo-.com", ".oslo", "oslo.", "Oslo.com", "a" * 254):
        with pytest.raises(SettingsError, match="use at most 253"):
            parse_settings(setting % name)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            f"{HEAD}origin: a\nmultiKueue: {{origin: b}}",
            "multiKueue.origin: origin says it already: keep one of the two",
        ),
        (f"{HEAD}multiKueue: {{gcInterval: 60}}", "multiKueue.gcInterval: 60 lacks a unit"),
        (f"{HEAD}multiKueue: {{clusterProfil: {{}}}}", "multiKueue: there is no such setting"),
        ("multiKueue: {gcInterval: 1m}", "multiKueue.gcInterval: it is of Kueue's Configuration: write gcInterval, or"),
        (
            "health: {}",
            "health: it is of Kueue's Configuration: leave it out, or give the file the apiVersion and kind",
        ),
        ("orign: x", 'orign: there is no such setting: did you mean "origin"?'),
        ("serving: {x: 1}", "serving.x: there is no such setting: the settings here are bindAddress, port"),
        ("kind: ConfigMap\napiVersion: v1", "kind: ConfigMap of v1 holds no settings: only Kueue's Configuration of"),
        ("image: {tag: x}\nsettings: {origin: a}", "settings: these are the chart's values: write what stands below"),
        ("healht: {}", "healht: there is no such setting"),
        ("integrations: {labelKeysToCopi: []}", "integrations.labelKeysToCopi: there is no such setting"),
        ("dependencies: [{config: a, kinds: [Pod]}]", 'dependencies[0].kinds[0]: "Pod" is not one of ConfigMap, '),
        ("dependencies: [{kinds: [Secret]}]", "dependencies[0].config: it is missing: each entry needs a config and"),
        ("dependencies: [{config: a}]", "dependencies[0].kinds: it is missing: each entry needs a config and kinds"),
        (
            "dependencies: [{config: a, kinds: [Secret]}, {config: a, kinds: [ConfigMap]}]",
            'dependencies: two entries are about the config "a": write one with the kinds of both',
        ),
        ("integrations: {frameworks: aut}", 'integrations.frameworks: "aut" is not a list'),
        ("integrations: {frameworks: [autoo]}", 'integrations.frameworks[0]: "autoo" is not a job kind that can be'),
        ("leaderElection: {leaderElekt: true}", "leaderElection.leaderElekt: there is no such setting"),
        (
            f"{HEAD}multiKueue: {{dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-al-at-once}}",
            'multiKueue.dispatcherName: there is no dispatcher "kueue.x-k8s.io/multikueue-dispatcher-al-at-once"',
        ),
        ("gcInterval: 60", 'gcInterval: 60 lacks a unit: write it like "15m"'),
        ("gcInterval: soon", 'gcInterval: "soon" is not a duration'),
        ("gcInterval:", "gcInterval: an empty value is not a duration"),
        ("gcInterval: true", "gcInterval: true is not a duration"),
        ("gcInterval: [5m]", "gcInterval: ['5m'] is not a duration"),
        ("gcInterval: {every: 5m}", "gcInterval: {'every': '5m'} is not a duration"),
        ("gcInterval: false", "gcInterval: false is not a duration"),
        ("origin: -a-", 'origin: "-a-" cannot be a label\'s value: use at most 63'),
        ("origin: ''", 'origin: "" cannot be a label\'s value'),
        ("origin: y", "origin: true is not a text: put it in quotes"),
        ("namespace: 5", "namespace: 5 is not a text: put it in quotes"),
        ("controllerName: no", "controllerName: false is not a text: put it in quotes"),
        ("namespace: Kueue_System", 'namespace: "Kueue_System" cannot be a name'),
        ("controllerName: multikueue", 'controllerName: "multikueue" cannot be a controller\'s name'),
        ("serving: {port: 70000}", "serving.port: 70000 is not a port"),
        ("serving: {port: '80'}", 'serving.port: "80" is not a port'),
        ("serving: {bindAddress: 1}", "serving.bindAddress: 1 is not a text: put it in quotes"),
        ("logging: {level: loud}", 'logging.level: "loud" is not one of debug, info, warning, error'),
        ("leaderElection: {enabled: 1}", "leaderElection.enabled: 1 is not true or false"),
        ("leaderElection: {enabled: }", "leaderElection.enabled: an empty value is not true or false"),
        ("leaderElection: 5", "leaderElection: 5 is not a group of settings"),
        ("leaderElection: {renewDeadline: 1m}", "leaderElection: leaseDuration must be longer than renewDeadline"),
        ("webhook: {failurePolicy: ignore}", 'webhook.failurePolicy: "ignore" is not one of Ignore, Fail'),
        (
            "webhook: {url: 'http://a:1'}",
            'webhook.url: "http://a:1" cannot be a server\'s address: write it like https',
        ),
        ("webhook: {url: 'https://a:70000'}", 'webhook.url: "https://a:70000" cannot be a server\'s address'),
        ("webhook: {url: 'https://[:::]:443'}", 'webhook.url: "https://[:::]:443" cannot be a server\'s address'),
        ("webhook: {url: 'https://[10.0.0.1]'}", 'webhook.url: "https://[10.0.0.1]" cannot be a server\'s address'),
        ("webhook: {url: 'https://a/x'}", 'webhook.url: "https://a/x" cannot be a server\'s address'),
        ("pods: {check: ready}", 'pods.check: "ready" is not one of Pending, Ready'),
        ("pods: {check: Ready}", "pods.check: without the webhook's scheduling gate a pod would run on the manager"),
        ("{pods: {check: Ready}, webhook: {enabled: true}}", "pods.check: without the webhook's scheduling gate"),
        ("{pods: {check: Ready}, webhook: {failurePolicy: Fail}}", "pods.check: without the webhook's scheduling gate"),
        ("webhook: {enabled: true, port: 8080}", "webhook.port: 8080 is serving.port as well: give each a port"),
        (
            "{webhook: {enabled: true, port: 8443}, serving: {metrics: {secure: true, certDir: /c}}}",
            "webhook.port: 8443 is serving.metrics.port as well",
        ),
        ("mirrorPods: {logs: true, port: 8080}", "mirrorPods.port: 8080 is serving.port as well"),
        ("mirrorPods: {address: node.example.com}", 'mirrorPods.address: "node.example.com" is not an IP address'),
        ("mirrorPods: {signer: kubelet-serving}", 'mirrorPods.signer: "kubelet-serving" cannot be a signer'),
        ("managerName: multikueue", 'managerName: "multikueue" tells no manager from another'),
        ("- a", "the file: ['a'] is not a group of settings"),
        ("origin: a\norigin: b", 'not valid YAML in line 2, column 1: "origin" is written twice'),
        ("a: [", "not valid YAML in line 1"),
        ("a: \0", "not valid YAML: unacceptable character #x0000"),
        ("gcInterval: 2026-13-45", 'gcInterval: "2026-13-45" is not a duration: write it like "15m"'),
        ("gcInterval: 1:30", 'gcInterval: "1:30" is not a duration: write it like "15m"'),
        (
            "gcInterval: .inf",
            'not valid YAML in line 1, column 13: ".inf" is no number that JSON has: put it in quotes if it is a text',
        ),
        ("origin: !!int 1.5", 'not valid YAML in line 1, column 9: "1.5" is no int: put it in quotes if it is a text'),
        ("origin: !!int abc", 'not valid YAML in line 1, column 9: "abc" is no int'),
        ("origin: !!int ''", 'not valid YAML in line 1, column 9: "" is no int'),
        ("origin: !!bool abc", 'not valid YAML in line 1, column 9: "abc" is no bool'),
        ("serving: !!map abc", "not valid YAML in line 1, column 10: a mapping is expected here"),
        ("[" * 3000, "not valid YAML in line 1, column 100: more than 100 levels of nesting"),
        ("origin: " + "[" * 3000 + "]" * 3000, "not valid YAML in line 1, column 107: more than 100 levels"),
    ],
)
def test_a_mistake_is_reported_with_place_reason_and_remedy(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, source="config.yaml")

    assert str(caught.value).startswith(f"config.yaml: {complaint}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place", "advice"),
    [
        ("origin: {}", "origin: ", "beginning and ending with a letter or digit"),
        ("gcInterval: {}", "gcInterval: ", 'write it like "15m", "1m30s" or "500ms"'),
        ("kind: {}", "kind: ", ""),
        ("externalFrameworks: [{{name: {}}}]", "externalFrameworks[0].name: ", "PipelineRun.v1.tekton.dev"),
        ("? {0}\n: 1\n? {0}\n: 2", "not valid YAML", "is written twice"),
    ],
)
def test_of_a_value_without_end_a_message_has_both_ends_alone(text: str, place: str, advice: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_settings(text.format("x" * 60_000))

    message = str(error.value)
    assert message.startswith(f"settings: {place}")
    assert advice in message
    assert len(message) < 1_100


def test_all_mistakes_are_reported_at_once() -> None:
    """So a file can be fixed in one go."""
    with pytest.raises(SettingsError) as caught:
        parse_settings("orign: x\ngcInterval: 60\nserving: {port: -1, prot: 2}", source="config.yaml")

    head, *rest = str(caught.value).splitlines()
    assert head == "config.yaml: 4 settings cannot be used"
    assert sorted(line.split(":")[0].strip() for line in rest) == [
        "gcInterval",
        "orign",
        "serving.port",
        "serving.prot",
    ]


def test_the_namespace_is_the_pods_own_unless_set(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    file.write_text("batch-system\n")
    config = tmp_path / "config.yaml"
    config.write_text("namespace: elsewhere\n")

    assert load_settings(None, namespace_file=file).settings.namespace == "batch-system"
    assert load_settings(None, namespace_file=tmp_path / "none").settings.namespace == "kueue-system"
    assert load_settings(config, namespace_file=file).settings.namespace == "elsewhere"


def test_a_namespace_without_end_is_refused_and_not_read(tmp_path: Path) -> None:
    with (file := tmp_path / "namespace").open("wb") as opened:
        opened.truncate(MAX_SIZE + 1)
    with pytest.raises(SettingsError, match=rf"cannot read .*namespace: it is larger than {MAX_SIZE} bytes$"):
        load_settings(None, namespace_file=file)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "config.yaml"
    binary.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(SettingsError, match=r"none\.yaml: No such file"):
        load_settings(tmp_path / "none.yaml")
    with pytest.raises(SettingsError, match=r"config\.yaml: it is not UTF-8"):
        load_settings(binary)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: &a {b: 1}\nc: {<<: *a}", "merge keys (<<) are not read: write the fields out"),
        ("\n".join(["a0: &a0 x", *(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]" for n in range(1, 9))]), "values"),
    ],
)
def test_a_small_file_is_little_work(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=f"not valid YAML.*{re.escape(complaint)}"):
        parse_settings(text)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(SettingsError, match="larger than 1048576 bytes"):
        load_settings(file)


def test_the_limits_of_workers_are_sizes_and_counts() -> None:
    settings = parse_settings("workerLimits: {answerSize: 20Mi, listSize: 1Gi, listObjects: 9}")
    assert settings.worker_limits.answer_limits() == AnswerLimits(20 << 20, 1 << 30, list_objects=9)
    assert Settings().worker_limits.answer_limits() == AnswerLimits()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{answerSize: 5}", "workerLimits.answerSize: 5 is too small: use 1Mi or more"),
        ("{listSize: large}", 'workerLimits.listSize: "large" is not a size: write it like 16Mi'),
        ("{listObjects: 0}", "workerLimits.listObjects: 0 is not a number: use 1 or more"),
        ("{listObjects: many}", 'workerLimits.listObjects: "many" is not a number: use 1 or more'),
    ],
)
def test_a_limit_that_is_none_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        parse_settings(f"workerLimits: {text}")


@pytest.mark.parametrize(
    ("text", "setting", "why"),
    [
        ("mirrorPods: {logs: false, exec: true}", "mirrorPods.exec", "without mirrors there is nothing to enter"),
        ("mirrorPods: {logs: true, maxPods: 9}", "mirrorPods.maxPodsPerJob", "100 are more than maxPods, 9, in all"),
        ("dispatcher: {incremental: {stepSize: 2}}", "dispatcher.incremental", "does not use it: remove it, or set"),
        ("dispatcher: {profiles: {}}", "dispatcher.profiles", "does not use it: remove it, or set dispatcher.name to"),
        (
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
            "multiKueue: {incrementalDispatcherConfig: {stepSize: 2}}",
            "multiKueue.incrementalDispatcherConfig",
            "does not use it",
        ),
        ("boundTokens: {enabled: false, secretNames: [a]}", "", ""),
        ("webhook: {enabled: false, certDir: /c, port: 8080}", "", ""),
        ("serving: {metrics: {secure: false, certDir: /c}}", "", ""),
        ("ocm: {enabled: false, minDwell: 5m, adopt: addon, policy: Evict}", "", ""),
        ("quotaAutomation: false\npreemption: {orchestrated: false, timeout: 5m}", "", ""),
    ],
)
def test_no_part_that_has_no_effect_ends_the_daemon(text: str, setting: str, why: str) -> None:
    """Each optional part that is turned off again, with its other settings still there: some of these ended it."""
    remarks = {remark.setting: remark.why for remark in parse(text, source="config.yaml").remarks if remark.important}
    assert ([*remarks] == [setting] and why in remarks[setting]) if setting else not remarks
