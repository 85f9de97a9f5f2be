"""Workers by ClusterProfile: what wakes them, what is told of them, and what a new token or a heartbeat does."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import attrs
import pytest
import yaml
from structlog.testing import capture_logs

from multikueue.core.config.access_providers import AccessProvider, PluginCommand, ProfileSettings
from multikueue.core.config.cluster_profiles import EXEC_EXTENSION
from multikueue.core.config.profile_secrets import PROFILE_LABEL
from multikueue.core.model.kinds import (
    CLUSTER_PROFILE,
    CUSTOM_RESOURCE_DEFINITION,
    JOB,
    MULTIKUEUE_CLUSTER,
    NAMESPACE,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.errors import ClusterProfileError
from multikueue.kube import ClusterConfig
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.protocols import ApiClient, UnreadableObject
from multikueue.runtime.manager import Manager
from multikueue.runtime.workers.cluster_profiles import REFUSED, ClusterProfiles
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, kubeconfig_secret, namespace
from tests.data.files import OCM_CRDS
from tests.runtime.fleet import Fleet, is_active, kubeconfig, until
from tests.runtime.test_clusters import state_of

pytestmark = pytest.mark.looptime

DEFINITION: Json = yaml.safe_load((OCM_CRDS / "clusterprofile.yaml").read_text())
OCM = AccessProvider("open-cluster-management", builtin="cp-creds", managed_service_account="multikueue")
READER = AccessProvider("reader", builtin="secretreader")
PLUGIN = AccessProvider("aws", PluginCommand("client.authentication.k8s.io/v1", "/bin/login"))
SETTINGS = ProfileSettings((OCM, READER, PLUGIN))
NOT_FOUND = 'load client config failed: ClusterProfile.multicluster.x-k8s.io "{}" not found'
CONNECTED = ("True", "Active", "Connected")


def secret(name: str, token: str, **metadata: Any) -> Json:
    meta = {"name": name, "namespace": KUEUE_NAMESPACE, **metadata}
    encoded = base64.b64encode(token.encode()).decode()
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"token": encoded}}


@attrs.define(eq=False)
class Inventory:
    """A manager whose workers are in an inventory, as Open Cluster Management keeps one."""

    fleet: Fleet
    opened: list[ClusterConfig] = attrs.field(factory=list)
    """The configuration of each connection that was made."""

    @classmethod
    async def of(cls, *workers: str, installed: bool = True) -> Inventory:
        """With these workers, and nothing in the inventory yet."""
        fleet = await Fleet.connected(*workers)
        for name in workers:
            source = {"clusterSource": {"clusterProfileRef": {"name": name}, "kubeConfig": None}}
            await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), {"spec": source})
            await fleet.admin.delete(SECRET, ObjectKey(KUEUE_NAMESPACE, f"{name}-secret"))
        if installed:
            fleet.manager.registry.create_object(DEFINITION)
        return cls(fleet)

    @classmethod
    async def holding(cls, *workers: str) -> Inventory:
        """With profiles of them."""
        made = await cls.of(*workers)
        for name in workers:
            await made.add(name)
        return made

    @property
    def admin(self) -> DirectClient:
        return self.fleet.admin

    async def write_profile(
        self, name: str, *, provider: str = OCM.name, in_namespace: str = KUEUE_NAMESPACE, **cluster: Any
    ) -> Json:
        """Create a profile with a status, as the cluster manager does."""
        profile = {
            "apiVersion": CLUSTER_PROFILE.gvk.api_version,
            "kind": CLUSTER_PROFILE.gvk.kind,
            "metadata": {"name": name, "namespace": in_namespace},
            "spec": {"clusterManager": {"name": OCM.name}},
        }
        await self.admin.create(CLUSTER_PROFILE, profile)
        return await self.write_status(name, provider=provider, in_namespace=in_namespace, **cluster)

    async def write_status(
        self, name: str, *, provider: str = OCM.name, in_namespace: str = KUEUE_NAMESPACE, **cluster: Any
    ) -> Json:
        """Write how the cluster is reached."""
        extension = {"name": EXEC_EXTENSION, "extension": {"clusterName": name}}
        section = {"server": f"https://{name}:6443", "extensions": [extension], **cluster}
        patch = {"status": {"accessProviders": [{"name": provider, "cluster": section}]}}
        return await self.admin.merge_patch(CLUSTER_PROFILE, self.key(name, in_namespace), patch, subresource="status")

    async def write_token(self, profile: Json, token: str = "") -> None:
        """Create the Secret that OCM's credential syncer makes for a profile."""
        name = profile["metadata"]["name"]
        kind = {field: profile[field] for field in ("apiVersion", "kind")}
        owner = {**kind, "name": name, "uid": profile["metadata"]["uid"], "controller": True}
        made = secret(f"{name}-multikueue", token or f"{name}-token", ownerReferences=[owner])
        await self.admin.create(SECRET, made)

    async def rotate(self, name: str, token: str) -> None:
        """Replace the token in that Secret by another one that the worker takes."""
        tokens = self.fleet.workers[name].tokens
        assert tokens is not None
        tokens[token] = f"multikueue:{token}"
        key = ObjectKey(KUEUE_NAMESPACE, f"{name}-multikueue")
        await self.admin.merge_patch(SECRET, key, {"data": secret("", token)["data"]})

    async def refer(self, worker: str, profile: str) -> None:
        """Have a MultiKueueCluster name another profile."""
        source = {"clusterSource": {"clusterProfileRef": {"name": profile}}}
        await self.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", worker), {"spec": source})

    async def by_kubeconfig(self, name: str) -> None:
        """Have a MultiKueueCluster name a kubeconfig again."""
        await self.admin.create(SECRET, kubeconfig_secret(name, kubeconfig(name)))
        reference = {"location": f"{name}-secret", "locationType": "Secret"}
        source = {"clusterSource": {"clusterProfileRef": None, "kubeConfig": reference}}
        await self.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), {"spec": source})

    async def add(self, name: str) -> Json:
        """A profile with its token."""
        profile = await self.write_profile(name)
        await self.write_token(profile)
        return profile

    @staticmethod
    def key(name: str, in_namespace: str = KUEUE_NAMESPACE) -> ObjectKey:
        return ObjectKey(in_namespace, name)

    def build(self, settings: ProfileSettings | None = SETTINGS, **more: Any) -> Manager:
        @asynccontextmanager
        async def noting(name: ClusterName, config: ClusterConfig) -> AsyncIterator[ApiClient]:
            self.opened.append(config)
            async with self.fleet.client(name, config) as client:
                yield client

        return self.fleet.build(connect=noting, profiles=settings, **more)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Manager]:
        async with self.fleet.running(self.build()) as manager:
            yield manager

    def says(self, *expected: str, worker: str = "worker1") -> Callable[[], Any]:
        """A condition for `until`: status, reason and message of a MultiKueueCluster."""

        async def holds() -> bool:
            active = await self.fleet.active(worker)
            return bool(active) and (active["status"], active["reason"], active["message"]) == expected

        return holds


async def test_a_worker_of_the_inventory_is_connected_to() -> None:
    inventory = await Inventory.holding("worker1")
    async with inventory.running():
        assert await state_of(inventory.fleet) == CONNECTED
    (config,) = inventory.opened
    assert (config.server, config.token) == ("https://worker1:6443", "worker1-token")


async def test_without_settings_it_is_said_to_be_off() -> None:
    """The words of a Kueue whose gate is off."""
    inventory = await Inventory.holding("worker1")
    async with inventory.fleet.running(inventory.build(None)):
        assert await state_of(inventory.fleet) == (
            "False",
            "MultiKueueClusterProfileFeatureDisabled",
            "load client config failed: MultiKueueClusterProfile feature gate is disabled",
        )
    requests = inventory.fleet.manager.access.requests
    asked = [user for user, _, what in requests if what == str(CLUSTER_PROFILE)]
    assert "multikueue" not in asked, "the kind may be absent"


@pytest.mark.parametrize(
    ("status", "settings", "reason", "message"),
    [
        (
            {},
            ProfileSettings(None),
            "BadClusterProfile",
            "no access provider configured",
        ),
        (
            {"provider": "gcp"},
            SETTINGS,
            "BadClusterProfile",
            'no matching cluster accessor found for cluster profile "worker1"',
        ),
        (
            {},
            ProfileSettings((AccessProvider(OCM.name),)),
            "BadClusterProfile",
            f'no exec config found for provider "{OCM.name}"',
        ),
        ({"server": "https://a_b:6443"}, SETTINGS, "BadRestConfig", "untrusted server endpoint"),
        ({"server": "https://a:b@worker1:6443"}, SETTINGS, "BadRestConfig", "basic auth is not allowed"),
        ({"server": "http://worker1:6443"}, SETTINGS, "BadRestConfig", "server URL must start with https://"),
        (
            {"insecure-skip-tls-verify": True},
            SETTINGS,
            "BadRestConfig",
            "insecure TLS verification is not allowed",
        ),
        (
            {"extensions": []},
            SETTINGS,
            "BadClusterProfile",
            "getting credentials: missing ExecCredential.Spec.Cluster.Config",
        ),
    ],
    ids=["none configured", "no match", "no exec", "host", "basic auth", "http", "insecure", "no cluster name"],
)
async def test_what_is_wrong_with_a_profile_is_told_in_kueues_words(
    status: Json, settings: ProfileSettings, reason: str, message: str
) -> None:
    inventory = await Inventory.of("worker1")
    await inventory.write_token(await inventory.write_profile("worker1", **status))
    async with inventory.fleet.running(inventory.build(settings)):
        assert await state_of(inventory.fleet) == ("False", reason, f"load client config failed: {message}")
        await anyio.sleep(600)
        assert len(await inventory.fleet.events()) == 1
    assert inventory.opened == []


async def test_a_worker_that_does_not_answer_is_told_with_its_attempts() -> None:
    inventory = await Inventory.holding("worker1")
    inventory.fleet.workers["worker1"].faults.add(Refuse(500))
    async with inventory.running():
        status, reason, message = await state_of(inventory.fleet)
    assert (status, reason) == ("False", "ClientConnectionFailed")
    assert "; connection attempts: 1, next connection attempt: 2026-01-01T00:00:05Z" in message


async def test_a_profile_that_is_created_later_deleted_and_created_again_is_noticed() -> None:
    inventory = await Inventory.of("worker1")
    absent = ("False", "BadClusterProfile", NOT_FOUND.format("worker1"))
    async with inventory.running():
        assert await state_of(inventory.fleet) == absent
        await inventory.add("worker1")
        assert await until(inventory.says(*CONNECTED)) < 1
        await inventory.admin.delete(CLUSTER_PROFILE, inventory.key("worker1"))
        assert await until(inventory.says(*absent)) < 1
        await inventory.admin.delete(SECRET, ObjectKey(KUEUE_NAMESPACE, "worker1-multikueue"))
        await inventory.add("worker1")
        assert await until(inventory.says(*CONNECTED)) < 1


async def test_a_profile_that_is_replaced_does_not_get_the_token_of_the_former_one() -> None:
    """Whoever may create one of the same name chooses the server. The Secret is for the former, by its UID."""
    inventory = await Inventory.holding("worker1")
    async with inventory.running():
        await until(inventory.says(*CONNECTED))
        await inventory.admin.delete(CLUSTER_PROFILE, inventory.key("worker1"))
        await inventory.write_profile("worker1", server="https://elsewhere:6443")
        await until(is_active(inventory.fleet, status="False"))
        assert (await state_of(inventory.fleet))[2].startswith(
            "load client config failed: getting credentials: failed to get secret kueue-system/worker1-multikueue: "
        )
    assert [config.server for config in inventory.opened] == ["https://worker1:6443"]


async def test_a_change_of_the_status_is_taken() -> None:
    """A profile is created without a status: its manager writes that afterwards."""
    inventory = await Inventory.of("worker1")
    profile = await inventory.write_profile("worker1", provider="gcp")
    await inventory.write_token(profile)
    async with inventory.running():
        assert (await state_of(inventory.fleet))[1] == "BadClusterProfile"
        await inventory.write_status("worker1")
        assert await until(inventory.says(*CONNECTED)) < 1


async def test_the_old_field_of_a_profile_is_read_and_its_use_is_logged_once() -> None:
    inventory = await Inventory.of("worker1")
    profile = await inventory.add("worker1")
    old = {"accessProviders": None, "credentialProviders": profile["status"]["accessProviders"]}
    key = inventory.key("worker1")
    await inventory.admin.merge_patch(CLUSTER_PROFILE, key, {"status": old}, subresource="status")
    with capture_logs() as logged:
        async with inventory.running():
            assert await state_of(inventory.fleet) == CONNECTED
            condition = {"type": "Joined", "status": "True", "reason": "R", "message": ""}
            patch = {"status": {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
            await inventory.admin.merge_patch(CLUSTER_PROFILE, key, patch, subresource="status")
            await anyio.sleep(1)
    told_of = [line["profile"] for line in logged if "credentialProviders is deprecated" in line["event"]]
    assert told_of == ["worker1"]


async def test_several_multikueueclusters_may_share_a_profile() -> None:
    inventory = await Inventory.of("worker1", "worker2")
    await inventory.refer("worker2", "worker1")
    async with inventory.running():
        assert (await state_of(inventory.fleet, "worker2"))[2] == NOT_FOUND.format("worker1")
        await inventory.add("worker1")
        for worker in ("worker1", "worker2"):
            assert await until(inventory.says(*CONNECTED, worker=worker)) < 1
    assert {config.server for config in inventory.opened} == {"https://worker1:6443"}


async def test_a_multikueuecluster_may_be_switched_to_another_profile() -> None:
    inventory = await Inventory.holding("worker1")
    async with inventory.running():
        await until(inventory.says(*CONNECTED))
        await inventory.refer("worker1", "other")
        assert await until(inventory.says("False", "BadClusterProfile", NOT_FOUND.format("other"))) < 1
        await inventory.refer("worker1", "worker1")
        assert await until(inventory.says(*CONNECTED)) < 1


async def test_a_kubeconfig_may_be_replaced_by_a_profile_of_the_same_server() -> None:
    """Upstream's way from one to the other. What is known of the worker stays."""
    inventory = await Inventory.holding("worker1")
    await inventory.by_kubeconfig("worker1")
    async with inventory.running():
        await until(inventory.says(*CONNECTED))
        source = {"clusterSource": {"clusterProfileRef": {"name": "worker1"}, "kubeConfig": None}}
        await inventory.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), {"spec": source})
        await anyio.sleep(5)
        assert await state_of(inventory.fleet) == CONNECTED
    assert len(inventory.opened) == 1, "the same address and token: the same connection"


async def test_a_profile_in_another_namespace_is_not_seen() -> None:
    inventory = await Inventory.of("worker1")
    await inventory.admin.create(NAMESPACE, namespace("other"))
    await inventory.write_profile("worker1", in_namespace="other")
    async with inventory.running():
        assert await state_of(inventory.fleet) == ("False", "BadClusterProfile", NOT_FOUND.format("worker1"))


async def test_the_definition_may_be_installed_later() -> None:
    """No restart is needed, and workers with kubeconfigs do not wait for it."""
    inventory = await Inventory.of("worker1", "worker2", installed=False)
    await inventory.by_kubeconfig("worker2")
    async with inventory.running():
        assert await until(inventory.says(*CONNECTED, worker="worker2")) < 1
        status, reason, message = await state_of(inventory.fleet)
        assert (status, reason) == ("False", "BadClusterProfile")
        assert message.startswith(
            "load client config failed: clusterprofiles.multicluster.x-k8s.io cannot be read: the server could not find"
        )
        await anyio.sleep(3600)
        inventory.fleet.manager.registry.create_object(DEFINITION)
        await inventory.add("worker1")
        assert await until(inventory.says(*CONNECTED)) < REFUSED.cap * (1 + REFUSED.jitter) + 1


async def test_a_moment_in_which_profiles_cannot_be_listed_is_no_loss() -> None:
    """The manager's server has just started, for one: the workers are not said to be lost for it."""
    inventory = await Inventory.holding("worker1")
    inventory.fleet.manager.faults.add(Refuse(500), on=Match(resource="clusterprofiles", verbs=("list",)), times=2)
    async with inventory.running():
        assert await state_of(inventory.fleet) == CONNECTED
        await anyio.sleep(1)
        assert await inventory.fleet.events() == [("Normal", "ClusterConnected", "Connected")]


async def test_profiles_that_may_not_be_read_are_told_with_what_the_server_says() -> None:
    inventory = await Inventory.holding("worker1")
    inventory.fleet.manager.faults.add(Refuse(403), on=Match(resource="clusterprofiles", user="multikueue"))
    async with inventory.running():
        status, reason, message = await state_of(inventory.fleet)
        assert (status, reason) == ("False", "BadClusterProfile")
        assert message.startswith("load client config failed: clusterprofiles.multicluster.x-k8s.io cannot be read: ")


async def test_a_profile_that_cannot_be_decoded_is_told_and_noticed_when_it_can_be() -> None:
    """A cluster's manager may write extensions that are nested deeper than can be read."""
    inventory = await Inventory.of("worker1")
    manager, key = inventory.build(), inventory.key("worker1")
    cluster = {"metadata": {"name": "worker1"}, "spec": {"clusterSource": {"clusterProfileRef": {"name": "worker1"}}}}
    manager.cluster.clusters.put(ObjectKey("", "worker1"), cluster)
    enqueued: list[ObjectKey] = []
    profiles = ClusterProfiles(
        manager.cluster, SETTINGS, KUEUE_NAMESPACE, enqueued.append, inventory.admin, lambda: 0.0
    )
    profiles.informer.status = InformerStatus(synced=True)
    outline: Json = {"metadata": {"name": "worker1", "namespace": KUEUE_NAMESPACE, "uid": "u", "resourceVersion": "1"}}
    profiles.informer.unreadable.note(UnreadableObject(outline, "it is nested too deeply"))
    with pytest.raises(ClusterProfileError) as caught:
        profiles.config("worker1")
    assert str(caught.value) == 'ClusterProfile "worker1" cannot be read: it is nested too deeply'

    profiles.changed(key, outline, {**outline, "spec": {}})
    profiles.changed(key, {**outline, "spec": {}}, {**outline, "spec": {}, "status": {"conditions": []}})
    assert enqueued == [ObjectKey("", "worker1")]


async def test_the_definition_may_be_removed_and_come_back() -> None:
    inventory = await Inventory.holding("worker1")
    async with inventory.running():
        await until(inventory.says(*CONNECTED))
        await inventory.admin.delete(CUSTOM_RESOURCE_DEFINITION, ObjectKey("", CLUSTER_PROFILE.qualified))
        await until(inventory.says("False", "BadClusterProfile", NOT_FOUND.format("worker1")))
        inventory.fleet.manager.registry.create_object(DEFINITION)
        await inventory.admin.delete(SECRET, ObjectKey(KUEUE_NAMESPACE, "worker1-multikueue"))
        await inventory.add("worker1")
        assert await until(inventory.says(*CONNECTED), within=90) < REFUSED.cap * (1 + REFUSED.jitter) + 1


def requests(inventory: Inventory) -> int:
    """How often a worker was asked for what it serves."""
    asked = inventory.fleet.workers["worker1"].access.requests
    return sum(times for (_, _, what), times in asked.items() if what in (str(WORKLOAD), str(JOB)))


async def test_a_heartbeat_of_a_profile_makes_no_connection_and_asks_the_worker_nothing() -> None:
    """Kueue makes a new client for each. All come between two probes of the worker, which are every five seconds."""
    inventory = await Inventory.holding("worker1")
    async with inventory.running():
        await until(inventory.says(*CONNECTED))
        await anyio.sleep(5)
        before, cluster = requests(inventory), await inventory.fleet.active()
        for beat in range(10):
            seen = {"name": "zone", "value": "a", "lastObservedTime": f"2026-01-01T00:00:{10 + beat}Z"}
            healthy = {"type": "ControlPlaneHealthy", "status": "True", "reason": "Ok", "message": f"beat {beat}"}
            healthy["lastTransitionTime"] = seen["lastObservedTime"]
            patch = {"status": {"conditions": [healthy], "properties": [seen]}}
            await inventory.admin.merge_patch(CLUSTER_PROFILE, inventory.key("worker1"), patch, subresource="status")
            await anyio.sleep(0.1)
        assert (requests(inventory), len(inventory.opened)) == (before, 1)
        assert await inventory.fleet.active() == cluster


async def test_the_backoff_of_a_dead_worker_grows_whatever_its_profile_does() -> None:
    """5, 10, 20, 40 and then 60 s: in Kueue it is 5 s for ever, as its configurations never compare equal."""
    inventory = await Inventory.holding("worker1")
    fault = inventory.fleet.workers["worker1"].faults.add(Refuse(500), on=Match(resource="workloads"))
    attempts: list[float] = []
    async with inventory.running():
        for number in range(1, 7):

            def has_failed(times: int = number) -> bool:
                return fault.hits >= times

            await until(has_failed, within=70)
            attempts.append(anyio.current_time())
            await inventory.write_status("worker1", **{"certificate-authority-data": ""})
            await inventory.write_status("worker1")
    assert [round(later - earlier) for earlier, later in pairwise(attempts)] == [5, 10, 20, 40, 60]


async def test_a_new_token_is_used_at_once() -> None:
    """With a command Kueue would use the former one until the worker refuses it."""
    inventory = await Inventory.holding("worker1")
    async with inventory.running():
        await until(inventory.says(*CONNECTED))
        await inventory.rotate("worker1", "new")
        assert await until(lambda: len(inventory.opened) == 2) < 0.1
        await anyio.sleep(5)
        inventory.fleet.revoke("worker1", "worker1-token")
        await anyio.sleep(60)
        assert await state_of(inventory.fleet) == CONNECTED
        assert len(await inventory.fleet.events()) == 1
    assert [config.token for config in inventory.opened] == ["worker1-token", "new"]


async def test_a_foreign_secret_is_not_read() -> None:
    """A profile names the Secret of another cluster, to have its token sent to a server of its own."""
    inventory = await Inventory.of("worker1", "worker2")
    await inventory.add("worker2")
    stolen = {"name": EXEC_EXTENSION, "extension": {"clusterName": "worker2"}}
    await inventory.write_profile("worker1", extensions=[stolen])
    async with inventory.running():
        await until(inventory.says(*CONNECTED, worker="worker2"))
        status, reason, message = await state_of(inventory.fleet)
        assert (status, reason) == ("False", "BadClusterProfile")
        assert message.endswith(
            'none is owned by ClusterProfile "worker1" or labelled multikueue.dev/cluster-profile=worker1'
        )
    assert [config.server for config in inventory.opened] == ["https://worker2:6443"]


async def test_a_plugin_is_asked_for_credentials_and_no_secret_is_looked_for() -> None:
    """Only built-in providers read a token."""
    inventory = await Inventory.of("worker1")
    await inventory.write_profile("worker1", provider=PLUGIN.name)
    async with inventory.running():
        await until(lambda: inventory.opened)
    (config, *_) = inventory.opened
    assert config.exec_plugin is not None
    assert (config.exec_plugin.command, config.token) == ("/bin/login", "")


async def test_of_a_secret_for_nobody_not_even_its_data_is_kept() -> None:
    inventory = await Inventory.of("worker1")
    await inventory.admin.create(SECRET, secret("worker1", "worker1-token"))
    await inventory.write_profile("worker1", provider=READER.name)
    async with inventory.running() as manager:
        assert (await state_of(inventory.fleet))[0] == "False"
        key = ObjectKey(KUEUE_NAMESPACE, "worker1")
        assert "data" not in (manager.cluster.secrets.get(key) or {})
        await inventory.admin.merge_patch(SECRET, key, {"metadata": {"labels": {PROFILE_LABEL: "worker1"}}})
        assert await until(inventory.says(*CONNECTED)) < 1
        await inventory.admin.merge_patch(SECRET, key, {"metadata": {"labels": {PROFILE_LABEL: "worker2"}}})
        assert await until(is_active(inventory.fleet, status="False")) < 1


async def test_a_profile_that_goes_takes_no_job_along() -> None:
    """As when the Secret of a kubeconfig is deleted: the worker counts as lost, and its jobs stay for the timeout."""
    inventory = await Inventory.holding("worker1")
    fleet = inventory.fleet
    async with fleet.kueues(), fleet.running(inventory.build(lost_timeout=900)):
        await until(inventory.says(*CONNECTED))
        await fleet.submit()
        await until(fleet.running_on)
        jobs = await fleet.running_on()
        await inventory.admin.delete(CLUSTER_PROFILE, inventory.key("worker1"))
        await until(is_active(fleet, status="False"))
        await anyio.sleep(600)
        assert (await fleet.workload())["status"]["clusterName"] == "worker1"
        await inventory.add("worker1")
        assert await until(inventory.says(*CONNECTED)) < 1
        await anyio.sleep(600)
        assert await fleet.running_on() == jobs
        await inventory.admin.delete(CLUSTER_PROFILE, inventory.key("worker1"))
        await anyio.sleep(1000)
        assert (await fleet.workload())["status"].get("clusterName") is None
