"""The definitions of Kueue's kinds: complete, beside the real ones, and doing what matters on a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from multikueue.core.model import kinds
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import Invalid
from multikueue.sandbox.apiserver.direct import DirectClient
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.crds import load_crds
from tests.data.files import KUEUES_CRDS
from tests.sandbox.kueue.objects import admission_check, cluster_queue, local_queue

OURS = {crd["metadata"]["name"]: crd for crd in load_crds()}
MEANINGFUL = ("type", "default", "enum", "required", "maxItems", "minItems", "format", "minimum", "maximum", "nullable")
"""What of a schema decides whether and how a server takes an object, besides list types and rules."""
OPAQUE = ("template", "topologyRequest", "topologyAssignment", "fairSharing", "tolerations")
"""Parts nothing here looks into; ours keep whatever is in them."""
LEFT_OUT = ("admissionScope", "concurrentAdmissionPolicy", "fairSharing")


def version(crd: Json) -> Json:
    served: Json = next(entry for entry in crd["spec"]["versions"] if entry["name"] == "v1beta2")
    return served


def schema(crd: Json) -> Json:
    of_version: Json = version(crd)["schema"]["openAPIV3Schema"]
    return of_version


def real(name: str) -> Json:
    loaded: Json = yaml.safe_load((KUEUES_CRDS / f"{name}.yaml").read_text())
    return loaded


def fields(node: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """All fields of a schema with their paths, but for what is opaque."""
    for name, child in (node.get("properties") or {}).items():
        if name in OPAQUE or name in LEFT_OUT:
            continue
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    if isinstance(node.get("items"), dict):
        yield from fields(node["items"], f"{path}[]")


def merging(node: Json) -> dict[str, Any]:
    """How server-side apply merges it."""
    return {key: value for key, value in node.items() if key.startswith(("x-kubernetes-list", "x-kubernetes-map"))}


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_field_means_what_the_real_one_means(name: str) -> None:
    """Nothing is missing but what is listed as left out, and what is there merges, defaults and fails alike."""
    ours, theirs = dict(fields(schema(OURS[name]))), dict(fields(schema(real(name))))
    assert sorted(ours) == sorted(theirs)
    for path, node in theirs.items():
        assert merging(ours[path]) == merging(node), path
        assert {key: ours[path].get(key) for key in MEANINGFUL} == {key: node.get(key) for key in MEANINGFUL}, path


@pytest.mark.parametrize("name", sorted(OURS))
def test_what_users_see_of_a_kind_is_what_the_real_one_shows(name: str) -> None:
    ours, theirs = OURS[name], real(name)
    assert ours["spec"]["names"] == theirs["spec"]["names"]
    assert ours["spec"]["scope"] == theirs["spec"]["scope"]
    for key in ("additionalPrinterColumns", "selectableFields", "subresources"):
        shown, expected = version(ours).get(key) or [], version(theirs).get(key) or []
        assert shown == expected, key


@pytest.mark.parametrize("name", sorted(OURS))
def test_rules_on_a_status_and_across_an_object_are_the_real_ones(name: str) -> None:
    """By their messages; the rules on details of templates, taints and priority classes are fewer."""
    for ours, theirs in ((schema(OURS[name]), schema(real(name))), *_statuses(name)):
        missing = _messages(theirs) - _messages(ours)
        assert not {message for message in missing if "priorityClassRef." not in message}


def _statuses(name: str) -> list[tuple[Json, Json]]:
    pair = (schema(OURS[name])["properties"].get("status"), schema(real(name))["properties"].get("status"))
    return [(pair[0], pair[1])] if pair[0] and pair[1] else []


def _messages(node: Json) -> set[str]:
    return {rule["message"] for rule in node.get("x-kubernetes-validations") or []}


def test_there_is_one_for_each_kueue_kind_we_use() -> None:
    used = {
        value.qualified
        for value in vars(kinds).values()
        if isinstance(value, Resource) and value.gvk.group == kinds.KUEUE_GROUP
    }
    assert used == set(OURS)


def test_each_call_returns_objects_of_its_own() -> None:
    first = load_crds()
    first[0]["spec"].clear()
    assert load_crds()[0]["spec"]


def server() -> DirectClient:
    registry = Registry()
    for crd in load_crds():
        registry.create_object(crd)
    return DirectClient(registry)


def workload(**spec: Any) -> Json:
    pod_set = {"template": {"spec": {"containers": [{"name": "c", "anything": "stays"}]}}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"queueName": "lq", "podSets": [pod_set], **spec},
    }


async def test_defaults_are_filled_in_and_templates_are_kept_as_they_are() -> None:
    created = await server().create(WORKLOAD, workload())
    pod_set = created["spec"]["podSets"][0]
    assert (created["spec"]["active"], pod_set["name"], pod_set["count"]) == (True, "main", 1)
    assert pod_set["template"]["spec"]["containers"][0]["anything"] == "stays"
    queue = await server().create(CLUSTER_QUEUE, cluster_queue())
    assert queue["spec"]["queueingStrategy"] == "BestEffortFIFO"
    assert queue["spec"]["preemption"]["withinClusterQueue"] == "Never"


async def test_a_cluster_once_chosen_stays_and_takes_the_nominations_place() -> None:
    client = server()
    await client.create(WORKLOAD, workload())
    key = ObjectKey("default", "w")

    async def write(**status: Any) -> None:
        await client.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")

    await write(nominatedClusterNames=["w1", "w2"])
    with pytest.raises(Invalid, match="mutually exclusive"):
        await write(clusterName="w1")
    await write(clusterName="w1", nominatedClusterNames=None)
    with pytest.raises(Invalid, match="clusterName is immutable once set"):
        await write(clusterName="w2")
    await write(clusterName=None)
    with pytest.raises(Invalid, match="must be one of the nominatedClusterNames"):
        await write(clusterName="w2")


async def test_two_managers_own_conditions_of_their_own() -> None:
    """Lists of conditions and checks are maps: an apply of one entry leaves the others."""
    client = server()
    await client.create(WORKLOAD, workload())

    def entry(kind: str) -> Json:
        return {
            "type": kind,
            "status": "True",
            "reason": "R",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }

    for manager, kind in (("a", "Admitted"), ("b", "Evicted")):
        body = {**workload(), "status": {"conditions": [entry(kind)]}}
        del body["spec"]
        result = await client.apply(WORKLOAD, body, field_manager=manager, subresource="status")
    assert [condition["type"] for condition in result["status"]["conditions"]] == ["Admitted", "Evicted"]


@pytest.mark.parametrize(
    ("resource", "obj", "complaint"),
    [
        (WORKLOAD, workload(podSets=[]), "podSets"),
        (WORKLOAD, workload(priorityClassRef={"group": "x", "kind": "PriorityClass", "name": "n"}), "Unsupported"),
        (CLUSTER_QUEUE, cluster_queue(queueingStrategy="Random"), "Unsupported"),
        (kinds.MULTIKUEUE_CLUSTER, {"spec": {"clusterSource": {}}}, "exactly one of the fields"),
        (kinds.MULTIKUEUE_CONFIG, {"spec": {"clusters": ["a", "a"]}}, "must be unique"),
    ],
)
async def test_what_kueue_refuses_is_refused(resource: Resource, obj: Json, complaint: str) -> None:
    head = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "metadata": {"name": "x"}}
    with pytest.raises(Invalid, match=complaint):
        await server().create(resource, {**head, **obj})


async def test_what_must_not_change_does_not() -> None:
    client = server()
    queue = await client.create(LOCAL_QUEUE, local_queue())
    queue["spec"]["clusterQueue"] = "other"
    with pytest.raises(Invalid, match="field is immutable"):
        await client.replace(LOCAL_QUEUE, queue)
    check = await client.create(kinds.ADMISSION_CHECK, admission_check())
    check["spec"]["controllerName"] = "other"
    with pytest.raises(Invalid, match="field is immutable"):
        await client.replace(kinds.ADMISSION_CHECK, check)
