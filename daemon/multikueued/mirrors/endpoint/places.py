"""How many streams are open at a time: in all, of one mirror, of one namespace, of one program.

Whoever opens streams without end leaves others their logs: a namespace that has few may open one more while those that
have many may not, also with a program of the same name.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

import attrs

from multikueued.serving.places import Holders
from multikueued.serving.refusal import RefusedError

TOO_MANY_WAIT: Final = "multikueue has many requests to look up: ask again in a while\n"
"""Said with 502, of which API servers pass the words on, whether there is no place to wait or the wait was too long."""


@attrs.define(eq=False)
class Places(Holders):
    """The open streams, and their bounds."""

    most: int = 512
    of_a_mirror: int = 32
    of_a_namespace: int = 128
    """One tenant's: many pods, and as many names of programs, leave places for the others."""
    of_a_program: int = 256
    """By the `User-Agent`, where that is a program of one person. Everybody's kubectl has one name: so those of a
    namespace that has few streams are not counted by it."""
    asking: int = 64
    """Requests of a namespace for which the manager is read, or that wait for that, in the name of one caller: who asks
    without end is refused before it costs much."""
    few: int = 4
    kept_for_few: int = 128
    """How many of `most` a namespace gets only as long as it has fewer than `few`: a tenant may have many."""

    def asked(self, caller: str, namespace: str) -> AbstractContextManager[None]:
        """A place of a request while it is looked up; `caller` asks for it.

        Raises:
            RefusedError: there is none.
        """
        if self.held("asking", whose := f"{caller}/{namespace}") >= self.asking:
            raise RefusedError(502, TOO_MANY_WAIT)
        return self.holding(asking=whose)

    def taken(self, mirror: str, namespace: str, program: str) -> AbstractContextManager[None]:
        """A place while the context lasts.

        Args:
            mirror: its UID.
            namespace: the mirror's.
            program: the `User-Agent`.

        Raises:
            RefusedError: there is none.
        """
        has_few = self.held("namespace", namespace) < self.few
        for count, most, of in (
            (self.held("mirror"), self.most if has_few else self.most - self.kept_for_few, "of all pods"),
            (self.held("mirror", mirror), self.of_a_mirror, "of this pod"),
            (self.held("namespace", namespace), self.of_a_namespace, "of this namespace"),
            (0 if has_few else self.held("program", program), self.of_a_program, "of this program"),
        ):
            if count >= most:
                raise RefusedError(502, f"{count} streams {of} are open already: end one first, or ask again later\n")
        return self.holding(mirror=mirror, namespace=namespace, program=program)
