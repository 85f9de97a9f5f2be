"""
Run the same operations on two servers and compare.

A seed is one pair of namespaces and one sequence of operations. It ends at the first difference that leaves the two
in different states, because what follows from that says nothing new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any

import attrs

from tests.conformance.client import ConformanceClient, Stream
from tests.conformance.fuzz.deltas import delta
from tests.conformance.fuzz.differences import Known, explain
from tests.conformance.fuzz.generating import generate
from tests.conformance.fuzz.operations import JOBS, KINDS, PODS, SECRETS, WIDGETS, Kind, Operation
from tests.conformance.fuzz.outcomes import Subject, normalize
from tests.conformance.objects import job, pod

REPLAY = "python -m tests.conformance.fuzz"
_LAST = "zz-last"
_WATCHES: tuple[tuple[Kind, dict[str, str]], ...] = (
    *((kind, {}) for kind in KINDS),
    (WIDGETS, {"labelSelector": "x=1"}),
    (PODS, {"fieldSelector": "metadata.name!=a"}),
)


@attrs.frozen
class Difference:
    """One operation, or one watch, that the servers answer differently."""

    seed: int
    step: int
    what: str
    real: Any
    sandbox: Any
    known: Known | None = None
    words: str = ""

    def __str__(self) -> str:
        known = f"\n  known: {self.known.name}" if self.known else ""
        differing = "".join(f"\n    {line}" for line in delta(self.real, self.sandbox))
        replay = f"{REPLAY} --seed {self.seed} --seeds 1"
        return f"seed {self.seed} step {self.step}: {self.what}{known}{differing}{self.words}\n  replay:  {replay}"


@attrs.define(eq=False)
class Report:
    """What a run found."""

    operations: int = 0
    events: int = 0
    seeds: int = 0
    by_kind: Counter[str] = attrs.field(factory=Counter)
    by_code: Counter[int] = attrs.field(factory=Counter)
    differences: list[Difference] = attrs.field(factory=list)

    @property
    def unknown(self) -> list[Difference]:
        """The differences that are not on the list."""
        return [difference for difference in self.differences if difference.known is None]

    @property
    def share(self) -> float:
        """How many of the operations differ in a way that is not on the list."""
        return len(self.unknown) / max(1, self.operations)

    def summary(self) -> str:
        """One line."""
        known = Counter(difference.known.name for difference in self.differences if difference.known)
        return (
            f"{self.operations} operations in {self.seeds} seeds, {self.events} watch events, "
            f"{len(self.unknown)} unknown differences ({self.share:.2%}), known: {dict(known)}; "
            f"by kind {dict(self.by_kind)}, by code {dict(sorted(self.by_code.items()))}"
        )


async def compare(
    real: ConformanceClient, sandbox: ConformanceClient, report: Report, seed: int, *, length: int, managers: bool
) -> None:
    """Run one seed; what it finds goes into the report."""
    dice = Random(seed)
    left, right = [Subject(cluster, await cluster.namespace(), managers) for cluster in (real, sandbox)]
    report.seeds += 1
    async with _watching(left) as left_streams, _watching(right) as right_streams:
        for step in range(length):
            if not await _step(left, right, report, (seed, step), generate(dice, step)):
                return
        await _compare_streams(report, seed, left, right, left_streams, right_streams)


async def _step(left: Subject, right: Subject, report: Report, where: tuple[int, int], operation: Operation) -> bool:
    """Perform one operation on both; returns whether they are in the same state after it."""
    first, other = await left.perform(operation), await right.perform(operation)
    report.operations += 1
    report.by_kind[operation.kind.plural] += 1
    report.by_code[first.code] += 1
    if first == other:
        return True
    words = f"\n  words:   {left.last_message()!r} / {right.last_message()!r}"
    known = explain(operation, first, other)
    report.differences.append(Difference(*where, str(operation), first, other, known, words))
    if not operation.name:
        return True
    states = [await subject.state(operation.kind, operation.name) for subject in (left, right)]
    return states[0] == states[1]


@asynccontextmanager
async def _watching(subject: Subject) -> AsyncIterator[list[Stream]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(subject.cluster.watch(kind.path(subject.namespace), **params))
            for kind, params in _WATCHES
        ]


async def _compare_streams(
    report: Report, seed: int, left: Subject, right: Subject, left_streams: list[Stream], right_streams: list[Stream]
) -> None:
    for subject in (left, right):
        await _mark_the_end(subject)
    for (kind, params), first, other in zip(_WATCHES, left_streams, right_streams, strict=True):
        real, sandbox = await _read(first, left.managers), await _read(other, left.managers)
        report.events += len(real)
        if real != sandbox:
            at = next((i for i, pair in enumerate(zip(real, sandbox, strict=False)) if pair[0] != pair[1]), -1)
            at = at if at >= 0 else min(len(real), len(sandbox))
            what = f"event {at} of a watch of {kind.plural} {params or ''}"
            report.differences.append(Difference(seed, -1, what, real[at : at + 1], sandbox[at : at + 1]))


async def _mark_the_end(subject: Subject) -> None:
    """Create an object of each kind that every watch selects."""
    labels = {"labels": {"x": "1"}}
    pod_spec = {"spec": {**pod(_LAST)["spec"], "automountServiceAccountToken": False}}
    bodies = {WIDGETS: {"spec": {}}, PODS: pod_spec, JOBS: {"spec": job(_LAST)["spec"]}, SECRETS: {}}
    for kind, body in bodies.items():
        code, answer = await subject.cluster.post(kind.path(subject.namespace), kind.manifest(_LAST, body, labels))
        assert code == 201, answer


async def _read(stream: Stream, managers: bool) -> list[tuple[str, Any]]:
    events: list[tuple[str, Any]] = []
    while True:
        event = await stream.next(10)
        if event["object"].get("metadata", {}).get("name") == _LAST:
            return events
        events.append((event["type"], normalize(event["object"], managers=managers)))
