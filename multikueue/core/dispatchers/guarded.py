"""A dispatcher that may be another package's: what it raises, or answers wrongly, concerns one Workload only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, Candidates, Dispatcher, Nomination
from multikueue.core.model.names import Json

RETRY: Final = 60.0
"""Seconds until a dispatcher that failed for a Workload is asked again, if nothing changes before."""
SETTLED_WITHIN: Final = 25
"""Answers in a row, each to what the one before has written, until one writes nothing more."""
MOMENT: Final = timedelta(milliseconds=1)
"""What passes between two of them."""
_OURS: Final = "multikueue.core."


@attrs.frozen
class Guarded:
    """Asks a dispatcher. If it fails, the nominations stay as they are, and `Nomination.problem` says why.

    An exception is told by its type only, since its text may hold what is in the Workload.
    """

    dispatcher: Dispatcher

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        try:
            answer = self.dispatcher.nominate(workload, candidates, now)
            problem = next(_faults(answer, candidates), "")
            if not problem:
                answer = self._known(answer, candidates.message)
                names, message = self._settled(answer, workload, candidates, now)
                if names:
                    return answer if message else self._silent(answer, "gives another message each time it is asked")
                problem = "nominates others each time it is asked"
        except Exception as error:  # another package's code may raise anything
            problem = f"raises {type(error).__name__}"
        return Nomination(
            candidates.nominated, look_again=RETRY, problem=self._told(problem, "nobody new is nominated")
        )

    def remembers(self, message: str) -> bool:
        """See `Remembering`. What raises keeps its message."""
        # Each decision asks, and `isinstance` of a protocol costs twenty times that.
        remembers = getattr(self.dispatcher, "remembers", None)
        try:
            return remembers is not None and bool(remembers(message))
        except Exception:  # another package's code may raise anything
            return True

    def _known(self, answer: Nomination, said: str) -> Nomination:
        """Without a message that would be replaced by what the Workload waits for, and be given again, for ever."""
        if answer.message is None or answer.message == said or self.remembers(answer.message):
            return answer
        return self._silent(answer, "gives a message that its `remembers` does not know")

    def _settled(self, answer: Nomination, workload: Json, candidates: Candidates, now: datetime) -> tuple[bool, bool]:
        """Whether the names, and the message, stay once they are written: each write leads to the next question. Else
        they would be written, and copies made and removed, for ever. Our own dispatchers are tested for that."""
        if type(self.dispatcher).__module__.startswith(_OURS) or answer.binding or answer.give_up is not None:
            return True, True
        same = False, False
        for number in range(SETTLED_WITHIN):
            same = answer.names == candidates.nominated, answer.message in (None, candidates.message)
            if all(same):
                break
            candidates = _written(answer, candidates)
            status = {**(workload.get("status") or {}), "nominatedClusterNames": list(answer.names)}
            answer = self.dispatcher.nominate({**workload, "status": status}, candidates, now + (number + 1) * MOMENT)
            if any(_faults(answer, candidates)):
                return True, True  # it is told once it answers so
            answer = self._known(answer, candidates.message)
        return same

    def _silent(self, answer: Nomination, why: str) -> Nomination:
        return attrs.evolve(answer, message=None, problem=answer.problem or self._told(why, "it is not written"))

    def _told(self, problem: str, outcome: str) -> str:
        cls = type(self.dispatcher)
        return f"The dispatcher {cls.__module__}.{cls.__qualname__} {problem}: {outcome}"


def _written(answer: Nomination, candidates: Candidates) -> Candidates:
    """What is asked about once an answer is written, and the copies are made."""
    workers = tuple(
        attrs.evolve(
            one,
            nominated=(named := one.name in answer.names),
            has_copy=named,
            conditions=one.conditions if named else (),
            gate_open=named and one.gate_open,
        )
        for one in candidates.workers
    )
    message = candidates.message if answer.message is None else answer.message
    return attrs.evolve(candidates, workers=workers, nominated=answer.names, message=message)


def _faults(answer: Any, candidates: Candidates) -> Iterator[str]:
    """What cannot be used of an answer; later faults are only looked for if there are no earlier ones."""
    if not isinstance(answer, Nomination):
        yield f"answers {type(answer).__name__}, which is not a multikueue.Nomination"
        return
    names: Any = answer.names
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        yield "nominates what is not a tuple of names"
        return
    if len(set(names)) < len(names):
        yield "nominates a worker twice"
    if len(names) > MAX_NOMINATIONS:
        yield f"nominates {len(names)} workers, and {MAX_NOMINATIONS} are allowed"
    if unusable := [name for name in names if name not in candidates.available and name not in candidates.nominated]:
        yield f'nominates "{unusable[0][:100]}", which is not available'
    message: Any = answer.message
    if message is not None and not isinstance(message, str):
        yield "gives a message that is not a text"
    if answer.look_again is not None and not (math.isfinite(answer.look_again) and answer.look_again > 0):
        yield f"wants to be asked again in {answer.look_again:g} s"
