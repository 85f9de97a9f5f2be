"""Looking up host names, so that one that nobody answers for holds up the client that needs it, and no other.

Only the system's own function knows all that an administrator may have set up. It blocks, cannot be stopped, and takes
as long as it likes: minutes, where name servers do not answer. aiohttp would run it in the loop's threads, which are
few, and everybody's.
"""

from __future__ import annotations

import functools
import socket
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
import attrs
from aiohttp.abc import AbstractResolver, ResolveResult

from multikueue.kube.single_flight import Flight, SingleFlight

CACHED: Final = 60
"""Seconds for which an answer is used: a server that moves is found again after that."""

_NUMERIC: Final = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV

_Question: TypeAlias = tuple[str, int, socket.AddressFamily]


@attrs.define(eq=False)
class NameLookup(AbstractResolver):
    """The lookups of one client.

    * They have one thread: one that is stuck is missed by nobody else, and there is never a second one beside it.
    * Whoever asks gives up in time. The lookup goes on, and its answer is for the next who asks: else a name that takes
      longer than anybody waits would never be reached.
    """

    flights: SingleFlight
    deadline: float
    """Seconds after which there is no answer."""
    kept: float = attrs.field(default=CACHED, kw_only=True)
    """Seconds for which an answer is kept that nobody waited for."""
    _limiter: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(1), init=False)
    _lookups: dict[_Question, Flight[list[ResolveResult]]] = attrs.field(factory=dict, init=False)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host. aiohttp remembers them.

        Raises:
            OSError: there are none, or no answer in time.
        """
        question = host, port, family
        lookup = self._lookup(question)
        try:
            with anyio.move_on_after(self.deadline):
                return await lookup.result()
        finally:
            if lookup.ended and self._lookups.get(question) is lookup:
                del self._lookups[question]
        raise socket.gaierror(socket.EAI_AGAIN, f"{host} was not resolved within {self.deadline:g} s")

    async def close(self) -> None:
        """There is nothing to close: the flights are the client's."""

    def _lookup(self, question: _Question) -> Flight[list[ResolveResult]]:
        known = self._lookups.get(question)
        if known is None or known.ended_at + self.kept < anyio.current_time():
            known = self._lookups[question] = self.flights.begin(functools.partial(self._look, question))
        return known

    async def _look(self, question: _Question) -> list[ResolveResult]:
        try:
            return await anyio.to_thread.run_sync(_addresses, *question, abandon_on_cancel=True, limiter=self._limiter)
        except Exception:
            self._lookups.pop(question, None)  # who asks next may be luckier
            raise


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    """Blocks."""
    found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [
        ResolveResult(
            hostname=host,
            host=socket.getnameinfo(address, _NUMERIC)[0],  # with the interface, which link-local addresses need
            port=port,
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, protocol, _, address in found
    ]
