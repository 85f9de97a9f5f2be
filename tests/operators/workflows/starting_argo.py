"""How Argo's workflow controller is started."""

from __future__ import annotations

import yaml

from tests.operators.starts.start import NAMESPACE, Place, Start


async def argo(place: Place) -> Start:
    """Without leader election, and quicker to look at what has changed than once in ten seconds.

    Its health has one port in every version, 6060; so what tells that it works is its metrics.
    """
    metrics = {"enabled": True, "path": "/metrics", "port": place.health, "secure": False}
    metadata = {"name": "workflow-controller-configmap", "namespace": NAMESPACE}
    data = {"metricsConfig": yaml.safe_dump(metrics)}
    await place.cluster.admin.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    return Start(
        arguments=("--namespaced", f"--managed-namespace={NAMESPACE}", "--executor-image=argoexec", "--qps=100"),
        health=f"http://127.0.0.1:{place.health}/metrics",
        environment={"LEADER_ELECTION_DISABLE": "true", "DEFAULT_REQUEUE_TIME": "500ms"},
    )
