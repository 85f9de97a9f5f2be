"""Large JSON has turns: in one turn of the event loop one such is decoded and looked at, however many have come.

Tenants choose how large objects are, and of how many parts. One may take 60 ms of a turn, and a page of a list more.
A dozen that come at once, of the manager and of workers, were one turn; to renew the Lease takes several.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

import anyio
from anyio.lowlevel import RunVar

from multikueue.kube.http.response_limits import LARGE

_LARGE: Final = RunVar[anyio.Lock]("large JSON")
"""Of each event loop: whatever server it is from, it holds up the same."""
_SMALL: Final = nullcontext()


def turn(size: int) -> AbstractAsyncContextManager[None]:
    """Within it JSON of so many bytes may be decoded and looked at. Nothing is awaited there.

    Large ones come one after the other, each in another turn of the loop.
    """
    if size <= LARGE:
        return _SMALL
    lock = _LARGE.get(None)
    if lock is None:
        _LARGE.set(lock := anyio.Lock())
    return lock
