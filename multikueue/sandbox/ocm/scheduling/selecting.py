"""Whether a cluster is what a Placement asks for: by labels, by claims, by CEL."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import cel

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, labels_of
from multikueue.sandbox import label_selectors

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


class MisconfiguredError(Exception):
    """The Placement says something that cannot be meant.

    Args:
        plugin: the part of the scheduler that says so.
        message: what is wrong.
    """

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(f"{plugin}:{message}")


def is_selected(cluster: Json, predicates: list[Json]) -> bool:
    """Whether one predicate holds; all clusters are selected if there are none.

    Raises:
        MisconfiguredError: a selector is not one.
    """
    found = [matches(cluster, predicate.get("requiredClusterSelector") or {}) for predicate in predicates]
    return not found or any(found)


def matches(cluster: Json, selector: Json) -> bool:
    """Whether a cluster has the labels, the claims and what CEL asks for.

    Raises:
        MisconfiguredError: one of the three is not a selector.
    """
    claims = {claim["name"]: claim["value"] for claim in dig(cluster, "status", "clusterClaims") or []}
    found = [
        _by_labels(labels_of(cluster), selector.get("labelSelector") or {}),
        _by_labels(claims, selector.get("claimSelector") or {}),
        *(_holds(expression, cluster) for expression in dig(selector, "celSelector", "celExpressions") or []),
    ]
    return all(found)


def _by_labels(labels: Mapping[str, str], selector: Json) -> bool:
    for expression in selector.get("matchExpressions") or []:
        _check(expression)
    return label_selectors.matches(selector, labels)


def _check(expression: Json) -> None:
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
    if not key or operator not in _OPERATORS:
        raise MisconfiguredError("Predicate", f'"{operator}" is not a valid label selector operator')
    if (operator in ("In", "NotIn")) != bool(values):
        raise MisconfiguredError("Predicate", f"values: Invalid value: {values}: not what {operator} takes")


@functools.lru_cache(256)
def _compile(expression: str) -> cel.Program:
    try:
        return cel.compile(expression)
    except (RuntimeError, ValueError) as error:
        raise MisconfiguredError("Predicate", f"CEL expression {expression!r} does not compile: {error}") from error


def _holds(expression: str, cluster: Json) -> bool:
    """Whether an expression of `managedCluster` is true; a field that is not there makes it false."""
    program = _compile(expression)
    try:
        return program.execute({"managedCluster": cluster}) is True
    except (RuntimeError, ValueError, TypeError, LookupError):
        return False
