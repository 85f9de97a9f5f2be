"""What a MultiKueueCluster says of its connection for programs: JSON in a condition beside `Active`, of the same write.

The message of `Active` is for people, and nobody reads it back. Where this condition is absent, or beside an `Active`
that another controller has written since, nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

import attrs
import orjson

from multikueue.core.model.conditions import (
    condition,
    json_message,
    new_condition,
    parse_timestamp,
    says_the_same,
    timestamp,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, digest

FACTS: Final = "multikueue.dev/ConnectionFacts"
"""The type of the condition."""
_MAX_TEXT: Final = 512
"""The most characters of each reason."""
_MAX_KINDS: Final = 50
"""The most kinds that are told: with their reasons they fit into a condition."""
_MAX_NAMES: Final = 10
"""The most other workers that are told."""


@attrs.frozen
class ConnectionFacts:
    """What is known of a worker's connection."""

    failures: int = 0
    """Attempts that failed since it was last connected."""
    next_attempt: datetime | None = None
    """When the next one is made; None if none is."""
    error: str = ""
    """Why it is not connected; empty while it is."""
    unusable: Mapping[str, str] = MappingProxyType({})
    """The kinds that cannot be used there, as `Job.v1.batch`, and why."""
    moves_at: datetime | None = None
    """When its jobs go to other workers, unless it is back before; None while no time runs."""
    is_manager: bool | None = None
    """Whether it is the manager itself; None: that is not known."""
    cause: str = ""
    """Why it is not connected, as a `Cause`; empty: the error alone tells, or it is."""
    causes: Mapping[str, str] = MappingProxyType({})
    """Of `unusable`, the kinds of which more is known than words: a `Cause`."""
    same_as: tuple[str, ...] = ()
    """The other workers that are known to lead to the same cluster."""


def facts_status(cluster: Json, active: Json | None, facts: ConnectionFacts, now: datetime) -> Json | None:
    """The condition to write; None if the object says the same already.

    Args:
        cluster: the MultiKueueCluster.
        active: its condition `Active`, as it is from now on.
        facts: what is known.
        now: the manager's wall clock.
    """
    due, moves = facts.next_attempt, facts.moves_at
    unusable = {kind: why[:_MAX_TEXT] for kind, why in sorted(facts.unusable.items())[:_MAX_KINDS]}
    written: Json = {
        "failures": facts.failures,
        "nextAttempt": timestamp(due) if due is not None else None,
        "movesAt": timestamp(moves) if moves is not None else None,
        "error": facts.error[: 2 * _MAX_TEXT],
        "unusable": unusable,
        "causes": {kind: facts.causes[kind] for kind in unusable if facts.causes.get(kind)},
        "active": _digest(active),
        "manager": facts.is_manager,
        "cause": facts.cause,
        "sameAs": [*facts.same_as[:_MAX_NAMES]],
    }
    kept = {name: value for name, value in written.items() if value or (name == "manager" and value is not None)}
    text = orjson.dumps(kept).decode()
    generation = dig(cluster, "metadata", "generation")
    reason = "NotConnected" if facts.error else "Connected"
    wanted = new_condition(FACTS, not facts.error, reason, text, now=now, generation=generation)
    return None if says_the_same(condition(cluster, FACTS), wanted) else wanted


def connection_facts(cluster: Json) -> ConnectionFacts | None:
    """What a MultiKueueCluster says; None: nothing that can be read."""
    facts = json_message(cluster, FACTS)
    if facts.get("active") != _digest(condition(cluster, "Active")):
        return None
    failures, same_as = facts.get("failures"), facts.get("sameAs")
    return ConnectionFacts(
        failures if isinstance(failures, int) else 0,
        parse_timestamp(facts.get("nextAttempt")),
        str(facts.get("error") or ""),
        _texts(facts.get("unusable")),
        parse_timestamp(facts.get("movesAt")),
        facts.get("manager") if isinstance(facts.get("manager"), bool) else None,
        str(facts.get("cause") or ""),
        _texts(facts.get("causes")),
        tuple(map(str, same_as)) if isinstance(same_as, list) else (),
    )


def _texts(value: Any) -> dict[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, dict) else {}


def _digest(active: Json | None) -> str:
    """Tells one word of `Active` from another."""
    return digest({field: (active or {}).get(field) for field in ("status", "reason", "message")})
