"""Why workers refuse a Workload, for programs: JSON in a condition, of the same write as our check's message.

The message is for people, and nobody reads it back. Where this condition is absent, as after a write of Kueue's, or
beside another message, nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

import attrs
import orjson

from multikueue.core.model.conditions import json_message, new_condition
from multikueue.core.model.dependencies import RESOURCES
from multikueue.core.model.labels import REFUSAL_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import digest

REFUSALS: Final = "multikueue.dev/Refusals"
"""The type of the condition."""
_ABOUT: Final = ("kind", "name", "user")
"""What may be told of what a refusal is about: whoever may create events chooses the rest of what they say."""
_MOST: Final = 2048
"""Characters of its message."""


@attrs.frozen
class RefusalFacts:
    """Why one worker refuses it."""

    cause: str = ""
    """A `Cause`; empty: the worker's words alone tell."""
    about: Mapping[str, str] = MappingProxyType({})
    """What that is about, as `kind` and `name`; see `DependencyUnavailable`."""

    @property
    def as_json(self) -> Json:
        """As JSON."""
        return {"cause": self.cause, **self.about}

    @property
    def annotations(self) -> dict[str, str]:
        """As an event of the refusal has it."""
        return {REFUSAL_ANNOTATION: orjson.dumps(self.as_json).decode()} if self.cause else {}

    @classmethod
    def read(cls, facts: Any) -> RefusalFacts:
        """From JSON; of anything else nothing is known. Nor if it is about what no job needs: a person may be told to
        delete that, and whoever may create events says what it is."""
        if not isinstance(facts, dict):
            return cls()
        about = {key: str(facts[key]) for key in _ABOUT if key in facts}
        if about and (about.get("kind") not in RESOURCES or "/" in about.get("name", "")):
            return cls()
        return cls(str(facts.get("cause") or ""), about)


def refusals_condition(facts: Mapping[str, RefusalFacts], message: str, now: datetime) -> Json | None:
    """The condition to write beside a message of our check; None if there is nothing to say.

    Args:
        facts: by worker. Those for which there is no more room are left out.
        message: the check's, as it is written.
        now: the manager's wall clock.
    """
    workers: dict[str, Json] = {}
    for worker, refusal in facts.items():
        more = {**workers, worker: refusal.as_json}
        if refusal.cause and len(_text(message, more)) <= _MOST:
            workers = more
    return new_condition(REFUSALS, True, "Refused", _text(message, workers), now=now) if workers else None


def refusals_in(workload: Json, message: str) -> dict[str, RefusalFacts]:
    """What a Workload says, by worker.

    Args:
        workload: the manager's.
        message: of our check on it.
    """
    facts = json_message(workload, REFUSALS)
    workers = facts.get("workers") if facts.get("message") == digest(message) else None
    entries = workers.items() if isinstance(workers, dict) else ()
    return {name: RefusalFacts.read(entry) for name, entry in entries if isinstance(entry, dict)}


def _text(message: str, workers: Mapping[str, Json]) -> str:
    return orjson.dumps({"message": digest(message), "workers": workers}).decode()
