"""One kubeconfig for several clusters, as `kubectl config view --merge` would make it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from multikueue import Json


def merged(kubeconfigs: Iterable[Json]) -> Json:
    """A kubeconfig with the contexts of all; the first one's is current.

    Args:
        kubeconfigs: each with one cluster, one user and one context. Users may have the same name: they get the
            cluster's before it.
    """
    together: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": ""}
    lists: dict[str, list[Json]] = {"clusters": [], "contexts": [], "users": []}
    for one in kubeconfigs:
        (cluster,), (user,), (context,) = one["clusters"], one["users"], one["contexts"]
        name = f"{cluster['name']}-{user['name']}"
        lists["clusters"].append(cluster)
        lists["users"].append({**user, "name": name})
        lists["contexts"].append({**context, "context": {**context["context"], "user": name}})
        together["current-context"] = together["current-context"] or one["current-context"]
    return {**together, **lists}
