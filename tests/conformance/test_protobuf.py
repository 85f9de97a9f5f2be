"""Bodies in protobuf, as kubectl sends them."""

from __future__ import annotations

import re

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.protobuf import CONTENT_TYPE, decode_protobuf
from tests.conformance.client import ConformanceClient, ControlPlane, Open, connected
from tests.conformance.planes import REAL_MARKS
from tests.data.files import PROTOBUF

PLACES = {
    "namespace": "/api/v1/namespaces",
    "secret": "/api/v1/namespaces/default/secrets",
    "service": "/api/v1/namespaces/default/services",
    "serviceaccount": "/api/v1/namespaces/default/serviceaccounts",
    "job": "/apis/batch/v1/namespaces/default/jobs",
    "deployment": "/apis/apps/v1/namespaces/default/deployments",
    "role": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "priorityclass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
CHANGING = re.compile(
    r'[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:]+Z|"resourceVersion": "\d+"|"clusterIPs?": [^,]+,'
)


def lasting(obj: Json) -> Json:
    """An object without what differs between two of the same kind and name."""
    text = repr(obj).replace("'", '"')
    return {"text": CHANGING.sub("", text)}


async def test_j1_protobuf_is_stored_as_json_is(control_plane: Open) -> None:
    """A body in protobuf is stored as the same body in JSON."""
    options = {"dryRun": "All", "fieldManager": "kubectl-create", "fieldValidation": "Strict"}
    async with control_plane() as cluster:
        for kind, place in PLACES.items():
            raw = (PROTOBUF / f"{kind}.pb").read_bytes()
            of_json = await cluster.post(place, decode_protobuf(raw), params=options)
            of_protobuf = await cluster.request("POST", place, raw=raw, content_type=CONTENT_TYPE, params=options)
            assert (of_json[0], of_protobuf[0]) == (201, 201), of_protobuf
            assert lasting(of_protobuf[1]) == lasting(of_json[1])


async def test_j2_what_is_no_protobuf(control_plane: Open) -> None:
    """A body in protobuf that cannot be read is answered with 400."""
    async with control_plane() as cluster:
        for raw in (b"", b"k8s", b"k8s\0\xff", b"k8s\0\x0a\x7f", b'{"kind": "Namespace"}'):
            code, body = await cluster.request("POST", PLACES["namespace"], raw=raw, content_type=CONTENT_TYPE)
            assert (code, body["reason"]) == (400, "BadRequest"), body


def rich_job(name: str) -> Json:
    """A Job with fields of every form: quantities, probes, ports by name and number, maps, bytes, empty and zero."""
    container = {
        "name": "c",
        "image": "busybox:1",
        "args": [""],
        "env": [
            {"name": "EMPTY", "value": ""},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}},
        ],
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "cm"}}],
        "ports": [{"name": "web", "containerPort": 80}],
        "livenessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 3},
        "readinessProbe": {"tcpSocket": {"port": 80}, "initialDelaySeconds": 1},
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "ü"]}}},
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "1.5Gi"}},
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}],
    }
    items = [{"key": "k", "path": "p", "mode": 256}]
    sources = [{"configMap": {"name": "cm", "items": items}}, {"serviceAccountToken": {"path": "t"}}]
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [
            {"name": "v", "emptyDir": {"sizeLimit": "1M"}},
            {"name": "p", "projected": {"sources": sources}},
            {"name": "s", "secret": {"secretName": "s", "optional": True}},
        ],
        "nodeSelector": {"disk": "ssd", "empty": ""},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -1}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "schedulingGates": [{"name": "example.com/gate"}],
    }
    spec = {
        "suspend": True,
        "managedBy": "example.com/nobody",
        "completions": 0,
        "ttlSecondsAfterFinished": 0,
        "backoffLimit": 2**31 - 1,
    }
    template = {"metadata": {"annotations": {"note": "x" * 200}}, "spec": pod}
    metadata = {"name": name, "labels": {"a": ""}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {**spec, "template": template}}


def lease(name: str) -> Json:
    """A Lease, which has times with microseconds."""
    spec = {"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000600Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


async def in_both_forms(cluster: ConformanceClient, path: str) -> tuple[Json, Json]:
    """An object as the server writes it in protobuf, read by us, and as it writes it in JSON."""
    _, in_json = await cluster.get(path)
    url = cluster.plane.url + path
    async with cluster.session.get(url, headers={"Accept": CONTENT_TYPE}) as response:
        return decode_protobuf(await response.read()), in_json


@pytest.mark.parametrize("mark", [pytest.param("real", marks=REAL_MARKS)])
async def test_what_a_real_server_writes_is_read_as_its_json(real_plane: ControlPlane, mark: str) -> None:
    """Objects with fields of every form, managedFields among them, and what the server itself has made."""
    del mark
    paths = [
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/default/services/kubernetes",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
    ]
    async with connected(real_plane) as cluster:
        namespace = await cluster.namespace()
        jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        for path, obj in ((jobs, rich_job("rich")), (leases, lease("rich"))):
            code, body = await cluster.post(path, obj)
            assert code == 201, body
        for path in (f"{jobs}/rich", f"{leases}/rich", *paths):
            of_protobuf, in_json = await in_both_forms(cluster, path)
            assert of_protobuf == in_json
