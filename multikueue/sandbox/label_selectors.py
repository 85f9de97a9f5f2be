"""Label selectors of the Kubernetes API: what a namespace, or a cluster, must have."""

from __future__ import annotations

from collections.abc import Mapping

from multikueue.core.model.names import Json


def matches(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether these labels have what a selector asks for. An empty one asks for nothing.

    Args:
        selector: a LabelSelector, of a form that the API accepts.
        labels: of an object.
    """
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or [])


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
