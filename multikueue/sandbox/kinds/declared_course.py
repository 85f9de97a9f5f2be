"""The statuses of a declared kind, found by trying: a declaration says how an end is told, and not what a status is.

Candidates are made of the fields of the status that `finished` and `failed` read, with the texts and numbers that stand
in the two. What the expressions then say of a candidate decides.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs

from multikueue.adapters import JobKind, Outcome
from multikueue.adapters.declared.rules import Ending as DeclaredEnding
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from multikueue.errors import RuleError, SandboxError
from multikueue.sandbox.kinds.course import Ending
from multikueue.sandbox.kinds.stages import BY_CONDITIONS, Stage, Stages

_Path: TypeAlias = tuple[str, ...]
_Rule: TypeAlias = Callable[[Json], Outcome | None]

MOST: Final = 20_000
"""Candidates that are tried: a second's work."""
_USUAL: Final = ("Succeeded", "Failed", "True", "2026-01-01T00:00:00Z", True, False, 1, 0)
"""What fields are tried with beside the literals."""
_LEFT_OUT: Final = object()
_STATUS: Final = re.compile(
    r"\bobject\.status((?:\.[A-Za-z_]\w*\b(?!\s*\())+)(?:\.(?:all|exists|exists_one|filter|map)\(\s*([A-Za-z_]\w*)\s*,)?"
)
"""`object.status.a.b`, and the variable that stands for an entry of it if that is a list."""
_TEXT: Final = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")
_NUMBER: Final = re.compile(r"\b\d+\b")


@attrs.frozen(kw_only=True)
class DeclaredStages(Stages):
    """A course of which the declaration says whether it has ended."""

    rule: _Rule

    def ending(self, job: Json) -> Ending | None:
        """See `Course`."""
        outcome = _outcome(self.rule, job)
        return None if outcome is None else Ending(outcome.reason, outcome.message)


def declared_course(row: JobKind, example: Json) -> Stages:
    """The course of a declared kind: its statuses are such that the row takes an end for an end, and nothing else.

    Args:
        row: of the kind.
        example: a job of it, without a status.

    Raises:
        SandboxError: no candidate does; the message names the expression and says what to do.
    """
    rule = row.status.finished
    if not isinstance(rule, DeclaredEnding):
        return BY_CONDITIONS
    fields = {"Succeeded": ("finished", rule.finished), "Failed": ("failed", rule.failed)}
    said = {
        reason: (field, expression.text) for reason, (field, expression) in fields.items() if expression is not None
    }
    texts, ends = " ".join(text for _, text in said.values()), dict[str, Json]()
    for status in itertools.islice(_candidates(texts), MOST):
        if (outcome := _outcome(rule, {**example, "status": status})) is not None:
            ends.setdefault(outcome.reason, status)
        if said.keys() <= ends.keys():
            break
    for reason, (field, text) in said.items():
        if reason not in ends:
            raise _refusal(row, field, text, "tells an end")
    stages = _stages(ends, lambda status: _goes_on(rule, {**example, "status": status}))
    if stages is None:
        raise _refusal(row, "finished", texts, "tells that a job runs")
    return DeclaredStages(**stages, rule=rule) if rule.finished is not None else Stages(**stages)


def _refusal(row: JobKind, field: str, text: str, what: str) -> SandboxError:
    return SandboxError(
        f"{row.source}.{field}: {text}: no status was found that {what}: tried were the fields of object.status it "
        "reads, with the texts and numbers it holds. Write it like object.status.phase in ['Done'], or try the kind "
        "with a SandboxKind of your own: docs/adapters.md"
    )


def _outcome(rule: _Rule, job: Json) -> Outcome | None:
    try:
        return rule(job)
    except RuleError:  # of this status it says nothing
        return None


def _goes_on(rule: _Rule, job: Json) -> bool:
    """Whether it has not ended, and nothing in its status stops the rule from saying so."""
    try:
        return rule(job) is None
    except RuleError:
        return False


def _stages(ends: dict[str, Json], goes_on: Callable[[Json], bool]) -> dict[str, Any] | None:
    """What a status says at each point; None if every candidate for a job that runs would be one that has ended."""
    if not goes_on({}):
        return None
    paths = [path for status in ends.values() for path in _texts_in(status)]
    words = [(with_value({}, path, "Suspended"), with_value({}, path, "Running")) for path in paths]
    for suspended, running in words:
        if goes_on(suspended) and goes_on(running):
            stages = {"suspended": Stage(fields=suspended), "running": Stage(fields=running)}
            break
    else:
        stages = {"suspended": BY_CONDITIONS.suspended, "running": BY_CONDITIONS.running}
        shown = [[{"type": kind, "status": value} for kind, value in s.conditions.items()] for s in stages.values()]
        if not all(goes_on({"conditions": conditions}) for conditions in shown):
            return None
    gone = ("conditions", *stages["running"].fields)
    last = {reason: Stage(fields=status, dropped=gone) for reason, status in ends.items()}
    succeeded = last.get("Succeeded") or Stage(conditions={"Complete": "True"}, reason="Completed", dropped=gone)
    return {**stages, "succeeded": succeeded, "failed": last.get("Failed", succeeded)}


def _texts_in(status: Json) -> Iterator[_Path]:
    """Where a status has a text, lists aside."""
    for key, value in status.items():
        if isinstance(value, str):
            yield (key,)
        elif isinstance(value, dict):
            yield from ((key, *path) for path in _texts_in(value))


def _candidates(text: str) -> Iterator[Json]:
    """Statuses that have to do with what these expressions read and hold, those with few fields first."""
    literals = [single or double for single, double in _TEXT.findall(text)]
    bare = _TEXT.sub("''", text)
    numbers = [int(number) + more for number in _NUMBER.findall(bare) for more in (0, 1)]
    values = list({repr(value): value for value in (*literals, *numbers, *_USUAL)}.values())
    entries: dict[_Path, str] = {}
    for dotted, variable in _STATUS.findall(bare):
        path = tuple(dotted.split(".")[1:])
        entries[path] = entries.get(path) or variable
    yield from _objects({path: _values_of(variable, bare, values) for path, variable in entries.items()})


def _values_of(variable: str, bare: str, values: Sequence[Any]) -> Sequence[Any]:
    """What a field is tried with: a value, or a list of one entry if a variable stands for its entries."""
    if not variable:
        return values
    dotted = re.findall(rf"(?<![\w.]){variable}((?:\.[A-Za-z_]\w*\b(?!\s*\())+)", bare)
    fields = {tuple(path.split(".")[1:]): values for path in dotted}
    return [[entry] for entry in itertools.islice(_objects(fields), MOST)]


def _objects(fields: dict[_Path, Sequence[Any]]) -> Iterator[Json]:
    """Every object that has some of these fields, with one of its values each."""
    leaves = [path for path in fields if not any(other[: len(path)] == path for other in fields if other != path)]
    for made in itertools.product(*((_LEFT_OUT, *fields[path]) for path in leaves)):
        status: Json = {}
        for path, value in zip(leaves, made, strict=True):
            status = status if value is _LEFT_OUT else with_value(status, path, value)
        yield status
