"""Kueue's own Configuration as settings: nothing of it is refused, and what is passed over is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from multikueue.core.dispatchers.dispatcher import External
from multikueued.cli import main
from multikueued.settings.dispatcher import chosen_dispatcher
from multikueued.settings.file import Loaded, parse
from multikueued.settings.kinds import chosen_kinds

SHIPPED = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":8443", enableClusterQueueResources: true}
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
controller:
  groupKindConcurrency: {Job.batch: 5, Pod: 5, Workload.kueue.x-k8s.io: 10}
clientConnection: {qps: 300, burst: 500}
integrations:
  frameworks:
  - batch/job
  - kubeflow.org/mpijob
  - ray.io/rayjob
  - ray.io/raycluster
  - ray.io/rayservice
  - jobset.x-k8s.io/jobset
  - kubeflow.org/paddlejob
  - kubeflow.org/pytorchjob
  - kubeflow.org/tfjob
  - kubeflow.org/xgboostjob
  - kubeflow.org/jaxjob
  - workload.codeflare.dev/appwrapper
  - trainer.kubeflow.org/trainjob
  - sparkoperator.k8s.io/sparkapplication
  - pod
  - deployment
  - statefulset
  - leaderworkerset.x-k8s.io/leaderworkerset
"""
"""What Kueue v0.19 is installed with, with every framework it knows."""

EVERYTHING = """
apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
namespace: null
pprofBindAddress: ":8083"
tls: {minVersion: VersionTLS13, cipherSuites: []}
webhook: {port: 9443, host: "", certDir: /certs}
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceName: c1f6bfd2.kueue.x-k8s.io
  resourceNamespace: kueue-system
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector:
  matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]
internalCertManagement: {enable: false, webhookServiceName: "", webhookSecretName: ""}
waitForPodsReady:
  enable: true
  timeout: 5m
  requeuingStrategy: {timestamp: Eviction, backoffLimitCount: null}
queueVisibility: {updateIntervalSeconds: 5, clusterQueues: {maxCount: 10}}
visibilityServer: {}
fairSharing: {enable: true, preemptionStrategies: [LessThanInitialShare]}
admissionFairSharing: {usageHalfLifeTime: 168h, usageSamplingInterval: 5m}
resources: {excludeResourcePrefixes: [], transformations: []}
featureGates: {MultiKueue: false}
objectRetentionPolicies: {workloads: {afterFinished: null}}
integrations:
  frameworks: [batch/job]
  externalFrameworks: [Foo.v1.example.com]
  podOptions: {namespaceSelector: {}}
  labelKeysToCopy: [team]
multiKueue:
  gcInterval: 1m0s
  origin: null
  workerLostTimeout: 15m0s
  dispatcherName: acme
  externalFrameworks: []
  clusterProfile: {credentialsProviders: []}
"""
"""Every field of the first two levels that v1beta1 or v1beta2 has."""


def loaded(text: str) -> Loaded:
    return parse(text, source="config.yaml")


def passed_over(file: Loaded) -> dict[str, bool]:
    """What was passed over, and whether it is a warning."""
    return {remark.setting: remark.important for remark in file.remarks}


def test_the_file_kueue_is_installed_with_is_accepted() -> None:
    file = loaded(SHIPPED)

    assert file.settings.name == "multikueue", "never Kueue's own Lease"
    assert not file.settings.webhook.enabled
    assert len(chosen_kinds(file.settings)) == 16
    assert passed_over(file) == {
        **dict.fromkeys(("apiVersion", "kind", "health", "metrics", "controller", "clientConnection"), False),
        **dict.fromkeys(("leaderElection.leaderElect", "leaderElection.resourceName"), False),
        "integrations.frameworks[13] (sparkoperator.k8s.io/sparkapplication)": True,
    }


def test_every_field_of_kueues_configuration_is_accepted() -> None:
    file = loaded(EVERYTHING)

    assert chosen_dispatcher(file.settings) == External()
    assert file.settings.origin == "multikueue"
    assert {name for name, important in passed_over(file).items() if important} == {"multiKueue.dispatcherName"}
    assert file.settings.cluster_profile is not None
    assert {"integrations.podOptions", "integrations.labelKeysToCopy", "webhook.host", "waitForPodsReady"} <= set(
        passed_over(file)
    )


def test_our_settings_may_stand_in_the_same_file() -> None:
    file = loaded(SHIPPED + "logging: {level: debug}\nquotaAutomation: true\n")
    assert (file.settings.logging.level, file.settings.quota_automation) == ("debug", True)


@pytest.mark.parametrize("frameworks", ["auto", "[auto]", "[batch/job, auto]"])
def test_auto_means_every_kind_that_is_not_made_of_pods(frameworks: str) -> None:
    """Those the manager does not serve are left out at start."""
    rows = chosen_kinds(loaded(f"integrations: {{frameworks: {frameworks}}}").settings)
    names = {str(row.resource) for row in rows}

    assert {"jobs.batch", "jobsets.jobset.x-k8s.io", "rayjobs.ray.io", "mpijobs.kubeflow.org"} <= names
    assert not names & {"pods", "statefulsets.apps", "leaderworkersets.leaderworkerset.x-k8s.io"}
    assert len(names) == len(rows) == 13


def test_auto_leaves_room_for_declared_kinds_and_named_ones() -> None:
    text = "integrations: {frameworks: [auto, pod]}\nexternalFrameworks: [RayJob.v1.ray.io]"
    sources = {str(row.resource): row.source for row in chosen_kinds(loaded(text).settings)}

    assert sources["rayjobs.ray.io"] == "externalFrameworks[0]"
    assert sources["pods"] == "integrations.frameworks[1] (pod)"
    assert sources["jobs.batch"] == "integrations.frameworks[0] (auto)"


def test_the_default_is_kueues() -> None:
    assert [str(row.resource) for row in chosen_kinds(loaded("").settings)] == ["jobs.batch"]


def test_what_is_passed_over_is_one_line_each(tmp_path: Path) -> None:
    """Told once logging works, which the same file configures."""
    config, kubeconfig = tmp_path / "config.yaml", tmp_path / "kubeconfig"
    config.write_text(SHIPPED + "serving: {bindAddress: 192.0.2.1}\n")
    server = "clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    kubeconfig.write_text(f"current-context: x\n{server}contexts: [{{name: x, context: {{cluster: x}}}}]\n")
    result = CliRunner().invoke(main, ["run", "--config", str(config), "--kubeconfig", str(kubeconfig)])

    lines = [line for line in result.stderr.splitlines() if "remark on a setting" in line]
    assert len(lines) == len(loaded(SHIPPED).remarks)
    assert sum("warning" in line for line in lines) == 1
