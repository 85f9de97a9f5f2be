"""How many streams are open at a time: in all, of one mirror, of one namespace, of one program."""

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
    """By the `User-Agent`: one that opens streams without end leaves places for the others."""
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
        for count, most, of in (
            (self._mirrors.total(), self.most, "of all pods"),
            (self._mirrors[mirror], self.of_a_mirror, "of this pod"),
            (self._namespaces[namespace], self.of_a_namespace, "of this namespace"),
            (self._programs[program], self.of_a_program, "of this program"),
        ):
            if count >= most:
                raise RefusedError(502, f"{most} streams {of} are open already: end one first, or ask again later\n")
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
