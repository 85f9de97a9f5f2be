"""The chart, rendered with Helm: a real API server takes every object, and Helm refuses values that cannot be right."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from multikueue.core.model.names import Json
from multikueue.errors import SettingsError
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, namespace
from multikueued.settings.file import parse
from tests.controlplane.binaries import find_helm
from tests.controlplane.credentials import write_kubeconfig
from tests.controlplane.errors import BinariesMissing
from tests.controlplane.interface import Cluster, ClusterFactory, together
from tests.integration.chart_settings import SETTINGS
from tests.integration.chart_values import MONITORING_CRDS, VALUES

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="session")]

_CHART = Path(__file__).parents[2] / "charts" / "multikueued"
_NAMESPACE = "multikueue"


@pytest.fixture(scope="module", autouse=True)
def _has_helm() -> None:
    """Without it the tests fail in CI and are skipped elsewhere, as without a control plane."""
    try:
        find_helm()
    except BinariesMissing as error:
        (pytest.fail if os.environ.get("CI", "").lower() == "true" else pytest.skip)(str(error))


def helm(*arguments: str, values: Json | None = None, place: str = _NAMESPACE) -> subprocess.CompletedProcess[str]:
    """Run Helm in a namespace, with these values if any."""
    command = [str(find_helm()), *arguments, "--namespace", place]
    command += [] if values is None else ["--values", "-"]
    return subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)


def rendered(values: Json, release: str = "release", place: str = _NAMESPACE) -> list[Json]:
    """The objects that the chart makes of values, for a release in a namespace."""
    result = helm("template", release, str(_CHART), values=values, place=place)
    assert result.returncode == 0, result.stderr
    return [obj for obj in yaml.safe_load_all(result.stdout) if obj is not None]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(clusters: ClusterFactory) -> AsyncIterator[Cluster]:
    """A cluster with the namespaces and definitions that the chart's objects need."""
    control_plane = clusters("chart", controller_manager=False, crds=MONITORING_CRDS)
    async with together(control_plane):
        for name in (_NAMESPACE, KUEUE_NAMESPACE, "monitoring"):
            await control_plane.admin.apply(namespace(name))
        yield control_plane


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
async def test_an_api_server_takes_every_object(cluster: Cluster, values: Json) -> None:
    for obj in rendered(values):
        await cluster.admin.dry_run(obj)


@pytest.mark.parametrize(
    "release", ["a-release-with-the-longest-name-that-helm-takes-for-1", "with.dots", "a" * 50 + ".bc"]
)
async def test_a_release_may_have_any_name(cluster: Cluster, release: str) -> None:
    """Services have shorter names than releases may have, and none with dots."""
    page = {**VALUES["page"], "settings": {**VALUES["mirrors"]["settings"], "webhook": {"enabled": True}}}
    for obj in rendered(page, release):
        await cluster.admin.dry_run(obj)


@pytest.mark.parametrize("name", ["2024", "0x10"])
@pytest.mark.parametrize("values", ["everything", "page", "mirrors with a certificate of one's own"])
async def test_a_name_may_look_like_a_number(name: str, values: str) -> None:
    """Of a release, a namespace or a Secret: YAML reads such a text without quotes as a number."""
    numbered = VALUES[values] | {"kueueNamespace": name, "webhookCertificate": name, "priorityClassName": name}
    for obj in rendered(numbered, name, name):
        metadata = obj["metadata"]
        read = [metadata["name"], metadata.get("namespace", ""), *metadata.get("labels", {}).values()]
        read += [subject.get("namespace", "") for subject in obj.get("subjects", ())]
        pod = obj["spec"].get("template", {}).get("spec", {}) if obj["kind"] == "Deployment" else {}
        read += [pod.get("priorityClassName", "")]
        read += [volume["secret"]["secretName"] for volume in pod.get("volumes", ()) if "secret" in volume]
        assert {type(value) for value in read} == {str}, obj


async def test_who_has_read_the_settings_once_is_started_anew_when_they_change() -> None:
    def templates(settings: Json) -> dict[str, Json]:
        made = rendered({**VALUES["logs"], "settings": settings})
        return {obj["metadata"]["name"]: obj["spec"]["template"] for obj in made if obj["kind"] == "Deployment"}

    before, after = templates({}), templates({"logging": {"level": "debug"}})
    assert {"release-multikueued", "release-multikueued-logs"} == {*before}
    assert [name for name in before if before[name] == after[name]] == []


async def test_each_object_is_there_once_and_says_whose_it_is() -> None:
    objects = rendered(VALUES["everything"])
    names = [(obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in objects]
    assert len(set(names)) == len(names)
    assert {"ServiceMonitor", "PrometheusRule", "PodDisruptionBudget", "NetworkPolicy"} <= {kind for kind, *_ in names}


async def test_the_page_has_a_service_of_its_own_that_reaches_its_port_over_https() -> None:
    """And the server has what it needs for it: the certificate, its names, and the right to ask whose a token is."""
    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in rendered(VALUES["page"])}
    name = "release-multikueued-page"
    (server,) = objects["Deployment", "release-multikueued-logs"]["spec"]["template"]["spec"]["containers"]
    service = objects["Service", name]["spec"]
    assert service["selector"]["app.kubernetes.io/name"] == "multikueued-logs"
    assert [(port["port"], port["targetPort"]) for port in service["ports"]] == [(443, "page")]
    assert {"name": "page", "containerPort": 8444} in server["ports"]
    assert {"--page-host=multikueue.example.com", "--page-port=8444"} <= set(server["args"])
    (folder,) = (arg.partition("=")[2] for arg in server["args"] if arg.startswith("--page-cert-dir"))
    assert {"name": "page-certificate", "mountPath": folder, "readOnly": True} in server["volumeMounts"]
    assert objects["ClusterRole", name]["rules"][0]["resources"] == ["tokenreviews"]
    assert objects["ClusterRoleBinding", name]["subjects"][0]["name"] == "release-multikueued-logs"
    ingress = objects["NetworkPolicy", "release-multikueued-logs"]["spec"]["ingress"]
    assert [port["port"] for path in ingress for port in path["ports"]] == ["https", "page"]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replicas": "two"}, "replicas"),
        ({"replica": 2}, "replica"),
        ({"metrics": {"serviceMonitor": {"interval": "soon"}}}, "interval"),
        ({"image": {"repository": ""}}, "repository"),
        ({"apiServer": {"workers": {"oslo": ""}}}, "oslo"),
        ({"extraVolumeMounts": [{"name": "x"}]}, "mountPath"),
        ({"apiServer": {"enabled": True}, "page": {"enabled": True, "hosts": ["a"]}}, "certificate"),
        ({"apiServer": {"enabled": True}, "page": {"enabled": True, "certificate": "a"}}, "hosts"),
        ({"page": {"enabled": True, "hosts": ["a"], "certificate": "a"}}, "apiServer/enabled"),
        ({"settings": None}, "missing property 'settings'"),
        ({"metrics": {"service": None}}, "at '/metrics': missing property 'service'"),
        ({"metrics": {"service": {"enabled": False}, "serviceMonitor": {"enabled": True}}}, "metrics.service.enabled"),
        ({"apiServer": {"enabled": True, "certificate": "a"}}, "set apiServer.caBundle, or"),
        ({"apiServer": {"enabled": True, "caBundle": "YQ=="}}, "name its Secret in apiServer.certificate"),
        ({"settings": {"serving": {"port": 0}}}, "/settings/serving/port"),
        ({"settings": {"externalFrameworks": [{"plural": "oxen"}]}}, "missing property 'name'"),
        ({"settings": {"namespace": "other"}}, "settings.namespace: in this chart it follows from kueueNamespace"),
        ({"settings": {"webhook": {"enabled": True, "serviceName": "other"}}}, "settings.webhook.serviceName"),
        (
            {
                "settings": {"serving": {"metrics": {"secure": True, "certDir": "/other"}}},
                "metrics": {"certificate": "a"},
            },
            "follows from metrics.certificate, and is /etc/multikueued-metrics",
        ),
    ],
    ids=str,
)
async def test_values_that_cannot_be_right_are_refused_by_name(values: Json, named: str) -> None:
    result = helm("template", "release", str(_CHART), values=values)
    assert result.returncode != 0
    assert named in result.stdout + result.stderr


async def test_settings_that_are_misspelt_are_refused_each_by_its_place() -> None:
    misspelt = {"gcIntervall": "2m", "integrations": {"framework": ["batch/job"]}, "webhook": {"enable": True}}
    result = helm("template", "release", str(_CHART), values={"settings": misspelt})
    assert result.returncode != 0
    for place, name in (("", "gcIntervall"), ("/integrations", "framework"), ("/webhook", "enable")):
        assert f"at '/settings{place}': additional properties '{name}' not allowed" in result.stderr


@pytest.mark.parametrize(("text", "taken"), SETTINGS)
async def test_helm_takes_the_settings_that_the_daemon_takes(text: str, taken: bool) -> None:
    """Of what a schema can say: names, types, choices."""
    settings = yaml.safe_load(text)
    result = helm("template", "release", str(_CHART), values={"settings": settings})
    try:
        parse(yaml.safe_dump(settings), source="settings")
    except SettingsError:
        assert not taken
    else:
        assert taken
    assert (result.returncode == 0) == taken, result.stderr


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
async def test_helm_has_nothing_to_say_against_it(values: Json) -> None:
    result = helm("lint", str(_CHART), "--strict", values=values)
    assert result.returncode == 0, result.stdout


async def test_helm_installs_changes_and_removes_it_and_warns_of_replicas_without_a_leader(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Without election they would all dispatch."""
    kubeconfig = str(write_kubeconfig(tmp_path / "kubeconfig", cluster.kubeconfig()))

    def run(verb: str, *more: str, values: Json | None = None) -> str:
        result = helm(verb, "release", *more, "--kubeconfig", kubeconfig, values=values)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert "WARNING: an image must be given" in run("install", str(_CHART), values={})
    assert "WARNING" not in run("upgrade", str(_CHART), values={"image": {"repository": "registry.example.com/it"}})
    nobody = run("upgrade", str(_CHART), values={"apiServer": {"enabled": True}})
    assert "WARNING: apiServer.workers names no worker" in nobody
    unelected = {**VALUES["everything"], "settings": {"leaderElection": {"enabled": False}}}
    assert "WARNING: 2 replicas run without leader election" in run("upgrade", str(_CHART), values=unelected)
    assert "[Secret] multikueue-marks" in run("uninstall")
    run("install", str(_CHART), values={"settings": {"leaderElection": None}})  # takes what was kept
    run("uninstall")
    left = await cluster.admin.get(f"/apis/apps/v1/namespaces/{_NAMESPACE}/deployments")
    assert left["items"] == []


async def test_mirrors_need_who_answers_for_their_logs() -> None:
    result = helm("template", "release", str(_CHART), values={"settings": {"mirrorPods": {"logs": True}}})
    assert result.returncode != 0
    assert "set apiServer.enabled: true" in result.stderr


async def test_who_made_mirrors_may_take_them_away_after_they_are_switched_off() -> None:
    on, off = (rendered(VALUES[name]) for name in ("mirrors", "mirrors that are taken away"))
    (role,) = (
        obj for obj in on if obj["metadata"]["name"] == "release-multikueued-mirrors" and obj["kind"] == "ClusterRole"
    )
    assert role in off
    assert {obj["kind"] for obj in off} >= {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert not [obj for obj in off if obj["metadata"]["name"].endswith("-logs-mirrors")]
