"""Whether a Placement tolerates the taints of a cluster, and until when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.sandbox.ocm.scheduling.selecting import MisconfiguredError

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
