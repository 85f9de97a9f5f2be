"""One source of rules: the command, the chart and `worker add` grant the same, and no more than is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from multikueue import AVAILABLE, JobKind
from multikueue.core.dispatchers.dispatcher import SCORED
from multikueue.core.model.names import Json
from multikueued.api_answers import WHOLE
from multikueued.cli import main
from multikueued.rbac.objects import AGGREGATED, role_rules
from multikueued.rbac.role_rule import merged
from multikueued.rbac.rules import in_namespace, kind_rules_on_manager, on_manager, on_worker
from multikueued.settings.config import Settings
from multikueued.settings.file import parse_settings
from tests.docs.chart_rules import blocks, by_framework, written
from tests.integration.permissions import (
    LOGS,
    LOGS_SECRET,
    TEMPLATES,
    WEBHOOK,
    WEBHOOK_CONFIGURATION,
    Granted,
    chart_objects,
    granted,
)

KUEUE = "kueue.x-k8s.io"


def printed(*arguments: str) -> list[Json]:
    result = CliRunner().invoke(main, ["rbac", *arguments])
    assert result.exit_code == 0, result.output
    return [*yaml.safe_load_all(result.stdout)]


def rules(objects: list[Json], kind: str = "ClusterRole") -> Granted:
    return granted(rule for obj in objects if obj["kind"] == kind for rule in obj["rules"] or ())


_EXPIRED = "\nretention: {deleteExpiredJobs: true}"
USERS = ("logs-reader", "logs-namespaces", "logs-fleet")


class TestTheChart:
    @pytest.mark.parametrize("file", sorted(TEMPLATES.glob("*.yaml")), ids=lambda file: file.name)
    def test_its_rules_are_those_of_the_source(self, file: Path) -> None:
        """`python -m tests.docs.chart_rules` writes them."""
        assert written(file.read_text()) == file.read_text()

    def test_every_block_of_the_source_is_in_a_template(self) -> None:
        text = "".join(file.read_text() for file in TEMPLATES.glob("*.yaml"))
        assert all(f"# rules: {name} " in text for name in blocks())

    @pytest.mark.parametrize("framework", sorted({kind.framework for kind in AVAILABLE}))
    def test_it_grants_for_a_framework_what_the_command_does(self, framework: str) -> None:
        settings = parse_settings(yaml.safe_dump({"integrations": {"frameworks": [framework]}}))
        assert rules(chart_objects(frameworks=[framework])) == granted(on_manager(settings))

    def test_auto_stands_for_what_it_stands_for_in_the_settings(self) -> None:
        settings = parse_settings("integrations: {frameworks: [auto]}")
        assert rules(chart_objects(frameworks=["auto"])) == granted(on_manager(settings))

    def test_it_grants_the_logs_server_what_the_command_does(self) -> None:
        """Beside that it has roles for those who read."""
        command = printed("api-server", "--name", LOGS, "--secret", LOGS_SECRET)
        chart = [obj for obj in chart_objects("rbac-logs.yaml") if not obj["metadata"]["name"].endswith(USERS)]
        for kind in ("ClusterRole", "Role"):
            assert rules(chart, kind) == rules(command, kind)
        references = {obj["metadata"]["name"]: obj["roleRef"] for obj in command if "roleRef" in obj}
        assert {obj["metadata"]["name"]: obj["roleRef"] for obj in chart if "roleRef" in obj} == references

    @pytest.mark.parametrize("framework", ["batch/job", "pod", "auto"])
    def test_it_grants_users_what_the_command_does(self, framework: str, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text(yaml.safe_dump({"integrations": {"frameworks": [framework]}}))
        command = printed("user", "--config-file", str(file), "--aggregate")
        chart = chart_objects("rbac-users.yaml", frameworks=[framework])
        assert [granted(obj["rules"]) for obj in chart] == [granted(obj["rules"]) for obj in command]
        assert [obj["metadata"]["labels"] for obj in chart] == [obj["metadata"]["labels"] for obj in command]
        assert "labels" not in printed("user")[0]["metadata"]

    def test_users_get_nothing_of_secrets_workers_or_the_whole_cluster(self) -> None:
        viewer, submitter = (granted(obj["rules"]) for obj in printed("user"))
        assert all(verbs <= {"get", "list", "watch"} for verbs in viewer.values())
        assert {key for key, verbs in submitter.items() if verbs - {"get", "list", "watch"}} == {("batch", "jobs")}
        for _, resource in submitter:
            assert resource.partition("/")[0] in ("remotejobs", *WHOLE, "workloads", "localqueues", "events", "jobs")

    @pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.resource.gvk.kind)
    def test_users_read_what_client_programs_read(self, kind: JobKind) -> None:
        """Airflow, Dagster and Snakemake a job by its status; kubectl describe events of the core group."""
        for role in AGGREGATED:
            rights = granted(role_rules(role, [kind]))
            group, plural = kind.resource.gvk.group, kind.resource.plural
            assert rights["", "events"] == rights["events.k8s.io", "events"] == {"get", "list", "watch"}
            assert rights[group, plural] >= {"get", "list", "watch"}
            assert rights[group, f"{plural}/status"] == {"get"}, "nobody but controllers writes it"

    def test_its_role_in_the_namespace_is_the_commands(self) -> None:
        assert rules(chart_objects(), "Role") == granted(in_namespace(Settings()))

    def test_it_grants_no_creation_of_what_it_makes_for_the_webhook(self) -> None:
        """So the doctor asks for none where it is there: it called each chart with the webhook on an error."""
        names = f"{{enabled: true, serviceName: {WEBHOOK}, configurationName: {WEBHOOK_CONFIGURATION}}}"
        settings, chart = parse_settings(f"webhook: {names}"), chart_objects("rbac-webhook.yaml")
        more = granted(on_manager(settings, prepared=True)).items() - granted(on_manager(Settings())).items()
        assert dict(more) == rules(chart)
        here = in_namespace(settings, prepared=True)
        assert [rule for rule in here if rule not in in_namespace(Settings())] == [
            rule for obj in chart if obj["kind"] == "Role" for rule in obj["rules"]
        ]
        assert "create" in granted(in_namespace(settings))["", "secrets"]

    def test_cluster_profiles_are_read_in_the_namespace_if_the_settings_have_them(self) -> None:
        """And nowhere else: whoever writes one says which server gets a token."""
        settings = parse_settings("clusterProfile: {accessProviders: [{name: x, builtin: secretreader}]}")
        profiles = ("multicluster.x-k8s.io", "clusterprofiles")
        assert rules(chart_objects("rbac-profiles.yaml"), "Role") == {profiles: {"list", "watch"}}
        assert granted(in_namespace(settings)) == {**rules(chart_objects(), "Role"), profiles: {"list", "watch"}}
        assert profiles not in granted(in_namespace(Settings()))

    def test_renewing_bound_tokens_is_granted_for_the_secrets_that_are_named(self) -> None:
        settings = parse_settings("boundTokens: {enabled: true, secretNames: [worker1-kubeconfig]}")
        (granted_rules,) = [obj["rules"] for obj in chart_objects("rbac-bound.yaml") if obj["kind"] == "Role"]
        assert granted_rules == [
            rule for rule in in_namespace(settings) if rule.get("resourceNames") == ["worker1-kubeconfig"]
        ]
        assert granted_rules == [
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["patch"], "resourceNames": ["worker1-kubeconfig"]}
        ]


class TestWhatIsGranted:
    def test_a_kind_without_a_status_of_its_own_is_only_read(self) -> None:
        """A StatefulSet's status is written by the manager's own controller."""
        (rule,) = by_framework(kind_rules_on_manager)["statefulset"]
        assert rule == {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["list", "watch"]}

    def test_workers_let_only_those_kinds_be_changed_that_have_changes(self) -> None:
        settings = parse_settings("integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset]}")
        rights = granted(on_worker(settings))
        assert "patch" in rights["batch", "jobs"]  # an elastic one's size
        assert rights["jobset.x-k8s.io", "jobsets"] == {"create", "delete", "get", "list", "watch"}

    def test_nothing_is_granted_with_a_wildcard_and_no_secret_of_a_worker(self) -> None:
        settings = parse_settings("{integrations: {frameworks: [auto, pod]}, quotaAutomation: true}")
        every = [*on_manager(settings), *in_namespace(settings), *on_worker(settings, diagnose=True)]
        assert not [rule for rule in every for values in rule.values() if "*" in values]
        assert ("", "secrets") not in granted(on_worker(settings, diagnose=True))

    def test_a_declared_kind_is_granted_with_its_definition_by_name(self) -> None:
        settings = parse_settings("externalFrameworks: [Workflow.v1alpha1.argoproj.io, PipelineRun.v1.tekton.dev]")
        rights = granted(on_manager(settings))
        assert rights["argoproj.io", "workflows"] == {"list", "watch", "patch"}  # it has its status in the object
        assert rights["tekton.dev", "pipelineruns/status"] == {"patch"}
        named = [
            rule["resourceNames"] for rule in on_manager(settings) if "customresourcedefinitions" in rule["resources"]
        ]
        assert named == [["workflows.argoproj.io"], ["pipelineruns.tekton.dev"]]

    def test_a_kind_that_somebody_else_moves_is_not_granted(self) -> None:
        settings = parse_settings("externalFrameworks: [{name: Thing.v1.example.com, workloadOnly: true}]")
        assert not [group for group, _ in granted(on_manager(settings)) if group == "example.com"]

    def test_options_are_granted_only_while_they_are_on(self) -> None:
        plain = granted(on_manager(Settings()))
        webhook = granted(on_manager(parse_settings("webhook: {enabled: true}")))
        quota = granted(on_manager(parse_settings("quotaAutomation: true")))
        assert (KUEUE, "clusterqueues") not in plain
        assert webhook["admissionregistration.k8s.io", "mutatingwebhookconfigurations"] == {"patch", "create"}
        assert quota[KUEUE, "clusterqueues/status"] == {"patch"}
        assert granted(on_worker(parse_settings("quotaAutomation: true")))[KUEUE, "clusterqueues"] == {"list", "watch"}
        scored = granted(on_worker(parse_settings(f"dispatcher: {{name: {SCORED}}}")))
        assert scored[KUEUE, "cohorts"] == scored[KUEUE, "localqueues"] == {"list", "watch"}
        assert scored[KUEUE, "resourceflavors"] == {"list"}

    @pytest.mark.parametrize("named", ["auto", "jobset.x-k8s.io/jobset", "batch/job"])
    def test_jobs_of_the_manager_may_be_deleted_only_where_that_is_set(self, named: str) -> None:
        """And only those of kinds whose own controllers delete them by the time that they say: no MPIJobs."""
        text = f"integrations: {{frameworks: [{named}]}}"
        off, on = (granted(on_manager(parse_settings(f"{text}{more}"))) for more in ("", _EXPIRED))
        assert not [key for key, verbs in off.items() if "delete" in verbs]
        deletable = {key for key, verbs in on.items() if "delete" in verbs}
        kinds = {"auto": 7, "jobset.x-k8s.io/jobset": 1, "batch/job": 0}[named]
        assert (len(deletable), ("kubeflow.org", "mpijobs") in deletable) == (kinds, False)
        chart = rules(chart_objects("rbac-expired.yaml", [named]))
        assert chart == {key: {"delete"} for key in deletable}
        assert {**off, **{key: verbs | chart.get(key, set()) for key, verbs in off.items()}} == on

    def test_workers_are_noted_on_only_by_the_scored_dispatcher(self) -> None:
        scored = granted(on_manager(parse_settings(f"dispatcher: {{name: {SCORED}}}")))
        assert scored[KUEUE, "multikueueclusters"] == {"list", "watch", "patch"}
        assert granted(on_manager(Settings()))[KUEUE, "multikueueclusters"] == {"list", "watch"}
        assert rules(chart_objects("rbac-scored.yaml")) == {(KUEUE, "multikueueclusters"): {"patch"}}

    def test_the_namespaces_of_both_sides_are_read_only_for_a_manager_with_a_name(self) -> None:
        named = parse_settings("managerName: prod-eu")
        assert granted(on_manager(named))["", "namespaces"] == {"get"}
        assert rules(chart_objects("rbac-origin.yaml")) == {("", "namespaces"): {"get"}}
        for unnamed in (on_manager(Settings()), on_worker(Settings())):  # but for the one that tells clusters apart
            (own,) = [rule for rule in unnamed if "namespaces" in rule["resources"]]
            assert (own["verbs"], own["resourceNames"]) == (["get"], ["kube-system"])
        policies = ("admissionregistration.k8s.io", "validatingadmissionpolicybindings")
        assert granted(on_worker(named))[policies] == {"get"}
        assert policies not in granted(on_worker(Settings()))

    def test_what_jobs_need_is_read_here_and_made_there_only_with_the_setting(self) -> None:
        kinds = "[ConfigMap, ResourceClaimTemplate, Secret]"
        named = parse_settings(f"dependencies: [{{config: a, kinds: {kinds}}}, {{config: b, kinds: [ConfigMap]}}]")
        maps, templates = ("", "configmaps"), ("resource.k8s.io", "resourceclaimtemplates")
        here, there = granted(on_manager(named)), granted(on_worker(named))
        assert here[maps] == here[templates] == {"get"}
        assert there[maps] == there[templates] == {"create", "get", "patch"}
        assert there["", "secrets"] == {"get"}
        assert rules(chart_objects("rbac-dependencies.yaml")) == {maps: {"get"}, templates: {"get"}}
        for off in (granted(on_manager(Settings())), granted(on_worker(Settings()))):
            assert not {maps, templates, ("", "secrets")} & set(off)

    def test_the_policy_covers_all_that_the_account_creates(self, tmp_path: Path) -> None:
        """On a real server: `tests/integration/test_allowed_copies.py`."""
        file = tmp_path / "settings.yaml"
        file.write_text(
            "{managerName: prod-eu, integrations: {frameworks: [batch/job, pod, ray.io/rayjob]}, "
            "dependencies: [{config: a, kinds: [ConfigMap, Secret]}]}"
        )
        made = printed("worker", "--config-file", str(file), "--binding")
        (policy,) = (obj for obj in made if obj["kind"] == "ValidatingAdmissionPolicy")
        matched = policy["spec"]["matchConstraints"]["resourceRules"]
        covered = {
            (group, resource) for rule in matched for group in rule["apiGroups"] for resource in rule["resources"]
        }
        assert covered == {what for what, verbs in rules(made).items() if "create" in verbs}
        result = CliRunner().invoke(main, ["rbac", "worker", "--binding"])
        assert result.exit_code == 2
        assert "--binding needs managerName" in result.output

    def test_merging_grants_neither_more_nor_less(self) -> None:
        by_kind = [rule for rules in by_framework(kind_rules_on_manager).values() for rule in rules]
        assert granted(merged(by_kind)) == granted(by_kind)


class TestTheCommand:
    def test_the_manager_gets_roles_bindings_and_an_account(self) -> None:
        objects = printed("manager", "--service-account", "ours/daemon", "--name", "mk")
        assert [(obj["kind"], obj["metadata"].get("namespace", "")) for obj in objects] == [
            ("ServiceAccount", "ours"),
            ("ClusterRole", ""),
            ("ClusterRoleBinding", ""),
            ("Role", "kueue-system"),
            ("RoleBinding", "kueue-system"),
            ("Secret", "kueue-system"),
        ]
        subject = {"kind": "ServiceAccount", "namespace": "ours", "name": "daemon"}
        assert [obj["subjects"] for obj in objects if "subjects" in obj] == [[subject], [subject]]
        assert {obj["roleRef"]["name"] for obj in objects if "roleRef" in obj} == {"mk"}

    def test_a_worker_gets_no_role_in_a_namespace(self) -> None:
        assert [obj["kind"] for obj in printed("worker")] == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"]

    def test_the_settings_decide(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text("integrations: {frameworks: [ray.io/rayjob]}\n")
        printed_rules = rules(printed("worker", "--config-file", str(file)))
        assert ("ray.io", "rayjobs") in printed_rules
        assert ("batch", "jobs") not in printed_rules

    def test_diagnosing_reads_and_changes_nothing(self) -> None:
        more = rules(printed("worker")).items() - rules(printed("worker", "--least")).items()
        assert more
        assert {verb for _, verbs in more for verb in verbs} <= {"get", "list"}

    def test_logs_are_read_only_where_that_is_asked_for(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text("integrations: {frameworks: [ray.io/rayjob]}\n")
        plain = rules(printed("worker", "--config-file", str(file)))
        more = rules(printed("worker", "--logs", "--config-file", str(file))).items() - plain.items()
        assert dict(more) == {
            ("", "pods"): frozenset({"list"}),
            ("", "pods/log"): frozenset({"get"}),
            ("events.k8s.io", "events"): frozenset({"list"}),
            ("ray.io", "rayclusters"): frozenset({"list"}),
            ("batch", "jobs"): frozenset({"list"}),
        }

    def test_the_logs_server_only_reads_on_a_worker(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.yaml"
        file.write_text("integrations: {frameworks: [ray.io/rayjob]}\n")
        objects = printed("logs-worker", "--config-file", str(file))
        assert dict(rules(objects)) == {
            (KUEUE, "workloads"): frozenset({"list"}),
            ("", "pods"): frozenset({"list"}),
            ("", "pods/log"): frozenset({"get"}),
            ("events.k8s.io", "events"): frozenset({"list"}),
            ("ray.io", "rayjobs"): frozenset({"list"}),
            ("ray.io", "rayclusters"): frozenset({"list"}),
            ("batch", "jobs"): frozenset({"list"}),
        }
        assert {obj["metadata"]["name"] for obj in objects} == {"multikueue-logs"}  # not the daemon's roles

    def test_the_logs_server_reads_no_secret_but_its_own(self) -> None:
        roles = [obj for obj in printed("api-server", "--secret", "oslo") if obj["kind"] == "Role"]
        assert [
            (obj["metadata"]["namespace"], rule["verbs"], rule["resourceNames"])
            for obj in roles
            for rule in obj["rules"]
        ] == [
            ("multikueue", ["get", "patch"], ["multikueue-logs"]),
            ("multikueue", ["get"], ["oslo"]),
            ("kueue-system", ["get"], ["multikueue-marks"]),
            ("kueue-system", ["get"], ["multikueue-findings"]),
            ("kueue-system", ["get"], ["multikueue"]),  # the Lease
        ]

    def test_the_manager_has_all_that_the_chart_makes_beside_roles(self) -> None:
        """The Secret with the key of marks: without it each start had a new key."""
        made = [(obj["kind"], obj["metadata"]["name"]) for obj in printed("manager") if "oles" not in obj["kind"]]
        chart = (Path(__file__).parents[2] / "charts/multikueued/templates/marks.yaml").read_text()
        assert "kind: Secret" in chart
        assert 'name: {{ .Values.settings.name | default "multikueue" }}-marks' in chart
        assert ("Secret", "multikueue-marks") in made
        (secret,) = (obj for obj in printed("manager") if obj["kind"] == "Secret")
        assert set(secret) == {"apiVersion", "kind", "metadata"}
        assert secret["metadata"]["namespace"] == "kueue-system"

    def test_an_account_without_a_namespace_is_refused(self) -> None:
        result = CliRunner().invoke(main, ["rbac", "manager", "--service-account", "daemon"])
        assert result.exit_code == 2
        assert "'daemon' is not NAMESPACE/NAME" in result.output

    @pytest.mark.parametrize("name", ["A B", "../x", "a..b", "-a", "", "a\nb", "a" * 300])
    @pytest.mark.parametrize("role", ["manager", "worker", "api-server", "logs-worker", "spoke", "user"])
    def test_what_no_object_can_be_called_is_refused(self, role: str, name: str) -> None:
        result = CliRunner().invoke(main, ["rbac", role, "--name", name])
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "cannot be an object's name" in result.stderr

    @pytest.mark.parametrize(
        "option",
        [
            ["--secret", "A B"],
            ["--service-account", "a b/c"],
            ["--service-account", "a/c_"],
            ["--service-account", f"{'a' * 64}/c"],
        ],
    )
    def test_so_are_accounts_and_secrets(self, option: list[str]) -> None:
        assert CliRunner().invoke(main, ["rbac", "api-server", *option]).exit_code == 2

    @pytest.mark.parametrize("account", ["a.b", "a" * 64])
    def test_a_name_may_have_dots_and_be_longer_than_a_namespaces(self, account: str) -> None:
        made = printed("manager", "--name", "kueue.multikueue-1", "--service-account", f"ours/{account}")
        assert {obj["metadata"]["name"] for obj in made} == {"kueue.multikueue-1", account, "multikueue-marks"}
