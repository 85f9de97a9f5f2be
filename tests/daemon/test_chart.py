"""The chart's files against each other and against the daemon: what needs no Helm to be seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from prometheus_client import generate_latest

from multikueue.core.model.names import Json
from multikueued.metrics.hooks import Metrics
from multikueued.reports.status import DaemonReport, daemon_findings

CHART = Path(__file__).parents[2] / "charts" / "multikueued"
VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text())
DASHBOARD: Json = json.loads((CHART / "files" / "dashboard.json").read_text())
ALERTS: Json = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())


def expressions() -> Iterator[str]:
    """What the dashboard and the alerts ask of Prometheus."""
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for group in ALERTS["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def exported() -> set[str]:
    """The names of all metrics, as Prometheus stores them."""
    metrics = Metrics("leader")
    said = re.findall(r"^# TYPE (\S+) (\S+)$", generate_latest(metrics.snapshot()).decode(), re.MULTILINE)
    parts = {"histogram": ("_bucket", "_count", "_sum")}
    return {name + part for name, kind in said for part in parts.get(kind, ("",))}


def test_dashboard_and_alerts_name_only_metrics_that_exist() -> None:
    named = {name for one in expressions() for name in re.findall(r"\b(?:multikueue|kueue|process)_\w+", one)}
    assert named
    assert named <= exported()


def test_each_panel_and_alert_is_complete() -> None:
    for panel in DASHBOARD["panels"]:
        assert panel["title"]
        assert panel["type"] == "row" or panel["targets"]
    for group in ALERTS["groups"]:
        for rule in group["rules"]:
            assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
            assert set(rule["annotations"]) == {"summary", "description"}
            assert rule["labels"]["severity"] in ("warning", "critical")


def test_the_page_for_operators_lists_the_alerts() -> None:
    page = (CHART.parents[1] / "docs" / "operating.md").read_text()
    listed = re.findall(r"^\| `(MultiKueue\w+)` \|", page, re.MULTILINE)
    assert listed == [rule["alert"] for group in ALERTS["groups"] for rule in group["rules"]]


def test_the_schema_knows_each_value_and_no_other() -> None:
    def compare(values: Json, schema: Json, where: str) -> None:
        if schema.get("additionalProperties") is not False:
            return
        known = schema["properties"]
        assert set(values) == set(known) - {"global"}, where
        for name, value in values.items():
            if isinstance(value, dict):
                compare(value, known[name], f"{where}.{name}")

    compare(VALUES, SCHEMA, "values")


def test_templates_use_values_that_exist() -> None:
    """A misspelt one would be empty without a word."""
    for template in (CHART / "templates").iterdir():
        for path in re.findall(r"(?<![\w$])\.Values\.([\w.]+)", template.read_text()):
            first, *rest = path.split(".")
            assert first in VALUES, f"{template.name}: .Values.{path}"
            value = VALUES[first]
            for name in rest if first != "settings" else ():
                assert name in value, f"{template.name}: .Values.{path}"
                value = value[name]


def test_who_is_told_to_look_for_the_daemons_pods_finds_them() -> None:
    """They are in the release's namespace, under the release's name: neither is known to who reads the Lease."""
    (silent,) = daemon_findings(DaemonReport("multikueue-0", None, seen=True, alive=False), "kueue-system")
    (label,) = re.findall(r"kubectl get pods -A -l (\S+)=(\S+)", silent.remedy)
    template = (CHART / "templates" / "deployment.yaml").read_text().partition("  template:\n")[2]
    assert "{}: {}".format(*label) in template
