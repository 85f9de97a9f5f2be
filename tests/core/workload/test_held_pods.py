"""Pods that our own scheduling gate holds on the manager: with `pods.check: Ready` their check becomes Ready."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs
import pytest

from multikueue import PlanSettings
from multikueue.adapters import SafeAdapter
from multikueue.adapters.sets import STATEFUL_SET
from multikueue.core.model.labels import ADMISSION_GATE, HOLDING_GATE, PODSET_LABEL, TOPOLOGY_GATE
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import check
from tests.core.building import CHECK, CopyFacts, condition, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import NOW, ApplyStatus, CreateJob, Plan, Snapshot, decide, only, those
from tests.core.pods import DONE, RUNNING, copied, group, place, pod, seen
from tests.core.wording import in_words

READY = PlanSettings(pods_ready=True)
TWO: Json = {"podSets": [{"name": "main", "count": 2, "template": {"spec": {"containers": []}}}]}
NOMINATED = group("a", "b", nominated=("w1",), spec=TWO)
RECORDED = group("a", "b", cluster="w1", spec=TWO)
ADMITTED = group("a", "b", cluster="w1", check="Ready", spec=TWO)


def held(name: str, status: Json | None = None, *, opened: bool = False, **facts: Any) -> Json:
    """The manager's pod behind our gate as well; `opened`: its Kueue has started it."""
    made = pod(name, status, **facts)
    gates = [{"name": HOLDING_GATE}] if opened else [{"name": ADMISSION_GATE}, {"name": HOLDING_GATE}]
    made["spec"]["schedulingGates"] = gates
    if opened:
        made["metadata"]["labels"][PODSET_LABEL] = "main"
        made["spec"]["nodeSelector"] = {"flavor": "of-the-manager"}
    return made


def shown(local: Json, pods: list[Json], *copies: Json, **facts: Any) -> Snapshot:
    made = copy_of(local, admitted=True, owned=bool(copies))
    return seen(local, pods, place("w1", made, *copies), **facts)


def words(snap: Snapshot, settings: PlanSettings = READY) -> list[str]:
    return in_words(snap, decide(snap, settings=settings))


def message(decided: Plan) -> str:
    """What a plan writes as the message of our check."""
    write = only(ApplyStatus, (*decided.effects, *decided.telling))
    return str((check(write.object, CHECK) or {})["message"])


def state_in(body: Json) -> str:
    """The state of our check in what is written."""
    return str((check(body, CHECK) or {}).get("state") or "")


def already_saying(local: Json, text: str) -> Json:
    """The Workload with this message of our check."""
    local["status"]["admissionChecks"][0]["message"] = text
    return local


class TestReady:
    def test_its_worker_is_recorded_first_and_the_check_stays_pending(self) -> None:
        assert words(shown(NOMINATED, [held("a"), held("b")])) == ["admit on w1 as Pending", "tell", "count cq w1"]

    def test_it_becomes_ready_once_the_copies_are_there(self) -> None:
        pods = [held("a"), held("b")]
        snap = shown(RECORDED, pods, *(copied(RECORDED, pod) for pod in pods))
        assert words(snap)[:1] == ["admit on w1 as Ready"]

    def test_not_while_one_of_them_is_missing(self) -> None:
        assert words(shown(RECORDED, [held("a"), held("b")])) == ["create job on w1", "create job on w1"]

    def test_the_default_is_pending_whatever_the_pods_carry(self) -> None:
        pods = [held("a"), held("b")]
        snap = shown(NOMINATED, pods, *(copied(NOMINATED, pod) for pod in pods))
        assert words(snap, PlanSettings()) == ["admit on w1 as Pending", "tell", "count cq w1"]

    @pytest.mark.parametrize("ended", [held("b", DONE), pod("b", DONE), pod("b", deleting=True)], ids=lambda _: "")
    def test_what_has_ended_or_goes_needs_no_gate(self, ended: Json) -> None:
        """It will not be scheduled any more."""
        snap = shown(RECORDED, [held("a"), ended], copied(RECORDED, held("a"), RUNNING))
        assert "admit on w1 as Ready" in words(snap)

    def test_a_check_that_is_ready_stays_so_when_the_setting_is_taken_back(self) -> None:
        pods = [held("a", RUNNING, opened=True), held("b", RUNNING, opened=True)]
        local = already_saying(
            group("a", "b", cluster="w1", check="Ready", spec=TWO), 'The workload was admitted on "w1"'
        )
        snap = shown(local, pods, *(copied(local, pod) for pod in pods))
        assert words(snap, PlanSettings()) == []

    def test_a_worker_that_was_told_while_the_check_stayed_pending_is_counted_once(self) -> None:
        """The pod without the gate has been replaced."""
        why = 'The workload was admitted on "w1" — the check stays Pending: Pod "b" lacks the scheduling gate'
        pods = [held("a", RUNNING), held("b", RUNNING)]
        local = already_saying(group("a", "b", cluster="w1", spec=TWO), why)
        assert words(shown(local, pods, *(copied(local, pod) for pod in pods))) == ["admit on w1 as Ready"]


class TestStaysPending:
    LACKS = 'Pod "b" lacks the scheduling gate multikueue.dev/dispatched, which only new pods can get'

    def test_one_pod_without_the_gate_is_enough(self) -> None:
        """It was made while nobody was asked about new pods; Kueue would start it on the manager."""
        pods = [held("a"), pod("b")]
        decided = decide(shown(NOMINATED, pods, *(copied(NOMINATED, pod) for pod in pods)), settings=READY)
        assert message(decided) == f'The workload was admitted on "w1" — the check stays Pending: {self.LACKS}'

    def test_a_pod_that_cannot_be_seen_may_lack_it(self) -> None:
        decided = decide(shown(NOMINATED, [held("a")], copied(NOMINATED, held("a"))), settings=READY)
        assert message(decided).endswith("the check stays Pending: 1 of 2 pods can be seen")

    def test_a_replacement_that_lacks_it_is_told_of(self) -> None:
        """Before the check was Ready: the worker is recorded, and its pods were being created."""
        local = already_saying(
            group("a", "b", cluster="w1", spec=TWO),
            'The workload was admitted on "w1"',
        )
        pods = [held("a", RUNNING), pod("b", RUNNING)]
        decided = decide(shown(local, pods, *(copied(local, pod) for pod in pods)), settings=READY)
        assert message(decided) == f'The workload was admitted on "w1" — the check stays Pending: {self.LACKS}'

    def test_what_comes_without_it_to_a_group_that_is_ready_may_run_on_the_manager(self) -> None:
        """Nothing can be done about it but to say so."""
        local = already_saying(
            group("a", "b", cluster="w1", check="Ready", spec=TWO), 'The workload was admitted on "w1"'
        )
        pods = [held("a", RUNNING, opened=True), pod("b", RUNNING)]
        decided = decide(shown(local, pods, *(copied(local, pod) for pod in pods)), settings=READY)
        assert message(decided) == f'The workload was admitted on "w1" — it may run on the manager: {self.LACKS}'

    def test_and_is_not_copied(self) -> None:
        """Kueue is about to open its gate: it would run on both."""
        local = group("a", "b", cluster="w1", check="Ready", spec=TWO)
        snap = shown(local, [held("a", RUNNING, opened=True), pod("b")], copied(local, held("a")))
        assert not those(CreateJob, decide(snap, settings=READY).effects)
        assert not those(CreateJob, decide(snap).effects)

    def test_a_set_cannot_be_held(self) -> None:
        """Its pods are made by the manager's own controllers, and nobody asks us about them."""
        local = workload(owner=("apps/v1", "StatefulSet"), nominated=("w1",))
        made = worker("w1", copy_of(local, admitted=True))
        decided = decide(snapshot(local, made, adapter=STATEFUL_SET), settings=READY)
        why = "nothing but Kueue's gates can keep a StatefulSet from running on the manager"
        assert message(decided) == f'The workload was admitted on "w1" — the check stays Pending: {why}'

    def test_a_rule_that_fails_keeps_it_pending(self) -> None:
        def fails(_: Json) -> str:
            raise KeyError("spec")

        assert STATEFUL_SET.holding is None
        (row,) = [adapter for adapter in [seen(NOMINATED, []).adapter] if isinstance(adapter, SafeAdapter)]
        assert row.row.holding is not None
        broken = attrs.evolve(row.row, holding=attrs.evolve(row.row.holding, why_free=fails))
        pods = [held("a"), held("b")]
        snap = attrs.evolve(shown(NOMINATED, pods), adapter=SafeAdapter(broken))
        decided = decide(snap, settings=READY)
        assert message(decided).endswith("the check stays Pending: that cannot be told")


class TestEveryPairOfPods:
    """Kueue opens its gates once the check is Ready: what is not held would run on the manager as well."""

    FORMS: ClassVar[Mapping[str, Callable[[str], Json | None]]] = {
        "held": held,
        "opened": lambda name: held(name, RUNNING, opened=True),
        "free": pod,
        "free, as its copy runs": lambda name: pod(name, RUNNING),
        "free, ended": lambda name: pod(name, DONE),
        "free, going": lambda name: pod(name, deleting=True),
        "unseen": lambda name: None,
    }
    MAY_RUN = frozenset(("free", "free, as its copy runs", "unseen"))
    STAGES: ClassVar[Mapping[str, CopyFacts]] = {
        "offered": {"admitted": True},
        "running": {"admitted": True, "owned": True},
        "ended": {"admitted": True, "owned": True, "finished": "Succeeded"},
    }

    @pytest.mark.parametrize("pods_ready", [True, False])
    @pytest.mark.parametrize("recorded", [True, False])
    @pytest.mark.parametrize("copied_there", [True, False])
    @pytest.mark.parametrize("stage", STAGES)
    def test_none_becomes_ready_that_may_run_here(
        self, stage: str, *, copied_there: bool, recorded: bool, pods_ready: bool
    ) -> None:
        became_ready = 0
        for forms in itertools.product(self.FORMS, repeat=2):
            local = group("a", "b", spec=TWO, **({"cluster": "w1"} if recorded else {"nominated": ("w1",)}))
            pods = [
                made for form, name in zip(forms, "ab", strict=True) if (made := self.FORMS[form](name)) is not None
            ]
            copies = [copied(local, pod) for pod in pods if copied_there]
            snap = seen(local, pods, place("w1", copy_of(local, **self.STAGES[stage]), *copies))
            writes = decide(snap, settings=PlanSettings(pods_ready=pods_ready)).effects
            ready = [effect for effect in those(ApplyStatus, writes) if state_in(effect.object) == "Ready"]
            if ready:
                assert pods_ready, forms
                assert self.MAY_RUN.isdisjoint(forms), forms
                became_ready += 1
        assert (became_ready > 0) == (pods_ready and (copied_there or stage == "ended")), became_ready


class TestLater:
    def test_what_comes_later_is_copied_without_what_kueue_filled_in(self) -> None:
        """Its gate is open already: the Workload was admitted before the pod came."""
        local = group("a", "b", cluster="w1", check="Ready", spec=TWO)
        late = held("b", opened=True)
        late["spec"]["schedulingGates"].append({"name": TOPOLOGY_GATE})
        snap = shown(local, [held("a", RUNNING, opened=True), late], copied(local, held("a"), RUNNING))
        made = only(CreateJob, decide(snap, settings=READY).effects)
        assert made.object["spec"]["schedulingGates"] == [{"name": ADMISSION_GATE}]
        assert "nodeSelector" not in made.object["spec"]
        assert PODSET_LABEL not in made.object["metadata"]["labels"]

    def test_also_where_kueue_has_left_no_mark_on_it(self) -> None:
        """Which marks it leaves depends on its version; its gate is gone in any case."""
        late = held("b", opened=True)
        del late["metadata"]["labels"][PODSET_LABEL]
        local = group("a", "b", cluster="w1", check="Ready", spec=TWO)
        snap = shown(local, [held("a", RUNNING, opened=True), late], copied(local, held("a"), RUNNING))
        made = only(CreateJob, decide(snap, settings=READY).effects)
        assert "nodeSelector" not in made.object["spec"]

    def test_its_status_shows_that_it_is_gated_until_the_copy_is_scheduled(self) -> None:
        """Or the manager's autoscaler would make room for it."""
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        local = held("a", {"phase": "Pending", "conditions": [gated]}, opened=True)
        row = seen(ADMITTED, []).adapter
        assert row is not None
        remote = copied(ADMITTED, local, {"phase": "Pending", "conditions": [waiting]})
        assert row.status_patch(local, remote, NOW) is None


class TestCheckTakenOff:
    """Kueue takes a check that is no longer on the queue off its Workloads, the running ones too."""

    def test_what_is_held_runs_on_where_it_is(self) -> None:
        local = group("a", "b", cluster="w1", check=None, spec=TWO)
        pods = [held("a", RUNNING, opened=True), held("b", RUNNING, opened=True)]
        snap = shown(local, pods, *(copied(local, pod) for pod in pods), check=None)
        assert (decide(snap).row, words(snap)) == ("check taken off: follow", [])

    def test_what_cannot_be_seen_here_is_not_taken_from_its_worker(self) -> None:
        """The manager's pods may be refused to us for a while: what runs on the worker is not deleted for that."""
        local = group("a", "b", cluster="w1", check=None, spec=TWO)
        copies = [copied(local, held("a", RUNNING)), copied(local, held("b", RUNNING))]
        for pods in ([], [held("a", RUNNING, opened=True)]):
            assert decide(shown(local, pods, *copies, check=None), settings=READY).row == "check taken off: follow"
        free_here = shown(local, [pod("a", RUNNING)], *copies, check=None)
        assert decide(free_here, settings=READY).row == "not ours"

    def test_what_only_kueues_gate_held_runs_here_from_now_on(self) -> None:
        local = group("a", "b", cluster="w1", check=None, spec=TWO)
        pods = [pod("a", RUNNING), pod("b", RUNNING)]
        snap = shown(local, pods, *(copied(local, pod) for pod in pods), check=None)
        assert decide(snap).row == "not ours"

    def test_what_is_held_and_has_no_worker_is_told_of(self) -> None:
        """Kueue has started it, and it would wait for ever without a word."""
        local = group("a", "b", check=None, spec=TWO)
        local["status"]["conditions"].append(condition("Admitted", "Admitted"))
        pods = [held("a", opened=True), held("b", opened=True)]
        snap = seen(local, pods, place("w1", None), check=None)
        assert (decide(snap).row, words(snap)) == ("held without check", ["warn"])

    def test_so_is_a_group_of_which_only_some_are_held(self) -> None:
        """The others run on the manager, and wait there for the rest."""
        local = group("a", "b", check=None, spec=TWO)
        local["status"]["conditions"].append(condition("Admitted", "Admitted"))
        snap = seen(local, [held("a", opened=True), pod("b", RUNNING)], place("w1", None), check=None)
        assert (decide(snap).row, words(snap)) == ("held without check", ["warn"])


class TestTold:
    def test_an_attempt_after_an_eviction_is_told_and_counted_as_any_other(self) -> None:
        """Kueue leaves the message of a Pending check alone."""
        local = already_saying(group("a", "b", nominated=("w1",), spec=TWO), 'The workload was admitted on "w1"')
        snap = shown(local, [pod("a"), pod("b")])
        assert words(snap, PlanSettings())[1:] == ["tell", "count cq w1"]


class TestTimeIsOver:
    """A worker's Kueue has stopped it because it ran for as long as it may: it is not run again."""

    @staticmethod
    def over(local: Json) -> Json:
        made = copy_of(local, owned=True)
        made["spec"]["active"] = False
        made["status"]["conditions"] = [
            condition("QuotaReserved"),
            condition("Admitted"),
            condition("Evicted", "DeactivatedDueToMaximumExecutionTimeExceeded"),
        ]
        return made

    @pytest.mark.parametrize("state", ["Pending", "Ready"])
    @pytest.mark.parametrize("settings", [READY, PlanSettings()], ids=["Ready", "Pending"])
    def test_pods_are_deactivated_in_either_mode(self, state: str, settings: PlanSettings) -> None:
        local = group("a", "b", cluster="w1", check=state, spec=TWO)
        snap = seen(local, [held("a"), held("b")], place("w1", self.over(local)))
        assert words(snap, settings) == ["deactivate MaximumExecutionTimeExceeded", "warn"]

    def test_so_are_other_kinds(self) -> None:
        local = workload(cluster="w1", check="Ready")
        snap = snapshot(local, worker("w1", self.over(local), job_copy_of(local)))
        decided = decide(snap)
        assert in_words(snap, decided) == ["copy job status", "deactivate MaximumExecutionTimeExceeded", "warn"]
        write = only(ApplyStatus, decided.effects)
        target = next(entry for entry in write.object["status"]["conditions"] if entry["type"] == "DeactivationTarget")
        assert target["message"] == 'exceeding the maximum execution time on worker cluster "w1"'

    def test_it_is_asked_for_once(self) -> None:
        """The manager's Kueue is about to do it."""
        local = workload(cluster="w1", check="Ready")
        local["status"]["conditions"].append(condition("DeactivationTarget", "MaximumExecutionTimeExceeded"))
        assert words(snapshot(local, worker("w1", self.over(local), job_copy_of(local)))) == []

    def test_an_eviction_for_another_cause_is_tried_again(self) -> None:
        local = workload(cluster="w1", check="Ready")
        made = self.over(local)
        made["status"]["conditions"][2]["reason"] = "Deactivated"
        assert words(snapshot(local, worker("w1", made, job_copy_of(local)))) == [
            "copy job status",
            'retry: Workload evicted on worker cluster: "w1"',
            "tell",
        ]
