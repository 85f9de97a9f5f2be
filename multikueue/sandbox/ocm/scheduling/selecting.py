"""Whether a cluster is what a Placement asks for: by labels, by claims, by CEL, and by its taints."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import attrs
import cel

from multikueue.core.model.conditions import parse_timestamp
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
    answers = [matches(cluster, predicate.get("requiredClusterSelector") or {}) for predicate in predicates]
    return not answers or any(answers)


def matches(cluster: Json, selector: Json) -> bool:
    """Whether a cluster has the labels, the claims and what CEL asks for.

    Raises:
        MisconfiguredError: one of the three is not a selector.
    """
    claims = {claim["name"]: claim["value"] for claim in dig(cluster, "status", "clusterClaims") or []}
    answers = [
        _by_labels(labels_of(cluster), selector.get("labelSelector") or {}),
        _by_labels(claims, selector.get("claimSelector") or {}),
        *(_holds(expression, cluster) for expression in dig(selector, "celSelector", "celExpressions") or []),
    ]
    return all(answers)


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


_PLUGIN: Final = "TaintToleration"


@attrs.frozen
class Tolerance:
    """Whether a cluster is tolerated."""

    tolerated: bool
    until: datetime | None = None
    """When a toleration ends; None: none does."""


def check_tolerations(tolerations: list[Json]) -> None:
    """Refuse what no taint can match.

    Raises:
        MisconfiguredError: a toleration is none.
    """
    for toleration in tolerations:
        operator = toleration.get("operator") or "Equal"
        if operator not in ("Exists", "Equal"):
            raise MisconfiguredError(_PLUGIN, f'operator "{operator}" is not supported')
        if not toleration.get("key") and operator != "Exists":
            raise MisconfiguredError(_PLUGIN, "If the key is empty, operator must be Exists.")
        if operator == "Exists" and toleration.get("value"):
            raise MisconfiguredError(_PLUGIN, "If the operator is Exists, the value should be empty.")


def tolerance(cluster: Json, tolerations: list[Json], now: datetime, *, chosen: bool) -> Tolerance:
    """Whether a cluster may be selected.

    Args:
        cluster: a ManagedCluster.
        tolerations: those of the Placement.
        now: the time.
        chosen: whether the last decision has it.
    """
    until: datetime | None = None
    for taint in dig(cluster, "spec", "taints") or []:
        if taint["effect"] == "PreferNoSelect" or (taint["effect"] == "NoSelectIfNew" and chosen):
            continue
        ends = [_until(taint, toleration) for toleration in tolerations if _matches(taint, toleration)]
        if not any(end is None or end > now for end in ends):
            return Tolerance(False)
        if None not in ends:
            last = max(end for end in ends if end is not None)
            until = last if until is None else min(until, last)
    return Tolerance(True, until)


def _matches(taint: Json, toleration: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def _until(taint: Json, toleration: Json) -> datetime | None:
    """When a toleration of a taint ends; None: it does not."""
    seconds, since = toleration.get("tolerationSeconds"), parse_timestamp(taint.get("timeAdded"))
    return None if seconds is None or since is None else since + timedelta(seconds=seconds)
