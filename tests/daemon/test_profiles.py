"""The settings of workers by ClusterProfile: Kueue's form, ours beside it, and what is refused in which words."""

from __future__ import annotations

import pytest

from multikueue.core.config.access_providers import AccessProvider, PluginCommand, ProfileSettings
from multikueue.errors import SettingsError
from multikueued.settings.file import Loaded, parse

V1 = "client.authentication.k8s.io/v1"
FIELD = f"""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
featureGates: {{MultiKueueClusterProfile: true}}
multiKueue:
  clusterProfile:
    LIST:
    - name: open-cluster-management
      execConfig:
        apiVersion: {V1}
        command: /plugins/cp-creds
        args: [--managed-serviceaccount=multikueue]
        env:
        - name: NAMESPACE
          value: kueue-system
        provideClusterInfo: true
"""
"""What the addon of OCM has its users write. It has no `interactiveMode`."""


KUEUES = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"


def loaded(text: str) -> Loaded:
    """Settings; with Kueue's spelling those of Kueue's Configuration."""
    kueues = KUEUES if "apiVersion: config" not in text and ("multiKueue" in text or "featureGates" in text) else ""
    return parse(kueues + text, source="f")


def library(text: str) -> ProfileSettings | None:
    section = loaded(text).settings.cluster_profile
    return section.profile_settings() if section is not None else None


def refused(section: str) -> list[str]:
    """The complaints about a section, without the file's name."""
    with pytest.raises(SettingsError) as caught:
        loaded(f"multiKueue: {{clusterProfile: {{{section}}}}}")
    lines = str(caught.value).splitlines()
    complaints = lines[1:] if len(lines) > 1 else [lines[0].removeprefix("f: ")]
    return [line.strip().removeprefix("multiKueue.clusterProfile.") for line in complaints]


@pytest.mark.parametrize("name", ["accessProviders", "credentialsProviders"])
def test_the_fields_own_sample_is_taken(name: str) -> None:
    """An absent `interactiveMode` means Never. Kueue refuses it."""
    command = PluginCommand(
        V1,
        "/plugins/cp-creds",
        ("--managed-serviceaccount=multikueue",),
        (("NAMESPACE", "kueue-system"),),
        provide_cluster_info=True,
    )
    text = FIELD.replace("LIST", name)

    assert library(text) == ProfileSettings((AccessProvider("open-cluster-management", command),))
    assert not [remark for remark in loaded(text).remarks if remark.important]


def test_ours_may_stand_outside_of_kueues_section() -> None:
    settings = library(
        """
clusterProfile:
  allowInsecureTls: true
  accessProviders:
  - {name: open-cluster-management, builtin: cp-creds}
  - {name: other, builtin: cp-creds, managedServiceAccount: other}
  - {name: secretreader, builtin: secretreader}
"""
    )

    assert settings == ProfileSettings(
        (
            AccessProvider("open-cluster-management", builtin="cp-creds", managed_service_account="multikueue"),
            AccessProvider("other", builtin="cp-creds", managed_service_account="other"),
            AccessProvider("secretreader", builtin="secretreader"),
        ),
        allow_insecure_tls=True,
    )


def test_policies_and_the_environment_are_settings_and_strict_by_default() -> None:
    policies = "profileSourcedCLIArgsPolicy: Append, profileSourcedEnvVarsPolicy: AppendIfNotExists, inheritEnv: true"
    policies += ", profileSourcedEnvVars: [REGION]"
    command = f"execConfig: {{apiVersion: {V1}, command: /x}}"
    settings = library(
        f"clusterProfile: {{accessProviders: [{{name: a, {command}, {policies}}}, {{name: b, {command}}}]}}"
    )

    assert settings is not None
    assert [
        (provider.args_policy, provider.env_policy, provider.env_names) for provider in settings.providers or ()
    ] == [
        ("Append", "AppendIfNotExists", ("REGION",)),
        ("Ignore", "Ignore", ()),
    ]
    assert [provider.plugin is not None and provider.plugin.inherit_env for provider in settings.providers or ()] == [
        True,
        False,
    ]


LIST_THEM = (
    "accessProviders[0].profileSourcedEnvVars: list the variables that a profile may set, "
    "with profileSourcedEnvVarsPolicy: AppendIfNotExists or Replace; or leave both out"
)
PLUGIN = f"execConfig: {{apiVersion: {V1}, command: /x}}"


@pytest.mark.parametrize(
    ("section", "complaints"),
    [
        (
            f"accessProviders: [{{name: a, {PLUGIN}}}], credentialsProviders: [{{name: b, {PLUGIN}}}]",
            ["credentialsProviders: multiKueue.clusterProfile.accessProviders says it already: keep one of the two"],
        ),
        (f"accessProviders: [{{{PLUGIN}}}]", ["accessProviders[0].name: must be specified"]),
        (
            "accessProviders: [{name: a, execConfig: {}}]",
            [
                "accessProviders[0].execConfig.command: must be specified",
                "accessProviders[0].execConfig.apiVersion: must be specified",
            ],
        ),
        (
            f"accessProviders: [{{name: a, execConfig: {{apiVersion: {V1}, command: /x, env: [{{value: v}}]}}}}]",
            ["accessProviders[0].execConfig.env[0].name: must be specified"],
        ),
        (
            f"accessProviders: [{{name: a, execConfig: {{apiVersion: {V1}, command: aws}}}}]",
            ['accessProviders[0].execConfig.command: "aws" is not an absolute path: PATH is not searched'],
        ),
        (
            "accessProviders: [{name: a, execConfig: {apiVersion: v1, command: /x}}]",
            [f'accessProviders[0].execConfig.apiVersion: "v1" is not one of {V1}, {V1}beta1'],
        ),
        (
            f"accessProviders: [{{name: a, execConfig: {{apiVersion: {V1}, command: /x, interactiveMode: No}}}}]",
            [
                "accessProviders[0].execConfig.interactiveMode: false is not one of Never, IfAvailable, Always",
            ],
        ),
        (
            f"accessProviders: [{{name: a, {PLUGIN}}}, {{name: a, builtin: cp-creds}}]",
            ['accessProviders[1].name: there is another provider "a" above: only the first would be used'],
        ),
        (
            "accessProviders: [{name: a}]",
            ["accessProviders[0].execConfig: must be specified, or builtin: secretreader or cp-creds"],
        ),
        (
            f"accessProviders: [{{name: a, builtin: cp-creds, {PLUGIN}}}]",
            ["accessProviders[0].builtin: execConfig says already where credentials come from: keep one of the two"],
        ),
        (
            "accessProviders: [{name: a, builtin: vault}]",
            ['accessProviders[0].builtin: "vault" is not one of secretreader, cp-creds'],
        ),
        (
            "accessProviders: [{name: a, builtin: secretreader, managedServiceAccount: b}]",
            ["accessProviders[0].managedServiceAccount: only builtin: cp-creds uses it: leave it out"],
        ),
        (
            f"accessProviders: [{{name: a, {PLUGIN}, profileSourcedEnvVarsPolicy: Append}}]",
            [
                "accessProviders[0].profileSourcedEnvVarsPolicy: "
                '"Append" is not one of Ignore, AppendIfNotExists, Replace'
            ],
        ),
        (f"accessProviders: [{{name: a, {PLUGIN}, profileSourcedEnvVarsPolicy: Replace}}]", [LIST_THEM]),
        (f"accessProviders: [{{name: a, {PLUGIN}, profileSourcedEnvVars: [REGION]}}]", [LIST_THEM]),
    ],
    ids=[
        *("both lists", "no name", "no command", "no name of a variable", "relative", "version", "mode", "twice"),
        *("neither", "both", "unknown", "account", "policy", "no variables", "no policy"),
    ],
)
def test_what_cannot_be_used_is_refused_at_start_with_its_place(section: str, complaints: list[str]) -> None:
    """Where Kueue refuses the same, in its words."""
    assert refused(section) == complaints


@pytest.mark.parametrize("text", ["", "multiKueue: {}", "multiKueue: {clusterProfile: null}"])
def test_without_the_section_profiles_are_not_used(text: str) -> None:
    assert library(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "featureGates: {MultiKueueClusterProfile: true}",
        "multiKueue: {clusterProfile: {}}",
        "multiKueue: {clusterProfile: {accessProviders: []}}",
    ],
)
def test_a_section_or_kueues_gate_alone_configures_no_provider(text: str) -> None:
    assert library(text) == ProfileSettings(None)


def test_kueues_gate_turns_the_section_off_and_that_is_told() -> None:
    file = loaded("featureGates: {MultiKueueClusterProfile: false}\n" + "multiKueue: {clusterProfile: {}}")

    assert file.settings.cluster_profile is None
    (remark,) = [remark for remark in file.remarks if remark.important]
    assert remark.setting == "multiKueue.clusterProfile"
    assert remark.why == "the gate MultiKueueClusterProfile is off: remove featureGates to use the section"


def test_the_section_may_stand_only_once() -> None:
    with pytest.raises(
        SettingsError, match=r"multiKueue\.clusterProfile: clusterProfile says it already: keep one of the two"
    ):
        loaded("clusterProfile: {}\nmultiKueue: {clusterProfile: {}}")
