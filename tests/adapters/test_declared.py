"""Declared kinds: what each field of a declaration does, and what is said of one that cannot be used."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import DeclarationError, declared_kind
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import with_value
from multikueue.errors import RuleError

NOW = datetime(2026, 11, 21, tzinfo=UTC)
RULES = {
    "finished": "object.status.phase in ['Done', 'Broken']",
    "failed": "object.status.phase == 'Broken'",
    "message": "object.status.note",
}
STAMP = Stamp("site-a", "train-wl", "1")
MARKS = {"kueue.x-k8s.io/multikueue-origin": "site-a", "kueue.x-k8s.io/prebuilt-workload-name": "train-wl"}
NOTES = {"kueue.x-k8s.io/prebuilt-workload-name": "train-wl", "multikueue.dev/attempt": "1"}


def declare(**said: Any) -> JobKind:
    return declared_kind(Declaration(**{"name": "Widget.v1.example.com", **said}), "externalFrameworks[0]")


def widget(**parts: Any) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": "train",
            "namespace": "team",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"app": "x"},
            "ownerReferences": [{"name": "somebody"}],
        },
        "spec": {"managedBy": CONTROLLER_NAME, "size": 1},
        **copy.deepcopy(parts),
    }


def copy_of(kind: JobKind, job: Json) -> Json:
    """A copy as it lies on a worker."""
    return with_value(with_value(kind.copy(job, STAMP), ("metadata", "uid"), "there"), ("status",), {})


class TestShortForm:
    """Kueue's own: nothing but a name."""

    def test_it_does_what_kueues_adapter_does(self) -> None:
        kind = declare()

        assert kind.resource == Resource(GVK("example.com", "v1", "Widget"), "widgets")
        assert kind.not_delegated(widget(), CONTROLLER_NAME) is None
        assert kind.not_delegated(widget(spec={}), "c") == 'Expecting .spec.managedBy to be "c" not ""'
        assert kind.copy(widget(status={"phase": "New"}, data={"a": 1}), STAMP) == {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "train", "namespace": "team", "labels": {"app": "x", **MARKS}, "annotations": NOTES},
            "spec": {"size": 1},
        }
        assert not kind.traits.ends

    def test_all_of_the_status_is_shown_but_never_none(self) -> None:
        kind, local = declare(), widget(status={"phase": "New", "old": 1})
        patch = kind.status_patch(local, widget(status={"phase": "Done"}), NOW)

        assert patch == {"metadata": {"resourceVersion": "7"}, "status": {"phase": "Done", "old": None}}
        assert kind.status_patch(local, widget(), NOW) is None
        assert kind.status_patch(local, widget(status={"phase": "New", "old": 1}), NOW) is None

    @pytest.mark.parametrize(
        ("name", "plural"), [("Widget", "widgets"), ("Bus", "buses"), ("Policy", "policies"), ("RayJob", "rayjobs")]
    )
    def test_the_plural_is_the_usual_one_until_the_server_is_asked(self, name: str, plural: str) -> None:
        assert declare(name=f"{name}.v1.example.com").resource.plural == plural


class TestDelegation:
    def test_by_a_field_elsewhere(self) -> None:
        kind = declare(managed_by_path=".spec.runPolicy.managedBy")
        job = widget(spec={"runPolicy": {"managedBy": "c", "ttl": 1}})

        assert kind.not_delegated(job, "c") is None
        assert kind.copy(job, STAMP)["spec"] == {"runPolicy": {"ttl": 1}}

    @pytest.mark.parametrize(("label", "value"), [("run-by", "multikueue"), ("example.com/run-by=us", "us")])
    def test_by_a_label(self, label: str, value: str) -> None:
        """The copy is without it: the worker's controller takes what has no such label."""
        kind, key = declare(managed_by_label=label), label.partition("=")[0]
        job = with_value(widget(), ("metadata", "labels", key), value)

        assert kind.not_delegated(job, CONTROLLER_NAME) is None
        assert f'to be "{value}" not ""' in (kind.not_delegated(widget(), CONTROLLER_NAME) or "")
        assert kind.copy(job, STAMP)["metadata"]["labels"] == {"app": "x", **MARKS}

    def test_by_nobody_running_them_here(self) -> None:
        """The manager has the definition and no controller for it."""
        kind = declare(always_delegated=True)
        job = widget(spec={"managedBy": "whoever", "size": 1})

        assert kind.not_delegated(job, CONTROLLER_NAME) is None
        assert kind.copy(job, STAMP)["spec"] == {"managedBy": "whoever", "size": 1}
        assert declare(always_delegated=False).not_delegated(job, CONTROLLER_NAME) is not None


class TestStatus:
    def test_some_fields(self) -> None:
        kind = declare(status_paths=(".status.phase", ".status.pods.ready"))
        local = widget(status={"phase": "New", "own": 1, "pods": {"ready": 1, "mine": 2}})
        patch = kind.status_patch(local, widget(status={"phase": "Done", "own": 2, "pods": {}}), NOW)

        assert patch == {"metadata": {"resourceVersion": "7"}, "status": {"phase": "Done", "pods": {"ready": None}}}

    @pytest.mark.parametrize("said", [None, True, False])
    def test_where_it_is_written(self, said: bool | None) -> None:
        assert declare(status_subresource=said).status.subresource is (said is not False)


class TestEnd:
    @pytest.mark.parametrize(
        ("status", "outcome"),
        [
            ({}, None),
            ({"phase": "Running"}, None),
            ({"phase": "Done"}, Outcome("Succeeded", "Job finished successfully")),
            ({"phase": "Broken"}, Outcome("Failed", "Job failed")),
            ({"phase": "Broken", "note": "out of memory"}, Outcome("Failed", "out of memory")),
            ({"phase": "Done", "note": 7}, Outcome("Succeeded", "Job finished successfully")),
        ],
    )
    def test_as_the_expressions_tell(self, status: Json, outcome: Outcome | None) -> None:
        kind = declare(**RULES)
        assert kind.traits.ends
        assert kind.outcome(widget(status=status)) == outcome

    def test_a_kind_may_only_say_how_it_fails(self) -> None:
        kind = declare(failed="object.status.broken")
        assert kind.outcome(widget(status={"broken": True})) == Outcome("Failed", "Job failed")
        assert kind.outcome(widget(status={"broken": False})) is None

    def test_a_job_that_runs_nowhere_shows_what_one_shows_that_never_started(self) -> None:
        """Kueue keeps the quota of a job that seems to run. What has ended keeps what it says of that."""
        kind = declare(**RULES)
        patch = kind.release_patch(widget(status={"phase": "Running", "pods": 2}))

        assert patch == {"metadata": {"resourceVersion": "7"}, "status": None}
        assert kind.release_patch(widget(status={"phase": "Done"})) is None
        assert kind.release_patch(widget()) is None

        some = declare(status_paths=(".status.phase",), **RULES)
        patch = some.release_patch(widget(status={"phase": "Running", "own": 1}))
        assert patch == {"metadata": {"resourceVersion": "7"}, "status": {"phase": None}}

    def test_without_a_rule_for_its_end_a_status_is_never_taken_back(self) -> None:
        """It may be that of a job that has ended."""
        assert declare().release_patch(widget(status={"phase": "Running"})) is None

    def test_a_rule_that_fails_does_not_hold_up_what_is_shown(self) -> None:
        kind = declare(finished="object.status.n + 1 > 0", suspend_path=".spec.suspend")
        for spec in ({}, {"suspend": True}):
            assert kind.status_patch(widget(spec=spec), widget(status={"n": "many"}), NOW) is not None

    def test_a_rule_that_fails_names_the_setting(self) -> None:
        message = r"externalFrameworks\[0\]\.finished: object.status.n \+ 1 > 0: Unsupported operation: string \+ int$"
        with pytest.raises(RuleError, match=message):
            declare(finished="object.status.n + 1 > 0").outcome(widget(status={"n": "many"}))


class TestPods:
    """What its status says of pods that run, end, or are gone; nothing unless it is declared."""

    RUNS = widget(spec={"suspend": True}, status={"phase": "Stopping", "pods": 2})
    WAITS = widget(spec={"suspend": True}, status={"phase": "Queued"})
    GONE = widget(spec={"suspend": True}, status={"phase": "Stopped", "pods": 0})

    def test_what_runs_or_still_ends(self) -> None:
        """A job that waits has a status as well: only a declared word for it tells the two apart."""
        kind = declare(suspend_path=".spec.suspend", active="object.status.pods > 0", **RULES)
        assert kind.is_stopped_here(self.RUNS)
        assert not kind.is_stopped_here(with_value(self.RUNS, ("spec", "suspend"), False))
        assert kind.release_patch(self.RUNS) == {"metadata": {"resourceVersion": "7"}, "status": None}
        for job in (self.WAITS, self.GONE, widget()):
            assert not kind.is_stopped_here(job)
            assert kind.release_patch(job) is None
        unknown = declare(suspend_path=".spec.suspend", **RULES)
        assert not unknown.is_stopped_here(self.RUNS)

    def test_without_a_rule_for_its_end_what_is_active_has_not_ended(self) -> None:
        assert declare(active="object.status.pods > 0").release_patch(self.RUNS) is not None

    def test_what_has_no_pods_left(self) -> None:
        kind = declare(pods_gone="object.status.phase == 'Stopped'")
        assert [kind.pods_are_gone(job) for job in (self.RUNS, self.WAITS, self.GONE)] == [False, False, True]
        assert not declare().pods_are_gone(self.GONE)

    def test_by_which_label_they_are_found(self) -> None:
        assert declare(pods_label="example.com/widget").traits.pods_label == "example.com/widget"
        assert declare().traits.pods_label == ""

    def test_a_suspended_job_does_not_show_that_its_copy_runs(self) -> None:
        """By the declared value, too."""
        held: dict[str, Any] = {"suspend_path": ".spec.mode", "suspend_value": "Held"}
        local, remote = (widget(spec={"mode": mode}, status={"phase": mode}) for mode in ("Held", "Go"))
        kind = declare(**held, **RULES)
        assert kind.status_patch(local, remote, NOW) is None
        assert kind.status_patch({**local, "spec": {}}, remote, NOW) is not None
        assert declare(**held).status_patch(local, remote, NOW) is not None, "it may be the end: nobody knows"


class TestCopies:
    def test_they_are_made_suspended_if_it_is_known_how(self) -> None:
        """One that is made again, of a job that runs by then, must wait for the worker's Kueue, too."""
        assert declare(suspend_path=".spec.suspend").copy(widget(), STAMP)["spec"] == {"size": 1, "suspend": True}
        held = declare(suspend_path=".spec.run.state", suspend_value="Pending")
        assert held.copy(widget(), STAMP)["spec"] == {"size": 1, "run": {"state": "Pending"}}

    def test_a_job_that_cannot_be_suspended_is_told(self) -> None:
        with pytest.raises(RuleError, match=r"\.spec\.size\.suspend cannot be set: \.spec\.size is not an object"):
            declare(suspend_path=".spec.size.suspend").copy(widget(), STAMP)

    def test_patches_change_what_they_like_but_the_marks(self) -> None:
        kind = declare(
            creation_patches=(
                {"op": "add", "path": "/spec/queue", "valueExpression": "object.metadata.namespace + '/' + workload"},
                {"op": "add", "path": "/metadata/annotations/from", "valueExpression": "origin"},
                {"op": "add", "path": "/data", "valueExpression": "object.data"},
            )
        )
        made = kind.copy(widget(data={"a": 1}), STAMP)

        assert made["spec"] == {"size": 1, "queue": "team/train-wl"}
        assert made["metadata"]["annotations"] == {"from": "site-a", **NOTES}
        assert made["data"] == {"a": 1}

    def test_a_patch_that_does_not_apply_names_the_setting(self) -> None:
        with pytest.raises(RuleError, match=r"externalFrameworks\[0\]\.creationPatches\[0\]: remove /spec/x does not"):
            declare(creation_patches=({"op": "remove", "path": "/spec/x"},)).copy(widget(), STAMP)


class TestFollowing:
    def follow(self, kind: JobKind, before: Json, after: Json) -> Json | None:
        return kind.forward_patch(after, copy_of(kind, before), STAMP)

    def test_nothing_follows_unless_it_is_declared(self) -> None:
        assert self.follow(declare(), widget(), widget(spec={"size": 9})) is None

    def test_fields_of_the_spec(self) -> None:
        kind = declare(forwarded_paths=(".spec.size", ".spec.limits"))
        after = widget(spec={"limits": {"cpu": 1}, "other": 1})

        patch = self.follow(kind, widget(), after)
        assert patch == {"metadata": {"uid": "there"}, "spec": {"size": None, "limits": {"cpu": 1}}}
        assert self.follow(kind, after, after) is None

    def test_all_labels_but_those_of_one_cluster(self) -> None:
        """Workers add labels of their own: what only the copy has stays. The delegation must not follow."""
        kind = declare(forwarded_paths=(".metadata.labels",), managed_by_label="run-by=us")
        after = widget()
        after["metadata"]["labels"] = {"app": "y", "team": "red", "kueue.x-k8s.io/queue-name": "q", "run-by": "us"}

        patch = self.follow(kind, widget(), after)
        assert patch == {"metadata": {"uid": "there", "labels": {"app": "y", "team": "red"}}}

    @pytest.mark.parametrize("path", [".metadata.labels", ".metadata.annotations"])
    def test_a_job_without_any_takes_none_from_its_copy(self, path: str) -> None:
        """Those of the copy are its marks: without them it would be nobody's, and would run on."""
        kind, after = declare(forwarded_paths=(path,)), widget()
        del after["metadata"]["labels"]
        assert self.follow(kind, after, after) is None

    @pytest.mark.parametrize("run", [{"managedBy": CONTROLLER_NAME, "suspend": False}, {"suspend": None}, None])
    def test_what_holds_a_copy_back_does_not_follow_with_what_is_around_it(self, run: Json | None) -> None:
        """The worker's Kueue decides when it runs, whatever the manager's has decided."""
        kind = declare(
            managed_by_path=".spec.run.managedBy", suspend_path=".spec.run.suspend", forwarded_paths=(".spec.run",)
        )
        assert self.follow(kind, widget(spec={"run": {"suspend": True}}), widget(spec={"run": run})) is None

    @pytest.mark.parametrize(
        "said",
        [
            {"forwarded_paths": (".spec.template",)},
            {"forwarded_paths": (".spec.template.metadata.labels['kueue.x-k8s.io/multikueue-origin']",)},
            {"sync_patches": ({"op": "add", "path": "/spec/template", "valueExpression": "object.spec.template"},)},
        ],
    )
    def test_a_template_follows_without_our_origin_label(self, said: dict[str, Any]) -> None:
        """What a worker's controllers make of it has its labels: it counted as copies again."""
        marked = {"kueue.x-k8s.io/multikueue-origin": "site-a", "app": "x"}
        local = widget(spec={"template": {"metadata": {"labels": marked}}})
        kind = declare(**said)
        assert copy_of(kind, local)["spec"] == {"template": {"metadata": {"labels": {"app": "x"}}}}
        assert self.follow(kind, local, local) is None
        assert local["spec"]["template"]["metadata"]["labels"] == marked

    def test_a_list_is_patched_only_as_it_was_read(self) -> None:
        """A merge patch replaces it, with all that somebody else may have put there in between."""
        step = {"op": "add", "path": "/spec/steps/0/size", "valueExpression": "object.spec.steps[0].size"}
        kind, before = declare(sync_patches=(step,)), widget(spec={"steps": [{"size": 1}]})
        seen = with_value(copy_of(kind, before), ("metadata", "resourceVersion"), "12")

        patch = kind.forward_patch(widget(spec={"steps": [{"size": 2}]}), seen, STAMP)
        assert patch == {
            "metadata": {"uid": "there", "resourceVersion": "12"},
            "spec": {"steps": [{"size": 2}]},
        }

    def test_one_label_with_its_removal(self) -> None:
        kind = declare(forwarded_paths=(".metadata.labels['kueue.x-k8s.io/priority-class']", ".metadata.labels.app"))
        after = widget()
        after["metadata"]["labels"] = {"kueue.x-k8s.io/priority-class": "high"}

        patch = self.follow(kind, widget(), after)
        labels = {"kueue.x-k8s.io/priority-class": "high", "app": None}
        assert patch == {"metadata": {"uid": "there", "labels": labels}}

    def test_a_patch_that_is_done_each_time(self) -> None:
        kind = declare(
            sync_patches=(
                {"op": "add", "path": "/spec/size", "valueExpression": "object.spec.size + 1"},
                {
                    "op": "add",
                    "path": "/metadata/labels/seen",
                    "valueExpression": "size(remote.status) > 0 ? 'y' : 'n'",
                },
            )
        )
        patch = self.follow(kind, widget(), widget(spec={"size": 4}))
        assert patch == {"metadata": {"uid": "there", "labels": {"seen": "n"}}, "spec": {"size": 5}}


def test_jobs_may_be_somebody_elses_to_move() -> None:
    assert declare(workload_only=True).workload_only
    assert not declare().workload_only


@pytest.mark.parametrize(
    ("said", "field", "why"),
    [
        ({"name": "Widget"}, "name", "must be in 'Kind.version.group' format"),
        ({"name": "widget.v1.example.com"}, "name", "with a capital letter"),
        ({"name": "example.com/v1, Kind=Widget"}, "name", "write it Widget.v1.example.com"),
        ({"name": "Widget.one.example.com"}, "name", "must be in"),
        ({"name": 7}, "name", "must be in"),
        (
            {"name": "Workload.v1beta2.kueue.x-k8s.io"},
            "name",
            "whose objects are no jobs: Kueue, Kubernetes or we work",
        ),
        ({"name": "Topology.v1beta1.kueue.x-k8s.io"}, "name", "name the kind that people submit"),
        ({"name": "Secret.v1."}, "name", "Secret.v1. is a kind whose objects are no jobs"),
        ({"name": "Pod.v1."}, "name", "write pod in integrations.frameworks in place of this entry"),
        ({"name": "Deployment.v1.apps"}, "name", "write deployment in integrations.frameworks"),
        ({"name": None}, "name", "must be in"),
        ({"creation_patches": (None,)}, "creationPatches[0]", "None is not a step of a patch"),
        ({"active": "status.pods > 0"}, "active", "there is no variable 'status'"),
        ({"pods_gone": "object.status ="}, "podsGone", "is not an expression in CEL"),
        ({"pods_label": "example.com/widget=mine"}, "podsLabel", "is not the key of a label"),
        ({"status_paths": (None,)}, "statusPaths[0]", "an empty path names no field"),
        (
            {"creation_patches": ({"op": ["add"], "path": "/spec/a", "value": 1},)},
            "creationPatches[0]",
            "op: ['add'] is not one of add, replace",
        ),
        ({"profile": "argo"}, "profile", "there is no profile 'argo': use generic, PipelineRun.v1.tekton.dev"),
        ({"plural": "Wid gets"}, "plural", "is not what URLs call a kind: write it like widgets"),
        ({"managed_by_path": "spec[0]"}, "managedByPath", "names an item of a list"),
        ({"managed_by_path": ".status.by"}, "managedByPath", "must be a field of .spec, a label or an annotation"),
        ({"managed_by_label": "a b"}, "managedByLabel", "write KEY=VALUE"),
        ({"managed_by_label": "a..b/run-by=fleet"}, "managedByLabel", "write KEY=VALUE"),
        ({"pods_label": f"{'a' * 300}/widget"}, "podsLabel", "is not the key of a label"),
        ({"managed_by_path": ".spec.a", "managed_by_label": "a"}, "managedByLabel", "keep one of the two"),
        ({"always_delegated": True, "managed_by_path": ".spec.a"}, "managedByPath", "remove one of the two"),
        ({"suspend_path": ".metadata.labels.x"}, "suspendPath", "must be a field of .spec"),
        ({"suspend_path": ".spec.managedBy"}, "suspendPath", "says who runs it, and cannot hold it, too"),
        ({"managed_by_path": ".spec.run.by", "suspend_path": ".spec.run"}, "suspendPath", "says who runs it"),
        ({"managed_by_path": ".spec.run", "suspend_path": ".spec.run.off"}, "suspendPath", "says who runs it"),
        ({"suspend_value": "Held"}, "suspendValue", "not used without suspendPath"),
        ({"status_paths": (".status", ".status.a")}, "statusPaths[0]", "must be a field of .status"),
        ({"finished": "object.status."}, "finished", "at character 15"),
        ({"failed": "status.phase == 'Broken'"}, "failed", "there is no variable 'status'; there is object"),
        ({"creation_patches": ({"op": "add"},)}, "creationPatches[0]", "path: add needs it"),
        (
            {"creation_patches": ({"op": "add", "path": "/spec/a", "valueExpression": "remote.x"},)},
            "creationPatches[0]",
            "there is no variable 'remote'; there is object and workload and origin",
        ),
        ({"sync_patches": ({"op": "add", "path": "/status", "value": 1},)}, "syncPatches[0]", "belongs to the worker"),
        ({"forwarded_paths": (".spec",)}, "forwardedPaths[0]", "must be a field of .spec"),
        (
            {"forwarded_paths": (".spec.a", ".metadata.labels['kueue.x-k8s.io/queue-name']")},
            "forwardedPaths[1]",
            "is what the copy is found by",
        ),
        ({"forwarded_paths": (".spec.managedBy",)}, "forwardedPaths[0]", "says who runs it: a copy has its own"),
        ({"forwarded_paths": (".spec.a",), "suspend_path": ".spec.a"}, "forwardedPaths[0]", "each cluster's Kueue"),
        ({"forwarded_paths": (".spec.ttlSecondsAfterFinished",)}, "forwardedPaths[0]", "deletes it at its end"),
        (
            {"name": "Workflow.v1alpha1.argoproj.io", "forwarded_paths": (".spec.a", ".spec.ttlStrategy.secondsAfter")},
            "forwardedPaths[1]",
            "deletes it at its end",
        ),
        ({"workload_only": True, "forwarded_paths": (".spec.a",)}, "forwardedPaths", "remove one of the two"),
    ],
)
def test_a_fault_is_told_with_its_field_and_what_to_do(said: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(**said)

    assert [place for place, _ in refused.value.faults] == [field]
    assert why in refused.value.faults[0][1]
    assert str(refused.value).startswith(f"externalFrameworks[0].{field}: ")


@pytest.mark.parametrize(
    "kind", [kind for kind in AVAILABLE if kind.keeps_check_pending], ids=lambda kind: kind.framework
)
def test_a_kind_of_pods_is_not_declared(kind: JobKind) -> None:
    """Ready would start them on the manager, too: only the built-in row keeps the check Pending."""
    gvk = kind.resource.gvk
    with pytest.raises(DeclarationError, match=f"write {kind.framework} in integrations.frameworks"):
        declare(name=f"{gvk.kind}.{gvk.version}.{gvk.group}", always_delegated=True)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(name="x", finished="1 +", status_paths=("a", "b"))
    assert [place for place, _ in refused.value.faults] == ["name", "finished", "statusPaths[0]", "statusPaths[1]"]
