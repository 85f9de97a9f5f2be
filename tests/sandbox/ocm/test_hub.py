"""The hub's controllers, held against what is known of OCM's: see the behaviour of its objects in their docs."""

from __future__ import annotations

import base64
from datetime import timedelta

import anyio
import pytest

from multikueue.core.model.conditions import condition, is_true, parse_timestamp
from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, labels_of
from multikueue.sandbox.apiserver.identity.rbac import Attributes
from multikueue.sandbox.apiserver.identity.users import user_named
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.kinds import (
    ACCOUNT,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    DECISION,
    MANAGED_CLUSTER,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_LABEL,
    PROFILE,
    SERVICE_ACCOUNT,
    SET_BINDING,
    UNSCHEDULED_ANNOTATION,
)
from multikueue.testing import until
from tests.sandbox.kueue.world import wall_clock
from tests.sandbox.ocm.hubs import NAMESPACE_NAME, Hubs, hubs

pytestmark = pytest.mark.looptime

GPUS: Json = {
    "mode": "Exact",
    "configurations": [
        {
            "scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "resource-usage-score", "scoreName": "gpu"}},
            "weight": 1,
        }
    ],
}
ROBOT = "system:serviceaccount:open-cluster-management-agent-addon:multikueue"


async def test_all_clusters_of_the_bound_set_are_decided_and_the_status_names_the_decisions() -> None:
    async with hubs("c1", "c2") as hub:
        await hub.place()
        placement = await hub.decided("c1", "c2")
        assert is_true(placement, "PlacementSatisfied")
        assert not is_true(placement, "PlacementMisconfigured")
        assert dig(placement, "status", "decisionGroups") == [
            {"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["p-decision-1"], "clusterCount": 2}
        ]
        decision = await hub.client.get(DECISION, ObjectKey(NAMESPACE_NAME, "p-decision-1"))
        assert labels_of(decision)[PLACEMENT_LABEL] == "p"
        assert dig(decision, "metadata", "ownerReferences")[0]["kind"] == "Placement"
        assert [entry["reason"] for entry in decision["status"]["decisions"]] == ["", ""]


async def test_without_a_binding_there_is_an_empty_decision() -> None:
    async with hubs("c1", bind=False) as hub:
        await hub.place()
        placement = await hub.decided()
        assert (condition(placement, "PlacementSatisfied") or {})["reason"] == "NoManagedClusterSetBindings"
        await hub.client.get(DECISION, ObjectKey(NAMESPACE_NAME, "p-decision-1"))


async def test_a_score_that_changes_moves_the_decision() -> None:
    async with hubs("c1", "c2") as hub:
        await hub.score("c1", -70)
        await hub.score("c2", -80)
        await hub.place(numberOfClusters=1, prioritizerPolicy=GPUS)
        await hub.decided("c1")
        await hub.score("c1", -100)
        await hub.decided("c2")


async def test_a_label_moves_a_cluster_in_and_out() -> None:
    wanted = {"labelSelector": {"matchLabels": {"accelerator": "nvidia-tesla-t4"}}}
    async with hubs("c1", "c2", labels={"c1": {"accelerator": "nvidia-tesla-t4"}}) as hub:
        await hub.place(predicates=[{"requiredClusterSelector": wanted}])
        await hub.decided("c1")
        await hub.change(MANAGED_CLUSTER, "c2", {"metadata": {"labels": {"accelerator": "nvidia-tesla-t4"}}})
        await hub.decided("c1", "c2")
        await hub.change(MANAGED_CLUSTER, "c1", {"metadata": {"labels": {"accelerator": None}}})
        await hub.decided("c2")


async def test_a_typo_empties_the_decision_before_the_status_says_so() -> None:
    """Who believes an empty decision at once drops all clusters for a typo."""
    async with hubs("c1", "c2", pause=1.0) as hub:
        await hub.place()
        await hub.decided("c1", "c2")
        await hub.change(PLACEMENT, "p", {"spec": {"tolerations": [{"value": "x"}]}})
        await hub.when(DECISION, lambda decision: not decision["status"]["decisions"])
        there = await hub.client.get(PLACEMENT, ObjectKey(NAMESPACE_NAME, "p"))
        assert (there["status"]["numberOfSelectedClusters"], is_true(there, "PlacementSatisfied")) == (2, True)
        await hub.when(PLACEMENT, lambda placement: is_true(placement, "PlacementMisconfigured"))


async def test_slices_are_written_one_by_one_and_surplus_ones_go() -> None:
    """A cluster that moves from one PlacementDecision to another is in none of them for a moment."""
    grouped = {"groupStrategy": {"clustersPerDecisionGroup": 1}}
    async with hubs("c1", "c2", "c3", pause=1.0) as hub:
        await hub.place(decisionStrategy=grouped)
        await hub.decided("c1", "c2", "c3")
        seen: list[list[str]] = []
        await hub.change(MANAGED_CLUSTER, "c1", {"spec": {"taints": [{"key": "x", "effect": "NoSelect"}]}})
        with anyio.move_on_after(10):
            while True:
                names = hub.listed()
                if not seen or seen[-1] != names:
                    seen.append(names)
                await anyio.sleep(0.25)
        assert seen == [["c1", "c2", "c3"], ["c2", "c2", "c3"], ["c2", "c3", "c3"], ["c2", "c3"]]


async def test_a_decision_that_somebody_deletes_comes_back() -> None:
    async with hubs("c1") as hub:
        await hub.place()
        await hub.decided("c1")
        await hub.client.delete(DECISION, ObjectKey(NAMESPACE_NAME, "p-decision-1"))
        await hub.decided("c1")


async def test_decisions_go_with_their_placement() -> None:
    async with hubs("c1") as hub:
        await hub.place()
        await hub.decided("c1")
        await hub.client.delete(PLACEMENT, ObjectKey(NAMESPACE_NAME, "p"))
        await hub.cluster.gone(DECISION, "p-decision-1", NAMESPACE_NAME, within=60)


async def test_a_placement_can_be_left_to_somebody_else() -> None:
    async with hubs("c1") as hub:
        made = built(PLACEMENT, "p", NAMESPACE_NAME, spec={})
        made["metadata"]["annotations"] = {UNSCHEDULED_ANNOTATION: "true"}
        await hub.client.create(PLACEMENT, made)
        await anyio.sleep(10)
        assert await hub.cluster.get(DECISION, "p-decision-1", NAMESPACE_NAME) is None


async def test_a_cluster_that_does_not_report_gets_a_taint_until_it_does() -> None:
    async with hubs("c1", "c2") as hub:
        await hub.place()
        await hub.decided("c1", "c2")
        hub.spokes["c1"].available = False
        hub.hub.changed("c1")
        await hub.decided("c2")
        hub.spokes["c1"].available = True
        hub.hub.changed("c1")
        await hub.decided("c1", "c2")


async def test_bound_namespaces_have_a_profile_of_each_cluster() -> None:
    async with hubs("c1", "c2") as hub:
        before = await hub.when(PROFILE, lambda profile: bool(dig(profile, "status", "accessProviders")))
        assert labels_of(before) == {
            "x-k8s.io/cluster-manager": "open-cluster-management",
            "open-cluster-management.io/cluster-name": "c1",
            "multicluster.x-k8s.io/clusterset": "default",
        }
        (provider,) = before["status"]["accessProviders"]
        assert provider["name"] == "open-cluster-management"
        assert provider["cluster"]["server"] == hub.servers["c1"].url
        assert provider["cluster"]["extensions"] == [
            {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "c1"}}
        ]
        healthy = await hub.when(PROFILE, lambda profile: is_true(profile, "ControlPlaneHealthy"))
        assert is_true(healthy, "Joined")
        await hub.client.delete(PROFILE, ObjectKey(NAMESPACE_NAME, "c1"))
        await hub.when(PROFILE, lambda profile: profile["metadata"]["uid"] != before["metadata"]["uid"])
        await hub.client.delete(SET_BINDING, ObjectKey(NAMESPACE_NAME, "global"))
        for name in ("c1", "c2"):
            await hub.cluster.gone(PROFILE, name, NAMESPACE_NAME, within=60)


async def test_a_profile_of_somebody_else_stays() -> None:
    async with hubs("c1") as hub:
        other = built(PROFILE, "theirs", NAMESPACE_NAME, spec={"clusterManager": {"name": "somebody"}})
        await hub.client.create(PROFILE, other)
        await hub.when(PROFILE, lambda profile: profile["metadata"]["name"] == "c1")
        await anyio.sleep(5)
        assert await hub.cluster.get(PROFILE, "theirs", NAMESPACE_NAME) is not None


def account(validity: str = "24h", *, synced: bool = True) -> Json:
    labels = {"authentication.open-cluster-management.io/sync-to-clusterprofile": "true"} if synced else None
    rotation = {"rotation": {"enabled": True, "validity": validity}}
    return built(ACCOUNT, "multikueue", "c1", labels=labels, spec=rotation)


async def token_of(hub: Hubs, namespace: str = "c1", name: str = "multikueue", *, other: str = "") -> str:
    """The token of a Secret, once there is one that is another than that."""

    def holds(secret: Json) -> bool:
        there = ObjectKey.of(secret) == ObjectKey(namespace, name)
        return there and base64.b64decode(dig(secret, "data", "token") or "").decode() != other

    secret = await hub.when(SECRET, holds)
    return base64.b64decode(secret["data"]["token"]).decode()


async def test_a_service_account_gets_a_token_that_its_cluster_knows() -> None:
    async with hubs("c1") as hub:
        await hub.client.create(ACCOUNT, account())
        token = await token_of(hub)
        access = hub.servers["c1"].access
        access.tokens = {}
        assert access.user_of(token) == ROBOT
        there = await hub.when(ACCOUNT, lambda account: is_true(account, "TokenReported"))
        assert there["status"]["tokenSecretRef"]["name"] == "multikueue"
        assert parse_timestamp(there["status"]["expirationTimestamp"]) == (wall_clock() + timedelta(days=1)).replace(
            microsecond=0
        )


async def test_a_token_is_replaced_before_it_ends_and_the_copy_with_it() -> None:
    async with hubs("c1") as hub:
        await hub.client.create(ACCOUNT, account("1h"))
        first = await token_of(hub)
        copied = await token_of(hub, NAMESPACE_NAME, "c1-multikueue")
        assert copied == first
        await anyio.sleep(3600 * 0.8)
        hub.servers["c1"].access.tokens = {}
        assert hub.servers["c1"].access.user_of(first) == ROBOT
        second = await token_of(hub, other=first)
        assert await token_of(hub, NAMESPACE_NAME, "c1-multikueue", other=first) == second
        await anyio.sleep(3600 * 0.2)
        assert hub.servers["c1"].access.user_of(first) is None
        assert hub.servers["c1"].access.user_of(second) == ROBOT


async def test_only_accounts_with_the_label_are_copied_and_a_copy_goes_with_its_account() -> None:
    async with hubs("c1") as hub:
        await hub.client.create(ACCOUNT, account(synced=False))
        await token_of(hub)
        await anyio.sleep(5)
        assert await hub.cluster.get(SECRET, "c1-multikueue", NAMESPACE_NAME) is None
        label = {"authentication.open-cluster-management.io/sync-to-clusterprofile": "true"}
        await hub.change(ACCOUNT, "multikueue", {"metadata": {"labels": label}}, namespace="c1")
        token = await token_of(hub, NAMESPACE_NAME, "c1-multikueue")
        await hub.client.delete(ACCOUNT, ObjectKey("c1", "multikueue"))
        await hub.cluster.gone(SECRET, "c1-multikueue", NAMESPACE_NAME, within=60)
        hub.servers["c1"].access.tokens = {}
        assert hub.servers["c1"].access.user_of(token) is None


async def test_a_copy_belongs_to_its_profile() -> None:
    async with hubs("c1") as hub:
        await hub.client.create(ACCOUNT, account())
        await token_of(hub, NAMESPACE_NAME, "c1-multikueue")
        copy = await hub.client.get(SECRET, ObjectKey(NAMESPACE_NAME, "c1-multikueue"))
        (owner,) = copy["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("ClusterProfile", "c1", True)
        assert labels_of(copy) == {"authentication.open-cluster-management.io/synced-from": "c1-multikueue"}


async def test_a_cluster_that_is_detached_loses_account_role_and_profile_at_once_and_stays_while_it_is_held() -> None:
    """As OCM does: within a second, while its own agents still tidy up there."""
    async with hubs("c1") as hub:
        await hub.client.create(ACCOUNT, account())
        await token_of(hub)
        await hub.client.create(PERMISSION, built(PERMISSION, "multikueue", "c1", spec={"clusterRole": {"rules": []}}))
        await hub.when(PERMISSION, lambda permission: is_true(permission, "Applied"))
        await hub.change(MANAGED_CLUSTER, "c1", {"metadata": {"finalizers": ["example.com/held"]}})
        await hub.client.delete(MANAGED_CLUSTER, ObjectKey("", "c1"))
        await anyio.sleep(1)
        for kind in (ACCOUNT, PERMISSION, PROFILE):
            assert not (await hub.client.list(kind)).items
        assert not (await hub.spokes["c1"].client.list(SERVICE_ACCOUNT)).items
        await hub.client.get(MANAGED_CLUSTER, ObjectKey("", "c1"))


async def test_a_permission_is_what_its_account_may_do_on_the_cluster() -> None:
    rules = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get"]}]
    subject = {"kind": "ServiceAccount", "name": "multikueue", "namespace": "open-cluster-management-agent-addon"}
    asked = Attributes("create", "batch", "jobs", namespace="default")
    async with hubs("c1") as hub:
        access = hub.servers["c1"].access
        access.enforce_roles()
        spec = {"clusterRole": {"rules": rules}, "clusterRoleBinding": {"subject": subject}}
        await hub.client.create(PERMISSION, built(PERMISSION, "multikueue", "c1", spec=spec))
        applied = await hub.when(PERMISSION, lambda permission: is_true(permission, "AppliedRBACManifestWork"))
        assert is_true(applied, "Applied")
        assert access.reason(user_named(ROBOT), asked) is not None
        rules[0]["verbs"] = ["get"]
        await hub.change(PERMISSION, "multikueue", {"spec": {"clusterRole": {"rules": rules}}}, namespace="c1")
        await until(lambda: access.reason(user_named(ROBOT), asked) is None)
        await hub.client.delete(PERMISSION, ObjectKey("c1", "multikueue"))
        await anyio.sleep(5)
        for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
            there = await hub.spokes["c1"].client.list(
                kind, label_selector="open-cluster-management.io/cluster-permission"
            )
            assert not there.items
