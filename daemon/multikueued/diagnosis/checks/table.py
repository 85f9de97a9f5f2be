"""The table of all checks, in the order in which they look: what several find is told by the first of them."""

from __future__ import annotations

from typing import Final

from multikueued.diagnosis.checks import (
    access,
    configuration,
    jobs,
    kueue,
    mirrors,
    own_worker,
    pools,
    webhooks,
    workers,
)
from multikueued.diagnosis.findings import Check, checks_of

GROUPS: Final[dict[str, tuple[Check, ...]]] = {
    "On the manager": (*checks_of(kueue), *checks_of(configuration), *checks_of(access)),
    "The webhook's registration": checks_of(webhooks),
    "Pods of the runs on the manager": checks_of(mirrors),
    "On workers": checks_of(workers),
    "On the manager as a worker": checks_of(own_worker),
    "What the scored dispatcher holds by": checks_of(pools),
    "What jobs tell": checks_of(jobs),
}
CHECKS: Final = tuple(check for group in GROUPS.values() for check in group)
"""All rows."""
