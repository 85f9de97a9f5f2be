"""What is called at each change: a list that is closed once changes come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, Self

import attrs

P = ParamSpec("P")


@attrs.define(eq=False)
class Handlers(Generic[P]):
    """Functions that are called one after the other, in the order in which they were added. They must not wait."""

    _handlers: list[Callable[P, object]] = attrs.field(factory=list)
    _closed: bool = attrs.field(default=False, init=False)

    @classmethod
    def beginning_with(cls, first: Callable[P, object] | None) -> Self:
        """A list with this one; None: an empty one."""
        return cls([first] if first is not None else [])

    def add(self, handler: Callable[P, object]) -> None:
        """Have it called, too.

        Raises:
            RuntimeError: the list is closed: it would have missed changes.
        """
        if self._closed:
            raise RuntimeError(f"{handler!r} comes too late: changes have been missed")
        self._handlers.append(handler)

    def close(self) -> None:
        """Add none any more."""
        self._closed = True

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call them all."""
        for handler in self._handlers:
            handler(*args, **kwargs)
