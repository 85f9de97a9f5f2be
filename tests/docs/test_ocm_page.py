"""The page about placements: its settings and objects can be used, its reasons are all there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

import multikueue.core.inventory
import multikueue.runtime.inventory
from multikueue.core.inventory.ownership import placement_name
from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.crds import install_ocm
from multikueued.settings.file import parse_settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ocm.md").read_text()
FOLDERS = [Path(str(module.__file__)).parent for module in (multikueue.core.inventory, multikueue.runtime.inventory)]
SOURCE = "".join(file.read_text() for folder in FOLDERS for file in sorted(folder.glob("*.py")))
YAML = [re.sub(r"(?m)^   ", "", text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def test_the_reasons_of_the_check_are_all_there_are() -> None:
    table = PAGE.split("## What the check says\n", 1)[1].split("\n## ", 1)[0]
    on_page = {
        reason
        for row in re.findall(r"^\| (?:True|False) \| (.+?) \|", table, re.MULTILINE)
        for reason in row.split("`")[1::2]
    }
    written = set(re.findall(r'(?:Verdict\(\s*(?:True|False),|Unknown\()\s*"(\w+)"', SOURCE))
    assert on_page == written - {"ClusterProfileError"}  # an inventory has no check


def test_its_settings_can_be_used() -> None:
    settings = [parse_settings(text) for text in YAML if "# settings" in text]
    assert [(setting.ocm.enabled, len(setting.inventory)) for setting in settings] == [(True, 0), (False, 1)]


def test_its_checks_name_one_config() -> None:
    objects = [obj for text in YAML for obj in yaml.safe_load_all(text) if "kind" in obj]
    checks = {obj["spec"]["controllerName"]: obj for obj in objects if obj["kind"] == "AdmissionCheck"}
    name = placement_name(checks[PLACEMENT_CONTROLLER])
    assert name == checks["kueue.x-k8s.io/multikueue"]["spec"]["parameters"]["name"]
    assert name == next(obj["metadata"]["name"] for obj in objects if obj["kind"] == "Placement")


def test_its_program_imports_what_there_is() -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = __import__(node.module, fromlist=["x"])
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_queues_of_clusters_have_a_placement_that_nothing_of_the_dispatch_changes() -> None:
    """A cluster that leaves it loses its queues at once, under a running job: no predicates, number or scores."""
    example = list(yaml.safe_load_all((ROOT / "docs/examples/queues-on-spokes.yaml").read_text()))
    placements = {obj["metadata"]["name"]: obj for obj in example if obj["kind"] == "Placement"}
    (work,) = (obj for obj in example if obj["kind"] == "ManifestWorkReplicaSet")
    (named,) = work["spec"]["placementRefs"]
    placed = placements[named["name"]]
    assert set(placed["spec"]) == {"clusterSets", "tolerations"}
    assert placed["metadata"]["namespace"] == work["metadata"]["namespace"]
    assert {toleration["key"] for toleration in placed["spec"]["tolerations"]} == {
        "cluster.open-cluster-management.io/unreachable",
        "cluster.open-cluster-management.io/unavailable",
    }
    registry = Registry(garbage_collection=False)
    install_ocm(registry)
    registry.create_object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    created = registry.create_object(placed)
    assert created["spec"] == placed["spec"]
    shown = (obj for text in YAML for obj in yaml.safe_load_all(text) if obj.get("kind") == "Placement")
    assert named["name"] not in {obj["metadata"]["name"] for obj in shown}


def test_commands_for_ocm_get_what_its_plugins_want() -> None:
    """OCM's `cp-creds` and the reader of Secrets take v1 and want the cluster; Kueue's page has v1beta1 without."""
    page = (ROOT / "docs/workers.md").read_text()
    blocks = [
        yaml.safe_load(text) for text in re.findall(r"^```yaml\n(clusterProfile:.*?)^```$", page, re.DOTALL | re.M)
    ]
    providers = [provider for block in blocks for provider in block["clusterProfile"]["accessProviders"]]
    commands = [provider["execConfig"] for provider in providers if "execConfig" in provider]
    assert commands
    for command in commands:
        assert (command["apiVersion"], command["provideClusterInfo"]) == ("client.authentication.k8s.io/v1", True)
