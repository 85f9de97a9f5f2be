"""What people and programs get wrong, and a server does not take: each was taken by the sandbox once."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from tests.conformance.client import ConformanceClient, OpenNamespace

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


def causes(body: Json) -> list[str]:
    """The fields that are wrong, each once."""
    return sorted({cause["field"] for cause in body["details"]["causes"]})


async def tried(cluster: ConformanceClient, path: str, **fields: Any) -> tuple[int, list[str]]:
    """What a server says of a new object, and of which fields."""
    metadata = {"name": "a", **fields.pop("metadata", {})}
    code, body = await cluster.post(path, {"metadata": metadata, **fields}, params={"dryRun": "All"})
    return code, causes(body) if code == 422 else []


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"ownerReferences": [{**OWNER, "uid": ""}]}, "metadata.ownerReferences.uid"),
        ({"ownerReferences": [{**OWNER, "apiVersion": ""}]}, "metadata.ownerReferences.apiVersion"),
        (
            {"ownerReferences": [{**OWNER, "name": name, "controller": True} for name in "pq"]},
            "metadata.ownerReferences",
        ),
        ({"finalizers": ["plain"]}, "metadata.finalizers[0]"),
        ({"annotations": {"A B": "x"}}, "metadata.annotations"),
        ({"annotations": {"a": "x" * 200_000, "b": "é" * 31_072}}, "metadata.annotations"),
        ({"annotations": {"a": "x" * 200_000, "b": "é" * 31_071}}, ""),
        ({"finalizers": ["orphan", "a.b/c"], "annotations": {"UPPER.example/x": "x"}}, ""),
        ({"ownerReferences": [{**OWNER, "controller": True}, OWNER]}, ""),
    ],
)
async def test_k1_metadata(namespaced: OpenNamespace, metadata: Json, field: str) -> None:
    """A controller that sets an owner without its UID found that out on a real cluster only."""
    async with namespaced() as (cluster, ns):
        answer = await tried(cluster, f"/api/v1/namespaces/{ns}/configmaps", metadata=metadata)
        assert answer == ((422, [field]) if field else (201, []))


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"data": {"a/b": "x"}}, "data[a/b]"),
        ({"data": {"..a": "x"}}, "data[..a]"),
        ({"binaryData": {"": "eA=="}}, "binaryData[]"),
        ({"data": {"a": "x"}, "binaryData": {"a": "eA=="}}, "data[a]"),
        ({"data": {"a": "x", ".b": ""}, "binaryData": {"c": ""}}, ""),
    ],
    ids=["a path", "dots", "nothing", "twice", "right"],
)
async def test_k2_config_maps(namespaced: OpenNamespace, content: Json, field: str) -> None:
    async with namespaced() as (cluster, ns):
        answer = await tried(cluster, f"/api/v1/namespaces/{ns}/configmaps", **content)
        assert answer == ((422, [field]) if field else (201, []))


async def test_k3_an_immutable_config_map(namespaced: OpenNamespace) -> None:
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        await cluster.post(path, {"metadata": {"name": "a"}, "data": {"k": "v"}, "immutable": True})
        for patch, field in (({"data": {"k": "w"}}, "data"), ({"immutable": False}, "immutable")):
            code, body = await cluster.merge_patch(f"{path}/a", patch)
            assert (code, causes(body)) == (422, [field])
        assert (await cluster.merge_patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}}))[0] == 200


@pytest.mark.parametrize(
    ("container", "field"),
    [
        ({"volumeMounts": [{"name": "data", "mountPath": "/data"}]}, "volumeMounts[0].name"),
        ({"resources": {"requests": {"nvidia.com/gpu": "1"}}}, "resources.limits"),
        ({"resources": {"limits": {"gpu": "1"}, "requests": {"gpu": "1"}}}, "resources.requests[gpu]"),
        ({"volumeMounts": [{"name": "scratch", "mountPath": "/data"}]}, ""),
        ({"resources": {"limits": {"nvidia.com/gpu": "1", "hugepages-2Mi": "2Mi", "memory": "1Gi"}}}, ""),
    ],
    ids=["no such volume", "a request for a GPU", "a resource of no domain", "a volume", "GPUs"],
)
async def test_k4_jobs(namespaced: OpenNamespace, container: Json, field: str) -> None:
    """A Job with such a template waited in the sandbox's queue, and ran."""
    async with namespaced() as (cluster, ns):
        pod = {"containers": [{"name": "m", "image": "i", **container}], "volumes": [{"name": "scratch"}]}
        spec = {"template": {"spec": {**pod, "restartPolicy": "Never"}}}
        code, fields = await tried(cluster, f"/apis/batch/v1/namespaces/{ns}/jobs", spec=spec)
        if not field:
            assert (code, fields) == (201, [])
            return
        assert code == 422
        assert f"spec.template.spec.containers[0].{field}" in fields


async def test_k5_defaults_of_templates(namespaced: OpenNamespace) -> None:
    """They are there when the object is read: whoever compares a template with what was written finds them."""
    async with namespaced() as (cluster, ns):
        probe = {"httpGet": {"port": 80}}
        template = {
            "spec": {"containers": [{"name": "m", "image": "i", "readinessProbe": probe}], "restartPolicy": "Never"}
        }
        policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
        body = {"metadata": {"name": "a"}, "spec": {"template": template, "podFailurePolicy": policy, "suspend": True}}
        code, job = await cluster.post(f"/apis/batch/v1/namespaces/{ns}/jobs", body)
        assert code == 201
        assert job["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"] == "True"
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert container["readinessProbe"] == {
            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        }


async def test_k6_deployments(namespaced: OpenNamespace) -> None:
    """One pod by default, and always its own."""
    async with namespaced() as (cluster, ns):
        path = f"/apis/apps/v1/namespaces/{ns}/deployments"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        code, body = await cluster.post(path, {"metadata": {"name": "d"}, "spec": spec})
        assert (code, body["spec"]["replicas"]) == (201, 1)
        assert body["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
        assert await tried(cluster, path, spec={**spec, "replicas": -1}) == (422, ["spec.replicas"])
        other = {**spec, "selector": {"matchLabels": {"x": "y"}}}
        assert await tried(cluster, path, spec=other) == (422, ["spec.template.metadata.labels"])
        both = {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}
        code, body = await cluster.merge_patch(f"{path}/d", {"spec": both})
        assert (code, causes(body)) == (422, ["spec.selector"])


async def test_k7_a_replacement_without_a_name(namespaced: OpenNamespace) -> None:
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        await cluster.post(path, {"metadata": {"name": "a"}})
        assert (await cluster.put(f"{path}/a", {"metadata": {}, "data": {"x": "y"}}))[0] == 400
        assert (await cluster.merge_patch(f"{path}/a", {"metadata": None}))[0] == 400
        assert (await cluster.json_patch(f"{path}/a", [{"op": "replace", "path": "", "value": {}}]))[0] == 400
        absent = [{"op": "test", "path": "/data/x", "value": None}]
        assert (await cluster.json_patch(f"{path}/a", absent))[0] == 422, "there is no data that it could lack"


@pytest.mark.parametrize(("content_type", "code"), [("application/x-www-form-urlencoded", 415), ("", 201)])
async def test_k8_what_curl_sends(namespaced: OpenNamespace, content_type: str, code: int) -> None:
    """`curl -d` says that a form comes; who says nothing sends JSON."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        answer = await cluster.request("POST", path, {"metadata": {"name": "a"}}, content_type=content_type)
        assert answer[0] == code


async def test_k9_a_directive_for_what_is_not_there(namespaced: OpenNamespace) -> None:
    """A strategic merge that would replace a map puts nothing there where there is none."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        await cluster.post(path, {"metadata": {"name": "a"}})
        patch = {"metadata": {"labels": {"$patch": "replace", "z": "y"}}}
        code, body = await cluster.strategic_patch(f"{path}/a", patch)
        assert (code, body["metadata"].get("labels")) == (200, None)
        await cluster.merge_patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}})
        code, body = await cluster.strategic_patch(f"{path}/a", patch)
        assert (code, body["metadata"].get("labels")) == (200, {"z": "y"})


@pytest.mark.parametrize(
    ("annotations", "wrong"),
    [
        ({"a": "x" * 200_000, "b": "é" * 31_072}, True),
        ({f"k{number}": "x" * 1000 for number in range(270)}, True),
        ({"A B": "x"}, True),
        ({"a": "x" * 200_000, "b": "é" * 31_071}, False),
        ({"UPPER.example/x": "x"}, False),
    ],
    ids=["long", "many", "a key", "as long as may be", "capitals"],
)
async def test_k10_annotations_of_a_template(namespaced: OpenNamespace, annotations: Json, wrong: bool) -> None:
    """A launcher that hands its settings to its pods found their bound on a real cluster only."""
    async with namespaced() as (cluster, ns):
        pod = {"containers": [{"name": "m", "image": "i"}]}
        metadata = {"labels": {"a": "b"}, "annotations": annotations}
        job = {"template": {"metadata": metadata, "spec": {**pod, "restartPolicy": "Never"}}}
        selector = {"matchLabels": {"a": "b"}}
        of_a_set = {"selector": selector, "serviceName": "s", "template": {"metadata": metadata, "spec": pod}}
        refused = (422, ["spec.template.annotations"]) if wrong else (201, [])
        assert await tried(cluster, f"/apis/batch/v1/namespaces/{ns}/jobs", spec=job) == refused
        for plural in ("deployments", "statefulsets"):
            answer = await tried(cluster, f"/apis/apps/v1/namespaces/{ns}/{plural}", spec=of_a_set)
            assert answer == refused, plural


@pytest.mark.parametrize("label", [{"x" * 64: "a"}, {"a..b/c": "d"}, {"A.b/c": "d"}, {"x" * 254 + "/a": "b"}])
async def test_k11_keys_of_labels(namespaced: OpenNamespace, label: Json) -> None:
    """A job's name as a label's key is soon too long."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        assert await tried(cluster, path, metadata={"labels": label}) == (422, ["metadata.labels"])
        longest = {"metadata": {"name": "a", "labels": {"x" * 63: "y" * 63, f"{'x' * 253}/a": ""}}}
        assert (await cluster.post(path, longest))[0] == 201


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"regarding": {"name": "x"}}, "involvedObject.namespace"),
        ({"reportingController": "my controller"}, "reportingController"),
        ({"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}, "series.count"),
        ({"series": {"count": 2}}, "series.lastObservedTime"),
        ({"deprecatedCount": 1}, "count"),
        ({"deprecatedSource": {"component": "x"}}, "source"),
        ({"deprecatedFirstTimestamp": "2026-01-01T00:00:00Z"}, "firstTimestamp"),
        ({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}, "related": {"name": "y"}}, ""),
    ],
    ids=["nowhere", "a name", "once", "when", "old count", "old source", "old time", "right"],
)
async def test_k12_events(namespaced: OpenNamespace, fields: Json, wrong: str) -> None:
    """Who tells of an object in another namespace than its own tells nothing."""
    event: Json = {"eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "reason": "Told", "action": "Told"}
    async with namespaced() as (cluster, ns):
        event |= {"regarding": {"namespace": ns, "name": "x"}, "reportingController": "c", "reportingInstance": "c-0"}
        answer = await tried(cluster, f"/apis/events.k8s.io/v1/namespaces/{ns}/events", **{**event, **fields})
        assert answer == ((422, [wrong]) if wrong else (201, []))
        for namespace in (ns, "", "other"):
            answer = await tried(cluster, f"/api/v1/namespaces/{ns}/events", involvedObject={"namespace": namespace})
            assert answer == ((201, []) if namespace == ns else (422, ["involvedObject.namespace"])), namespace


async def test_k13_options_that_are_none(namespaced: OpenNamespace) -> None:
    """`dryRun=true` was no dry run: it wrote, and deleted."""
    async with namespaced() as (cluster, ns):
        path = f"/api/v1/namespaces/{ns}/configmaps"
        assert (await cluster.post(path, {"metadata": {"name": "a"}}, params={"dryRun": "true"}))[0] == 422
        assert (await cluster.post(path, {"metadata": {"name": "a"}}))[0] == 201
        assert (await cluster.put(f"{path}/a", {"metadata": {"name": "a"}}, params={"dryRun": "true"}))[0] == 422
        assert (await cluster.merge_patch(f"{path}/a", {}, params={"dryRun": "true"}))[0] == 422
        assert (await cluster.delete(f"{path}/a", params={"dryRun": "true"}))[0] == 422
        assert (await cluster.delete(f"{path}/a", {"dryRun": ["true"]}))[0] == 422
        assert (await cluster.delete(f"{path}/a", params={"gracePeriodSeconds": "soon"}))[0] == 400
        for wrong in ("gracePeriodSeconds", "preconditions", "dryRun", "orphanDependents"):
            assert (await cluster.delete(f"{path}/a", {wrong: "5"}))[0] == 400, wrong
        assert (await cluster.delete(f"{path}/a", {"propagationPolicy": 5}))[0] == 400
        for raw in ("[]", '"x"', "5", "true"):
            assert (await cluster.request("DELETE", f"{path}/a", raw=raw))[0] == 400, raw
        assert (await cluster.get(f"{path}/a"))[0] == 200
