"""The page about other programs: its code parses, what it links to is there, and it says how each thing is known."""

from __future__ import annotations

import ast
import json
import re
import sys
from types import ModuleType
from typing import Any, Final

import pytest
import yaml

from multikueue.core.model.names import Json
from tests.docs.blocks import ROOT, blocks

PAGE: Final = ROOT / "docs" / "clients.md"
TEXT: Final = PAGE.read_text()
RESULTS: Final = ROOT / "docs" / "results" / "clients.json"
ROWS: Final = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.split("## Which ones")[1].split("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| program")
]


def test_each_program_is_known_by_a_run_or_by_its_source() -> None:
    assert len(ROWS) > 20
    assert [row[0] for row in ROWS if len(row) != 4 or not re.search(r"\b(run|read)\b", row[3])] == []


def results() -> str:
    """What `nox -s clients` has written down, as the page has it."""
    measured = json.loads(RESULTS.read_text())
    lines = ["| program | asked | mirrors off | mirrors on |", "|---|---|---|---|"]
    for program, deeds in measured["mirrors off"].items():
        name = f"{program} {measured['versions'].get(program.partition(',')[0], '')}"
        asked = [deed for deed, answer in deeds.items() if answer["said"] != "not asked for"]
        for number, deed in enumerate(asked):
            said = [shown(measured[state][program][deed]) for state in ("mirrors off", "mirrors on")]
            lines.append(f"| {name if number == 0 else ''} | {deed} | {' | '.join(said)} |")
    return "\n".join(lines)


def shown(answer: Json) -> str:
    """An answer on a line: names of single jobs are left out."""
    said = ", ".join(answer["said"].splitlines()[:2])
    said = re.sub(r" (for |Kubernetes )*[jJ]ob '?[a-z]+(-[a-z0-9]+)+'?", "", said)
    said = re.sub(r"( with labels|, check the Kubernetes| PyTorchJob conditions).*", "", said)
    said = re.sub(r"(TrainJob|PyTorchJob) [-a-z0-9/]+", r"\1", said)
    return f"{said} ({answer['seconds']:.0f} s)"


def test_what_was_run_is_what_it_shows() -> None:
    assert results() in TEXT


def test_its_links_lead_somewhere() -> None:
    """To sections of its own, and to pages."""
    titles = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^## (.+)$", TEXT, re.M)}
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert [link for link in links if link.startswith("#") and link[1:] not in titles] == []
    pages = [link.partition("#")[0] for link in links if not link.startswith("#")]
    assert [page for page in pages if not (PAGE.parent / page).is_file()] == []


@pytest.mark.parametrize("code", blocks(PAGE, "python"))
def test_its_python_parses(code: str) -> None:
    ast.parse(code)


def test_the_operator_for_airflow_looks_for_no_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one method that matters, with a stand-in for the operator of the provider."""
    (code,) = (block for block in blocks(PAGE, "python") if "airflow" in block)
    name = "airflow.providers.cncf.kubernetes.operators.job"
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    sys.modules[name].KubernetesJobOperator = type("KubernetesJobOperator", (), {})  # type: ignore[attr-defined]
    made: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), made)
    assert made["QueuedJobOperator"]().get_pods(pod_request_obj=None, context={}) == []


def test_its_yaml_is_what_kubernetes_takes() -> None:
    rule, template = map(yaml.safe_load, blocks(PAGE, "yaml"))
    assert list(rule["data"]) == ["resource.customizations.health.batch_Job"]
    assert template["spec"] == {"managedBy": "kueue.x-k8s.io/multikueue"}
    assert template["metadata"]["labels"].keys() == {"kueue.x-k8s.io/queue-name"}
