"""The sandbox's kinds beside what real controllers wrote: they read it right, and write nothing that is not in it.

The recordings are in `tests/data/operators`; `MULTIKUEUE_RECORD=1 nox -s operators` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind
from multikueue.sandbox.kinds.course import Fate, Moment, Run
from multikueue.sandbox.kinds.sets import SetKind
from tests.data.files import OPERATORS
from tests.kinds.ground import TEMPLATE
from tests.operators.recording import normalised, read

KINDS: Final = {kind.name: kind for kind in AVAILABLE}
RECORDED: Final = sorted(folder.name for folder in OPERATORS.iterdir())
ENDINGS: Final = {"finishes": "Succeeded", "hurt": "Succeeded", "fails": "Failed"}
_NUMBERS: Final = ("availableWorkerReplicas", "readyWorkerReplicas", "maxWorkerReplicas")
_RESOURCES: Final = ("desiredCPU", "desiredMemory", "desiredGPU", "desiredTPU")
_CLUSTERS: Final = frozenset((*_NUMBERS, *_RESOURCES, "endpoints", "head", "stateTransitionTimes"))
_NAMES: Final = frozenset(("rayClusterName", "rayJobInfo", "dashboardURL", "jobId"))
LEFT_OUT: Final[Mapping[str, frozenset[str]]] = {
    "appwrapper": frozenset(("componentStatus",)),
    "pipelinerun": frozenset(("childReferences", "pipelineSpec", "provenance", "skippedTasks")),
    "raycluster": _CLUSTERS,
    "rayjob": _NAMES,
    "rayservice": frozenset(("pendingServiceStatus",)),
    "workflow": frozenset(("artifactGCStatus", "artifactRepositoryRef", "nodes", "progress")),
}
"""By kind, fields of the status and types of conditions that the sandbox does not write."""


def _files(*ways: str) -> list[Path]:
    return [path for kind in RECORDED for way in ways if (path := OPERATORS / kind / f"{way}.json").exists()]


def _named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def _job(kind: SandboxKind, status: Json) -> Json:
    return {**kind.example("NAME", TEMPLATE, queue="queue"), "status": status}


def _words(status: Json) -> set[tuple[str, str, str, str]]:
    """What its conditions say."""
    return {
        (entry["type"], entry["status"], entry.get("reason", ""), entry.get("message", ""))
        for entry in status.get("conditions") or ()
    }


def _course(kind: SandboxKind, *, fails: bool) -> Iterator[Json]:
    """The statuses that the sandbox writes of a job that is suspended, starts and runs, and ends if its kind does.

    Of a set: while no pod is ready, and once all are.
    """
    job, run = _job(kind, {}), None
    if isinstance(kind, SetKind):
        for ready in ((), [member.name for member in kind.members(job)]):
            job["status"] = kind.status(job, frozenset(ready), datetime(2026, 1, 1, tzinfo=UTC))
            yield normalised(job["status"], "NAME")
        return
    for time, suspended in ((0.0, True), (1.0, False), (3.0, False), (20.0, False)):
        moment = Moment(
            time=time,
            now=datetime(2026, 1, 1, tzinfo=UTC),
            startup=1.0,
            draw=lambda: Fate(5.0, fails),
            suspended=suspended,
            pods=kind.pods.counts(job),
        )
        run = _turned(kind, job, run, moment)
        yield normalised(job["status"], "NAME")


def _turned(kind: SandboxKind, job: Json, run: Run | None, moment: Moment) -> Run | None:
    turn = kind.course.turn(job, run, moment)
    if turn.status is not None:
        job["status"] = turn.status
    return turn.run


@pytest.mark.parametrize("path", _files(*ENDINGS), ids=_named)
def test_the_end_of_a_real_status_is_read_as_one_and_nothing_before_it(path: Path) -> None:
    """The small Kueue finishes a Workload by it."""
    kind = KINDS[path.parent.name]
    if not kind.course.ends:
        return
    endings = [kind.ending(_job(kind, status)) for status in read(path)]
    last = endings[-1]
    assert last is not None
    assert last.reason == ENDINGS[path.stem]
    first = next(number for number, ending in enumerate(endings) if ending is not None)
    assert all(ending is None for ending in endings[:first])
    assert {ending.reason for ending in endings[first:] if ending is not None} == {last.reason}


@pytest.mark.parametrize("path", _files("finishes", "pauses"), ids=_named)
def test_a_real_status_shows_when_the_pods_run_and_when_they_are_gone(path: Path) -> None:
    """Quota is held while they are there."""
    kind, statuses = KINDS[path.parent.name], read(path)
    ready = [kind.course.pods_ready(_job(kind, status)) for status in statuses]
    active = [kind.course.is_active(_job(kind, status)) for status in statuses]
    assert not ready[0]
    assert not active[0]
    assert any(is_ready and other for is_ready, other in zip(ready, active, strict=True))
    if path.stem == "finishes" and kind.course.ends:
        assert not active[-1]


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("way", ["finishes", "fails"])
def test_the_sandbox_writes_no_condition_that_the_real_controller_does_not(name: str, way: str) -> None:
    """What a user of the demo sees is what a user of the real thing sees."""
    recorded = OPERATORS / name / f"{way}.json"
    if not recorded.exists():
        assert not KINDS[name].course.ends
        return
    real = {
        word
        for path in _files("finishes", "fails", "pauses")
        if path.parent.name == name
        for status in read(path)
        for word in _words(status)
    }
    written = {word for status in _course(KINDS[name], fails=way == "fails") for word in _words(status)}
    assert written <= real


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("way", ["finishes", "fails"])
def test_the_sandbox_ends_with_the_fields_and_conditions_of_the_real_one(name: str, way: str) -> None:
    """Less what it leaves out."""
    recorded = OPERATORS / name / f"{way}.json"
    if not recorded.exists():
        assert not KINDS[name].course.ends
        return
    *_, last = _course(KINDS[name], fails=way == "fails")
    real = read(recorded)[-1]
    out = LEFT_OUT.get(name, frozenset())
    assert last.keys() - out == real.keys() - out
    assert {word for word in _words(real) if word[0] not in out} <= _words(last)
    plain = {key for key, value in last.items() if isinstance(value, str | int)} - out
    assert {key: last[key] for key in plain} == {key: real[key] for key in plain}
