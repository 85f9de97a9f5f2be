"""The chart's files against each other and against the daemon: what needs no Helm to be seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from prometheus_client import generate_latest

from multikueue.core.model.names import Json
from multikueue.errors import Cause
from multikueued.metrics.hooks import Metrics
from multikueued.page.port import FILES
from multikueued.reports.daemon_lease import daemon_findings
from multikueued.reports.remedies.trouble import about_worker
from tests.reports.objects import NOW

CHART = Path(__file__).parents[2] / "charts" / "multikueued"
VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text())
DASHBOARD: Json = json.loads((CHART / "files" / "dashboard.json").read_text())
SILENT: Json = {"spec": {"holderIdentity": "multikueue-0"}}
"""A Lease that was never renewed."""
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
    named = {
        name for expression in expressions() for name in re.findall(r"\b(?:multikueue|kueue|process)_\w+", expression)
    }
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


WORDS = {
    "multikueue_cluster_connected": "reachable",
    "multikueue_workloads_running": "running",
    "multikueue_workloads_waiting": "bar.offered",
    "multikueue_workloads_admitted_total": "placed",
}
"""By metric: where the page has its word for what is counted."""


def test_the_board_says_it_in_the_words_of_the_page() -> None:
    """Who sees a worker that is out of reach on one must find it on the other; parts of a wait are the same, too."""
    text = (FILES / "texts.en.js").read_text()
    page = {key: said.lower() for key, said in re.findall(r'"([a-z0-9.]+)": "([^"]*)"', text)}
    titles: dict[str, list[str]] = {}
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            for metric in re.findall(r"\bmultikueue_\w+", target["expr"]):
                titles.setdefault(metric, []).append(panel["title"].lower())
    for metric, key in WORDS.items():
        word = page[key].replace("{}", "").strip()
        assert all(word in title for title in titles[metric]), (metric, word, titles[metric])
    waits = [panel for panel in DASHBOARD["panels"] if "placement_seconds" in str(panel.get("targets"))]
    assert [re.findall(r"p\d+", panel["title"]) for panel in waits] == [["p50", "p90"]]
    assert {"p50", "p90"} <= page.keys()


def test_alerts_say_it_in_the_words_of_findings() -> None:
    """The page and `multikueue status` name the same troubles beside them."""
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    said = {rule["alert"]: rule["annotations"]["summary"] for rule in rules}
    lost = about_worker("NAME", "", {}, connected=False, cause=str(Cause.OUT_OF_REACH)).why
    (silent,) = daemon_findings(SILENT, NOW, "kueue-system")
    assert lost.removeprefix("NAME") in said["MultiKueueWorkerLost"]
    assert silent.why.partition(": ")[2].partition(",")[0] in said["MultiKueueNoLeader"]


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


def test_what_templates_need_cannot_be_left_empty() -> None:
    """Helm takes `replicas:` with nothing behind it for a default that is taken away, as `resources:` may be."""

    def closed(schema: Json) -> Json | None:
        named = schema.get("$ref", "").rpartition("/")[2]
        schema = SCHEMA["definitions"][named] if named else schema
        return schema if schema.get("additionalProperties") is False else None

    def compare(values: Json, schema: Json, where: str) -> None:
        groups = {name: closed(schema["properties"][name]) for name in values if isinstance(values[name], dict)}
        alone = {name for name, value in values.items() if name not in groups and value not in ("", [])}
        assert alone | {name for name, group in groups.items() if group} <= set(schema.get("required", ())), where
        for name, group in groups.items():
            if group:
                compare(values[name], group, f"{where}.{name}")

    compare(VALUES, SCHEMA, "values")
    assert "settings" in SCHEMA["required"]


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
    (silent,) = daemon_findings(SILENT, NOW, "kueue-system")
    (label,) = re.findall(r"kubectl get pods -A -l (\S+)=(\S+)", silent.remedy)
    template = (CHART / "templates" / "deployment.yaml").read_text().partition("  template:\n")[2]
    assert "{}: {}".format(*label) in template
