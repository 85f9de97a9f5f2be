"""A dispatcher that may be another package's: what it raises, or answers wrongly, concerns one Workload only."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import PurePath
from traceback import walk_tb
from typing import Any, Final

import attrs

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, Candidates, Dispatcher, Nomination, NotTaken
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model.names import Json
from multikueue.errors import Cause

RETRY: Final = 60.0
"""Seconds until a dispatcher that failed for a Workload is asked again, if nothing changes before."""
SOONEST: Final = 1.0
"""Seconds until one is asked again at the earliest, if nothing changes before: less would keep the loop busy."""


@attrs.frozen
class Guarded:
    """Asks a dispatcher. If it fails, the nominations stay as they are, and `Nomination.problem` says why.

    An exception is told by its type and place, since its text may hold what is in the Workload.
    """

    dispatcher: Dispatcher

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        try:
            answer = self.dispatcher.nominate(workload, candidates, now)
            problem = next(_faults(answer, candidates), "")
            if not problem:
                return self._lasting(_unhurried(answer), candidates.message)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # another package's code may raise anything; nothing cancels what never waits
            problem = f"raises {type(error).__name__} in {self._place(error)}"
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

    def _lasting(self, answer: Nomination, said: str) -> Nomination:
        """Without a message that would be replaced by what the Workload waits for, and be given again, for ever."""
        if answer.message is None or answer.message == said or self.remembers(answer.message):
            return answer
        problem = self._told("gives a message that its `remembers` does not know", "it is not written")
        return attrs.evolve(answer, message=None, problem=answer.problem or problem)

    def _place(self, error: BaseException) -> str:
        """Where that was raised, in the dispatcher's own module if it went through that."""
        frames = [(frame.f_globals.get("__name__"), frame, line) for frame, line in walk_tb(error.__traceback__)]
        own = [place for place in frames if place[0] == type(self.dispatcher).__module__]
        _, frame, line = (own or frames)[-1]
        return f"{PurePath(frame.f_code.co_filename).name}, line {line}"

    def _told(self, problem: str, outcome: str) -> str:
        cls = type(self.dispatcher)
        return f"The dispatcher {cls.__module__}.{cls.__qualname__} {problem}: {outcome}"


def _unhurried(answer: Nomination) -> Nomination:
    soon = answer.look_again is not None and answer.look_again < SOONEST
    return attrs.evolve(answer, look_again=SOONEST) if soon else answer


def _faults(answer: Any, candidates: Candidates) -> Iterator[str]:
    """What cannot be used of an answer; later faults are only looked for if there are no earlier ones."""
    if not isinstance(answer, Nomination):
        yield f"answers {type(answer).__name__}, which is not a multikueue.Nomination"
        return
    names: Any = answer.names
    if not isinstance(names, tuple) or not all(map(_is_text, names)):
        yield "nominates what is not a tuple of names"
        return
    if len(set(names)) < len(names):
        yield "nominates a worker twice"
    if len(names) > MAX_NOMINATIONS:
        yield f"nominates {len(names)} workers, and {MAX_NOMINATIONS} are allowed"
    if unusable := [name for name in names if name not in candidates.available and name not in candidates.nominated]:
        yield f'nominates "{unusable[0][:100]}", which is not available'
    reasons: Any = answer.reasons
    if not isinstance(reasons, Mapping) or not all(map(_is_text, reasons)):
        yield "gives reasons that are not of multikueue.Reason by worker"
        return
    if not all(_is_reason(reason) for reason in reasons.values()):
        yield "gives a reason that is not a multikueue.Reason with a multikueue.Cause"
    if not (answer.message is None or _is_text(answer.message)) or not _is_text(answer.problem):
        yield "gives a message that is not a text"
    if not isinstance(answer.not_taken, NotTaken | None):
        yield "says with what is no multikueue.NotTaken that nobody took it"
    seconds: Any = answer.look_again
    if seconds is not None and not (isinstance(seconds, int | float) and 0 < seconds <= sys.float_info.max):
        yield f"wants to be asked again in {seconds!r:.20} s"


def _is_reason(value: Any) -> bool:
    why: Any = getattr(value, "why", None)
    return isinstance(value, Reason) and isinstance(why, Cause) and _is_text(value.detail)


def _is_text(value: Any) -> bool:
    """Whether it can be written into an object."""
    return isinstance(value, str) and value.encode(errors="replace").decode() == value
