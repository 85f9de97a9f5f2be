"""Hooks are told what happens, for metrics and the like; what they raise holds up nobody. See `protocols`."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from functools import partial
from typing import Any, TypeVar, cast

import attrs

from multikueue.logs import get_logger

H = TypeVar("H")


@attrs.define(eq=False)
class _Unfailing:
    _hook: Any
    _told: set[str] = attrs.field(factory=set, init=False)

    def __getattr__(self, method: str) -> Any:
        return partial(self._call, method)

    def _call(self, method: str, *told: Any) -> None:
        try:
            answer = getattr(self._hook, method)(*told)
            if inspect.iscoroutine(answer):
                answer.close()
                raise TypeError("nobody awaits what a hook answers: it must be no coroutine function")
        except (Exception, CancelledError) as error:  # another package's code may raise anything; this never waits
            if method not in self._told:
                self._told.add(method)
                name = f"{type(self._hook).__qualname__}.{method}"
                get_logger(__name__).error("a hook fails, told once", hook=name, exc_info=error)


def unfailing(hook: H | None) -> H | None:
    """A hook that holds up nobody: what one of its methods raises is in the log, the first time."""
    return hook if hook is None or isinstance(hook, _Unfailing) else cast("H", _Unfailing(hook))
