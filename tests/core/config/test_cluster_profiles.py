"""How the cluster of a ClusterProfile is reached: by which provider, where, and Kueue's words for what is wrong."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.config.access_providers import AccessProvider, PluginCommand, ProfileSettings
from multikueue.core.config.cluster_profiles import (
    ARGS_EXTENSION,
    ENVS_EXTENSION,
    EXEC_EXTENSION,
    ProfileAccess,
    chosen_access,
    enabled,
    profile_reference,
)
from multikueue.core.config.profile_secrets import (
    PROFILE_LABEL,
    SYNCED_LABEL,
    is_for,
    may_be_for_a_profile,
    secret_name,
    token_in,
)
from multikueue.core.model.names import Json
from multikueue.errors import Cause, ClusterProfileError

V1 = "client.authentication.k8s.io/v1"
PLUGIN = AccessProvider("aws", PluginCommand(V1, "/bin/login", ("--own",), (("A", "own"), ("B", "own"))))
OCM = AccessProvider("open-cluster-management", builtin="cp-creds", managed_service_account="multikueue")
READER = AccessProvider("reader", builtin="secretreader")
SERVER = {"server": "https://c1:6443"}


def extension(name: str, content: Any) -> Json:
    return {"name": name, "extension": content}


def provider(name: str, *extensions: Json, **cluster: Any) -> Json:
    return {"name": name, "cluster": {**SERVER, **cluster, "extensions": list(extensions)}}


def profile(*providers: Json, old: tuple[Json, ...] = (), uid: str = "p-uid") -> Json:
    return {
        "metadata": {"name": "c1", "namespace": "kueue-system", "uid": uid},
        "spec": {"clusterManager": {"name": "m"}},
        "status": {"accessProviders": list(providers), "credentialProviders": list(old)},
    }


def chosen(profile: Json | None, *allowed: AccessProvider) -> ProfileAccess:
    return chosen_access(profile, "c1", ProfileSettings(allowed))


def refusal(profile: Json | None, settings: ProfileSettings | None) -> tuple[str, str]:
    with pytest.raises(ClusterProfileError) as caught:
        chosen_access(profile, "c1", enabled(settings))
    return caught.value.reason, str(caught.value)


@pytest.mark.parametrize(
    ("read", "settings", "reason", "message"),
    [
        (
            profile(provider("aws")),
            None,
            "MultiKueueClusterProfileFeatureDisabled",
            "MultiKueueClusterProfile feature gate is disabled",
        ),
        (
            None,
            ProfileSettings((PLUGIN,)),
            "BadClusterProfile",
            'ClusterProfile.multicluster.x-k8s.io "c1" not found',
        ),
        (profile(provider("aws")), ProfileSettings(None), "BadClusterProfile", "no access provider configured"),
        (
            profile(provider("aws")),
            ProfileSettings(()),
            "BadClusterProfile",
            'no matching cluster accessor found for cluster profile "c1"',
        ),
        (
            profile(provider("gcp")),
            ProfileSettings((PLUGIN,)),
            "BadClusterProfile",
            'no matching cluster accessor found for cluster profile "c1"',
        ),
        (
            profile(provider("x")),
            ProfileSettings((AccessProvider("x"),)),
            "BadClusterProfile",
            'no exec config found for provider "x"',
        ),
    ],
    ids=["off", "not found", "none configured", "empty list", "another provider", "without exec"],
)
def test_what_is_wrong_is_told_in_kueues_words(
    read: Json | None, settings: ProfileSettings | None, reason: str, message: str
) -> None:
    assert refusal(read, settings) == (reason, message)


@pytest.mark.parametrize(
    ("read", "settings", "cause"),
    [
        (profile(), None, Cause.PROFILES_OFF),
        (None, ProfileSettings(()), Cause.PROFILE_MISSING),
        (profile(provider("aws")), ProfileSettings(None), Cause.NO_PROVIDER),
        (profile(provider("aws")), ProfileSettings(()), Cause.OTHER_PROVIDER),
    ],
)
def test_programs_are_told_a_cause(read: Json | None, settings: ProfileSettings | None, cause: Cause) -> None:
    with pytest.raises(ClusterProfileError) as caught:
        chosen_access(read, "c1", enabled(settings))
    assert caught.value.cause is cause


def test_the_order_of_the_settings_decides_and_other_providers_are_ignored() -> None:
    offering = profile(provider("other"), provider("open-cluster-management"), provider("aws"))

    assert chosen(offering, PLUGIN, OCM).provider == PLUGIN
    assert chosen(offering, OCM, PLUGIN).provider == OCM


def test_a_provider_in_the_new_list_overrides_the_one_in_the_old_and_the_last_of_a_name_wins() -> None:
    old = provider("aws", server="https://old"), provider("reader", server="https://reader")
    offering = profile(provider("aws", server="https://first"), provider("aws", server="https://last"), old=old)

    assert chosen(offering, PLUGIN).cluster["server"] == "https://last"
    assert chosen(offering, READER).cluster["server"] == "https://reader"


def test_the_plugins_extension_is_its_config_and_no_other_reaches_it() -> None:
    own, other = extension(EXEC_EXTENSION, {"clusterName": "c1"}), extension("other", {"clusterName": "x"})

    assert chosen(profile(provider("aws", other, own)), PLUGIN).config == {"clusterName": "c1"}
    assert chosen(profile(provider("aws", other)), PLUGIN).config is None
    assert "extensions" not in chosen(profile(provider("aws", own)), PLUGIN).cluster


ADDITIONS = (extension(ARGS_EXTENSION, {"args": ["--more"]}), extension(ENVS_EXTENSION, {"B": "more", "C": "more"}))


def test_what_a_profile_adds_is_ignored_by_default_also_when_it_cannot_be_read() -> None:
    broken = extension(ARGS_EXTENSION, {"args": 5}), extension(ENVS_EXTENSION, {"A": 5})

    for additions in (ADDITIONS, broken):
        taken = chosen(profile(provider("aws", *additions)), PLUGIN)
        assert (taken.more_args, taken.more_env) == ((), ())


@pytest.mark.parametrize("content", [{"args": ["--more"]}, ["--more"]], ids=["as the CRD takes it", "as KEP-5339"])
def test_arguments_of_a_profile_are_taken_where_the_policy_says_so(content: Any) -> None:
    """The definition of ClusterProfile takes objects only, so Kueue's form, a list, cannot be stored."""
    appends = attrs.evolve(PLUGIN, args_policy="Append")
    offering = profile(provider("aws", extension(ARGS_EXTENSION, content)))

    assert [chosen(offering, appends).more_args for _ in range(2)] == [("--more",)] * 2, "nothing accumulates"
    assert appends.plugin is not None
    assert appends.plugin.args == ("--own",)


@pytest.mark.parametrize("policy", ["AppendIfNotExists", "Replace"])
def test_variables_of_a_profile_are_taken_where_the_policy_says_so(policy: Any) -> None:
    takes = attrs.evolve(PLUGIN, env_policy=policy, env_names=("B", "C", "D"))
    taken = chosen(profile(provider("aws", *ADDITIONS)), takes)

    assert taken.more_env == (("B", "more"), ("C", "more"))
    assert taken.more_args == ()


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "PYTHONPATH", "CLOUDSDK_PYTHON", "VAULT_ADDR", "GIT_SSH", "BROWSER", "https_proxy", "PATH"),
        *("KUBERNETES_EXEC_INFO", "KUBERNETES_SERVICE_HOST", "", "A B", "A=B", "BASH_FUNC_x%%", "region", "REGION "),
    ],
)
def test_no_variable_is_taken_that_the_operator_does_not_list(name: str) -> None:
    """Also where the profile may replace others: they may decide what the command loads, and whom it asks."""
    asked = profile(provider("aws", extension(ENVS_EXTENSION, {name: "theirs", "REGION": "north"})))
    takes = attrs.evolve(PLUGIN, env_policy="Replace", env_names=("REGION",))

    assert chosen(asked, takes).more_env == (("REGION", "north"),)
    assert chosen(asked, attrs.evolve(takes, env_names=())).more_env == ()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (ARGS_EXTENSION, {"arg": []}, "failed to unmarshal additional CLI args extension: "),
        (ARGS_EXTENSION, {"args": ["a", 5]}, "failed to unmarshal additional CLI args extension: "),
        (ARGS_EXTENSION, {"args": ["a\0b"]}, "failed to unmarshal additional CLI args extension: "),
        (ENVS_EXTENSION, {"A": 5}, "failed to unmarshal additional env vars extension: "),
        (ENVS_EXTENSION, [], "failed to unmarshal additional env vars extension: "),
        (ENVS_EXTENSION, None, "failed to unmarshal additional env vars extension: "),
    ],
)
def test_additions_that_cannot_be_read_are_told_without_quoting_them(name: str, content: Any, message: str) -> None:
    takes = attrs.evolve(PLUGIN, args_policy="Append", env_policy="Replace")
    reason, said = refusal(profile(provider("aws", extension(name, content))), ProfileSettings((takes,)))

    assert reason == "BadClusterProfile"
    assert said.startswith(message)


@pytest.mark.parametrize(
    ("builtin", "name"), [(OCM, "spoke-1-multikueue"), (READER, "spoke-1")], ids=["cp-creds", "secretreader"]
)
def test_a_built_in_provider_reads_the_secret_that_the_reference_plugin_reads(
    builtin: AccessProvider, name: str
) -> None:
    offering = profile(provider(builtin.name, extension(EXEC_EXTENSION, {"clusterName": "spoke-1"})))
    assert secret_name(chosen(offering, builtin)) == name


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "getting credentials: missing ExecCredential.Spec.Cluster.Config"),
        ({}, "getting credentials: missing clusterName in ExecCredential.Spec.Cluster.Config"),
        ({"clusterName": 5}, "getting credentials: missing clusterName in ExecCredential.Spec.Cluster.Config"),
        (
            {"clusterName": "../x"},
            "getting credentials: clusterName in ExecCredential.Spec.Cluster.Config is not an object's name",
        ),
        (
            {"clusterName": "x" * 254},
            "getting credentials: clusterName in ExecCredential.Spec.Cluster.Config is not an object's name",
        ),
    ],
)
def test_a_profile_that_does_not_name_its_cluster_is_told_in_the_plugins_words(config: Any, message: str) -> None:
    extensions = [] if config is None else [extension(EXEC_EXTENSION, config)]
    taken = chosen(profile(provider(OCM.name, *extensions)), OCM)

    with pytest.raises(ClusterProfileError) as caught:
        secret_name(taken)
    assert (caught.value.reason, str(caught.value)) == ("BadClusterProfile", message)


def owned_by(uid: str, kind: str = "ClusterProfile", *, controller: bool = True) -> Json:
    reference = {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": kind, "name": "c1", "uid": uid}
    return {"ownerReferences": [{**reference, "controller": controller}]}


def secret(token: str = "secret-token", **metadata: Any) -> Json:
    encoded = base64.b64encode(token.encode()).decode()
    return {"metadata": {"name": "c1-multikueue", **metadata}, "data": {"token": encoded}}


@pytest.mark.parametrize(
    ("metadata", "ours"),
    [
        (owned_by("p-uid"), True),
        (owned_by("another-uid"), False),
        (owned_by("p-uid", controller=False), False),
        (owned_by("p-uid", kind="Other"), False),
        ({}, False),
        ({"labels": {PROFILE_LABEL: "c1"}}, True),
        ({"labels": {PROFILE_LABEL: "c2"}}, False),
        ({"labels": {SYNCED_LABEL: "c1-multikueue"}}, True),
        ({"labels": {SYNCED_LABEL: "c1-other"}}, False),
        ({"labels": {PROFILE_LABEL: "c1"}, **owned_by("another-uid")}, False),
    ],
    ids=[
        *("owned", "of another profile", "not the controller", "of another kind", "of nobody"),
        *("labelled", "labelled for another", "synced for it", "synced from another account", "owner before label"),
    ],
)
def test_a_secret_is_read_only_for_the_profile_that_it_is_for(metadata: Json, ours: bool) -> None:
    """Whoever writes a profile chooses the server that would get the token."""
    assert is_for(secret(**metadata), profile(), OCM) is ours
    if ours:
        assert may_be_for_a_profile(secret(**metadata))
        assert token_in(secret(**metadata), "n/s", profile(), OCM) == "secret-token"


def test_secretreader_does_not_take_what_ocm_has_synced() -> None:
    """Its Secrets have no managed service account, so the label proves nothing."""
    assert not is_for(secret(labels={SYNCED_LABEL: "c1-"}), profile(), READER)


def test_a_profile_that_another_one_replaced_does_not_get_the_formers_secret() -> None:
    assert not is_for(secret(**owned_by("p-uid")), profile(uid="new-uid"), OCM)


ABSENT = (
    'getting credentials: failed to get secret n/s: none is owned by ClusterProfile "c1" '
    "or labelled multikueue.dev/cluster-profile=c1"
)


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        (None, ABSENT),
        (secret(), ABSENT),
        (secret(**owned_by("p-uid")) | {"data": {}}, 'getting credentials: secret n/s missing "token" key'),
        (
            secret(**owned_by("p-uid")) | {"data": {"token": "!"}},
            'getting credentials: secret n/s: its key "token" holds no token',
        ),
        (secret("a b", **owned_by("p-uid")), 'getting credentials: secret n/s: its key "token" holds no token'),
        (secret(" \n", **owned_by("p-uid")), 'getting credentials: secret n/s: its key "token" holds no token'),
    ],
    ids=["absent", "foreign", "no key", "not base64", "not one word", "empty"],
)
def test_a_secret_without_a_token_for_the_profile_is_told_and_never_quoted(secret: Json | None, message: str) -> None:
    """A foreign one is told as one that is absent: messages are no way to find out which Secrets there are."""
    with pytest.raises(ClusterProfileError) as caught:
        token_in(secret, "n/s", profile(), OCM)
    assert (caught.value.reason, str(caught.value)) == ("BadClusterProfile", message)


def test_which_profile_a_multikueuecluster_names() -> None:
    assert profile_reference({"spec": {"clusterSource": {"clusterProfileRef": {"name": "c1"}}}}) == "c1"
    assert profile_reference({"spec": {"clusterSource": {"kubeConfig": {"location": "s"}}}}) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMED = st.fixed_dictionaries(
    {"name": st.sampled_from(["aws", OCM.name, ARGS_EXTENSION, ENVS_EXTENSION, EXEC_EXTENSION, 5])},
    optional={"cluster": ANYTHING, "extension": ANYTHING},
)
CLUSTER = st.fixed_dictionaries({}, optional={"server": ANYTHING, "extensions": st.lists(NAMED, max_size=3) | ANYTHING})
PROVIDER = NAMED | st.fixed_dictionaries({"name": st.just("aws"), "cluster": CLUSTER}) | ANYTHING
STATUS = ANYTHING | st.fixed_dictionaries({"accessProviders": st.lists(PROVIDER, max_size=3) | ANYTHING})


@given(STATUS)
def test_whatever_a_status_holds_there_is_an_access_or_a_reason(status: Any) -> None:
    takes = attrs.evolve(PLUGIN, args_policy="Append", env_policy="Replace", env_names=("A", "name"))
    with contextlib.suppress(ClusterProfileError):
        secret_name(chosen({"metadata": {"name": "c1"}, "status": status}, takes, OCM))
