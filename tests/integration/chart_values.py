"""Values with which the chart is rendered in tests, and the definitions that some of its objects need."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import Json

_MONITORING: Final[Json] = {
    "certificate": "metrics-certificate",
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "namespace": "monitoring", "labels": {"release": "prometheus"}},
    "dashboard": {"enabled": True, "namespace": "monitoring"},
}
VALUES: Final[dict[str, Json]] = {
    "defaults": {},
    "one replica": {"replicas": 1, "metrics": {"service": {"enabled": False}}},
    "everything": {
        "settings": {
            "webhook": {"enabled": True},
            "quotaAutomation": True,
            "name": "another",
            "clusterProfile": {"accessProviders": [{"name": "ocm", "builtin": "cp-creds"}]},
            "integrations": {"frameworks": ["batch/job", "ray.io/rayjob"]},
            "serving": {"metrics": {"secure": True}},
            "boundTokens": {"enabled": True, "secretNames": ["worker1-kubeconfig"]},
            "ocm": {"enabled": True},
            "dependencies": [{"config": "gpus", "kinds": ["ConfigMap", "ResourceClaimTemplate", "Secret"]}],
            "inventory": [{"selector": "accelerator=nvidia-tesla-t4", "config": "gpus"}],
        },
        "imagePullSecrets": [{"name": "registry"}],
        "extraVolumes": [{"name": "plugins", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "plugins", "mountPath": "/plugins"}],
        "initContainers": [
            {"name": "plugins", "image": "plugins:1", "volumeMounts": [{"name": "plugins", "mountPath": "/plugins"}]}
        ],
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "metrics": _MONITORING,
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {}}],
            "webhookFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}],
        },
        "serviceAccount": {"annotations": {"example.com/role": "r"}},
        "annotations": {"example.com/a": "a"},
        "podAnnotations": {"example.com/b": "b"},
        "podLabels": {"example.com/c": "c"},
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
    "logs": {
        "apiServer": {"enabled": True, "workers": {"oslo": "logs-oslo", "rome": "logs-rome"}, "aggregateToView": True},
        "networkPolicy": {"enabled": True, "logsFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}]},
    },
    "page": {
        "apiServer": {
            "enabled": True,
            "workers": {"oslo": "logs-oslo"},
            "certificate": "logs-certificate",
            "caBundle": "YXV0aG9yaXR5",
        },
        "page": {"enabled": True, "hosts": ["multikueue.example.com"], "certificate": "page-certificate"},
        "networkPolicy": {"enabled": True, "pageFrom": [{"namespaceSelector": {}}]},
    },
    "mirrors": {
        "settings": {"mirrorPods": {"logs": True, "exec": True, "address": "10.0.0.7"}},
        "apiServer": {"enabled": True, "workers": {"oslo": "logs-oslo"}},
        "networkPolicy": {"enabled": True, "logsFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}]},
    },
    "mirrors that are taken away": {"settings": {"mirrorPods": {"logs": False}}},
    "mirrors with a certificate that is signed": {
        "settings": {
            "mirrorPods": {
                "logs": True,
                "address": "10.0.0.7",
                "signer": "kubernetes.io/kubelet-serving",
                "port": 10261,
            }
        },
        "apiServer": {"enabled": True, "workers": {"oslo": "logs-oslo"}},
    },
    "mirrors with a certificate of one's own": {
        "settings": {
            "name": "another",
            "mirrorPods": {"logs": True, "address": "10.0.0.7", "certificateSecret": "own"},
        },
        "apiServer": {"enabled": True, "workers": {"oslo": "logs-oslo"}},
    },
    "logs with a certificate of one's own": {
        "apiServer": {
            "enabled": True,
            "replicas": 1,
            "certificate": "logs-certificate",
            "apiServiceAnnotations": {"cert-manager.io/inject-ca-from": "multikueue/logs"},
        }
    },
    "a certificate of one's own": {"settings": {"webhook": {"enabled": True}}, "webhookCertificate": "certificate"},
    "a credential plugin from an image, and any bound token": {
        "settings": {"boundTokens": {"enabled": True}},
        "extraVolumes": [{"name": "plugins", "image": {"reference": "plugins:1", "pullPolicy": "IfNotPresent"}}],
        "extraVolumeMounts": [{"name": "plugins", "mountPath": "/plugins", "readOnly": True}],
    },
    "spread by zone": {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        ]
    },
}
"""By what they try."""

_STRING: Final[Json] = {"type": "string"}
_STRINGS: Final[Json] = {"type": "object", "additionalProperties": _STRING}


def _list_of(**properties: Json) -> Json:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


def _definition(plural: str, kind: str, spec: Json) -> Json:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


MONITORING_CRDS: Final[list[Json]] = [
    _definition(
        "servicemonitors",
        "ServiceMonitor",
        {
            "namespaceSelector": {"type": "object", "properties": {"matchNames": {"type": "array", "items": _STRING}}},
            "selector": {"type": "object", "properties": {"matchLabels": _STRINGS}},
            "endpoints": _list_of(port=_STRING, path=_STRING, interval=_STRING, scheme=_STRING),
        },
    ),
    _definition(
        "prometheusrules",
        "PrometheusRule",
        {
            "groups": _list_of(
                name=_STRING,
                rules=_list_of(
                    **{"alert": _STRING, "expr": _STRING, "for": _STRING}, labels=_STRINGS, annotations=_STRINGS
                ),
            )
        },
    ),
]
"""Of the Prometheus operator, written by us: no more fields than the chart sets, so that a misspelt one is refused."""
