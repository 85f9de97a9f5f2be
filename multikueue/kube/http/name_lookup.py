"""Looks up host names with one thread per client, so that a stuck lookup delays only the client that needs it.

Only the system's getaddrinfo honours everything an administrator may have configured. It blocks, cannot be cancelled,
and takes minutes if the name servers do not answer. aiohttp would run it in the loop's thread pool, which is small and
shared.
"""

from __future__ import annotations

import functools
import socket
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
import attrs
from aiohttp.abc import AbstractResolver, ResolveResult

from multikueue.kube.http.single_flight import Flight, SingleFlight

CACHED: Final = 60
"""Seconds for which an answer is cached: a server that moves is found again after that."""

_NUMERIC: Final = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV

_Question: TypeAlias = tuple[str, int, socket.AddressFamily]


@attrs.define(eq=False)
class NameLookup(AbstractResolver):
    """The lookups of one client: an aiohttp resolver.

    * They share one thread. Other clients have their own, so a stuck lookup does not delay them.
    * Each lookup is a single flight. A caller gives up after `deadline`, the lookup goes on, and the next caller gets
      its answer. Otherwise a name that takes longer than `deadline` could never be resolved.
    """

    flights: SingleFlight
    deadline: float
    """Seconds that a caller waits."""
    kept: float = attrs.field(default=CACHED, kw_only=True)
    """Seconds for which an answer is kept that came after its callers had gone."""
    _limiter: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(1), init=False)
    _lookups: dict[_Question, Flight[list[ResolveResult]]] = attrs.field(factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<NameLookup: {len(self._lookups)} lookups>"

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host. aiohttp caches them.

        Raises:
            OSError: there are none, or there was no answer within the deadline.
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
        """Do nothing: the client closes its flights."""

    def _lookup(self, question: _Question) -> Flight[list[ResolveResult]]:
        known = self._lookups.get(question)
        if known is None or known.ended_at + self.kept < anyio.current_time():
            known = self._lookups[question] = self.flights.begin(functools.partial(self._look, question))
        return known

    async def _look(self, question: _Question) -> list[ResolveResult]:
        try:
            return await anyio.to_thread.run_sync(_addresses, *question, abandon_on_cancel=True, limiter=self._limiter)
        except Exception:
            self._lookups.pop(question, None)  # the next caller tries again
            raise


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    """Call getaddrinfo. It blocks."""
    addresses = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [
        ResolveResult(
            hostname=host,
            host=socket.getnameinfo(address, _NUMERIC)[0],  # with the zone, which link-local addresses need
            port=port,
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, protocol, _, address in addresses
    ]
