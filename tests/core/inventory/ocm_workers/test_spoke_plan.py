"""The decision about one spoke, as a table of what is there and what follows."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.effects import Create, Delete, Patch, Write
from multikueue.core.inventory.names import CLUSTER_PERMISSION, MANAGED_SERVICE_ACCOUNT
from multikueue.core.inventory.ocm_workers.objects import duration
from multikueue.core.inventory.ocm_workers.plan import SpokePlan, plan_spoke
from multikueue.core.inventory.ocm_workers.spoke import OWNER_LABEL, UID_ANNOTATION, Spoke, SpokeWorker
from multikueue.core.inventory.settings import Adopt, ConnectionSource, SpokeSettings
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import CLUSTER_PROFILE, MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.labels import DETACHED_ANNOTATION
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import name_of, uid
from tests.core.applying import merged
from tests.core.inventory.ocm_workers import building as b

PROFILE = SpokeSettings(rules=b.RULES)
KUBECONFIG = SpokeSettings(ConnectionSource.KUBECONFIG, rules=b.RULES)
FIELDS = {
    MANAGED_SERVICE_ACCOUNT: "account",
    CLUSTER_PERMISSION: "permission",
    SECRET: "secret",
}
STATUSES: dict[Resource, Json] = {MANAGED_SERVICE_ACCOUNT: b.token_status(), CLUSTER_PERMISSION: b.applied()}


def short(plan: SpokePlan) -> list[str]:
    """The effects in words."""
    return [f"{type(effect).__name__} {effect.resource.gvk.kind}" for effect in plan.effects]


def carried_out(spoke: Spoke, plan: SpokePlan) -> Spoke:
    """The spoke after the effects, with what OCM then says of it."""
    changes: dict[str, Any] = {}
    for effect in plan.effects:
        if effect.resource == MULTIKUEUE_CLUSTER:
            changes["workers"] = _after(changes.get("workers", spoke.workers), effect)
            continue
        field = FIELDS[effect.resource]
        if effect.resource == SECRET and not isinstance(effect, Create) and effect.object is spoke.older_secret:
            field = "older_secret"
        if isinstance(effect, Create):
            status = {"status": STATUSES[effect.resource]} if effect.resource in STATUSES else {}
            changes[field] = b.stored(effect.object, **status)
        elif isinstance(effect, Patch):
            changes[field] = merged(effect.object, effect.change)
        else:
            changes[field] = None
    return changed(spoke, **changes)


def changed(spoke: Spoke, **fields: Any) -> Spoke:
    """The spoke with other parts; `worker` is its only one, and `in_use` is said of all."""
    if "worker" in fields:
        worker = fields.pop("worker")
        fields["workers"] = (SpokeWorker(worker),) if worker is not None else ()
    if "in_use" in fields:
        workers, in_use = fields.get("workers", spoke.workers), fields.pop("in_use")
        fields["workers"] = tuple(attrs.evolve(each, in_use=in_use) for each in workers)
    return attrs.evolve(spoke, **fields)


def _after(workers: tuple[SpokeWorker, ...], effect: Write) -> tuple[SpokeWorker, ...]:
    if isinstance(effect, Create):
        return (*workers, SpokeWorker(b.stored(effect.object)))
    known = {uid(each.object): each for each in workers}
    each = known.pop(uid(effect.object))
    if isinstance(effect, Patch):
        known[uid(effect.object)] = attrs.evolve(each, object=merged(effect.object, effect.change))
    return tuple(known.values())


def worker_of(spoke: Spoke) -> Json:
    """The only worker of a spoke."""
    (only,) = spoke.workers
    return only.object


def part_of(spoke: Spoke, field: str) -> Json:
    """One object of a spoke."""
    obj: Json = worker_of(spoke) if field == "worker" else getattr(spoke, field)
    return obj


def settled(spoke: Spoke, settings: SpokeSettings) -> Spoke:
    """The spoke once nothing more is to be done."""
    for _ in range(5):
        plan = plan_spoke(spoke, settings, b.NOW)
        if not plan.effects:
            assert plan.problem == ""
            return spoke
        spoke = carried_out(spoke, plan)
    raise AssertionError(f"it does not come to an end: {short(plan)}")


def _labelled(label: str, value: str) -> Json:
    profile: Json = merged(b.profile(), {"metadata": {"labels": {label: value}}})
    return profile


def fresh(settings: SpokeSettings = PROFILE, **fields: Any) -> Spoke:
    """A spoke that is selected, and of which OCM has made its part."""
    by_profile = settings.source is ConnectionSource.CLUSTER_PROFILE
    parts = {"profile": b.profile(), "synced": True} if by_profile else {"token": b.token()}
    return changed(Spoke("c1"), **{"selected": True, "managed": b.managed(), **parts, **fields})


BOTH = pytest.mark.parametrize("settings", [PROFILE, KUBECONFIG], ids=["clusterProfile", "kubeconfig"])


class TestSelected:
    def test_a_profile_becomes_a_worker_in_two_steps(self) -> None:
        spoke = fresh()
        first = plan_spoke(spoke, PROFILE, b.NOW)
        assert short(first) == ["Create ManagedServiceAccount", "Create ClusterPermission"]
        assert "has no token yet" in first.problem
        second = plan_spoke(carried_out(spoke, first), PROFILE, b.NOW)
        assert short(second) == ["Create MultiKueueCluster"]
        worker = worker_of(settled(spoke, PROFILE))
        assert worker["spec"] == {"clusterSource": {"clusterProfileRef": {"name": "c1"}}}
        assert worker["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "cluster.open-cluster-management.io/v1",
                "kind": "ManagedCluster",
                "name": "c1",
                "uid": "ManagedCluster-c1",
            }
        ]

    def test_a_kubeconfig_is_written_as_data_and_owned_by_its_worker(self) -> None:
        spoke = settled(fresh(KUBECONFIG), KUBECONFIG)
        assert spoke.secret is not None
        assert worker_of(spoke)["spec"]["clusterSource"] == b.kubeconfig_source("multikueue-c1")
        assert [owner["uid"] for owner in spoke.secret["metadata"]["ownerReferences"]] == [uid(worker_of(spoke))]
        text = json.loads(base64.b64decode(spoke.secret["data"]["kubeconfig"]))
        assert text["clusters"][0]["cluster"] == {
            "server": "https://c1.example.com:6443",
            "certificate-authority-data": "Q0E=",
        }
        assert text["users"] == [{"name": "multikueue", "user": {"token": "t0ken"}}]
        assert text["current-context"] == text["contexts"][0]["name"] == "c1"

    def test_without_an_authority_the_agents_is_taken(self) -> None:
        configs = [{"url": "http://plain"}, {"url": "https://c1"}]
        spoke = fresh(KUBECONFIG, managed=b.managed(spec={"managedClusterClientConfigs": configs}))
        secret = settled(spoke, KUBECONFIG).secret
        assert secret is not None
        cluster = json.loads(base64.b64decode(secret["data"]["kubeconfig"]))["clusters"][0]["cluster"]
        assert cluster == {"server": "https://c1", "certificate-authority-data": b.token()["data"]["ca.crt"]}

    @BOTH
    def test_tokens_are_short_lived_and_renewed(self, settings: SpokeSettings) -> None:
        account = settled(fresh(settings), settings).account
        assert account is not None
        assert account["spec"] == {"rotation": {"enabled": True, "validity": "168h0m0s"}}
        assert (
            account["metadata"]["labels"]["authentication.open-cluster-management.io/sync-to-clusterprofile"] == "true"
        )

    def test_a_role_is_granted_only_where_that_is_asked_for(self) -> None:
        without = attrs.evolve(PROFILE, rules=None)
        assert settled(fresh(without), without).permission is None

    def test_somebody_elses_role_is_waited_for(self) -> None:
        without = attrs.evolve(PROFILE, rules=None)
        spoke = fresh(without, account=None, permission=b.permission(status=b.applied(False, message="Forbidden")))
        plan = plan_spoke(carried_out(spoke, plan_spoke(spoke, without, b.NOW)), without, b.NOW)
        assert plan.effects == ()
        assert "not applied on the cluster: Forbidden" in plan.problem

    def test_other_credentials_need_the_profile_alone(self) -> None:
        external = SpokeSettings(accounts=False)
        assert short(plan_spoke(fresh(external, synced=False), external, b.NOW)) == ["Create MultiKueueCluster"]

    @BOTH
    def test_what_is_right_is_left_alone(self, settings: SpokeSettings) -> None:
        plan = plan_spoke(settled(fresh(settings), settings), settings, b.NOW)
        assert (plan.effects, plan.problem) == ((), "")
        assert plan.again == b.NOW + timedelta(days=5)  # when the token expires


class TestNotYet:
    """Nobody is offered a worker that could not be reached: W18, and the checks of a profile (W19)."""

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"profile": None}, "there is no ClusterProfile kueue-system/c1"),
            ({"profile": b.profile(providers=("aws",))}, 'no access provider "open-cluster-management"'),
            ({"profile": _labelled("x-k8s.io/cluster-manager", "fleet")}, "cluster manager mismatch"),
            ({"profile": _labelled("open-cluster-management.io/cluster-name", "c2")}, "cluster name mismatch"),
            ({"synced": False}, "Secret kueue-system/c1-multikueue"),
            ({"unserved": {CLUSTER_PROFILE: "not found"}}, "clusterprofiles.multicluster.x-k8s.io: not found"),
        ],
    )
    def test_a_profile(self, fields: Json, problem: str) -> None:
        spoke = changed(settled(fresh(), PROFILE), worker=None, **fields)
        plan = plan_spoke(spoke, PROFILE, b.NOW)
        assert (plan.effects, problem in plan.problem) == ((), True), plan

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"token": None}, "cannot be read: it is not there yet"),
            ({"token": None, "token_unread": "forbidden"}, "cannot be read: forbidden"),
            ({"token": b.token(value="")}, "has no token"),
            ({"token": b.token(value="two words")}, "has no token"),
            ({"token": {**b.token(), "metadata": {"name": "multikueue"}}}, "lacks the label"),
            ({"managed": b.managed(spec={"managedClusterClientConfigs": [{"url": "http://c1"}]})}, "no https address"),
        ],
    )
    def test_a_kubeconfig(self, fields: Json, problem: str) -> None:
        spoke = changed(settled(fresh(KUBECONFIG), KUBECONFIG), worker=None, secret=None, **fields)
        plan = plan_spoke(spoke, KUBECONFIG, b.NOW)
        assert (plan.effects, problem in plan.problem) == ((), True), plan

    def test_what_is_no_token_of_an_account_is_not_written_into_a_kubeconfig_either(self) -> None:
        """Though the worker is there already."""
        other = {**b.token(), "metadata": {"name": "multikueue"}}
        spoke = changed(settled(fresh(KUBECONFIG), KUBECONFIG), secret=None, token=other)
        assert not [effect for effect in plan_spoke(spoke, KUBECONFIG, b.NOW).effects if isinstance(effect, Create)]

    @BOTH
    @pytest.mark.parametrize(
        ("field", "status", "problem"),
        [
            ("account", b.token_status(b.NOW), "has expired"),
            ("account", b.token_status(None), "does not say when its token expires"),
            ("account", {}, "has no token yet"),
            ("permission", {}, "does the controller cluster-permission run?"),
            ("permission", b.applied(False, message="namespaces is forbidden"), "namespaces is forbidden"),
            ("permission", b.applied(False, "Applied", "failed"), "failed"),
        ],
    )
    def test_credentials(self, settings: SpokeSettings, field: str, status: Json, problem: str) -> None:
        whole = settled(fresh(settings), settings)
        shown = {field: {**getattr(whole, field), "status": status}}
        plan = plan_spoke(changed(whole, worker=None, secret=None, **shown), settings, b.NOW)
        assert (plan.effects, problem in plan.problem) == ((), True), plan

    def test_the_newer_name_of_the_condition_counts_too(self) -> None:
        whole = settled(fresh(), PROFILE)
        newer = {**(whole.permission or {}), "status": b.applied(kind="Applied")}
        assert short(plan_spoke(changed(whole, worker=None, permission=newer), PROFILE, b.NOW)) == [
            "Create MultiKueueCluster"
        ]

    def test_a_worker_that_is_there_stays_when_its_profile_is_gone_for_a_while(self) -> None:
        """Jobs may run there; a worker that cannot be reached says so itself."""
        plan = plan_spoke(changed(settled(fresh(), PROFILE), profile=None), PROFILE, b.NOW)
        assert plan.effects == ()
        assert "there is no ClusterProfile" in plan.problem

    @pytest.mark.parametrize(
        ("cluster", "problem"),
        [
            (b.managed(labels={"local-cluster": "true"}), "the hub itself"),
            (b.managed("local-cluster"), "the hub itself"),
            (b.managed(spec={"hubAcceptsClient": False}), "does not accept it"),
        ],
    )
    def test_the_hub_and_what_it_does_not_accept_are_no_workers(self, cluster: Json, problem: str) -> None:
        plan = plan_spoke(fresh(managed=cluster), PROFILE, b.NOW)
        assert (plan.effects, problem in plan.problem) == ((), True)


class TestMending:
    """W14, W24: what somebody changes by hand is put right, labels too."""

    @pytest.mark.parametrize(
        ("field", "change"),
        [
            (
                "account",
                {"metadata": {"labels": {"authentication.open-cluster-management.io/sync-to-clusterprofile": None}}},
            ),
            ("account", {"spec": {"rotation": {"enabled": False}}}),
            ("account", {"spec": {"rotation": {"validity": "8640h0m0s"}}}),
            ("permission", {"spec": {"clusterRole": {"rules": [{"verbs": ["*"]}]}}}),
            ("permission", {"spec": {"clusterRoleBinding": {"subject": {"name": "somebody"}}}}),
            ("permission", {"spec": {"roles": [{"namespace": "kube-system", "rules": []}]}}),
            ("worker", {"metadata": {"ownerReferences": []}}),
            ("worker", {"spec": {"clusterSource": b.kubeconfig_source("another")}}),
            ("secret", {"data": {"kubeconfig": "eA=="}}),
            ("secret", {"data": {"more": "eA=="}}),
            ("secret", {"metadata": {"ownerReferences": []}}),
        ],
    )
    def test_a_change_is_taken_back(self, field: str, change: Json) -> None:
        whole = settled(fresh(KUBECONFIG), KUBECONFIG)
        spoilt = changed(whole, **{field: merged(part_of(whole, field), change)})
        plan = plan_spoke(spoilt, KUBECONFIG, b.NOW)
        assert short(plan) == [f"Patch {part_of(whole, field)['kind']}"]
        assert carried_out(spoilt, plan) == whole

    def test_a_new_token_and_a_new_address_are_written(self) -> None:
        whole = settled(fresh(KUBECONFIG), KUBECONFIG)
        for change in (
            {"token": b.token(value="next")},
            {"managed": b.managed(spec={"managedClusterClientConfigs": [{"url": "https://new"}]})},
        ):
            assert short(plan_spoke(changed(whole, **change), KUBECONFIG, b.NOW)) == ["Patch Secret"]

    def test_a_write_is_bound_to_what_was_seen(self) -> None:
        whole = settled(fresh(), PROFILE)
        (mend,) = plan_spoke(changed(whole, account={**(whole.account or {}), "spec": {}}), PROFILE, b.NOW).effects
        assert isinstance(mend, Patch)
        assert mend.request["metadata"] == {"uid": "ManagedServiceAccount-multikueue", "resourceVersion": "1"}

    def test_labels_and_owners_of_others_stay(self) -> None:
        whole = settled(fresh(), PROFILE)
        extra = {"metadata": {"labels": {"team": "x"}, "ownerReferences": [{"kind": "Team", "uid": "1"}]}}
        spoilt = merged(worker_of(whole), extra)
        spoke = changed(whole, workers=(SpokeWorker(spoilt),))
        after = worker_of(carried_out(spoke, plan_spoke(spoke, PROFILE, b.NOW)))
        assert after["metadata"]["labels"]["team"] == "x"
        assert [owner["kind"] for owner in after["metadata"]["ownerReferences"]] == ["Team", "ManagedCluster"]

    def test_another_source_takes_over_once_it_can(self) -> None:
        whole = settled(fresh(KUBECONFIG), KUBECONFIG)
        assert plan_spoke(whole, PROFILE, b.NOW).effects == ()  # no profile yet: it stays reached by its kubeconfig
        ready = changed(whole, profile=b.profile(), synced=True)
        first = plan_spoke(ready, PROFILE, b.NOW)
        assert short(first) == ["Patch MultiKueueCluster"]
        assert short(plan_spoke(carried_out(ready, first), PROFILE, b.NOW)) == ["Delete Secret"]

    def test_what_is_being_deleted_is_waited_for(self) -> None:
        whole = settled(fresh(), PROFILE)
        leaving = merged(whole.account or {}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        plan = plan_spoke(changed(whole, account=leaving), PROFILE, b.NOW)
        assert (plan.effects, "is being deleted" in plan.problem) == ((), True)


class TestOthersObjects:
    """W6: nothing is written while something of somebody else is in the way."""

    @pytest.mark.parametrize(
        ("field", "obj"),
        [
            ("worker", b.worker()),
            ("account", b.account()),
            ("permission", b.permission()),
            ("secret", b.token()),
        ],
    )
    def test_it_is_a_conflict_and_nothing_is_written(self, field: str, obj: Json) -> None:
        plan = plan_spoke(fresh(KUBECONFIG, **{field: obj}), KUBECONFIG, b.NOW)
        assert plan.effects == ()
        assert plan.conflict is obj
        assert plan.problem.startswith(f"Conflict: {obj['kind']} ")

    @pytest.mark.parametrize("set_to", [Adopt.NONE, Adopt.ADDON])
    def test_a_take_over_is_advised_only_where_it_takes_this_one(self, set_to: Adopt) -> None:
        """What was made by hand stays in conflict with `ocm.adopt: addon`, and was told to be taken over by it."""
        settings = attrs.evolve(KUBECONFIG, adopt=set_to)
        by_hand = merged(b.worker(), {"spec": {"clusterSource": {"kubeConfig": {"location": "by-hand"}}}})
        plan = plan_spoke(fresh(KUBECONFIG, worker=by_hand), settings, b.NOW)
        assert plan.conflict is by_hand
        assert plan.problem.endswith("somebody else's: nothing is written; delete it to have it made")
        addons = plan_spoke(fresh(KUBECONFIG, account=b.account()), KUBECONFIG, b.NOW)
        assert addons.problem.endswith("delete it, or take it over with ocm.adopt: addon")

    @pytest.mark.parametrize("field", ["worker", "account", "permission", "secret"])
    def test_who_takes_our_label_off_keeps_the_object(self, field: str) -> None:
        whole = settled(fresh(KUBECONFIG), KUBECONFIG)
        released = merged(part_of(whole, field), {"metadata": {"labels": {OWNER_LABEL: None}}})
        spoke = changed(whole, selected=False, **{field: released})
        assert released not in [
            effect.object for effect in plan_spoke(spoke, KUBECONFIG, b.NOW).effects if isinstance(effect, Delete)
        ]

    def test_what_another_process_has_made_is_not_ours(self) -> None:
        other = settled(fresh(), attrs.evolve(PROFILE, owner="other"))
        assert plan_spoke(other, PROFILE, b.NOW).conflict is not None
        assert plan_spoke(changed(other, selected=False), PROFILE, b.NOW).effects == ()
        adopting = attrs.evolve(PROFILE, adopt=Adopt.ADDON)
        assert plan_spoke(other, adopting, b.NOW).conflict is not None

    def test_a_secret_that_is_not_needed_is_in_nobodys_way(self) -> None:
        assert plan_spoke(fresh(secret=b.token()), PROFILE, b.NOW).conflict is None


class TestLeaving:
    @BOTH
    def test_all_goes_when_it_is_not_selected_and_not_in_use(self, settings: SpokeSettings) -> None:
        whole = settled(fresh(settings), settings)
        plan = plan_spoke(changed(whole, selected=False), settings, b.NOW)
        secret = ["Delete Secret"] if settings is KUBECONFIG else []
        assert short(plan) == [
            "Delete MultiKueueCluster",
            *secret,
            "Delete ManagedServiceAccount",
            "Delete ClusterPermission",
        ]

    @BOTH
    def test_what_is_in_use_is_kept_up(self, settings: SpokeSettings) -> None:
        """Its jobs end there: their credentials are renewed as before."""
        whole = changed(settled(fresh(settings), settings), selected=False, in_use=True)
        plan = plan_spoke(whole, settings, b.NOW)
        assert (plan.effects, plan.draining) == ((), True)
        rotated = plan_spoke(changed(whole, token=b.token(value="next")), KUBECONFIG, b.NOW)
        assert settings is PROFILE or short(rotated) == ["Patch Secret"]
        lost = plan_spoke(changed(whole, account=None), settings, b.NOW)
        assert short(lost) == ["Create ManagedServiceAccount"]

    def test_nothing_is_begun_for_what_is_only_in_use(self) -> None:
        """Somebody else's worker that a config lists."""
        assert plan_spoke(fresh(selected=False, in_use=True), PROFILE, b.NOW) == SpokePlan()
        foreign = plan_spoke(fresh(selected=False, in_use=True, worker=b.worker()), PROFILE, b.NOW)
        assert foreign == SpokePlan()

    def test_while_it_is_detached_nothing_new_is_made(self) -> None:
        whole = settled(fresh(), PROFILE)
        detached = merged(whole.managed or {}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        spoke = changed(whole, managed=detached, account=None, in_use=True)
        (write,) = plan_spoke(spoke, PROFILE, b.NOW).effects
        assert isinstance(write, Patch)
        assert write.resource.plural == "multikueueclusters"
        assert write.change == {"metadata": {"annotations": {DETACHED_ANNOTATION: "2026-01-01T00:00:00Z"}}}, (
            "and it says so"
        )

    @BOTH
    @pytest.mark.parametrize("in_use", [True, False])
    def test_no_orphans_stay_when_the_managed_cluster_is_gone(self, settings: SpokeSettings, in_use: bool) -> None:
        """W16: nobody holds it by a finalizer, and so nobody else cleans up."""
        spoke = changed(settled(fresh(settings), settings), managed=None, in_use=in_use)
        assert len(short(plan_spoke(spoke, settings, b.NOW))) == (4 if settings is KUBECONFIG else 3)
        foreign = changed(
            Spoke("c1"), worker=b.worker(), account=b.account(), permission=b.permission(), secret=b.token()
        )
        assert plan_spoke(foreign, settings, b.NOW).effects == ()

    def test_another_managed_cluster_of_the_name_gets_objects_of_its_own(self) -> None:
        whole = settled(fresh(), PROFILE)
        another = merged(b.managed(), {"metadata": {"uid": "another"}})
        spoke = changed(whole, managed=another)
        plan = plan_spoke(spoke, PROFILE, b.NOW)
        assert {type(effect) for effect in plan.effects} == {Delete}
        again = settled(carried_out(spoke, plan), PROFILE)
        assert worker_of(again)["metadata"]["annotations"][UID_ANNOTATION] == "another"


class TestAdopting:
    """`ocm.adopt`: what OCM's addon or the recipe of 2024 has made is taken over, and nothing is made anew."""

    def addons(self) -> Spoke:
        secret = b.made(SECRET, "multikueue-c1", b.NAMESPACE, data={"kubeconfig": "eA=="})
        return fresh(
            KUBECONFIG,
            account=b.account(status=b.token_status()),
            permission=b.permission(status=b.applied()),
            worker=b.worker(source=b.kubeconfig_source("multikueue-c1")),
            secret=secret,
        )

    def test_without_the_setting_it_is_a_conflict(self) -> None:
        assert plan_spoke(self.addons(), KUBECONFIG, b.NOW).conflict is not None

    @BOTH
    def test_the_addons_objects_become_ours(self, settings: SpokeSettings) -> None:
        adopting = attrs.evolve(settings, adopt=Adopt.ADDON)
        spoke = changed(self.addons(), profile=b.profile(), synced=True)
        plan = plan_spoke(spoke, adopting, b.NOW)
        assert {type(effect) for effect in plan.effects} == {Patch}
        assert all(effect.adopts for effect in plan.effects if isinstance(effect, Patch))
        after = settled(spoke, adopting)
        assert uid(worker_of(after)) == uid(worker_of(spoke))
        assert (after.secret is None) == (settings is PROFILE)  # its token of 360 days is of no use any more
        assert after.permission is not None
        assert after.permission["spec"]["clusterRole"]["rules"] == list(b.RULES)

    @pytest.mark.parametrize(("days", "hours_old", "anew"), [(360, 2, True), (360, 0.5, False), (7, 2, False)])
    def test_a_token_of_360_days_does_not_stay_one(self, days: int, hours_old: float, anew: bool) -> None:
        """The agent renews by the life that the token has, not by the one that is asked for by now."""
        adopting = attrs.evolve(PROFILE, adopt=Adopt.ADDON)
        after = settled(changed(self.addons(), profile=b.profile(), synced=True), adopting)
        assert after.account is not None
        made = timestamp(b.NOW - timedelta(hours=hours_old))
        reference = {**after.account["status"]["tokenSecretRef"], "lastRefreshTimestamp": timestamp(b.NOW)}
        status = {"tokenSecretRef": reference, "expirationTimestamp": timestamp(b.NOW + timedelta(days=days))}
        dated = {**after.account, "status": status}
        dated["metadata"] = {**dated["metadata"], "creationTimestamp": made}
        plan = plan_spoke(attrs.evolve(after, account=dated), PROFILE, b.NOW)
        removed = [effect.object["kind"] for effect in plan.effects if isinstance(effect, Delete)]
        assert removed == (["ManagedServiceAccount"] if anew else [])

    def test_only_what_looks_like_the_addons_is_taken(self) -> None:
        adopting = attrs.evolve(KUBECONFIG, adopt=Adopt.ADDON)
        plan = plan_spoke(changed(self.addons(), worker=b.worker()), adopting, b.NOW)
        assert (plan.effects, plan.conflict is not None) == ((), True)

    def test_nothing_is_taken_of_a_cluster_that_is_not_selected(self) -> None:
        adopting = attrs.evolve(KUBECONFIG, adopt=Adopt.ADDON)
        for in_use in (True, False):
            assert plan_spoke(changed(self.addons(), selected=False, in_use=in_use), adopting, b.NOW).effects == ()

    def test_what_stays_of_such_a_cluster_is_told(self) -> None:
        """Who made it is off, and nobody else says that a token of 360 days is there, with a role."""
        adopting, unselected = attrs.evolve(PROFILE, adopt=Adopt.ADDON), changed(self.addons(), selected=False)
        left = plan_spoke(unselected, adopting, b.NOW).left
        for kind in ("MultiKueueCluster c1", "ManagedServiceAccount c1/multikueue", "ClusterPermission c1/multikueue"):
            assert kind in left
        assert not plan_spoke(unselected, PROFILE, b.NOW).left, "the addon may run"
        assert not plan_spoke(self.addons(), adopting, b.NOW).left
        assert not plan_spoke(changed(settled(fresh(), PROFILE), selected=False), adopting, b.NOW).left

    def recipe(self, *, in_use: bool = True, settings: SpokeSettings = PROFILE) -> Spoke:
        name = "kueue-admin-c1-kubeconfig"
        secret = b.made(SECRET, name, b.NAMESPACE, data={"kubeconfig": "eA=="})
        older = b.worker("placement-c1", b.kubeconfig_source(name))
        return changed(fresh(settings, worker=older, older_secret=secret), in_use=in_use)

    def test_one_cluster_is_not_made_two_workers(self) -> None:
        plan = plan_spoke(self.recipe(), PROFILE, b.NOW)
        assert (plan.effects, plan.conflict is not None) == ((), True)

    @BOTH
    def test_a_worker_of_the_older_recipe_keeps_its_name_and_gets_new_credentials(
        self, settings: SpokeSettings
    ) -> None:
        """Its jobs are recorded under that name; the old kubeconfig has a token that nobody renews."""
        adopting = attrs.evolve(settings, adopt=Adopt.RECIPE_2024)
        spoke = self.recipe(settings=settings)
        first = plan_spoke(spoke, adopting, b.NOW)
        assert short(first) == [
            "Create ManagedServiceAccount",
            "Create ClusterPermission",
            *(["Create Secret"] if settings is KUBECONFIG else []),
            "Patch MultiKueueCluster",
        ]
        after = settled(spoke, adopting)
        assert worker_of(after)["metadata"]["name"] == "placement-c1"
        source = {"clusterProfileRef": {"name": "c1"}} if settings is PROFILE else b.kubeconfig_source("multikueue-c1")
        assert worker_of(after)["spec"]["clusterSource"] == source
        assert after.older_secret is None
        assert short(plan_spoke(changed(after, managed=None), adopting, b.NOW))[0] == "Delete MultiKueueCluster"
        assert plan_spoke(changed(after, selected=False), adopting, b.NOW).effects == ()
        ended = changed(after, selected=False, in_use=False)
        assert short(plan_spoke(ended, adopting, b.NOW))[0] == "Delete MultiKueueCluster"

    def test_a_name_of_the_older_recipe_that_nobody_uses_gives_way(self) -> None:
        adopting = attrs.evolve(PROFILE, adopt=Adopt.RECIPE_2024)
        after = settled(self.recipe(in_use=False), adopting)
        assert worker_of(after)["metadata"]["name"] == "c1"

    def test_a_worker_that_is_anothers_is_not_taken_for_this_one(self) -> None:
        """The worker PLACEMENT-c1 of the ManagedCluster c1, and a ManagedCluster of that name."""
        whole = settled(fresh(), PROFILE)
        other = Spoke(name_of(worker_of(whole)) + "-x", workers=whole.workers)
        assert plan_spoke(other, PROFILE, b.NOW).effects == ()
        assert (
            plan_spoke(changed(other, selected=True, managed=b.managed(other.name)), PROFILE, b.NOW).conflict
            is not None
        )


def test_durations_are_written_as_go_writes_them() -> None:
    assert duration(timedelta(days=1)) == "24h0m0s"
    assert duration(timedelta(hours=36, minutes=5, seconds=7)) == "36h5m7s"
