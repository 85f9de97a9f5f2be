"""How many streams are open at a time: in all, of one mirror, of one namespace, of one program.

Whoever opens streams without end leaves others their logs: a namespace that has few may open one more while those that
have many may not, also with a program of the same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import attrs

from multikueued.mirrors.endpoint.heads import RefusedError


@attrs.define(eq=False)
class Places:
    """The open streams, and their bounds."""

    most: int = 512
    of_a_mirror: int = 32
    of_a_namespace: int = 128
    """One tenant's: many pods, and as many names of programs, leave places for the others."""
    of_a_program: int = 256
    """By the `User-Agent`, where that is a program of one person. Everybody's kubectl has one name: so those of a
    namespace that has few streams are not counted by it."""
    few: int = 4
    kept_for_few: int = 128
    """How many of `most` a namespace gets only as long as it has fewer than `few`: a tenant may have many."""
    _mirrors: Counter[str] = attrs.field(factory=Counter, init=False)
    _namespaces: Counter[str] = attrs.field(factory=Counter, init=False)
    _programs: Counter[str] = attrs.field(factory=Counter, init=False)
    _none_open: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    @contextmanager
    def taken(self, mirror: str, namespace: str, program: str) -> Iterator[None]:
        """A place while the context lasts.

        Args:
            mirror: its UID.
            namespace: the mirror's.
            program: the `User-Agent`.

        Raises:
            RefusedError: there is none.
        """
        has_few, in_all = self._namespaces[namespace] < self.few, self._mirrors.total()
        for count, most, of in (
            (in_all, self.most if has_few else self.most - self.kept_for_few, "of all pods"),
            (self._mirrors[mirror], self.of_a_mirror, "of this pod"),
            (self._namespaces[namespace], self.of_a_namespace, "of this namespace"),
            (0 if has_few else self._programs[program], self.of_a_program, "of this program"),
        ):
            if count >= most:
                raise RefusedError(502, f"{count} streams {of} are open already: end one first, or ask again later\n")
        held = ((self._mirrors, mirror), (self._namespaces, namespace), (self._programs, program))
        for counter, key in held:
            counter[key] += 1
        try:
            yield
        finally:
            for counter, key in held:
                counter[key] -= 1
                if not counter[key]:
                    del counter[key]
            if not self._mirrors:
                self._none_open.set()

    async def none_open(self) -> None:
        """Wait until there is no stream."""
        while self._mirrors:
            self._none_open = anyio.Event()
            await self._none_open.wait()
