"""Workers that are made of ManagedClusters, with OCM on the hub and roles on the spokes."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from functools import partial

import anyio
import pytest

from multikueue.core.inventory.names import (
    AGENT_NAMESPACE,
    CLUSTER_PERMISSION,
    MANAGED_CLUSTER,
    MANAGED_SERVICE_ACCOUNT,
)
from multikueue.core.inventory.ocm_workers.objects import permission_spec
from multikueue.core.inventory.settings import Adopt, ConnectionSource
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import EVENT, JOB, MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, resource_version, uid
from multikueue.runtime.inventory.spoke_reader import LINGER
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Match, Refuse
from multikueue.sandbox.ocm.kinds import CLUSTER_ROLE
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.runtime.fleet import now, until
from tests.runtime.inventory.hub import GRANTING, Hub, hub, settings, start_ocm

pytestmark = pytest.mark.looptime

SHORT = timedelta(minutes=20)
"""How long tokens are valid where a test waits for their end."""
ACCOUNTS = str(MANAGED_SERVICE_ACCOUNT)
LEFT = LINGER + 60
"""Within so many seconds nothing of a cluster is there that is not used any more."""
THERE = f"system:serviceaccount:{AGENT_NAMESPACE}:multikueue"
"""Who we are on a spoke."""
BOTH = pytest.mark.parametrize(
    "source",
    [
        pytest.param(source, id=source.value, marks=pytest.mark.gate if number else ())
        for number, source in enumerate(ConnectionSource)
    ],
)
"""What each of them writes: `core/inventory/ocm_workers/test_spoke_plan.py`. The controller does not look at it."""


def token_of(secret: Json | None) -> str:
    """The token in the Secret of a ManagedServiceAccount."""
    return base64.b64decode(dig(secret, "data", "token")).decode()


async def make_renewed(on: Hub, name: str = "c1") -> str:
    """Have OCM renew a token; the one before."""
    before = token_of(await on.get(SECRET, "multikueue", name))
    await anyio.sleep(1)  # times in statuses are whole seconds
    await on.admin.merge_patch(SECRET, ObjectKey(name, "multikueue"), {"data": {"token": None}})

    async def renewed() -> bool:
        secret = await on.get(SECRET, "multikueue", name)
        return bool(dig(secret, "data", "token")) and token_of(secret) != before

    await until(renewed)
    return before


@BOTH
async def test_a_selected_cluster_becomes_a_worker_that_runs_jobs(source: ConnectionSource) -> None:
    """Nobody writes a kubeconfig, and the role on the spoke is enough (W23)."""
    async with hub("c1", "c2") as on, on.managed(settings(source)):
        await on.run_on("c1")
        assert [*await on.runs()] == ["c1"]
        assert await on.parts("c2") == {}  # nobody selects it: no account, no role (W17)
        assert set(on.asked("create", CLUSTER_PERMISSION)) == {GRANTING}
        events = [event for event in await on.events() if event[0] == "MultiKueueCluster"]
        assert events == [("MultiKueueCluster", "MultiKueueClusterCreated", events[0][2])]


@BOTH
async def test_a_renewed_token_is_used_and_what_runs_is_not_disturbed(source: ConnectionSource) -> None:
    async with hub("c1") as on, on.managed(settings(source)):
        await on.run_on("c1")
        jobs = await on.runs()
        before = await make_renewed(on)
        after = token_of(await on.get(SECRET, "multikueue", "c1"))
        await until(lambda: on.tokens[-1] == after)
        assert on.tokens[-2:] == [before, after]
        if source is ConnectionSource.KUBECONFIG:
            secret = (await on.parts())["secret"]
            kubeconfig = json.loads(base64.b64decode(secret["data"]["kubeconfig"]))
            assert kubeconfig["users"][0]["user"] == {"token": after}
        await anyio.sleep(60)
        assert await on.is_active()
        assert await on.runs() == jobs


@BOTH
async def test_tokens_are_renewed_without_a_gap(source: ConnectionSource) -> None:
    async with hub("c1") as on, on.managed(settings(source, validity=SHORT)):
        await on.run_on("c1")
        jobs = await on.runs()
        for _ in range(36):
            await anyio.sleep(60)
            assert await on.is_active()
        assert await on.runs() == jobs
        assert len(on.tokens) == 3  # renewed when a fifth of the time is left


@BOTH
async def test_a_cluster_whose_token_has_expired_is_not_offered(source: ConnectionSource) -> None:
    """W18: its agent is away. Once it has renewed the token, the cluster gets jobs."""
    async with hub("c1") as on, on.managed(settings(source)):
        await on.list_clusters("c1")
        on.spokes["c1"].available = False
        on.select("c1")
        await until(lambda: _has(on, "account"))
        await _report_token(on, expires=-60)
        await on.submit()
        await anyio.sleep(120)
        assert "worker" not in await on.parts()
        assert on.making is not None
        assert "has expired" in on.making.problem("c1")
        on.spokes["c1"].available = True
        on.ocm.changed("c1")
        await until(on.runs, within=400)
        assert on.making.problem("c1") == ""


async def test_why_a_cluster_is_no_worker_is_told_again_while_it_lasts() -> None:
    """No condition has it, API servers keep Events for an hour, and what the doctor says leads to that event."""
    async with hub("c1") as on, on.managed(settings()):
        on.spokes["c1"].available = False
        on.select("c1")
        await until(on.events)
        told = []
        for _ in range(3):
            for event in (await on.admin.list(EVENT)).items:
                await on.admin.delete(EVENT, ObjectKey.of(event))
            await anyio.sleep(3600)
            told.append({(kind, reason) for kind, reason, _ in await on.events()})
        assert told == [{("ManagedCluster", "WorkerNotReady")}] * 3


async def _has(on: Hub, part: str, name: str = "c1") -> bool:
    return part in await on.parts(name)


async def _report_token(on: Hub, expires: float) -> None:
    reference = {"name": "multikueue", "lastRefreshTimestamp": timestamp(now())}
    status = {"tokenSecretRef": reference, "expirationTimestamp": timestamp(now() + timedelta(seconds=expires))}
    key = ObjectKey("c1", "multikueue")
    await on.admin.merge_patch(MANAGED_SERVICE_ACCOUNT, key, {"status": status}, subresource="status")


async def test_a_token_that_expires_in_use_makes_the_worker_inactive_and_is_told() -> None:
    async with hub("c1") as on, on.managed(settings(validity=SHORT)):
        await on.connect_to("c1")
        on.spokes["c1"].available = False  # nobody renews it
        await anyio.sleep(SHORT.total_seconds())
        on.workers["c1"].faults.connections.drop()  # servers look at a token only when a request begins
        await until(lambda: _inactive(on))
        assert on.making is not None
        assert "has expired" in on.making.problem("c1")
        await on.submit()
        await anyio.sleep(60)
        assert await on.runs() == {}


async def _inactive(on: Hub) -> bool:
    return not await on.is_active()


class TestOthersObjects:
    """W6."""

    async def test_a_worker_of_that_name_is_left_alone(self) -> None:
        async with hub("c1") as on:
            source = {"kubeConfig": {"location": "mine", "locationType": "Secret"}}
            foreign = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster", "metadata": {"name": "c1"}}
            made = await on.admin.create(MULTIKUEUE_CLUSTER, {**foreign, "spec": {"clusterSource": source}})
            async with on.managed(settings()):
                on.select("c1")
                await until(lambda: _has_event(on, "Conflict"))
                assert on.making is not None
                assert on.making.problem("c1").startswith("Conflict: MultiKueueCluster c1 is somebody else's")
                on.select()
                await anyio.sleep(60)
                await on.admin.delete(MANAGED_CLUSTER, ObjectKey("", "c1"))
                await anyio.sleep(60)
            parts = await on.parts()
            assert [*parts] == ["worker"]
            assert (uid(parts["worker"]), parts["worker"]["spec"]) == (uid(made), made["spec"])
            assert "labels" not in parts["worker"]["metadata"]
            assert {event[0] for event in await on.events() if event[1] == "Conflict"} == {
                "ManagedCluster",
                "MultiKueueCluster",
            }

    async def test_without_permissions_of_ours_somebody_elses_role_is_used(self) -> None:
        async with hub("c1") as on:
            await _grant(on)
            async with on.managed(settings(rules=None)):
                on.select("c1")
                await until(on.is_active)
            assert on.asked("create", CLUSTER_PERMISSION) == []


async def _grant(on: Hub, account: str = "multikueue") -> Json:
    """Make the ClusterPermission as an administrator does."""
    metadata = {"name": account, "namespace": "c1"}
    spec = permission_spec(settings().rules or ())
    spec["clusterRoleBinding"]["subject"]["name"] = account
    api = {"apiVersion": CLUSTER_PERMISSION.gvk.api_version, "kind": "ClusterPermission"}
    return await on.admin.create(CLUSTER_PERMISSION, {**api, "metadata": metadata, "spec": spec})


async def _has_event(on: Hub, reason: str) -> bool:
    return reason in [event[1] for event in await on.events()]


class TestLeaving:
    @BOTH
    async def test_a_cluster_stays_until_its_last_job_has_ended(self, source: ConnectionSource) -> None:
        """W2, W16: the config drops it at once; the worker and its credentials go after the job."""
        async with hub("c1") as on, on.managed(settings(source)):
            await on.run_on("c1")
            parts = await on.parts()
            on.select()
            await on.list_clusters("other")
            await make_renewed(on)
            await anyio.sleep(600)
            assert [*await on.parts()] == [*parts]
            assert await on.is_active()
            await on.admin.delete(JOB, ObjectKey("default", "job"))
            await until(lambda: _gone(on), within=LEFT)

    async def test_a_listed_cluster_stays(self) -> None:
        """Somebody's config lists it: its check would break."""
        async with hub("c1") as on, on.managed(settings()):
            await on.connect_to("c1")
            on.select()
            await anyio.sleep(60)
            assert await on.is_active()
            await on.list_clusters("other")
            await until(lambda: _gone(on), within=LEFT)

    async def test_a_cluster_that_is_chosen_again_within_minutes_keeps_its_account(self) -> None:
        """A Placement by score changes its mind each minute."""
        async with hub("c1") as on, on.managed(settings()):
            on.select("c1")
            await until(on.is_active)
            before = await on.parts()
            for _ in range(5):
                on.select()
                await anyio.sleep(LINGER - 60)
                on.select("c1")
                await anyio.sleep(60)
            assert {part: uid(obj) for part, obj in (await on.parts()).items()} == {
                part: uid(obj) for part, obj in before.items()
            }

    async def test_a_restart_does_not_shorten_the_minutes_that_a_cluster_is_kept(self) -> None:
        """A process forgot when it was selected last, and took worker, account and role away at once."""
        async with hub("c1") as on:
            async with on.managed(settings()):
                on.select("c1")
                await until(on.is_active)
                before = await on.parts()
                on.select()
                await anyio.sleep(20)
            async with on.managed(settings()):
                await anyio.sleep(LINGER - 60)
                on.select("c1")
                await anyio.sleep(60)
                assert {part: uid(obj) for part, obj in (await on.parts()).items()} == {
                    part: uid(obj) for part, obj in before.items()
                }
                on.select()
                await until(lambda: _gone(on), within=LEFT)

    @pytest.mark.parametrize(
        "answers",
        [pytest.param(True, id="it answers", marks=pytest.mark.gate), pytest.param(False, id="it answers later")],
    )
    async def test_after_a_restart_a_cluster_stays_until_nothing_of_ours_is_there(self, answers: bool) -> None:
        """What an eviction has left there runs on, and nobody else would ever remove it."""
        async with hub("c1") as on:
            async with on.managed(settings()):
                await on.run_on("c1")
            on.select()
            await on.list_clusters("other")
            await on.admin.delete(JOB, ObjectKey("default", "job"))
            down = None if answers else on.workers["c1"].faults.add(Refuse(503), on=Match(user=THERE))
            async with on.managed(settings()):
                if down is not None:
                    await anyio.sleep(LEFT)
                    on.workers["c1"].faults.remove(down)
                await until(lambda: _gone(on), within=LEFT + 600)
            assert await on.runs() == {}

    @BOTH
    async def test_no_orphans_stay_when_a_managed_cluster_is_removed(self, source: ConnectionSource) -> None:
        """W16: without a finalizer of ours, also while nobody leads."""
        async with hub("c1", "c2") as on:
            async with on.managed(settings(source)):
                on.select("c1", "c2")
                await until(on.is_active)
                await until(lambda: on.is_active("c2"))
                await on.admin.delete(MANAGED_CLUSTER, ObjectKey("", "c1"))
                await until(lambda: _gone(on))
            await on.admin.delete(MANAGED_CLUSTER, ObjectKey("", "c2"))
            await anyio.sleep(60)  # the garbage collector knows the owners
            assert "worker" not in await on.parts("c2")
            async with on.managed(settings(source)):
                await until(lambda: _gone(on, "c2"))


async def _told_of_rights(on: Hub) -> bool:
    return any("rbac manager" in note for _, _, note in await on.events())


async def _gone(on: Hub, name: str = "c1") -> bool:
    return await on.get(MULTIKUEUE_CLUSTER, name) is None and await on.parts(name) == {}  # asked a thousand times


class TestMending:
    """W14: what is written is watched."""

    async def test_changes_by_hand_are_taken_back(self) -> None:
        async with hub("c1") as on, on.managed(settings()):
            on.select("c1")
            await until(on.is_active)
            await anyio.sleep(10)
            right = {part: _content(obj) for part, obj in (await on.parts()).items()}
            for resource, key, patch in (
                (
                    MULTIKUEUE_CLUSTER,
                    ObjectKey("", "c1"),
                    {"spec": {"clusterSource": {"kubeConfig": {"location": "x"}}}},
                ),
                (SECRET, ObjectKey(KUEUE_NAMESPACE, "multikueue-c1"), {"data": {"kubeconfig": "eA=="}}),
                (SECRET, ObjectKey(KUEUE_NAMESPACE, "multikueue-c1"), {"data": {"kubeconfig": None}}),
                (MANAGED_SERVICE_ACCOUNT, ObjectKey("c1", "multikueue"), {"spec": {"rotation": {"enabled": False}}}),
                (CLUSTER_PERMISSION, ObjectKey("c1", "multikueue"), {"spec": {"clusterRole": {"rules": []}}}),
                (MULTIKUEUE_CLUSTER, ObjectKey("", "c1"), {"metadata": {"ownerReferences": []}}),
            ):
                await on.admin.merge_patch(resource, key, patch)
                await until(lambda: _is(on, right))

    async def test_a_part_that_is_deleted_is_made_again(self) -> None:
        async with hub("c1") as on, on.managed(settings()):
            on.select("c1")
            await until(on.is_active)
            for part, (resource, key) in {
                "worker": (MULTIKUEUE_CLUSTER, ObjectKey("", "c1")),
                "secret": (SECRET, ObjectKey(KUEUE_NAMESPACE, "multikueue-c1")),
                "account": (MANAGED_SERVICE_ACCOUNT, ObjectKey("c1", "multikueue")),
                "permission": (CLUSTER_PERMISSION, ObjectKey("c1", "multikueue")),
            }.items():
                before = (await on.parts())[part]
                await on.admin.delete(resource, key)
                await until(partial(_is_another, on, part, before))
                await until(on.is_active, within=300)

    async def test_what_the_hub_refuses_is_tried_again(self) -> None:
        async with hub("c1") as on, on.managed(settings(ConnectionSource.CLUSTER_PROFILE)):
            refuses = Match(verbs=("create",), resource=MULTIKUEUE_CLUSTER.plural, user="multikueue")
            refused = on.server.faults.add(Refuse(500), on=refuses)
            on.select("c1")
            await anyio.sleep(30)
            assert "worker" not in await on.parts()
            on.server.faults.remove(refused)
            await until(on.is_active, within=120)

    async def test_what_it_may_not_do_any_more_is_told_once_in_a_while_and_tried_ever_more_rarely(self) -> None:
        """Settings have changed, and with them its role: what it made before stays, and each try was refused."""
        async with hub("c1") as on, on.managed(settings()):
            on.select("c1")
            await until(on.is_active)
            refuses = Match(verbs=("delete",), resource=MANAGED_SERVICE_ACCOUNT.plural, user="multikueue")
            refused = on.server.faults.add(Refuse(403), on=refuses)
            on.select()
            await anyio.sleep(LINGER + 3600)
            asked = [n for (_, verb, what), n in on.server.requests.items() if (verb, what) == ("delete", ACCOUNTS)]
            tried = sum(asked)
            assert 2 < tried <= 9
            notes = [
                note for _, reason, note in await on.events() if reason == "WorkerNotReady" and "rbac manager" in note
            ]
            assert len(notes) == 2  # 45 minutes apart
            assert (
                "kubectl delete managedserviceaccounts.authentication.open-cluster-management.io multikueue -n c1"
                in (notes[0])
            )
            on.server.faults.remove(refused)
            await until(lambda: _gone(on), within=3700)

    async def test_what_it_may_not_do_is_told_again_while_it_lasts(self) -> None:
        """It is tried ever more rarely: the event of it was gone before the next one."""
        async with hub("c1") as on, on.managed(settings()):
            on.server.faults.add(
                Refuse(403), on=Match(verbs=("create",), resource=MULTIKUEUE_CLUSTER.plural, user="multikueue")
            )
            on.select("c1")
            for _ in range(3):
                await until(lambda: _told_of_rights(on), within=3000)  # API servers keep an event for 3600 s
                for event in (await on.admin.list(EVENT)).items:
                    await on.admin.delete(EVENT, ObjectKey.of(event))

    async def test_a_new_address_is_written(self) -> None:
        async with hub("c1") as on, on.managed(settings()):
            on.select("c1")
            await until(on.is_active)
            configs = [{"url": "https://c1:7443"}]
            patch = {"spec": {"managedClusterClientConfigs": configs}}
            await on.admin.merge_patch(MANAGED_CLUSTER, ObjectKey("", "c1"), patch)
            await until(lambda: _has_address(on, "https://c1:7443"))

    async def test_a_quiet_fleet_costs_no_requests(self) -> None:
        async with hub("c1", "c2") as on, on.managed(settings(ConnectionSource.CLUSTER_PROFILE)):
            on.select("c1", "c2")
            await until(on.is_active)
            await until(lambda: on.is_active("c2"))
            await anyio.sleep(60)
            before = dict(on.server.requests)
            await anyio.sleep(3600)
            more = {what for what, count in on.server.requests.items() if count > before.get(what, 0)}
            assert {(verb, kind) for user, verb, kind in more if user.startswith("multikueue")} <= {
                ("watch", kind) for _, _, kind in more
            }


def _content(obj: Json) -> Json:
    metadata = {field: obj["metadata"].get(field) for field in ("labels", "annotations", "ownerReferences")}
    return {"metadata": metadata, "spec": obj.get("spec"), "data": obj.get("data")}


async def _is(on: Hub, right: Json) -> bool:
    return {part: _content(obj) for part, obj in (await on.parts()).items()} == right


async def _is_another(on: Hub, part: str, before: Json) -> bool:
    kept = (await on.parts()).get(part)
    return kept is not None and uid(kept) != uid(before)


async def _has_address(on: Hub, url: str) -> bool:
    secret = (await on.parts()).get("secret")
    return secret is not None and url in base64.b64decode(secret["data"]["kubeconfig"]).decode()


async def test_kinds_that_are_not_served_yet_are_waited_for() -> None:
    async with hub("c1", serves_ocm=False) as on, anyio.create_task_group() as tasks:
        async with on.managed(settings(ConnectionSource.CLUSTER_PROFILE)):
            on.select("c1")
            await anyio.sleep(60)
            await start_ocm(on, tasks)
            await until(on.is_active, within=600)
        tasks.cancel_scope.cancel()


async def test_a_restart_changes_nothing() -> None:
    async with hub("c1") as on:
        on.select("c1")
        async with on.managed(settings()):
            await until(on.is_active)
            await anyio.sleep(10)
        before = await on.parts()
        async with on.managed(settings()):
            await anyio.sleep(60)
            after = await on.parts()
        for part, obj in before.items():
            assert (part, uid(after[part]), _content(after[part])) == (part, uid(obj), _content(obj))
        assert resource_version(after["secret"]) == resource_version(before["secret"])


async def test_before_placements_have_been_read_nothing_is_written() -> None:
    """What is not known to be selected is not known to be gone either."""
    async with hub("c1") as on:
        on.select("c1")
        async with on.managed(settings()):
            await until(on.is_active)
        on.chosen.known = False
        on.select()
        async with on.managed(settings()):
            await anyio.sleep(120)
            assert len(await on.parts()) == 4


class TestAdopting:
    async def test_what_the_addon_has_made_is_taken_over_with_its_jobs(self) -> None:
        async with hub("c1") as on:
            await _addons(on)
            on.select("c1")
            await on.list_clusters("c1")
            async with on.managed(settings(rules=None, adopt=Adopt.NONE)):
                await until(on.is_active)
                await on.submit()
                await until(on.runs)
                assert on.making is not None
                assert on.making.problem("c1").startswith("Conflict")
                before = await on.parts()
            jobs = await on.runs()
            async with on.managed(settings(ConnectionSource.CLUSTER_PROFILE, adopt=Adopt.ADDON)):
                await until(lambda: _reached_by_profile(on))
                await until(lambda: _lacks(on, "secret"))
                await anyio.sleep(60)
                assert await on.is_active()
                expected = "MultiKueueCluster c1 of ManagedCluster c1 taken over"
                assert ("MultiKueueCluster", "MultiKueueClusterUpdated", expected) in await on.events()
            after = await on.parts()
            assert {part: uid(obj) for part, obj in after.items()} == {
                part: uid(obj) for part, obj in before.items() if part != "secret"
            }
            assert await on.runs() == jobs

    async def test_of_a_cluster_that_is_not_selected_what_stays_is_told_once(self) -> None:
        async with hub("c1") as on:
            await _addons(on)
            async with on.managed(settings(ConnectionSource.CLUSTER_PROFILE, adopt=Adopt.ADDON)):
                await until(on.events)
                await on.admin.merge_patch(MANAGED_CLUSTER, ObjectKey("", "c1"), {"metadata": {"labels": {"a": "b"}}})
                await anyio.sleep(60)
                ((kind, reason, note),) = await on.events()
                assert (kind, reason) == ("ManagedCluster", "LeftBehind")
                assert "ManagedServiceAccount c1/multikueue" in note
            assert "worker" in await on.parts()

    async def test_a_worker_of_the_recipe_of_2024_keeps_its_name_and_its_jobs(self) -> None:
        async with hub("c1") as on:
            await _addons(on, "placement-c1", "kueue-admin-c1-kubeconfig", "kueue-admin")
            on.select("c1")
            await on.list_clusters("placement-c1")
            async with on.managed(settings(rules=None, adopt=Adopt.NONE)):
                await until(lambda: on.is_active("placement-c1"))
                await on.submit()
                await until(on.runs)
            jobs = await on.runs()
            async with on.managed(settings(ConnectionSource.CLUSTER_PROFILE, adopt=Adopt.RECIPE_2024)):
                await until(lambda: _reached_by_profile(on, "placement-c1"), within=300)
                await anyio.sleep(120)
                assert await on.is_active("placement-c1")
                assert await on.get(SECRET, "kueue-admin-c1-kubeconfig", KUEUE_NAMESPACE) is None
            assert await on.runs() == jobs
            assert "worker" not in await on.parts()


async def _addons(on: Hub, worker: str = "c1", secret: str = "multikueue-c1", account: str = "multikueue") -> None:
    """What OCM's addon makes, with its kubeconfig: by an account that lives for a year."""
    await _grant(on, account)
    api = {"apiVersion": MANAGED_SERVICE_ACCOUNT.gvk.api_version, "kind": "ManagedServiceAccount"}
    rotation = {"enabled": True, "validity": "8640h"}
    metadata = {"name": account, "namespace": "c1"}
    await on.admin.create(MANAGED_SERVICE_ACCOUNT, {**api, "metadata": metadata, "spec": {"rotation": rotation}})

    async def there() -> bool:
        return dig(await on.get(SECRET, account, "c1"), "data", "token") is not None

    await until(there)
    token = token_of(await on.get(SECRET, account, "c1"))
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c1",
        "clusters": [{"name": "c1", "cluster": {"server": "https://c1:6443"}}],
        "users": [{"name": "multikueue", "user": {"token": token}}],
        "contexts": [{"name": "c1", "context": {"cluster": "c1", "user": "multikueue"}}],
    }
    data = {"kubeconfig": base64.b64encode(json.dumps(kubeconfig).encode()).decode()}
    where = {"name": secret, "namespace": KUEUE_NAMESPACE}
    await on.admin.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": where, "data": data})
    source = {"kubeConfig": {"location": secret, "locationType": "Secret"}}
    own = {"apiVersion": MULTIKUEUE_CLUSTER.gvk.api_version, "kind": "MultiKueueCluster", "metadata": {"name": worker}}
    await on.admin.create(MULTIKUEUE_CLUSTER, {**own, "spec": {"clusterSource": source}})


async def _reached_by_profile(on: Hub, name: str = "c1") -> bool:
    worker = await on.get(MULTIKUEUE_CLUSTER, name)
    return dig(worker, "spec", "clusterSource", "clusterProfileRef", "name") == "c1" and await on.is_active(name)


async def _lacks(on: Hub, part: str) -> bool:
    return part not in await on.parts()


async def test_the_role_grants_nothing_more_than_is_generated() -> None:
    async with hub("c1") as on, on.managed(settings()):
        on.select("c1")
        await until(on.is_active)
        role = await DirectClient(on.workers["c1"]).get(CLUSTER_ROLE, ObjectKey("", "multikueue"))
        assert role["rules"] == list(settings().rules or ())
