"""Why workers refuse a Workload, for programs: beside the check's message, in the same write."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.core.model.conditions import condition
from multikueue.core.model.names import Json
from multikueue.errors import Cause
from tests.core.applying import carry_out
from tests.core.building import snapshot, worker, workload
from tests.core.door import (
    NOW,
    REFUSALS,
    ApplyStatus,
    Refusal,
    RefusalFacts,
    Snapshot,
    decide,
    refusals_condition,
    refusals_in,
)

TAKEN = RefusalFacts(Cause.NAME_TAKEN)
NEED = RefusalFacts(Cause.NEED_FOREIGN, {"kind": "ConfigMap", "name": "settings"})


def holding(condition: Json | None) -> Json:
    return {"status": {"conditions": [condition] if condition is not None else []}}


def test_what_is_written_is_read_beside_its_message_alone() -> None:
    refused = holding(refusals_condition({"w1": TAKEN, "w2": NEED, "w3": RefusalFacts()}, "words", NOW))
    assert refusals_in(refused, "words") == {"w1": TAKEN, "w2": NEED}
    assert refusals_in(refused, "other words") == {}
    assert refusals_condition({"w3": RefusalFacts()}, "words", NOW) is None


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "1", '{"workers": []}', '{"workers": {"w1": "x"}}'])
def test_what_cannot_be_read_is_unknown(text: str) -> None:
    assert refusals_in(holding({"type": REFUSALS, "message": text}), "words") == {}
    assert refusals_in({}, "words") == {}


@pytest.mark.parametrize(
    "about",
    [
        {"kind": "Namespace", "name": "prod"},
        {"name": "namespace/prod"},
        {"kind": "ConfigMap", "name": "namespace/prod"},
    ],
)
def test_what_it_is_about_is_what_a_job_needs(about: dict[str, str]) -> None:
    """Whoever could create an event had a person told to delete a namespace."""
    forged = RefusalFacts(Cause.NEED_FOREIGN, about)
    assert RefusalFacts.read(forged.as_json) == RefusalFacts()
    assert RefusalFacts.read(NEED.as_json) == NEED


def test_it_has_at_most_two_kilobytes() -> None:
    many = {f"worker-{number}": NEED for number in range(1000)}
    entry = refusals_condition(many, "words", NOW)
    assert entry is not None
    assert 1900 < len(entry["message"].encode()) <= 2048
    assert 10 < len(refusals_in(holding(entry), "words")) < 1000


def refused_by(facts: RefusalFacts, why: str = "words") -> Snapshot:
    return snapshot(workload(), worker("w1", refusal=Refusal(why, timedelta(minutes=5), facts)))


def told_by(seen: Snapshot) -> Snapshot:
    return carry_out(seen, decide(seen))


def on_workload(seen: Snapshot) -> Json:
    assert seen.workload is not None
    return seen.workload


def message(seen: Snapshot) -> str:
    (entry,) = on_workload(seen)["status"]["admissionChecks"]
    return str(entry["message"])


def test_it_is_written_with_the_message_and_goes_with_it() -> None:
    refused = told_by(refused_by(NEED))
    assert refusals_in(on_workload(refused), message(refused)) == {"w1": NEED}
    assert decide(refused).effects == ()
    free = told_by(attrs.evolve(refused, workers=(worker("w1"),)))
    assert condition(on_workload(free), REFUSALS) is None


def test_it_costs_no_write_of_its_own() -> None:
    """Kueue's next apply takes it away: then the cause is unknown until the message changes."""
    refused = told_by(refused_by(NEED))
    seen = on_workload(refused)
    kept = [entry for entry in seen["status"]["conditions"] if entry["type"] != REFUSALS]
    again = decide(attrs.evolve(refused, workload={**seen, "status": {**seen["status"], "conditions": kept}}))
    assert not [effect for effect in (*again.effects, *again.telling) if isinstance(effect, ApplyStatus)]
