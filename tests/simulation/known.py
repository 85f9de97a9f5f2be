"""What the code of today does not keep yet, by item of issue 13: true once that item is merged.

A promise or a trouble that belongs to an item is drawn only if its constant is true, so that the seeds tell of new
faults and not of known ones. `MULTIKUEUE_SIM_ITEMS=1,8` makes some true for one run, `all` all of them.
"""

from __future__ import annotations

import os
from typing import Final

_ASKED: Final = frozenset(os.environ.get("MULTIKUEUE_SIM_ITEMS", "").replace(",", " ").split())


def _holds(item: str, *, merged: bool = False) -> bool:
    return merged or item in _ASKED or "all" in _ASKED


ITEM_1_KINDS: Final = _holds("1", merged=True)
"""A kind taken out of the settings at a restart, a worker removed from the config: what runs runs on."""
ITEM_2_READY: Final = _holds("2", merged=True)
"""Somebody erases `clusterName` of a Workload that is Ready: its job runs on."""
ITEM_3_TOLD: Final = _holds("3")
"""Every wait is told: a Workload with quota whose check is Pending for long says why."""
ITEM_8_GRACE: Final = _holds("8")
"""A worker is lost for as long as a leader has watched it be lost: our own absence does not count."""
