"""How much memory the daemon keeps: the objects that can be reached from it, and not from the world it works on.

`tracemalloc` counts what the simulated API servers keep as well, and makes a run three times as long.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Final

import anyio
import attrs

from tests.simulation.session import Session
from tests.simulation.world import World

_CODE: Final = (types.ModuleType, type, types.CodeType, types.FrameType, types.BuiltinFunctionType)
"""What belongs to the program, not to its data. Frames are counted as tasks."""
_OUTSIDE: Final = (Session, World, asyncio.AbstractEventLoop, asyncio.Task, anyio.CancelScope)
"""Where the daemon ends: its clients, and the loop and the tree of cancel scopes that it shares with the world."""


@attrs.frozen
class Size:
    """So much is kept."""

    objects: int
    size: int
    """In bytes, as `sys.getsizeof` tells it."""


def reachable(roots: Iterable[object], outside: tuple[type, ...] = ()) -> Size:
    """Count what can be reached from some objects.

    Args:
        roots: where to begin.
        outside: types whose objects are not looked into.
    """
    ends = (*_CODE, *_OUTSIDE, *outside)
    seen: set[int] = set()
    waiting = list(roots)
    size = 0
    while waiting:
        obj = waiting.pop()
        if id(obj) in seen or isinstance(obj, ends):
            continue
        seen.add(id(obj))
        size += sys.getsizeof(obj)
        waiting.extend(_parts(obj))
    return Size(len(seen), size)


def _parts(obj: object) -> Iterable[object]:
    """What an object refers to; of a function not the module it is defined in."""
    if isinstance(obj, types.FunctionType):
        return (obj.__closure__, obj.__defaults__, obj.__kwdefaults__)
    return gc.get_referents(obj)


def globals_of(package: str, but: str) -> Iterator[object]:
    """The data that the modules of a package keep.

    Args:
        package: its name.
        but: the beginning of the names of modules that are left out.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and not name.startswith(but):
            yield from (value for key, value in vars(module).items() if not key.startswith("__"))
