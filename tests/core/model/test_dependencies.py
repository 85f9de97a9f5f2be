"""What pod templates name, and what becomes of each object on a worker."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from multikueue.core.model.dependencies import (
    MAX_OWNERS,
    CopyStep,
    Dependency,
    DependencyMark,
    Users,
    copy_for,
    decide,
    dependencies_of,
    owning_patch,
    replacing_patch,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import clone

SEAL = DependencyMark.of(b"key", "w1", "team")
MAP, TEMPLATE = Dependency("ConfigMap", "settings"), Dependency("ResourceClaimTemplate", "gpu")
OWNER = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": "train", "uid": "u1"}
OTHER = {**OWNER, "name": "other", "uid": "u2"}
IDLE, BUSY = Users(present=True), Users(present=True, running="other")


def of(spec: Json) -> set[tuple[str, str, bool]]:
    dependencies = dependencies_of({"spec": {"podSets": [{"template": {"spec": spec}}]}})
    return {(dependency.kind, dependency.name, dependency.required) for dependency in dependencies}


def variable(**source: Any) -> Json:
    return {"containers": [{"env": [{"name": "X", "valueFrom": source}]}]}


@pytest.mark.parametrize(
    ("spec", "kind", "required"),
    [
        (variable(configMapKeyRef={"name": "x", "key": "k"}), "ConfigMap", True),
        (variable(configMapKeyRef={"name": "x", "key": "k", "optional": True}), "ConfigMap", False),
        (variable(secretKeyRef={"name": "x", "key": "k"}), "Secret", True),
        ({"containers": [{"envFrom": [{"configMapRef": {"name": "x"}}]}]}, "ConfigMap", True),
        ({"initContainers": [{"envFrom": [{"secretRef": {"name": "x", "optional": True}}]}]}, "Secret", False),
        ({"volumes": [{"name": "v", "configMap": {"name": "x"}}]}, "ConfigMap", True),
        ({"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}, "Secret", True),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}, "PersistentVolumeClaim", True),
        ({"volumes": [{"projected": {"sources": [{"configMap": {"name": "x"}}]}}]}, "ConfigMap", True),
        ({"volumes": [{"projected": {"sources": [{"secret": {"name": "x"}}]}}]}, "Secret", True),
        ({"serviceAccountName": "x"}, "ServiceAccount", True),
        ({"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "x"}]}, "ResourceClaimTemplate", True),
    ],
)
def test_what_a_pod_template_names(spec: Json, kind: str, required: bool) -> None:
    assert of(spec) == {(kind, "x", required)}


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}]},
        {"serviceAccountName": "default"},
        {"resourceClaims": [{"name": "c", "resourceClaimName": "x"}]},
        {"volumes": [{"emptyDir": {}}], "containers": [{"env": [{"name": "X", "value": "y"}]}]},
        {"containers": None, "volumes": None},
        {"volumes": [{"configMap": {"name": "../secrets/token"}}], "serviceAccountName": "a/b"},
        {"volumes": [{"configMap": {"name": "x" * 254}}, {"configMap": {"name": ""}}]},
    ],
)
def test_what_every_cluster_has_or_is_no_object_is_not_needed(spec: Json) -> None:
    assert not of(spec)


def test_each_is_named_once_and_is_required_if_any_pod_requires_it() -> None:
    optional = {"name": "x", "key": "k", "optional": True}
    once = {"spec": {"podSets": [{"template": {"spec": variable(configMapKeyRef=optional)}}] * 2}}
    assert dependencies_of(once) == (Dependency("ConfigMap", "x", required=False),)
    twice = clone(once)
    twice["spec"]["podSets"][1]["template"]["spec"]["volumes"] = [{"configMap": {"name": "x"}}]
    assert dependencies_of(twice) == (Dependency("ConfigMap", "x"),)


def config_map(**data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "uid": "m"}, "data": data}


def template(**spec: Any) -> Json:
    return {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": [{"name": "r", **spec}]}}}}


def stored(made: Json, *owners: Json) -> Json:
    changed: Json = clone(made)
    changed["metadata"] |= {"uid": "c", "resourceVersion": "7", "ownerReferences": list(owners)}
    return changed


def copy(wanted: Json, *owners: Json, of: Dependency = MAP, mark: DependencyMark = SEAL) -> Json:
    return stored(copy_for(of, wanted, ObjectKey("team", of.name), mark, "multikueue", []), *owners)


def foreign(wanted: Json, *owners: Json) -> Json:
    return stored({**wanted, "metadata": {"name": "settings", "namespace": "team"}}, *owners)


A, B = config_map(a="1"), config_map(a="2", b="3")


@pytest.mark.parametrize(
    ("wanted", "there", "users", "step"),
    [
        (A, None, Users(), CopyStep.CREATE),
        (A, copy(A, OTHER), BUSY, CopyStep.SHARE),
        (A, copy(A, OTHER), Users(), CopyStep.WAIT),
        (A, copy(A, *[OTHER] * MAX_OWNERS), BUSY, CopyStep.REFUSE),
        (B, copy(A, OTHER), BUSY, CopyStep.REFUSE),
        (B, copy(A, OTHER), IDLE, CopyStep.REPLACE),
        (B, copy(A, OTHER), Users(), CopyStep.WAIT),
        (A, copy(A), Users(), CopyStep.SHARE),
        (B, copy(A), Users(), CopyStep.REPLACE),
        (B, copy({**A, "immutable": True}, OTHER), IDLE, CopyStep.WAIT),
        (A, {**copy(A, OTHER), "data": {"a": "changed"}}, BUSY, CopyStep.REFUSE),
        (A, foreign(A), IDLE, CopyStep.LEAVE),
        (A, foreign(B), IDLE, CopyStep.REFUSE),
        (A, foreign(A, OTHER), IDLE, CopyStep.REFUSE),
        (A, copy(A, OTHER, mark=DependencyMark.of(b"another manager's", "w1", "team")), IDLE, CopyStep.REFUSE),
        (A, copy(A, OTHER, mark=DependencyMark.of(b"key", "w2", "team")), IDLE, CopyStep.REFUSE),
        (None, foreign(A), IDLE, CopyStep.LEAVE),
        (None, foreign(A, OTHER), IDLE, CopyStep.REFUSE),
        (None, copy(A, OTHER), BUSY, CopyStep.REFUSE),
        (None, None, Users(), CopyStep.REFUSE),
    ],
)
def test_what_becomes_of_a_config_map(wanted: Json | None, there: Json | None, users: Users, step: CopyStep) -> None:
    decision = decide(MAP, wanted, there, SEAL, users)
    assert decision.step is step
    assert bool(decision.why) == (step in (CopyStep.WAIT, CopyStep.REFUSE))
    assert (decision.cause is not None) == (step is CopyStep.REFUSE)


@pytest.mark.parametrize("there", [None, foreign(A), foreign(A, OTHER), copy(A, OTHER)])
def test_what_is_optional_and_not_on_the_manager_is_not_needed(there: Json | None) -> None:
    optional = attrs.evolve(MAP, required=False)
    assert decide(optional, None, there, SEAL, BUSY).step is CopyStep.LEAVE


def test_defaults_that_a_worker_adds_to_a_claim_template_are_no_difference() -> None:
    wanted, defaulted = template(deviceClassName="gpu"), template(deviceClassName="gpu", count=1)
    ours = {**copy(wanted, OTHER, of=TEMPLATE), "spec": defaulted["spec"]}
    assert decide(TEMPLATE, wanted, ours, SEAL, BUSY).step is CopyStep.SHARE
    assert decide(TEMPLATE, wanted, foreign(defaulted), SEAL, BUSY).step is CopyStep.LEAVE
    assert decide(TEMPLATE, template(deviceClassName="other"), ours, SEAL, BUSY).step is CopyStep.REFUSE
    assert decide(TEMPLATE, template(deviceClassName="other"), ours, SEAL, IDLE).step is CopyStep.WAIT


def test_a_claim_template_that_somebody_made_anew_with_our_mark_is_not_ours() -> None:
    """Its spec cannot be changed, but who may delete it may create another one, with all of its metadata."""
    wanted = template(deviceClassName="gpu")
    planted = {**copy(wanted, OTHER, of=TEMPLATE), "spec": template(deviceClassName="theirs")["spec"]}
    for users in (IDLE, BUSY):
        assert decide(TEMPLATE, wanted, planted, SEAL, users).step is CopyStep.REFUSE


def test_a_copy_has_the_content_and_nothing_else_of_the_users() -> None:
    wanted = config_map(a="1")
    wanted["metadata"] |= {"labels": {"app": "x"}, "annotations": {"y": "z"}, "resourceVersion": "5"}
    made = copy_for(MAP, wanted, ObjectKey("mk-team", "settings"), SEAL, "multikueue", [OWNER])
    assert made["data"] == {"a": "1"}
    assert (made["metadata"]["namespace"], made["metadata"]["ownerReferences"]) == ("mk-team", [OWNER])
    assert set(made["metadata"]["labels"]) == {"kueue.x-k8s.io/multikueue-origin"}
    assert set(made["metadata"]["annotations"]) == {"multikueue.dev/dependency"}


def test_owners_are_added_and_none_is_lost() -> None:
    there = copy(A, OTHER)
    assert owning_patch(there, OTHER) is None
    assert owning_patch(there, OWNER) == {
        "metadata": {"uid": "c", "resourceVersion": "7", "ownerReferences": [OTHER, OWNER]}
    }


def test_another_content_replaces_the_whole_and_is_sealed() -> None:
    there = copy(config_map(a="1", gone="x"), OTHER)
    patch = replacing_patch(MAP, B, there, SEAL, OWNER)
    assert patch["data"] == {"a": "2", "b": "3", "gone": None}
    after = {**there, "data": B["data"]}
    after["metadata"]["annotations"] = patch["metadata"]["annotations"]
    assert SEAL.made_of(MAP, after)
    assert patch["metadata"]["ownerReferences"] == [OTHER, OWNER]
    assert patch["metadata"]["resourceVersion"] == "7"
