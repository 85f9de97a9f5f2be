"""The collection of garbage in a process whose caches are large."""

from __future__ import annotations

import gc


def freeze() -> None:
    """Exempt the objects in the caches from garbage collection: a full one stops the loop for a second.

    What was exempt before is looked at first: the caches of an earlier term are garbage.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    gc.freeze()
