"""What to do about pods that do not run, or have failed, by the reason that their kubelet gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from multikueue.core.model.outside_text import plain
from multikueued.reports.pod_reasons import PodReason
from multikueued.reports.remedies.remedy import REMEDIES, Finding

NEED_MISSING: Final = REMEDIES["dependency-missing"]
STARTS: Final = REMEDIES["pod-starts"]
NONE_MADE: Final = REMEDIES["pods-refused"]
BY_REASON: Final = {reason: row for row in REMEDIES.values() for reason in row.reasons}
"""By reason; of others only their words are told."""
MOST: Final = 3
"""Findings about pods: they have one cause as a rule."""


@attrs.frozen
class TroubledPod:
    """A pod that does not run, or has failed."""

    name: str
    why: PodReason


def pod_findings(pods: Iterable[TroubledPod], context: Mapping[str, str]) -> Iterator[Finding]:
    """What keeps a job's pods from running; one finding for one cause.

    Args:
        pods: those that are not ready, and have not succeeded.
        context: `worker`, `job`, `namespace`.
    """
    by_cause: dict[tuple[str, str], list[TroubledPod]] = defaultdict(list)
    for pod in pods:
        remedy = BY_REASON.get(pod.why.reason)
        if remedy is not None:
            by_cause[remedy.id, pod.why.container].append(pod)
    for (_, container), alike in [*by_cause.items()][:MOST]:
        first = alike[0]
        what = f"{'init container' if first.why.is_init else 'container'} {container}" if container else "a container"
        words = {**context, "what": what, "container": container}
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        yield BY_REASON[first.why.reason].about(f"pod {plain(first.name)}{more}", plain(first.why.sentence), words)
