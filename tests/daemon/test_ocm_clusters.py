"""The settings of workers that are made of ManagedClusters, and what is printed to be granted for them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from multikueue.core.inventory.ocm_workers.objects import permission_spec
from multikueue.core.inventory.settings import Adopt, ConnectionSource
from multikueue.core.model.names import Json
from multikueue.errors import SettingsError
from multikueue.kube import ClusterConfig, KubeClient
from multikueued.cli import main
from multikueued.metrics.hooks import Metrics
from multikueued.rbac import spokes
from multikueued.rbac.rules import in_namespace, on_manager, on_worker
from multikueued.run.ocm_workers import granting_client, profile_settings, spoke_settings
from multikueued.settings.file import parse, parse_settings
from tests.integration.permissions import granted

CLOUD = "{name: cloud, builtin: secretreader}"
OCMS = "{name: open-cluster-management, builtin: cp-creds}"
GRANTING = "namespace: kueue-system\nocm: {enabled: true, clusterPermissions: {enabled: true}}\n"


def printed(tmp_path: Path, text: str, *arguments: str) -> list[Json]:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    result = CliRunner().invoke(main, ["rbac", *arguments, "--config-file", str(file)])
    assert result.exit_code == 0, result.output
    return [*yaml.safe_load_all(result.stdout)]


class TestSettings:
    @pytest.mark.parametrize(
        "text", ["{}", "ocm: {clusters: {source: kubeconfig}}", "ocm: {enabled: true, clusters: {source: none}}"]
    )
    def test_without_the_check_or_a_source_nothing_is_made(self, text: str) -> None:
        settings = parse_settings(text)
        assert spoke_settings(settings) is None
        assert profile_settings(settings) is None

    def test_with_the_check_selected_clusters_become_workers_by_their_profiles(self) -> None:
        made = spoke_settings(parse_settings("{namespace: kueue, origin: west, ocm: {enabled: true}}"))
        assert made is not None
        assert (made.source, made.namespace, made.owner) == (ConnectionSource.CLUSTER_PROFILE, "kueue", "west")
        assert (made.accounts, made.validity, made.rules, made.adopt) == (True, timedelta(days=7), None, Adopt.NONE)

    def test_the_rules_are_those_of_the_workers(self) -> None:
        settings = parse_settings(GRANTING + "integrations: {frameworks: [jobset.x-k8s.io/jobset]}\n")
        made = spoke_settings(settings)
        assert made is not None
        assert made.rules == tuple(on_worker(settings))
        assert any("jobsets" in rule["resources"] for rule in made.rules or ())

    def test_ocms_provider_is_built_in_unless_others_are_set(self) -> None:
        settings = profile_settings(parse_settings("ocm: {enabled: true}"))
        assert settings is not None
        (provider,) = settings.providers or ()
        assert (provider.name, provider.builtin) == ("open-cluster-management", "cp-creds")
        assert provider.managed_service_account == "multikueue"
        own = "clusterProfile: {accessProviders: [{name: x, builtin: secretreader}]}"
        others = profile_settings(parse_settings(f"{{ocm: {{enabled: true}}, {own}}}"))
        assert others is not None
        assert [provider.name for provider in others.providers or ()] == ["x"]

    @pytest.mark.parametrize(
        ("ocm", "told"),
        [
            ("{enabled: true}", True),
            ("{enabled: false}", False),
            ("{enabled: true, clusters: {credentials: external}}", False),
            ("{enabled: true, clusters: {source: kubeconfig}}", False),
        ],
    )
    def test_access_providers_without_ocms_are_told(self, ocm: str, told: bool) -> None:
        """No worker of OCM's was reached, and the settings could be used."""
        remarks = parse(f"ocm: {ocm}\nclusterProfile: {{accessProviders: [{CLOUD}]}}", source="x").remarks
        important = [remark.why for remark in remarks if remark.important]
        assert ["open-cluster-management" in why for why in important] == [True] * told
        both = f"ocm: {ocm}\nclusterProfile: {{accessProviders: [{CLOUD}, {OCMS}]}}"
        assert not [remark for remark in parse(both, source="x").remarks if remark.important]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("clusters: {tokenValidity: 23h}", 'ocm.clusters.tokenValidity: "23h" is not between 24h and 168h'),
            ("clusters: {tokenValidity: 8640h}", "is not between 24h and 168h"),
            ("clusters: {source: proxy}", '"proxy" is not one of clusterProfile, kubeconfig, none'),
            ("clusters: {source: kubeconfig, credentials: external}", "ocm.clusters.credentials: a kubeconfig needs a"),
            ("clusterPermissions: {serviceAccountName: A B}", "cannot be the name of a ServiceAccount"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, text: str, message: str) -> None:
        with pytest.raises(SettingsError) as error:
            parse_settings(f"ocm: {{enabled: true, {text}}}")
        assert message in str(error.value)

    @pytest.mark.parametrize(
        "text",
        [
            "ocm: {enabled: false, clusterPermissions: {enabled: true}}",
            "ocm: {enabled: true, clusters: {source: none}, clusterPermissions: {enabled: true}}",
            "ocm: {clusters: {source: kubeconfig, credentials: external}, clusterPermissions: {enabled: true}}",
        ],
    )
    def test_a_section_without_effect_is_told_and_ends_nothing(self, text: str) -> None:
        """The page's way back is `ocm.enabled: false`: it ended the daemon where clusterPermissions were on."""
        loaded = parse(text, source="x")
        assert not loaded.settings.ocm.grants
        assert "ocm.clusterPermissions.enabled" in [remark.setting for remark in loaded.remarks if remark.important]

    async def test_permissions_are_written_as_another_user(self) -> None:
        config = ClusterConfig("https://127.0.0.1:1")
        async with granting_client(parse_settings("ocm: {enabled: true}"), config, Metrics("leader")) as client:
            assert client is None
        async with granting_client(parse_settings(GRANTING), config, Metrics("leader")) as client:
            assert isinstance(client, KubeClient)
            assert client.options.impersonate == "system:serviceaccount:kueue-system:multikueue-permissions"


class TestWhatIsGranted:
    def test_the_account_that_grants_has_a_policy_and_the_daemon_may_act_as_it(self, tmp_path: Path) -> None:
        objects = printed(tmp_path, GRANTING, "manager")
        assert [obj["kind"] for obj in objects[6:]] == [
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ]
        assert {obj["metadata"]["name"] for obj in objects[6:]} == {"multikueue-permissions"}
        settings = parse_settings(GRANTING)
        acts = [rule for rule in in_namespace(settings) if "impersonate" in rule["verbs"]]
        assert [rule["resourceNames"] for rule in acts] == [["multikueue-permissions"]]
        own = granted(on_manager(settings))
        assert own["rbac.open-cluster-management.io", "clusterpermissions"] == {"list", "watch"}
        assert granted(spokes.GRANTING) == {
            ("rbac.open-cluster-management.io", "clusterpermissions"): {"create", "patch", "delete"}
        }

    def test_the_policy_compares_with_what_is_written(self, tmp_path: Path) -> None:
        """`tests/integration/test_granting.py` has a real server judge."""
        settings = parse_settings(GRANTING)
        policy = next(
            obj for obj in printed(tmp_path, GRANTING, "manager") if obj["kind"] == "ValidatingAdmissionPolicy"
        )
        spec = permission_spec(on_worker(settings))
        expressions = [validation["expression"] for validation in policy["spec"]["validations"]]
        literals = [yaml.safe_load(expression.split(" == ")[1]) for expression in expressions if " == " in expression]
        assert literals == ["multikueue", spec["clusterRole"]["rules"], spec["clusterRoleBinding"]]

    def test_only_kubeconfigs_need_secrets_to_be_written(self) -> None:
        def verbs(text: str) -> set[str]:
            rules = in_namespace(parse_settings(text))
            return {
                verb
                for rule in rules
                if "secrets" in rule["resources"] and "resourceNames" not in rule
                for verb in rule["verbs"]
            }

        assert verbs("ocm: {enabled: true}") == {"list", "watch"}
        assert verbs("ocm: {enabled: true, adopt: addon}") == {"list", "watch", "delete"}
        assert "create" in verbs("ocm: {enabled: true, clusters: {source: kubeconfig}}")

    def test_the_work_agent_gets_what_it_is_to_grant_and_only_our_role(self, tmp_path: Path) -> None:
        role, binding = printed(tmp_path, "{}", "spoke")
        rbac = "rbac.authorization.k8s.io"
        own = [rule for rule in role["rules"] if rule["apiGroups"] == [rbac]]
        assert [(rule["verbs"], rule.get("resourceNames")) for rule in own] == [
            (["create"], None),
            (["delete", "get", "patch", "update"], ["multikueue"]),
        ]
        others = [rule for rule in role["rules"] if rule not in own]
        assert others == on_worker(parse_settings("{}"))
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "namespace": "open-cluster-management-agent", "name": "klusterlet-work-sa"}
        ]
