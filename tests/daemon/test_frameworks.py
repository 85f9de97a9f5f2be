"""Which job kinds the settings choose: Kueue's own lists work as they are; what cannot be used is refused at start."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from multikueue.adapters.declaration import Declaration
from multikueue.core.model.names import Json
from multikueue.errors import SettingsError
from multikueued.cli import main
from multikueued.settings.file import parse, parse_settings
from multikueued.settings.kinds import chosen_kinds
from tests.examples import examples

KUEUES = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
PIPELINE_RUN = {"name": "PipelineRun.v1.tekton.dev"}


def chosen(settings: Json) -> dict[str, str]:
    """The kinds that are dispatched, and where each was chosen."""
    rows = chosen_kinds(parse_settings(yaml.safe_dump(settings)))
    return {f"{row.resource}": row.source for row in rows}


def refused(settings: Json) -> str:
    with pytest.raises(SettingsError) as caught:
        parse_settings(yaml.safe_dump(settings), source="config.yaml")
    return str(caught.value)


def test_only_jobs_are_dispatched_unless_more_is_chosen() -> None:
    """Every kind is watched on every worker, and a worker need not have them all."""
    only_jobs = {"jobs.batch": "integrations.frameworks[0] (batch/job)"}
    assert chosen({}) == only_jobs
    assert chosen({"integrations": {"frameworks": None}, "externalFrameworks": None}) == only_jobs


def test_kinds_are_chosen_by_kueues_names() -> None:
    names = ["ray.io/rayjob", "kubeflow.org/pytorchjob"]
    assert chosen({"integrations": {"frameworks": names}}) == {
        "rayjobs.ray.io": "integrations.frameworks[0] (ray.io/rayjob)",
        "pytorchjobs.kubeflow.org": "integrations.frameworks[1] (kubeflow.org/pytorchjob)",
    }
    assert chosen({"integrations": {"frameworks": []}}) == {}


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"externalFrameworks": [PIPELINE_RUN]}, "externalFrameworks[0]"),
        ({**KUEUES, "multiKueue": {"externalFrameworks": [PIPELINE_RUN]}}, "externalFrameworks[0]"),
        (
            {**KUEUES, "integrations": {"externalFrameworks": ["PipelineRun.v1.tekton.dev"]}},
            "externalFrameworks[0]",
        ),
    ],
    ids=["ours", "Kueue's MultiKueue", "Kueue's integrations"],
)
def test_a_kind_can_be_declared_wherever_kueue_has_it(settings: Json, setting: str) -> None:
    assert chosen(settings)["pipelineruns.tekton.dev"] == setting


def test_kueues_two_lists_may_name_the_same_kind() -> None:
    """Kueue wants it in one list to know the owner, and in the other to dispatch it."""
    name = PIPELINE_RUN["name"]
    lists = {
        "integrations": {"externalFrameworks": [name]},
        "multiKueue": {"externalFrameworks": [PIPELINE_RUN]},
    }
    assert chosen({**KUEUES, **lists})["pipelineruns.tekton.dev"] == "externalFrameworks[0]"


def test_a_declaration_can_have_every_field() -> None:
    """The longer form, with every field."""
    settings = parse_settings(
        """
        externalFrameworks:
        - name: Widget.v1.example.com
          profile: generic
          plural: widgetz
          managedByLabel: example.com/run-by=fleet
          suspendPath: .spec.run.state
          suspendValue: Held
          statusSubresource: false
          statusPaths: [.status.phase, .status.pods]
          finished: object.status.phase == 'Done'
          failed: object.status.phase == 'Broken'
          message: object.status.note
          creationPatches:
          - {op: add, path: /spec/queue, valueExpression: "object.metadata.namespace + '/' + workload"}
          - {op: add, path: /spec/none, value: null}
          syncPatches:
          - {op: add, path: /spec/size, valueExpression: object.spec.size}
          forwardedPaths: [.metadata.labels, .spec.priority]
        - name: Gadget.v1alpha1.example.com
          workloadOnly: true
          managedByPath: .spec.by
        """
    )
    widget, gadget = chosen_kinds(settings)[1:]

    assert (str(widget.resource), widget.delegation.value, widget.status.subresource) == (
        "widgetz.example.com",
        "fleet",
        False,
    )
    assert widget.copies.suspend == ("spec", "run", "state")
    assert (gadget.workload_only, gadget.delegation.path) == (True, ("spec", "by"))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"integrations": {"frameworks": ["batch/job", "rayio/rayjob"]}},
            'integrations.frameworks[1]: "rayio/rayjob" is not a job kind that can be dispatched: '
            'did you mean "ray.io/rayjob" or',
        ),
        (
            {"integrations": {"frameworks": ["sparkoperator"]}},
            'integrations.frameworks[0]: "sparkoperator" is not a job kind that can be dispatched: there are auto',
        ),
        ({"integrations": {"frameworks": "batch/job"}}, 'integrations.frameworks: "batch/job" is not a list'),
        (
            {"externalFrameworks": [{"name": "Foo"}]},
            "externalFrameworks[0].name: 'Foo' must be in 'Kind.version.group'",
        ),
        ({"externalFrameworks": [{"profile": "x"}]}, "externalFrameworks[0]: it has no name"),
        ({"externalFrameworks": [{**PIPELINE_RUN, "finishd": "x"}]}, "externalFrameworks[0].finishd: there is no such"),
        (
            {**KUEUES, "multiKueue": {"externalFrameworks": [{**PIPELINE_RUN, "finished": "object.status."}]}},
            "multiKueue.externalFrameworks[0].finished: 'object.status.' is not an expression in CEL, at character 15",
        ),
        (
            {"externalFrameworks": [{**PIPELINE_RUN, "managedByPath": ".spec.by[0]"}]},
            "externalFrameworks[0].managedByPath: .spec.by[0] names an item of a list",
        ),
        (
            {"externalFrameworks": [{**PIPELINE_RUN, "syncPatches": [{"op": "set", "path": "/spec/a"}]}]},
            "externalFrameworks[0].syncPatches[0]: op: 'set' is not one of add, replace",
        ),
        (
            {"externalFrameworks": [{**PIPELINE_RUN, "statusPaths": ".status"}]},
            'externalFrameworks[0].statusPaths: ".status" is not a list: begin each entry with "- "',
        ),
        ({"externalFrameworks": [{**PIPELINE_RUN, "workloadOnly": "no"}]}, "externalFrameworks[0].workloadOnly: "),
        (
            {"externalFrameworks": [PIPELINE_RUN, PIPELINE_RUN]},
            "externalFrameworks[1]: two adapters for tekton.dev/v1, Kind=PipelineRun, this one and "
            "externalFrameworks[0]: leave one out",
        ),
        (
            {"externalFrameworks": [{"name": "Job.v1.batch"}]},
            "externalFrameworks[0]: two adapters for batch/v1, Kind=Job, this one and "
            "integrations.frameworks[0] (batch/job): leave one out",
        ),
        (
            {"externalFrameworks": [PIPELINE_RUN, {"name": "PipelineRun.v1beta1.tekton.dev"}]},
            "externalFrameworks[1]: tekton.dev/v1beta1, Kind=PipelineRun is another version of the objects that "
            "externalFrameworks[0] is for (v1): leave one out",
        ),
    ],
)
def test_what_cannot_be_used_is_reported_with_its_place(settings: Json, complaint: str) -> None:
    message = refused(settings)
    assert message.startswith(f"config.yaml: {complaint}")
    assert "\n" not in message


def test_a_kind_that_is_not_built_in_is_sent_to_where_it_is_declared() -> None:
    told = refused({"integrations": {"frameworks": ["Render.v1.studio.example.com"]}})
    assert told.endswith("; any other kind is declared in externalFrameworks")


def test_auto_takes_no_other_version_of_a_kind_that_is_declared() -> None:
    frameworks = {
        "integrations": {"frameworks": ["auto"]},
        "externalFrameworks": [{"name": "RayCluster.v1alpha1.ray.io"}],
    }
    assert chosen(frameworks)["rayclusters.ray.io"] == "externalFrameworks[0]"


def test_a_built_in_kind_that_is_not_chosen_can_be_declared() -> None:
    """As with Kueue: what is declared here does what Kueue's adapter for external frameworks does."""
    assert chosen({"externalFrameworks": [{"name": "RayCluster.v1.ray.io"}]})["rayclusters.ray.io"]


def test_all_errors_are_reported_at_once() -> None:
    entries = [{"name": "x"}, {**PIPELINE_RUN, "finished": "1 +", "failed": "2 +"}]
    head, *rest = refused({"externalFrameworks": entries}).splitlines()

    assert head == "config.yaml: 3 settings cannot be used"
    assert [line.split(":")[0].strip() for line in rest] == [
        "externalFrameworks[0].name",
        "externalFrameworks[1].finished",
        "externalFrameworks[1].failed",
    ]


def test_the_command_line_says_it_in_one_line_and_exits_as_for_wrong_usage(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("externalFrameworks: [{name: Foo}]")
    result = CliRunner().invoke(main, ["run", "--config", str(config), "--kubeconfig", str(tmp_path / "none")])

    assert result.exit_code == 2
    assert result.stderr.startswith(f"multikueue: error: {config}: externalFrameworks[0].name: 'Foo' must be in")
    assert result.stderr.count("\n") == 1


def test_a_package_that_is_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever installed it must know which; a traceback would show our code first."""
    metadata = tmp_path / "acme-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[multikueue.adapters]\nwidgets = acme_widgets:KINDS\n")
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(_kubeconfig()))
    monkeypatch.syspath_prepend(str(tmp_path))

    result = CliRunner().invoke(main, ["run", "--kubeconfig", str(tmp_path / "kubeconfig")])

    assert result.exit_code == 2
    assert 'the entry point "widgets" of the package acme: acme_widgets:KINDS cannot be loaded' in result.stderr
    assert "No module named 'acme_widgets'" in result.stderr
    assert "acme_widgets" not in sys.modules


def _kubeconfig() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }


@pytest.mark.parametrize(
    ("frameworks", "expected"),
    [(["deployment"], ["pods"]), (["pod", "deployment"], ["pods"]), (["statefulset"], ["statefulsets.apps"])],
    ids=" ".join,
)
def test_a_deployment_is_dispatched_by_its_pods(frameworks: list[str], expected: list[str]) -> None:
    """adapters.md H8: Kueue's controller rejects the pods of a Deployment unless `pod` is listed as well."""
    assert list(chosen({"integrations": {"frameworks": frameworks}})) == expected


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = [
    first + "".join(word.capitalize() for word in rest)
    for first, *rest in (field.name.split("_") for field in attrs.fields(Declaration))
]
_PLAUSIBLE = st.sampled_from(
    [".spec.a", ".status.b", "object.status.a == 1", "a=b", "x", {"op": "add", "path": "/spec/a", "value": 1}, True]
)
_ENTRY = st.dictionaries(st.sampled_from(_FIELDS), _ANYTHING | _PLAUSIBLE | st.lists(_PLAUSIBLE, max_size=2))


@given(st.lists(_ENTRY | _ANYTHING, max_size=2))
@settings(max_examples=examples(300), deadline=None)
def test_any_text_is_used_or_refused(entries: list[Any]) -> None:
    """Never a traceback: a settings file is written by people."""
    used, message = -1, ""
    try:
        used = len(chosen_kinds(parse_settings(json.dumps({"externalFrameworks": entries}))))
    except SettingsError as error:
        message = str(error)
    assert used == 1 + len(entries) or "externalFrameworks" in message or "not valid YAML in line 1" in message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("integrations: {frameworks: []}", True),
        ("integrations: {frameworks: [sparkoperator.k8s.io/sparkapplication]}", False),  # which is told of itself
        ("integrations: {frameworks: []}\nexternalFrameworks: [Render.v1.example.com]", False),
        ("integrations: {frameworks: }", False),
        ("{}", False),
    ],
)
def test_a_daemon_without_kinds_is_told_that_it_dispatches_nothing(text: str, told: bool) -> None:
    """It began to work, without a word."""
    remarks = [remark.why for remark in parse(text, source="f").remarks if remark.important]
    assert ("no kind of job is named: nothing is dispatched" in remarks) is told
